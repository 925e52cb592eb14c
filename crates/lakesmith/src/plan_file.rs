//! Plan files: written by a run that stops after planning, carried out by one that plans anew and does no more than both say.
//!
//! The file is somebody else's word. It only ever takes away from the fresh plan: paths in it are compared and never opened,
//! and what switches off a guard must be said again.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read as _, Write};
use std::path::Path;
use std::sync::Arc;

use lakesmith_core::op::{
    ApplyOptions, ApplyReport, NotApplied, Operation, OptimizeOptions, PLAN_FORMAT, PlanEntry, PlanHeader, PlanLine,
    PlannedOperation, ReorgOptions, Report, SweptEntry, VacuumOptions,
};
use lakesmith_core::plan::sweep::PathHash;
use lakesmith_core::plan::{Approved, RewritePlan, rewrite_key};
use lakesmith_core::table::TableState;
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_delta::DeltaTable;
use lakesmith_storage::{Location, SpillWriter, Survey};

use crate::catalog::Target;
use crate::{Session, run};

/// A line is a path and a few numbers.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// Files of a plan; more would not fit into memory.
const FILES_MAX: u64 = 100_000_000;
/// Entries that are named one by one if they are not carried out.
const NAMED_MAX: usize = 1_000;

/// Writes a plan whose files `entries` hands out.
///
/// # Errors
/// `Unavailable` if the file can't be written, and those of `entries`.
pub(crate) fn write(
    path: &Path,
    header: PlanHeader,
    entries: impl FnOnce(&mut dyn FnMut(PlanEntry) -> Result<()>) -> Result<()>,
) -> Result<()> {
    let failed = |e: std::io::Error| {
        Error::unavailable("the plan file can't be written").with("path", path.display()).caused_by(e)
    };
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A reader must never see half a plan.
    let mut file = BufWriter::new(tempfile::NamedTempFile::new_in(folder).map_err(failed)?);
    let mut files = 0u64;
    let line = |line: &PlanLine, file: &mut BufWriter<tempfile::NamedTempFile>| -> Result<()> {
        let text = serde_json::to_vec(line).map_err(|e| Error::internal("a plan is no JSON").caused_by(e))?;
        file.write_all(&text).and_then(|()| file.write_all(b"\n")).map_err(failed)
    };
    line(&PlanLine::Plan(header), &mut file)?;
    entries(&mut |entry| {
        files += 1;
        line(&PlanLine::File(entry), &mut file)
    })?;
    line(&PlanLine::End { files }, &mut file)?;
    let finished = file.into_inner().map_err(|e| failed(e.into_error()))?;
    finished.persist(path).map_err(|e| failed(e.error)).map(drop)
}

fn header(table: &DeltaTable, operation: PlannedOperation) -> Result<PlanHeader> {
    Ok(PlanHeader {
        format: PLAN_FORMAT,
        table: table.state.location.clone(),
        table_id: table.state.id.clone(),
        version: table.state.version,
        configuration: lakesmith_delta::configuration_digest(table)?,
        operation,
    })
}

/// Writes what a rewrite would do.
///
/// # Errors
/// As [`write`].
pub(crate) fn write_rewrite(
    path: &Path,
    table: &DeltaTable,
    operation: PlannedOperation,
    plan: &RewritePlan,
) -> Result<()> {
    write(path, header(table, operation)?, |put| {
        for (number, group) in (0u64..).zip(&plan.groups) {
            for id in &group.files {
                let file = table.state.files.get(*id);
                put(PlanEntry {
                    path: file.path.to_owned(),
                    size: file.size,
                    vector: file.deletes.map(|d| d.unique_id.clone()),
                    group: Some(number),
                })?;
            }
        }
        Ok(())
    })
}

/// Writes what a vacuum would delete.
///
/// # Errors
/// As [`write`], `Usage` for a vacuum whose candidates come from elsewhere.
pub(crate) fn write_vacuum(path: &Path, table: &DeltaTable, options: &VacuumOptions, found: &Survey) -> Result<()> {
    let operation = PlannedOperation::Vacuum {
        mode: options.mode,
        retain_ms: options.retain_ms,
        retention_check: options.retention_check,
        no_writers: options.no_writers,
        compat: options.compat,
    };
    write(path, header(table, operation)?, |put| {
        found.candidates.for_each(|c| put(PlanEntry { path: c.path, size: c.size, vector: None, group: None }))
    })
}

/// The candidates of a fresh vacuum that were approved.
///
/// # Errors
/// `Unavailable` from the temporary folder.
pub(crate) fn restrict_survey(found: Survey, approved: &Approved) -> Result<Survey> {
    let mut kept: SpillWriter<SweptEntry> = SpillWriter::new();
    let mut bytes = 0u64;
    found.candidates.for_each(|candidate| {
        let key = rewrite_key(&candidate.path, None, candidate.size);
        if approved.allows(&key) {
            approved.take(&key);
            bytes = bytes.saturating_add(candidate.size);
            kept.push(&candidate)?;
        }
        Ok(())
    })?;
    Ok(Survey { candidates: kept.finish()?, bytes, ..found })
}

/// Refuses a plan for another table, or for one that is no longer what it was.
///
/// # Errors
/// `Retention`.
pub(crate) fn check(approved: &Approved, table: &DeltaTable) -> Result<()> {
    let TableState { id, version, location, .. } = &*table.state;
    let refused = |why: &str| {
        Error::new(ErrorKind::Retention, format!("the plan is not carried out: {why}; plan again"))
            .with("path", location)
            .with("version", version)
            .with("planned_version", approved.version)
    };
    if *id != approved.table_id {
        return Err(refused("it was made for another table").with("table_id", id));
    }
    if *version < approved.version {
        return Err(refused("the table is older than the version that it was made on"));
    }
    if lakesmith_delta::configuration_digest(table)? != approved.configuration {
        return Err(refused("the table's protocol, schema or properties have changed since"));
    }
    Ok(())
}

/// Carries out the plan in `path`.
///
/// # Errors
/// `NotFound`, `Usage` for a file that is no plan or a torn one, `Unsupported` for a later format, `Retention` if the plan is
/// about another table than `options` say, the table is no longer what it was or a guard's switch is not said again, and
/// those of the operation. That nothing of the plan is left to do is no error.
pub(crate) fn apply(session: &Session, path: &Path, options: &ApplyOptions) -> Result<Report> {
    let mut keys = Vec::new();
    let header = read(path, &mut |entry| {
        keys.push(PathHash::of(&rewrite_key(&entry.path, entry.vector.as_deref(), entry.size)));
        Ok(())
    })?;
    let planned_files = keys.len() as u64;
    let root = Location::from_canonical(&header.table)
        .map_err(|e| malformed(path, 1, "the table is no canonical location").caused_by(e))?;
    if let Some(expected) = &options.table
        && session.target_of_text(expected, false)?.root != root
    {
        return Err(Error::new(
            ErrorKind::Retention,
            "the plan is about another table than the one given; nothing was done",
        )
        .with("path", path.display())
        .with("table", root));
    }
    let approved = Arc::new(Approved::new(header.table_id, header.configuration, header.version, keys));
    let name = header.operation.name();
    let operation = operation(session, header.operation, options, &approved)?;
    let report = run::run(session, &Target::path(root.clone()), operation)?;
    let mut not_applied = Vec::new();
    let mut left_out = 0u64;
    read(path, &mut |entry| {
        if !approved.took(&rewrite_key(&entry.path, entry.vector.as_deref(), entry.size)) {
            left_out += 1;
            if not_applied.len() < NAMED_MAX {
                let reason =
                    "a fresh plan does not do this: the file changed, is gone, or need not be touched any more";
                not_applied.push(NotApplied { path: entry.path, reason: reason.into() });
            }
        }
        Ok(())
    })?;
    Ok(Report::Apply(Box::new(ApplyReport {
        operation: name.into(),
        planned_version: header.version,
        planned_files,
        left_out,
        not_applied,
        report: Box::new(report),
    })))
}

fn operation(
    session: &Session,
    planned: PlannedOperation,
    apply: &ApplyOptions,
    approved: &Arc<Approved>,
) -> Result<Operation> {
    let parse = |text: &Option<String>| text.as_deref().map(|t| session.parse_predicate(t)).transpose();
    match planned {
        PlannedOperation::Optimize {
            predicate,
            target_bytes,
            min_file_bytes,
            max_deleted_rows_ratio,
            compat,
            force,
            full,
            order_by,
            cubes,
            budget_bytes,
        } => {
            let mut options: OptimizeOptions = session.optimize_options()?;
            options.predicate = parse(&predicate)?;
            options.predicate_text = predicate;
            options.sizes.target_bytes = target_bytes;
            options.sizes.min_file_bytes = min_file_bytes;
            options.sizes.max_deleted_rows_ratio = max_deleted_rows_ratio;
            (options.compat, options.force, options.full) = (compat, force, full);
            (options.order_by, options.budget_bytes) = (order_by, budget_bytes);
            options.cubes = cubes.unwrap_or(options.cubes);
            options.limits.dry_run |= apply.dry_run;
            options.limits.approved = Some(Arc::clone(approved));
            Ok(Operation::Optimize(options))
        }
        PlannedOperation::Reorg { predicate, target_bytes } => {
            let mut options: ReorgOptions = session.reorg_options()?;
            options.predicate = parse(&predicate)?;
            options.predicate_text = predicate;
            options.sizes.target_bytes = target_bytes;
            options.limits.dry_run |= apply.dry_run;
            options.limits.approved = Some(Arc::clone(approved));
            Ok(Operation::Reorg(options))
        }
        PlannedOperation::Vacuum { mode, retain_ms, retention_check, no_writers, compat } => {
            let unsaid = [
                (!retention_check && !apply.no_retention_check, "--no-retention-check"),
                (no_writers && !apply.no_writers, "--no-writers"),
            ];
            if let Some((_, flag)) = unsaid.iter().find(|(unsaid, _)| *unsaid) {
                return Err(Error::new(
                    ErrorKind::Retention,
                    format!(
                        "the plan was made with {flag}, which switches off a guard; say it again to carry the plan out"
                    ),
                ));
            }
            let mut options: VacuumOptions = session.vacuum_options()?;
            options.mode = mode;
            options.retain_ms = retain_ms;
            options.retention_check = retention_check;
            options.no_writers = no_writers;
            options.compat = compat;
            options.dry_run |= apply.dry_run;
            options.approved = Some(Arc::clone(approved));
            Ok(Operation::Vacuum(options))
        }
    }
}

fn malformed(path: &Path, line: u64, why: &str) -> Error {
    Error::usage(format!("the file is no plan of Lakesmith: {why}")).with("path", path.display()).with("line", line)
}

/// Reads a plan line by line.
fn read(path: &Path, each: &mut dyn FnMut(PlanEntry) -> Result<()>) -> Result<PlanHeader> {
    let failed = |e: std::io::Error| {
        let error = match e.kind() {
            std::io::ErrorKind::NotFound => Error::not_found("the plan file does not exist"),
            _ => Error::unavailable("the plan file can't be read"),
        };
        error.with("path", path.display()).caused_by(e)
    };
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    let mut number = 0u64;
    let mut next = || -> Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        number += 1;
        let read = (&mut file).take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line).map_err(failed)?;
        match read {
            0 => Ok(None),
            _ if line.last() == Some(&b'\n') => Ok(Some(line)),
            _ if read as u64 > LINE_BYTES_MAX => Err(malformed(path, number, "a line is longer than any plan's")),
            _ => Err(malformed(path, number, "it ends in the middle of a line")),
        }
    };
    let parse = |line: &[u8], number: u64| -> Result<PlanLine> {
        serde_json::from_slice(line)
            .map_err(|e| malformed(path, number, "a line is not what it should be").caused_by(e))
    };
    let first = next()?.ok_or_else(|| malformed(path, 1, "it is empty"))?;
    check_format(path, &first)?;
    let PlanLine::Plan(header) = parse(&first, 1)? else {
        return Err(malformed(path, 1, "it does not begin with what the plan is about"));
    };
    let mut files = 0u64;
    loop {
        let line = next()?.ok_or_else(|| malformed(path, files + 2, "its end is missing"))?;
        match parse(&line, files + 2)? {
            PlanLine::File(entry) if files < FILES_MAX => {
                files += 1;
                each(entry)?;
            }
            PlanLine::File(_) => {
                return Err(Error::new(ErrorKind::Limit, format!("the plan has more than {FILES_MAX} files"))
                    .with("path", path.display()));
            }
            PlanLine::End { files: said } if said == files => break,
            PlanLine::End { .. } => {
                return Err(malformed(path, files + 2, "its number of files is not that of its end"));
            }
            PlanLine::Plan(_) => return Err(malformed(path, files + 2, "it begins twice")),
        }
    }
    match next()? {
        None => Ok(header),
        Some(_) => Err(malformed(path, files + 3, "something follows its end")),
    }
}

fn check_format(path: &Path, first: &[u8]) -> Result<()> {
    #[derive(serde::Deserialize)]
    struct Line {
        plan: Format,
    }
    #[derive(serde::Deserialize)]
    struct Format {
        format: u64,
    }
    match serde_json::from_slice::<Line>(first) {
        Ok(line) if line.plan.format == u64::from(PLAN_FORMAT) => Ok(()),
        Ok(line) => Err(Error::unsupported(format!(
            "the plan has format {}, this version of Lakesmith reads {PLAN_FORMAT}; plan again with this one",
            line.plan.format
        ))
        .with("path", path.display())),
        Err(e) => Err(malformed(path, 1, "its first line does not tell its format").caused_by(e)),
    }
}
