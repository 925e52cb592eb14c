//! Results as text: tables sized to the terminal, plain columns when piped.

use std::collections::BTreeMap;
use std::time::Duration;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};
use lakesmith::layout::Curve;
use lakesmith::op::{
    ApplyReport, CheckpointReport, DetailReport, FileEntry, FsckFinding, FsckReport, HistoryEntry, HistoryReport,
    OptimizeReport, OrderBy, Report,
};
use lakesmith::plan::KeptLogFile;
use lakesmith::plan::keys::attribute_name;
use lakesmith::units::{counted, format_bytes, format_count};
use lakesmith::{Result, SqlResult};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::{Stdout, layout, vacuum};

// A table is laid out as a whole; a million rows at once would cost more memory than the work they describe.
pub(super) const ROWS_A_TABLE: usize = 5_000;
/// Words up to this width are never broken, however narrow the terminal; longer ones are paths and the like.
const WORD_COLUMNS: usize = 24;

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
            let columns = ["size", "rows", "deleted", "modified", "partition", "path"];
            // A name is for copying: the terminal may wrap it, we don't.
            wide_grid(out, &columns, &[0, 1, 2], &[3, 4, 5], report.iter().map(|entry| file(&entry)))?;
            if out.is_terminal() {
                out.line(&format!("{}, {}", counted(report.len() as u64, "file"), format_bytes(report.total_bytes())))
            } else {
                Ok(())
            }
        }
        Report::Properties(report) => {
            grid(out, &["key", "value"], &[], report.0.iter().map(|(k, v)| vec![k.clone(), v.clone()]))
        }
        // A statement is for copying.
        Report::Rows(report) if report.columns == ["createtab_stmt"] => {
            let texts = report.rows.iter().flatten().flatten();
            texts.flat_map(|text| text.lines()).try_for_each(|line| out.line(&printable(line)))
        }
        Report::Rows(report) => {
            let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "NULL".to_owned());
            grid(out, &report.columns, &[], report.rows.iter().map(|row| row.iter().map(text).collect()))
        }
        Report::Health(report) => super::health::report(out, report),
        Report::Checkpoint(report) => checkpoint(out, report),
        Report::Vacuum(report) => vacuum::report(out, report),
        Report::Restore(report) => super::restore::report(out, report),
        Report::Done { version } => out.line(&format!("done; the table is at version {version}")),
    }
}

/// Prints what a statement returned.
///
/// # Errors
/// Unavailable when it cannot be written.
pub(crate) fn sql(out: &mut Stdout, result: &SqlResult, elapsed: Duration) -> Result<()> {
    match &result.report {
        Some(Report::Properties(_) | Report::Rows(_)) | None if result.columns.is_empty() => Ok(()),
        Some(rows @ Report::Rows(_)) if result.columns == ["createtab_stmt"] => report(out, rows, elapsed),
        Some(Report::Properties(_) | Report::Rows(_)) | None => {
            let columns: Vec<&str> = result.columns.iter().map(String::as_str).collect();
            let header = if result.continues { &[] } else { columns.as_slice() };
            grid(out, header, &[], result.rows.iter().map(|row| row.iter().map(cell).collect()))
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
    wide_grid(out, columns, numbers, &[], rows)
}

/// As [`grid`]; what stands in the columns `whole` is never broken to fit the terminal, as numbers are not.
///
/// # Errors
/// As [`grid`].
pub(crate) fn wide_grid(
    out: &mut Stdout,
    columns: &[&str],
    numbers: &[usize],
    whole: &[usize],
    rows: impl Iterator<Item = Vec<String>>,
) -> Result<()> {
    let mut rows = rows.peekable();
    let mut first = true;
    while first || rows.peek().is_some() {
        let mut table = empty(out);
        if first && !columns.is_empty() {
            table.set_header(columns.iter().copied());
        }
        let mut words: Vec<usize> = columns.iter().map(|name| longest_word(name)).collect();
        for row in rows.by_ref().take(ROWS_A_TABLE) {
            for (least, text) in words.iter_mut().zip(&row) {
                *least = longest_word(text).min(WORD_COLUMNS).max(*least);
            }
            table.add_row(row.iter().map(|text| printable(text)));
        }
        for index in numbers {
            if let Some(column) = table.column_mut(*index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for (index, word) in words.into_iter().enumerate() {
            // With a space on either side.
            let least = u16::try_from(word + 2).unwrap_or(u16::MAX);
            if let Some(column) = table.column_mut(index) {
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
            }
        }
        for index in numbers.iter().chain(whole) {
            if let Some(column) = table.column_mut(*index) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        let mut text = table.trim_fmt();
        let is_wider = |columns| text.lines().next().is_some_and(|rule| rule.width() > usize::from(columns));
        if out.is_terminal() && table.width().is_some_and(is_wider) {
            // The terminal wraps every line, and lines between the rows would hide what belongs together.
            text = table.load_preset(presets::NOTHING).trim_fmt();
        }
        out.line(&text)?;
        first = false;
    }
    Ok(())
}

fn longest_word(text: &str) -> usize {
    text.split(' ').map(UnicodeWidthStr::width).max().unwrap_or(0)
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
                group.output_files.map_or_else(String::new, |files| files.to_string()),
            ]
        });
        let columns = ["group", "partition", "files", "bytes", "into files"];
        let columns = if report.order.is_some() { &columns[..] } else { &columns[..4] };
        let rows = rows.map(|row| row.into_iter().take(columns.len()).collect());
        grid(out, columns, &[0, 2, 3, 4], rows)?;
        layout::report(out, &report.layout)?;
        let ordered = report.order.as_ref().map_or_else(String::new, |by| format!(", ordered {}", order(by)));
        return out.line(&printable(&format!(
            "dry run of {}: {}, {} in {} would be rewritten{ordered}; the table was not changed",
            report.path,
            counted(planned_files as u64, "file"),
            format_bytes(planned_bytes),
            counted(report.planned.len() as u64, "group"),
        )));
    }
    let version = match report.version_after {
        Some(after) => format!("{} -> {after}", report.version_before),
        None if report.groups_dropped > 0 => {
            format!("{} (other writers changed every group's files)", report.version_before)
        }
        None => format!("{} (nothing was rewritten)", report.version_before),
    };
    if report.version_after.is_none() && report.groups_dropped == 0 && report.left_out.is_empty() {
        layout::report(out, &report.layout)?;
        return out.line(&format!(
            "nothing to do at version {} of {}: {} considered",
            report.version_before,
            report.path,
            counted(metrics.total_considered_files, "file")
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
    if let Some(by) = &report.order {
        rows.push(("ordered", order(by)));
        rows.push(("spilled", format_bytes(report.bytes_spilled)));
    }
    if let Some(vectors) = &metrics.deletion_vector_stats {
        let (rows_removed, count) = (vectors.num_deletion_vector_rows_removed, vectors.num_deletion_vectors_removed);
        rows.push(("deleted rows purged", format!("{rows_removed} of {}", counted(count, "vector"))));
    }
    let (read, written) = (format_bytes(report.bytes_read), format_bytes(report.bytes_written));
    rows.push(("requests", format!("{}, {read} read, {written} written", report.requests)));
    rows.push(("seconds", format!("{:.2}", elapsed.as_secs_f64())));
    pairs(out, &rows)?;
    layout::report(out, &report.layout)?;
    for file in &report.left_out {
        let column = file.column.as_ref().map_or_else(String::new, |c| format!(", column {c}"));
        out.line(&printable(&format!("left out: {}{column}: {}", file.path, file.reason)))?;
    }
    Ok(())
}

/// An order in words.
fn order(by: &OrderBy) -> String {
    let columns = by.columns.iter().map(|path| attribute_name(path)).collect::<Vec<_>>().join(", ");
    match by.curve {
        _ if by.columns.len() == 1 => format!("by {columns}"),
        Curve::Sort => format!("by {columns}"),
        Curve::Zorder => format!("by {columns} along a Z-curve"),
        Curve::Hilbert => format!("by {columns} along a Hilbert curve"),
    }
}

fn rows_checked(report: &OptimizeReport) -> String {
    let rows = format_count(report.rows);
    let also = if report.verified { ", content hash equal" } else { "" };
    format!("{rows} -> {rows}{also}")
}

fn histories(out: &mut Stdout, report: &HistoryReport) -> Result<()> {
    let checked = report.0.iter().any(|entry| entry.readable.is_some());
    let mut columns = vec!["version", "timestamp", "operation"];
    columns.extend(checked.then_some("readable"));
    let noted = report.0.iter().any(|entry| entry.user_metadata.is_some());
    columns.push("parameters");
    columns.extend(noted.then_some("user metadata"));
    // Long, and seldom what is looked for.
    let all = out.wants_all();
    columns.extend(if all { &["engine", "metrics"][..] } else { &[] });
    let mut rows = report.0.iter().map(|entry| history(entry, checked, noted, all));
    if all && out.is_terminal() {
        // Too much for one row of a terminal.
        rows.try_for_each(|cells| {
            pairs(out, &columns.iter().copied().zip(cells).collect::<Vec<_>>())?;
            out.line("")
        })?;
    } else {
        wide_grid(out, &columns, &[0], &[1, 2], rows)?;
    }
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
        "{} of the plan's {}, made on version {}",
        applied.planned_files - applied.left_out,
        counted(applied.planned_files, "file"),
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
    let verdict = if report.clean { "nothing is wrong".to_owned() } else { counted(found, "finding") };
    out.line(&format!(
        "{verdict}: version {}, {}, {}, {}, statistics of {}",
        report.version,
        counted(report.files, "file"),
        counted(report.vectors, "vector"),
        counted(report.checkpoints, "checkpoint"),
        counted(report.statistics, "file")
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
            "{}, {} {verb}; versions from {version} on stay (cut-off {})",
            counted(log.files.len() as u64, "log file"),
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

fn history(entry: &HistoryEntry, checked: bool, noted: bool, all: bool) -> Vec<String> {
    let parameters = entry.operation_parameters.iter().flatten().map(|(k, v)| (k, v.as_deref().unwrap_or("null")));
    let metrics = entry.operation_metrics.iter().flatten().map(|(k, v)| (k, v.as_str()));
    let readable = match (entry.readable, entry.missing_files) {
        (Some(true), _) => "yes".to_owned(),
        (_, Some(missing)) => format!("no: {} missing", counted(missing, "file")),
        (_, None) => "no: its log is gone".to_owned(),
    };
    let mut cells =
        vec![entry.version.to_string(), to_the_second(&entry.timestamp), entry.operation.clone().unwrap_or_default()];
    cells.extend(checked.then_some(readable));
    cells.push(map(parameters));
    cells.extend(noted.then(|| entry.user_metadata.clone().unwrap_or_default()));
    if all {
        cells.extend([entry.engine_info.clone().unwrap_or_default(), map(metrics)]);
    }
    cells
}

fn file(entry: &FileEntry) -> Vec<String> {
    let partition: BTreeMap<_, _> = entry.partition_values.iter().collect();
    vec![
        entry.size.to_string(),
        entry.num_records.map(|n| n.to_string()).unwrap_or_default(),
        entry.deleted_rows.to_string(),
        to_the_second(&entry.modification_time),
        map(partition.into_iter().map(|(k, v)| (k, v.as_deref().unwrap_or("null")))),
        entry.path.clone(),
    ]
}

/// A time without its fraction of a second, which JSON has, and with the short name of UTC.
fn to_the_second(timestamp: &str) -> String {
    let short = match timestamp.split_once('.') {
        Some((seconds, rest)) => format!("{seconds}{}", rest.trim_start_matches(|c: char| c.is_ascii_digit())),
        None => timestamp.to_owned(),
    };
    short.strip_suffix("+00:00").map_or_else(|| short.clone(), |utc| format!("{utc}Z"))
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
    fn times_are_shown_to_the_second() {
        for (text, shown) in [
            ("2026-01-31T12:00:00.123Z", "2026-01-31T12:00:00Z"),
            ("2026-01-31 12:00:00.5", "2026-01-31 12:00:00"),
            ("2026-01-31T12:00:00.5+00:00", "2026-01-31T12:00:00Z"),
            ("2026-01-31T12:00:00+01:00", "2026-01-31T12:00:00+01:00"),
        ] {
            assert_eq!(to_the_second(text), shown);
        }
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
