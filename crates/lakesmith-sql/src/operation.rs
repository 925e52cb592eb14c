//! From a parsed statement to the operation that the library runs.

use lakesmith_core::Result;
use lakesmith_core::layout::Curve;
use lakesmith_core::op::{
    AlterProperties, AlterTable, ClusterBy, CreateTable, HistoryOptions, Operation, OptimizeOptions, OrderBy,
    ReorgOptions, RestoreOptions, TimeTravel, VacuumOptions,
};

use crate::settings::Settings;
use crate::statement::{CreateClauses, Predicate, StatementOp};

/// The operation that a statement asks for, with the session's settings.
///
/// # Errors
/// Usage for a setting that cannot be read.
pub fn to_operation(op: &StatementOp, settings: &Settings) -> Result<Operation> {
    Ok(match op {
        StatementOp::Optimize { full, predicate, zorder_by } => {
            let (predicate, predicate_text) = split(predicate);
            let order_by =
                (!zorder_by.is_empty()).then(|| OrderBy { curve: Curve::Zorder, columns: zorder_by.clone() });
            Operation::Optimize(OptimizeOptions {
                predicate,
                predicate_text,
                full: *full,
                order_by,
                ..settings.optimize_options()?
            })
        }
        StatementOp::ReorgPurge { predicate } => {
            let (predicate, predicate_text) = split(predicate);
            Operation::Reorg(ReorgOptions { predicate, predicate_text, ..settings.reorg_options()? })
        }
        StatementOp::Vacuum(clauses) => {
            let settings = settings.vacuum_options()?;
            Operation::Vacuum(VacuumOptions {
                mode: clauses.mode.unwrap_or(settings.mode),
                retain_ms: clauses.retain_ms.or(settings.retain_ms),
                inventory: clauses.inventory.clone(),
                dry_run: clauses.dry_run,
                ..settings
            })
        }
        StatementOp::Detail => Operation::Detail(TimeTravel::Latest),
        StatementOp::History { limit } => {
            Operation::History(HistoryOptions { limit: *limit, ..HistoryOptions::default() })
        }
        StatementOp::ShowProperties { key } => Operation::ShowProperties(key.clone()),
        StatementOp::AlterProperties { set, unset, if_exists } => Operation::AlterProperties(AlterProperties {
            set: set.iter().cloned().collect(),
            unset: unset.clone(),
            if_exists: *if_exists,
            allow_arbitrary: settings.allow_arbitrary_properties(),
            user_metadata: settings.user_metadata(),
            dry_run: false,
        }),
        StatementOp::Alter(change) => {
            Operation::AlterTable(AlterTable { change: change.clone(), user_metadata: settings.user_metadata() })
        }
        StatementOp::ClusterBy { columns } => {
            Operation::ClusterBy(ClusterBy { columns: columns.clone(), user_metadata: settings.user_metadata() })
        }
        StatementOp::Restore { to } => {
            Operation::Restore(RestoreOptions { to: to.clone(), ..settings.restore_options()? })
        }
        StatementOp::ShowColumns => Operation::ShowColumns,
        StatementOp::ShowCreate => Operation::ShowCreate,
        StatementOp::Describe { extended } => Operation::DescribeTable { extended: *extended },
        StatementOp::DescribeColumn { column } => Operation::DescribeColumn(column.clone()),
        StatementOp::CreateTable(clauses) => Operation::CreateTable(create_table(clauses, settings)),
    })
}

/// Options of CREATE TABLE as the clauses and the settings have them.
pub fn create_table(clauses: &CreateClauses, settings: &Settings) -> CreateTable {
    let CreateClauses {
        if_not_exists,
        replacing,
        schema,
        defaults,
        partition_by,
        cluster_by,
        comment,
        properties,
        location,
    } = clauses.clone();
    CreateTable {
        schema,
        defaults,
        if_not_exists,
        replacing,
        partition_by,
        cluster_by,
        comment,
        properties,
        location,
        allow_arbitrary: settings.allow_arbitrary_properties(),
        user_metadata: settings.user_metadata(),
    }
}

fn split(predicate: &Option<Predicate>) -> (Option<lakesmith_core::predicate::Expr>, Option<String>) {
    predicate.clone().unzip()
}
