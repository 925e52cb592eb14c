//! OPTIMIZE: compaction of small files, orders of rows, and clustering.

use lakesmith_core::Result;
use lakesmith_core::layout::Curve;
use lakesmith_core::op::optimize::{KeyLayout, LeftOutFile, PlannedGroup};
use lakesmith_core::op::{
    Compat, CubeSizes, OptimizeOptions, OptimizeReport, OrderBy, PlannedOperation, Report, RewriteLimits, TimeTravel,
};
use lakesmith_core::plan::keys::{attribute_name, reference_name};
use lakesmith_core::plan::{self, KeyLayouts, LayoutContext, MetricsInput, Mode, RewritePlan};
use lakesmith_core::table::{FileId, LeftOut, OperationInfo, TableState};
use lakesmith_delta::DeltaTable;
use lakesmith_storage::{Location, Store};

use super::{bind, json_text, load, predicate_parameter};
use crate::drive::{Drive, Driven};
use crate::{Session, plan_file};

pub(crate) fn run(session: &Session, store: &Store, root: &Location, options: &OptimizeOptions) -> Result<Report> {
    let start_time_ms = session.options.world.now_ms();
    let table = load(session, store, root, TimeTravel::Latest, true)?;
    let mode = plan::mode(&table.state, options)?;
    let predicate = bind(session, &table.state, options.predicate.as_ref())?;
    let run_id = session.options.world.new_uuid().to_string();
    let indexed_leaves = lakesmith_delta::stats_leaves(&table);
    let keys = match (mode, &options.order_by) {
        (Mode::Clustering, _) => plan::cluster::keys(&table.state)?,
        (Mode::Ordering, Some(by)) => plan::order::keys(&table.state, by, &indexed_leaves, options.stats_check)?,
        _ => Vec::new(),
    };
    let bounds = match keys.as_slice() {
        // Packing asks for no bounds, and must not wait for a second look at the log.
        [] => Vec::new(),
        keys => session.runtime.block_on(lakesmith_delta::key_bounds(store, root, &table, keys))?,
    };
    let curve = options.order_by.as_ref().map_or(Curve::Hilbert, |by| by.curve);
    let prefix_chars = lakesmith_delta::string_prefix(&table);
    let layouts = KeyLayouts::new(&table.state, predicate.as_ref(), &keys, &bounds, prefix_chars)?;
    let before = layouts.before(curve, &indexed_leaves);
    for (key, advice) in before.iter().flat_map(|key| key.advice.iter().map(move |advice| (key, advice))) {
        tracing::warn!(key = key.column, "{advice}");
    }
    let mut context = LayoutContext {
        indexed_leaves: &indexed_leaves,
        run_id: &run_id,
        new_cube_id: &mut || session.options.world.new_uuid().to_string(),
        bounds: &bounds,
    };
    let plan = plan::optimize(&table.state, options, predicate.as_ref(), &mut context)?;
    let planned = PlannedOperation::Optimize {
        predicate: options.predicate_text.clone(),
        target_bytes: options.sizes.target_bytes,
        min_file_bytes: options.sizes.min_file_bytes,
        max_deleted_rows_ratio: options.sizes.max_deleted_rows_ratio,
        compat: options.compat,
        force: options.force,
        full: options.full,
        order_by: options.order_by.clone(),
        cubes: (options.cubes != CubeSizes::default()).then_some(options.cubes),
        budget_bytes: options.budget_bytes,
    };
    let operation = OperationInfo {
        name: "OPTIMIZE".into(),
        parameters: parameters(&table.state, options),
        user_metadata: options.limits.user_metadata.clone(),
    };
    let limits = &options.limits;
    let rewrite = Rewrite {
        session,
        store,
        root,
        table: &table,
        limits,
        start_time_ms,
        compat: options.compat,
        mode: Some(mode),
        full: options.full,
        purges: false,
        forced: options.force,
        layout: Some((layouts, before)),
    };
    rewrite.run(plan, operation, planned)
}

fn parameters(state: &TableState, options: &OptimizeOptions) -> Vec<(String, String)> {
    // Spark names columns to order by and keys in two ways.
    let columns = |paths: &[Vec<String>], name: fn(&[String]) -> String| {
        let names: Vec<String> = paths.iter().map(|path| name(path)).collect();
        json_text(&json_text(&names))
    };
    let (zorder, other): (Option<&OrderBy>, Option<&OrderBy>) = match &options.order_by {
        Some(by) if by.curve == Curve::Zorder => (Some(by), None),
        by => (None, by.as_ref()),
    };
    let keys = state.clustering_columns.as_deref().unwrap_or_default();
    let mut parameters = vec![
        ("predicate".to_string(), predicate_parameter(options.predicate.as_ref())),
        ("zOrderBy".to_string(), columns(zorder.map_or(&[], |by| by.columns.as_slice()), attribute_name)),
        ("clusterBy".to_string(), columns(keys, reference_name)),
        ("auto".to_string(), "false".to_string()),
    ];
    if !keys.is_empty() {
        parameters.push(("isFull".into(), options.full.to_string()));
    }
    if let Some(by) = other {
        parameters.push(("lakesmith.orderBy".into(), json_text(&json_text(by))));
    }
    parameters
}

/// The order that a plan gives to rows, in the schema's spelling.
fn order(plan: &RewritePlan) -> Option<OrderBy> {
    let order = plan.groups.iter().find_map(|group| group.order.as_ref())?;
    Some(OrderBy { curve: order.curve, columns: order.keys.iter().map(|key| key.name.clone()).collect() })
}

/// Files that nobody but a newer version may lay out anew.
fn unknown_layouts(state: &TableState, plan: &RewritePlan) -> Vec<LeftOutFile> {
    let reason =
        "its layout tag is of a newer version of Lakesmith; use that version, or rewrite the file with --force";
    let left = |id: &FileId| LeftOutFile {
        path: state.files.get(*id).path.to_owned(),
        column: None,
        reason: reason.to_owned(),
    };
    plan.unknown_layouts.iter().map(left).collect()
}

/// What OPTIMIZE and REORG share once their plan stands.
pub(super) struct Rewrite<'a> {
    pub session: &'a Session,
    pub store: &'a Store,
    pub root: &'a Location,
    pub table: &'a DeltaTable,
    pub limits: &'a RewriteLimits,
    pub start_time_ms: i64,
    pub compat: Compat,
    /// What an OPTIMIZE asked for; `None` for REORG.
    pub mode: Option<Mode>,
    pub full: bool,
    /// True if rewriting a file alone can be worth a commit.
    pub purges: bool,
    /// True if finished work is to be done again.
    pub forced: bool,
    /// The files' overlap in the keys of an order.
    pub layout: Option<(KeyLayouts<'a>, Vec<KeyLayout>)>,
}

impl Rewrite<'_> {
    pub(super) fn run(
        &self,
        plan: RewritePlan,
        operation: OperationInfo,
        planned_operation: PlannedOperation,
    ) -> Result<Report> {
        let plan = match &self.limits.approved {
            Some(approved) => {
                plan_file::check(approved, self.table)?;
                plan::restrict(plan, &self.table.state.files, approved, self.purges)
            }
            None => plan,
        };
        let considered_files = plan.considered_files;
        let order = order(&plan);
        let unknown_layouts = unknown_layouts(&self.table.state, &plan);
        let planned_groups = plan.groups.len() as u64;
        tracing::info!(
            groups = plan.groups.len(),
            files = plan.groups.iter().map(|g| g.files.len()).sum::<usize>(),
            bytes = plan.input_bytes(),
            considered_files,
            "planned"
        );
        // Also with nothing to do: whoever schedules maintenance must learn that this table can't have it.
        lakesmith_delta::check_writable(self.table)?;
        if let Some(path) = &self.limits.plan_out {
            plan_file::write_rewrite(path, self.table, planned_operation, &plan)?;
        }
        let (driven, planned) = if self.limits.dry_run {
            (Driven::default(), planned(&self.table.state, &plan))
        } else {
            let drive = Drive {
                session: self.session,
                store: self.store,
                root: self.root,
                limits: self.limits,
                operation,
                purges: self.purges,
                forced: self.forced,
            };
            (drive.run(self.table, plan)?, Vec::new())
        };
        let metrics = plan::optimize_metrics(&MetricsInput {
            state: &self.table.state,
            done: &driven.done,
            planned_groups,
            batches: driven.batches,
            considered_files,
            parallelism: driven.parallelism,
            start_time_ms: self.start_time_ms,
            end_time_ms: self.session.options.world.now_ms(),
            indexed_columns: indexed_columns(&self.table.state),
            compat: self.compat,
            mode: self.mode,
            full: self.full,
        });
        let layout = self.layout(&driven);
        let requests = self.store.requests();
        Ok(Report::Optimize(Box::new(OptimizeReport {
            path: self.root.to_string(),
            version_before: self.table.state.version,
            version_after: driven.version_after,
            committed: driven.version_after.is_some(),
            metrics,
            rows: driven.rows,
            verified: self.limits.verify && !driven.done.is_empty(),
            groups_done: driven.done.len() as u64,
            groups_dropped: driven.dropped,
            left_out: unknown_layouts.into_iter().chain(driven.left_out.into_iter().map(left_out)).collect(),
            planned,
            order,
            layout,
            bytes_spilled: driven.bytes_spilled,
            requests: requests.total(),
            bytes_read: requests.bytes_read,
            bytes_written: requests.bytes_written,
        })))
    }

    fn layout(&self, driven: &Driven) -> Vec<KeyLayout> {
        let Some((layouts, before)) = &self.layout else { return Vec::new() };
        if self.limits.dry_run {
            return before.clone();
        }
        let after = layouts.after(&driven.done);
        before.iter().zip(after).map(|(key, depth)| KeyLayout { depth_after: Some(depth), ..key.clone() }).collect()
    }
}

fn left_out(file: LeftOut) -> LeftOutFile {
    LeftOutFile { path: file.path, column: file.column, reason: file.reason }
}

fn planned(state: &TableState, plan: &RewritePlan) -> Vec<PlannedGroup> {
    plan.groups
        .iter()
        .map(|g| PlannedGroup {
            partition: state.files.partitions()[g.partition_index as usize].raw.clone(),
            inputs: g.files.iter().map(|id| state.files.get(*id).path.to_string()).collect(),
            bytes: g.bytes,
            output_files: g.order.as_ref().map(|order| order.files),
        })
        .collect()
}

/// Spark reports the property as it is, also the -1 that means all.
fn indexed_columns(state: &TableState) -> i64 {
    state.property("delta.dataSkippingNumIndexedCols").and_then(|v| v.parse().ok()).unwrap_or(32)
}
