//! Results as text: tables sized to the terminal, plain columns when piped.

use std::collections::BTreeMap;
use std::time::Duration;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use lakesmith::op::{
    ApplyReport, CheckpointReport, DetailReport, FileEntry, FsckFinding, FsckReport, HistoryEntry, HistoryReport,
    OptimizeReport, Report,
};
use lakesmith::plan::KeptLogFile;
use lakesmith::units::{format_bytes, format_count};
use lakesmith::{Result, SqlResult};
use serde_json::Value;

use super::{Stdout, vacuum};

// A table is laid out as a whole; a million rows at once would cost more memory than the work they describe.
pub(super) const ROWS_A_TABLE: usize = 5_000;

/// Prints a report.
///
/// # Errors
/// Unavailable when it cannot be written.
pub(crate) fn report(out: &mut Stdout, report: &Report, elapsed: Duration) -> Result<()> {
    match report {
        Report::Optimize(report) => optimize(out, report, elapsed),
        Report::Detail(report) => pairs(out, &detail(report)),
        Report::History(report) => histories(out, report),
        Report::Apply(report) => apply(out, report, elapsed),
        Report::Fsck(report) => fsck(out, report),
        Report::Files(report) => {
            let columns = ["path", "size", "rows", "deleted", "partition", "modified"];
            grid(out, &columns, &[1, 2, 3], report.0.iter().map(file))?;
            let bytes: u64 = report.0.iter().map(|f| f.size).sum();
            if out.is_terminal() {
                out.line(&format!("{} files, {}", report.0.len(), format_bytes(bytes)))
            } else {
                Ok(())
            }
        }
        Report::Properties(report) => {
            grid(out, &["key", "value"], &[], report.0.iter().map(|(k, v)| vec![k.clone(), v.clone()]))
        }
        Report::Health(report) => super::health::report(out, report),
        Report::Checkpoint(report) => checkpoint(out, report),
        Report::Vacuum(report) => vacuum::report(out, report),
        Report::Done { version } => out.line(&format!("done; the table is at version {version}")),
    }
}

/// Prints what a statement returned.
///
/// # Errors
/// Unavailable when it cannot be written.
pub(crate) fn sql(out: &mut Stdout, result: &SqlResult, elapsed: Duration) -> Result<()> {
    match &result.report {
        Some(Report::Properties(_)) | None if result.columns.is_empty() => Ok(()),
        Some(Report::Properties(_)) | None => {
            let columns: Vec<&str> = result.columns.iter().map(String::as_str).collect();
            grid(out, &columns, &[], result.rows.iter().map(|row| row.iter().map(cell).collect()))
        }
        Some(known) => report(out, known, elapsed),
    }
}

/// Prints rows under a header; `numbers` are the columns to align right.
///
/// # Errors
/// Unavailable when they cannot be written.
pub(crate) fn grid(
    out: &mut Stdout,
    columns: &[&str],
    numbers: &[usize],
    rows: impl Iterator<Item = Vec<String>>,
) -> Result<()> {
    let mut rows = rows.peekable();
    let mut first = true;
    while first || rows.peek().is_some() {
        let mut table = empty(out);
        if first {
            table.set_header(columns.iter().copied());
        }
        for row in rows.by_ref().take(ROWS_A_TABLE) {
            table.add_row(row.iter().map(|text| printable(text)));
        }
        for index in numbers {
            if let Some(column) = table.column_mut(*index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        out.line(&table.trim_fmt())?;
        first = false;
    }
    Ok(())
}

fn pairs(out: &mut Stdout, pairs: &[(&str, String)]) -> Result<()> {
    let mut table = empty(out);
    table.load_preset(presets::NOTHING);
    for (key, value) in pairs {
        table.add_row([(*key).to_owned(), printable(value)]);
    }
    if let Some(column) = table.column_mut(0) {
        column.set_padding((0, 2));
    }
    out.line(&table.trim_fmt())
}

fn empty(out: &Stdout) -> Table {
    let mut table = Table::new();
    if out.is_terminal() {
        table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    } else {
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    }
    table
}

fn optimize(out: &mut Stdout, report: &OptimizeReport, elapsed: Duration) -> Result<()> {
    let metrics = &report.metrics;
    let (before, after) = (metrics.files_removed.total_size, metrics.files_added.total_size);
    let planned_bytes: u64 = report.planned.iter().map(|g| g.bytes).sum();
    let planned_files: usize = report.planned.iter().map(|g| g.inputs.len()).sum();
    if !report.planned.is_empty() {
        let rows = report.planned.iter().enumerate().map(|(number, group)| {
            let partition: Vec<&str> = group.partition.iter().map(|v| v.as_deref().unwrap_or("null")).collect();
            vec![
                (number + 1).to_string(),
                partition.join(", "),
                group.inputs.len().to_string(),
                format_bytes(group.bytes),
            ]
        });
        grid(out, &["group", "partition", "files", "bytes"], &[0, 2, 3], rows)?;
        return out.line(&format!(
            "dry run of {}: {planned_files} files, {} in {} groups would be rewritten; the table was not changed",
            report.path,
            format_bytes(planned_bytes),
            report.planned.len(),
        ));
    }
    let version = match report.version_after {
        Some(after) => format!("{} -> {after}", report.version_before),
        None if report.groups_dropped > 0 => {
            format!("{} (other writers changed every group's files)", report.version_before)
        }
        None => format!("{} (nothing was rewritten)", report.version_before),
    };
    if report.version_after.is_none() && report.groups_dropped == 0 && report.left_out.is_empty() {
        return out.line(&format!(
            "nothing to do at version {} of {}: {} files considered",
            report.version_before, report.path, metrics.total_considered_files
        ));
    }
    let ratio = if before > 0 { format!(" ({:.1} %)", after as f64 * 100.0 / before as f64) } else { String::new() };
    let mut rows = vec![
        ("table", report.path.clone()),
        ("version", version),
        ("files", format!("{} -> {}", metrics.num_files_removed, metrics.num_files_added)),
        ("bytes", format!("{} -> {}{ratio}", format_bytes(before), format_bytes(after))),
        ("rows", rows_checked(report)),
        ("groups done", report.groups_done.to_string()),
        ("groups dropped", report.groups_dropped.to_string()),
        ("files considered", format!("{}, {} left alone", metrics.total_considered_files, metrics.total_files_skipped)),
    ];
    if let Some(vectors) = &metrics.deletion_vector_stats {
        let (rows_removed, count) = (vectors.num_deletion_vector_rows_removed, vectors.num_deletion_vectors_removed);
        rows.push(("deleted rows purged", format!("{rows_removed} of {count} vectors")));
    }
    let (read, written) = (format_bytes(report.bytes_read), format_bytes(report.bytes_written));
    rows.push(("requests", format!("{}, {read} read, {written} written", report.requests)));
    rows.push(("seconds", format!("{:.2}", elapsed.as_secs_f64())));
    pairs(out, &rows)?;
    for file in &report.left_out {
        let column = file.column.as_ref().map_or_else(String::new, |c| format!(", column {c}"));
        out.line(&printable(&format!("left out: {}{column}: {}", file.path, file.reason)))?;
    }
    Ok(())
}

fn rows_checked(report: &OptimizeReport) -> String {
    let rows = format_count(report.rows);
    let also = if report.verified { ", content hash equal" } else { "" };
    format!("{rows} -> {rows}{also}")
}

fn histories(out: &mut Stdout, report: &HistoryReport) -> Result<()> {
    let columns = ["version", "timestamp", "operation", "parameters", "metrics", "user metadata", "engine", "readable"];
    let checked = report.0.iter().any(|entry| entry.readable.is_some());
    let columns = if checked { &columns[..] } else { &columns[..columns.len() - 1] };
    grid(out, columns, &[0], report.0.iter().map(|entry| history(entry, checked)))?;
    if !checked || !out.is_terminal() {
        return Ok(());
    }
    let whole = report.0.iter().filter(|entry| entry.readable == Some(true));
    let oldest = whole.clone().map(|entry| entry.version).min();
    let from = oldest.map_or(String::new(), |version| format!(", the oldest is {version}"));
    out.line(&format!("{} of {} versions can be read whole{from}", whole.count(), report.0.len()))
}

fn apply(out: &mut Stdout, applied: &ApplyReport, elapsed: Duration) -> Result<()> {
    report(out, &applied.report, elapsed)?;
    if !applied.not_applied.is_empty() {
        let rows = applied.not_applied.iter().map(|left| vec![left.path.clone(), left.reason.clone()]);
        grid(out, &["left out of the plan", "why"], &[], rows)?;
    }
    out.line(&format!(
        "{} of the plan's {} files, made on version {}",
        applied.planned_files - applied.left_out,
        applied.planned_files,
        applied.planned_version
    ))
}

fn fsck(out: &mut Stdout, report: &FsckReport) -> Result<()> {
    let rows = |findings: &[FsckFinding]| -> Vec<Vec<String>> {
        let row = |f: &FsckFinding| {
            vec![f.kind.clone(), f.path.clone(), f.version.to_string(), f.message.clone(), f.cure.clone()]
        };
        findings.iter().map(row).collect()
    };
    let columns = ["finding", "path", "version", "what is wrong", "what to do"];
    if !report.findings.is_empty() {
        grid(out, &columns, &[2], rows(&report.findings).into_iter())?;
    }
    if !report.notes.is_empty() {
        grid(
            out,
            &["note", "path", "version", "what is unusual", "what to do"],
            &[2],
            rows(&report.notes).into_iter(),
        )?;
    }
    let found: u64 = report.counts.values().sum();
    let verdict = if report.clean { "nothing is wrong".to_owned() } else { format!("{found} findings") };
    out.line(&format!(
        "{verdict}: version {}, {} files, {} vectors, {} checkpoints, statistics of {} files",
        report.version, report.files, report.vectors, report.checkpoints, report.statistics
    ))
}

fn checkpoint(out: &mut Stdout, report: &CheckpointReport) -> Result<()> {
    let Some(log) = &report.log else { return out.line(&written(report)) };
    if !log.dry_run {
        out.line(&written(report))?;
    }
    let verb = if log.dry_run { "would go" } else { "deleted" };
    let gone = log.files.iter().map(|f| vec![f.path.clone(), f.size.to_string(), verb.to_owned()]);
    let stays = |f: &KeptLogFile, verb: &str| vec![f.path.clone(), String::new(), format!("{verb}: {}", f.reason)];
    let kept = log.kept.iter().map(|f| stays(f, "stays"));
    let failed = log.failed.iter().map(|f| stays(f, "not deleted"));
    if !log.files.is_empty() || !log.kept.is_empty() || !log.failed.is_empty() {
        grid(out, &["log file", "size", "what"], &[1], gone.chain(kept).chain(failed))?;
    }
    let summary = match (log.keep_from, &log.nothing) {
        (Some(version), _) => format!(
            "{} log files, {} {verb}; versions from {version} on stay (cut-off {})",
            log.files.len(),
            format_bytes(log.bytes),
            log.cutoff
        ),
        (None, why) => {
            format!("no log file {verb}: {} (cut-off {})", why.as_deref().unwrap_or("nothing is old"), log.cutoff)
        }
    };
    out.line(&summary)
}

fn written(report: &CheckpointReport) -> String {
    let verb = if report.written { "checkpoint written at" } else { "there was a checkpoint already at" };
    format!("{verb} version {}", report.version)
}

fn detail(report: &DetailReport) -> Vec<(&'static str, String)> {
    let text = |v: &Option<String>| v.clone().unwrap_or_default();
    let size = format!("{} ({})", report.size_in_bytes, format_bytes(report.size_in_bytes));
    vec![
        ("format", report.format.clone()),
        ("id", report.id.clone()),
        ("name", text(&report.name)),
        ("description", text(&report.description)),
        ("location", report.location.clone()),
        ("version", report.version.to_string()),
        ("createdAt", text(&report.created_at)),
        ("lastModified", report.last_modified.clone()),
        ("partitionColumns", report.partition_columns.join(", ")),
        ("clusteringColumns", report.clustering_columns.join(", ")),
        ("numFiles", report.num_files.to_string()),
        ("sizeInBytes", size),
        ("numPartitions", report.num_partitions.to_string()),
        ("properties", map(report.properties.iter().map(|(k, v)| (k, v.as_str())))),
        ("minReaderVersion", report.min_reader_version.to_string()),
        ("minWriterVersion", report.min_writer_version.to_string()),
        ("tableFeatures", report.table_features.join(", ")),
    ]
}

fn history(entry: &HistoryEntry, checked: bool) -> Vec<String> {
    let parameters = entry.operation_parameters.iter().flatten().map(|(k, v)| (k, v.as_deref().unwrap_or("null")));
    let metrics = entry.operation_metrics.iter().flatten().map(|(k, v)| (k, v.as_str()));
    let readable = match (entry.readable, entry.missing_files) {
        (Some(true), _) => "yes".to_owned(),
        (_, Some(missing)) => format!("no: {missing} files are missing"),
        (_, None) => "no: its log is gone".to_owned(),
    };
    let mut cells = vec![
        entry.version.to_string(),
        entry.timestamp.clone(),
        entry.operation.clone().unwrap_or_default(),
        map(parameters),
        map(metrics),
        entry.user_metadata.clone().unwrap_or_default(),
        entry.engine_info.clone().unwrap_or_default(),
    ];
    cells.extend(checked.then_some(readable));
    cells
}

fn file(entry: &FileEntry) -> Vec<String> {
    let partition: BTreeMap<_, _> = entry.partition_values.iter().collect();
    vec![
        entry.path.clone(),
        entry.size.to_string(),
        entry.num_records.map(|n| n.to_string()).unwrap_or_default(),
        entry.deleted_rows.to_string(),
        map(partition.into_iter().map(|(k, v)| (k, v.as_deref().unwrap_or("null")))),
        entry.modification_time.clone(),
    ]
}

fn map<'a>(entries: impl Iterator<Item = (&'a String, &'a str)>) -> String {
    entries.map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(", ")
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

// Names and metadata are other people's text: an escape sequence in them must not reach the terminal.
pub(super) fn printable(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    text.chars()
        .flat_map(|c| {
            let plain: Box<dyn Iterator<Item = char>> =
                if c.is_control() { Box::new(c.escape_default()) } else { Box::new(std::iter::once(c)) };
            plain
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_spelled_out() {
        assert_eq!(printable("ünï\u{1b}[2J\n"), "ünï\\u{1b}[2J\\n");
    }

    #[test]
    fn maps_are_short_text() {
        let entries = BTreeMap::from([("a".to_owned(), "1".to_owned()), ("b".to_owned(), String::new())]);
        assert_eq!(map(entries.iter().map(|(k, v)| (k, v.as_str()))), "a=1, b=");
    }

    #[test]
    fn sql_cells_are_bare_strings_and_json() {
        assert_eq!(cell(&Value::Null), "NULL");
        assert_eq!(cell(&serde_json::json!("x")), "x");
        assert_eq!(cell(&serde_json::json!({"a": [1]})), r#"{"a":[1]}"#);
    }
}
