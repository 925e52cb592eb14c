//! What a vacuum did or would do, as text.

use std::collections::BTreeMap;

use lakesmith::Result;
use lakesmith::op::{EntryList, KeptEntry, VacuumReport};
use lakesmith::units::{counted, format_bytes};

use super::Stdout;
use super::tables::{ROWS_A_TABLE, grid};

/// Prints a report.
///
/// # Errors
/// Unavailable when it cannot be written or its lists cannot be read back.
pub(super) fn report(out: &mut Stdout, report: &VacuumReport) -> Result<()> {
    if let Some(run) = &report.pardoned {
        let done = if report.dry_run { "would be" } else { "was" };
        return out.line(&format!("the list of run {run} {done} dropped; nothing was deleted"));
    }
    let failed = report.failed.iter().map(|f| vec![f.path.clone(), f.reason.clone()]);
    if !report.dry_run {
        if !report.failed.is_empty() {
            grid(out, &["not deleted", "why"], &[], failed)?;
        }
        if let Some(run) = &report.condemned {
            out.line(&format!(
                "run {} condemned {}; they may be deleted from {} on",
                run.run,
                counted(run.files, "file"),
                run.due
            ))?;
        }
        out.line(&report.sentence())?;
        return out.line(&format!("{} freed", format_bytes(report.bytes)));
    }
    entries(out, &report.files, &["path", "size", "age", "reason"], &[1, 2], |file| {
        vec![file.path, file.size.to_string(), age(file.age_ms), plain(&file.reason)]
    })?;
    if out.wants_all() {
        entries(out, &report.kept, &["kept", "reason"], &[], |file| vec![file.path, plain(&file.reason)])?;
    } else {
        kept(out, &report.kept)?;
    }
    let objects = match report.files.len() {
        1 => "1 file or directory".to_owned(),
        many => format!("{many} files and directories"),
    };
    out.line(&format!(
        "dry run of {}: {}, {}, in a total of {} would be deleted (cutoff {}); nothing was deleted",
        report.path,
        objects,
        format_bytes(report.bytes),
        counted(report.directories, "directory"),
        report.cutoff,
    ))
}

/// How many files stay for each reason; who wants their names says so.
fn kept(out: &mut Stdout, list: &EntryList<KeptEntry>) -> Result<()> {
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    list.for_each(|entry| {
        *reasons.entry(plain(&entry.reason)).or_default() += 1;
        Ok(())
    })?;
    for (reason, files) in reasons {
        out.line(&format!("kept: {}, {reason} (-v names them)", counted(files, "file")))?;
    }
    Ok(())
}

/// A list under its header, a piece at a time; an empty list prints nothing.
fn entries<T>(
    out: &mut Stdout,
    list: &EntryList<T>,
    columns: &[&str],
    numbers: &[usize],
    row: impl Fn(T) -> Vec<String>,
) -> Result<()> {
    if list.is_empty() {
        return Ok(());
    }
    let mut rows = Vec::new();
    let mut header = columns;
    list.for_each(|entry| {
        rows.push(row(entry));
        if rows.len() < ROWS_A_TABLE {
            return Ok(());
        }
        grid(out, header, numbers, std::mem::take(&mut rows).into_iter())?;
        header = &[];
        Ok(())
    })?;
    if rows.is_empty() { Ok(()) } else { grid(out, header, numbers, rows.into_iter()) }
}

/// `too_young` as `too young`.
fn plain(reason: &impl serde::Serialize) -> String {
    serde_json::to_value(reason).ok().and_then(|v| v.as_str().map(|text| text.replace('_', " "))).unwrap_or_default()
}

fn age(age_ms: Option<i64>) -> String {
    match age_ms {
        None => "unknown".to_owned(),
        Some(ms) if ms < 60_000 => format!("{} s", ms / 1000),
        Some(ms) if ms < 7_200_000 => format!("{} min", ms / 60_000),
        Some(ms) if ms < 172_800_000 => format!("{} h", ms / 3_600_000),
        Some(ms) => format!("{} d", ms / 86_400_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short_text() {
        let shown = [Some(-5), Some(59_999), Some(7_100_000), Some(172_000_000), Some(172_800_000), None].map(age);
        assert_eq!(shown, ["0 s", "59 s", "118 min", "47 h", "2 d", "unknown"]);
    }
}
