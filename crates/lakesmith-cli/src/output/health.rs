//! The health check as a page of text.

use lakesmith::Result;
use lakesmith::op::health::{
    CheckpointHint, CountAndBytes, Finding, HealthReport, MaintenanceSummary, PartitionHealth, PastRun, Severity,
};
use lakesmith::units::{format_bytes, format_count};

use super::Stdout;
use super::tables::printable;

/// Characters of the longest bar.
const BAR: u64 = 24;
const MINUTE_MS: i64 = 60_000;

/// Prints the report.
///
/// # Errors
/// Unavailable when it cannot be written.
pub(crate) fn report(out: &mut Stdout, report: &HealthReport) -> Result<()> {
    let coloured = out.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    for line in page(report, Paint { coloured, terminal: out.is_terminal() }) {
        out.line(line.trim_end())?;
    }
    Ok(())
}

/// How text is dressed.
#[derive(Debug, Clone, Copy)]
struct Paint {
    coloured: bool,
    terminal: bool,
}

impl Paint {
    fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    fn severity(self, severity: Severity, text: &str) -> String {
        let code = match severity {
            Severity::Info => "36",
            Severity::Warning => "33;1",
            Severity::Critical => "31;1",
        };
        self.with(code, text)
    }

    fn score(self, score: u32, text: &str) -> String {
        let code = match score {
            80.. => "32;1",
            50.. => "33;1",
            _ => "31;1",
        };
        self.with(code, text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.coloured { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn bar(self, length: u64) -> String {
        (if self.terminal { "█" } else { "#" }).repeat(usize::try_from(length).unwrap_or(0))
    }
}

fn page(report: &HealthReport, paint: Paint) -> Vec<String> {
    let mut lines = vec![
        format!(
            "{}   {}",
            paint.bold(&printable(report.table.strip_prefix("file://").unwrap_or(&report.table))),
            paint.score(report.score, &format!("health {} of 100", report.score))
        ),
        headline(report),
    ];
    histogram(report, paint, &mut lines);
    worst_partitions(report, paint, &mut lines);
    lines.push(String::new());
    for finding in &report.findings {
        self::finding(finding, paint, &mut lines);
    }
    if report.findings.is_empty() {
        lines.push(paint.with("32;1", "nothing to complain about"));
    }
    lines.push(String::new());
    lines.extend(facts(report).into_iter().map(|(name, text)| format!("{} {text}", paint.dim(&format!("{name:<12}")))));
    lines
}

fn headline(report: &HealthReport) -> String {
    let mut parts = vec![
        format!("version {}", report.version),
        plural(report.files, "file"),
        format_bytes(report.bytes),
        format!("{} on average", format_bytes(report.avg_file_bytes)),
    ];
    if let Some(rows) = report.rows {
        parts.push(plural(rows, "row"));
    }
    if !report.partition_columns.is_empty() {
        let columns = printable(&report.partition_columns.join(", "));
        parts.push(format!("{} by {columns}", plural(report.partitions, "partition")));
    }
    if !report.clustering_columns.is_empty() {
        parts.push(format!("clustered by {}", printable(&report.clustering_columns.join(", "))));
    }
    parts.join(", ")
}

fn histogram(report: &HealthReport, paint: Paint, lines: &mut Vec<String>) {
    let bins = &report.histogram;
    let (Some(first), Some(last)) = (bins.iter().position(|b| b.files > 0), bins.iter().rposition(|b| b.files > 0))
    else {
        return;
    };
    let most = bins.iter().map(|b| b.files).max().unwrap_or(1).max(1);
    lines.push(String::new());
    lines.push(paint.dim(&format!("{:>12} {:>12} {:>12}", "file size", "files", "bytes")));
    for (place, bin) in bins.iter().enumerate().take(last + 1).skip(first) {
        let name = match bin.upto {
            Some(upto) => format!("<= {}", short_bytes(upto)),
            None => format!("> {}", short_bytes(bins[place - 1].upto.unwrap_or(0))),
        };
        let bar = paint.bar((bin.files * BAR).div_ceil(most));
        lines.push(format!("{name:>12} {:>12} {:>12}  {bar}", format_count(bin.files), format_bytes(bin.bytes)));
    }
}

fn worst_partitions(report: &HealthReport, paint: Paint, lines: &mut Vec<String>) {
    // Without a finding about sizes the worst ones are well, too.
    let ill = report.findings.iter().any(|f| f.id.ends_with("small-files") || f.id == "oversize-files");
    if report.worst_partitions.is_empty() || !ill {
        return;
    }
    lines.push(String::new());
    lines.push(
        paint
            .dim(&format!("{:>8} {:>8} {:>7} {:>9}  {}", "files", "could be", "small", "oversize", "worst partitions")),
    );
    for of in &report.worst_partitions {
        lines.push(format!(
            "{:>8} {:>8} {:>7} {:>9}  {}",
            format_count(of.files),
            format_count(of.files_after_optimize),
            percent(of.small_ratio),
            percent(of.oversize_ratio),
            partition(of),
        ));
    }
}

fn partition(of: &PartitionHealth) -> String {
    let value = |v: &serde_json::Value| v.as_str().map_or_else(|| "NULL".to_owned(), shortened);
    let pairs: Vec<String> = of.values.iter().map(|(k, v)| format!("{}={}", printable(k), value(v))).collect();
    pairs.join(", ")
}

/// Values of partitions may be long; a page has room for their beginning.
fn shortened(text: &str) -> String {
    const CHARACTERS: usize = 40;
    let start: String = text.chars().take(CHARACTERS).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("{}{more}", printable(&start))
}

fn finding(finding: &Finding, paint: Paint, lines: &mut Vec<String>) {
    let head = format!("{:<8} {}", finding.severity.as_str(), finding.id);
    let points = if finding.points > 0 { paint.dim(&format!("  -{}", finding.points)) } else { String::new() };
    lines.push(format!("{}{points}", paint.severity(finding.severity, &head)));
    lines.push(format!("         {}", printable(&finding.message)));
    if let Some(command) = &finding.command {
        lines.push(format!("         {}", paint.bold(&format!("$ {}", printable(command)))));
    }
}

fn facts(report: &HealthReport) -> Vec<(&'static str, String)> {
    let log = &report.log;
    let checkpoint = match log.checkpoint_version {
        Some(version) => {
            format!("checkpoint at version {version}, {} since", plural(log.commits_since_checkpoint, "commit"))
        }
        None => format!("no checkpoint, {}", plural(log.commits_since_checkpoint, "commit")),
    };
    let hint = match log.last_checkpoint_hint {
        CheckpointHint::Current | CheckpointHint::Older => "",
        CheckpointHint::Missing if log.checkpoint_version.is_none() => "",
        CheckpointHint::Missing => ", no hint to it",
        CheckpointHint::Damaged | CheckpointHint::NamesMissing | CheckpointHint::BeyondLog => ", a wrong hint",
    };
    let mut facts = match &report.snapshots {
        Some(found) => vec![(
            "snapshots",
            format!(
                "{}, {} may expire; {} of {}",
                plural(found.snapshots, "snapshot"),
                found.expirable,
                plural(found.manifests.files, "manifest"),
                format_bytes(found.manifests.bytes),
            ),
        )],
        None => vec![("log", format!("{checkpoint}{hint}; {}", sum(log.files)))],
    };
    if report.deletes.files > 0 {
        let deletes = &report.deletes;
        facts.push(("deletes", format!("{} in {}", plural(deletes.rows, "row"), plural(deletes.files, "file"))));
    }
    if let Some(tombstones) = report.tombstones.filter(|t| t.all.files > 0) {
        facts.push((
            "removed",
            format!("{} named by the log, {} beyond retention", sum(tombstones.all), sum(tombstones.expired)),
        ));
    }
    if let Some(storage) = &report.storage {
        facts.push((
            "storage",
            format!(
                "{} stored, {} orphaned, {} reclaimable, {} missing",
                sum(storage.stored),
                sum(storage.orphans),
                sum(storage.reclaimable),
                plural(storage.missing_files, "file"),
            ),
        ));
    }
    let statistics = &report.statistics;
    if statistics.files_read > 0 {
        let of = if statistics.complete { "all" } else { "a sample of" };
        facts.push((
            "statistics",
            format!(
                "{} indexed; {of} {} looked at, {} without",
                plural(statistics.columns_indexed, "column"),
                plural(statistics.files_read, "file"),
                format_count(statistics.files_without),
            ),
        ));
    }
    facts.push(("optimized", past(report.maintenance.last_optimize, &report.maintenance)));
    facts.push(("vacuumed", past(report.maintenance.last_vacuum, &report.maintenance)));
    facts
}

fn past(run: Option<PastRun>, of: &MaintenanceSummary) -> String {
    match (run, of.oldest_version_read) {
        (Some(run), _) => {
            let version = run.version.map_or_else(String::new, |v| format!(" (version {v})"));
            format!("{} ago{version}", age(run.age_ms))
        }
        (None, Some(0)) => "never".to_owned(),
        (None, Some(version)) => format!("not since version {version}"),
        (None, None) => "not known".to_owned(),
    }
}

fn age(ms: i64) -> String {
    let minutes = u64::try_from(ms / MINUTE_MS).unwrap_or(0);
    match minutes {
        0..120 => plural(minutes, "minute"),
        120..2_880 => plural(minutes / 60, "hour"),
        _ => plural(minutes / 1_440, "day"),
    }
}

fn sum(of: CountAndBytes) -> String {
    format!("{} ({})", plural(of.files, "file"), format_bytes(of.bytes))
}

fn plural(number: u64, one: &str) -> String {
    format!("{} {one}{}", format_count(number), if number == 1 { "" } else { "s" })
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A bound of the histogram, which is a whole number of its unit.
fn short_bytes(bytes: u64) -> String {
    format_bytes(bytes).replace(".0 ", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_hostile_partition_values_stay_on_their_line() {
        let text = shortened(&format!("a\u{1b}[2J\n{}", "x".repeat(100)));
        assert!(text.starts_with("a\\u{1b}[2J\\nxxx") && text.ends_with('…'), "{text}");
        assert_eq!(shortened("plain"), "plain");
    }

    #[test]
    fn ages_are_whole_units() {
        for (ms, expected) in
            [(-5, "0 minutes"), (MINUTE_MS, "1 minute"), (7_200_000, "2 hours"), (864_000_000, "10 days")]
        {
            assert_eq!(age(ms), expected);
        }
    }

    #[test]
    fn only_colour_adds_escapes() {
        let plain = Paint { coloured: false, terminal: false };
        assert_eq!(plain.severity(Severity::Critical, "x"), "x");
        assert_eq!(plain.bar(3), "###");
        assert_eq!(Paint { coloured: true, terminal: true }.score(90, "x"), "\u{1b}[32;1mx\u{1b}[0m");
    }
}
