//! What RESTORE did, for people.

use lakesmith::Result;
use lakesmith::op::RestoreReport;
use lakesmith::units::{counted, format_bytes};

use super::Stdout;

/// Prints the report.
///
/// # Errors
/// Unavailable when it cannot be written.
pub(super) fn report(out: &mut Stdout, report: &RestoreReport) -> Result<()> {
    let metrics = &report.metrics;
    let back =
        format!("{} ({})", counted(metrics.num_restored_files, "file"), format_bytes(metrics.restored_files_size));
    let out_of_it =
        format!("{} ({})", counted(metrics.num_removed_files, "file"), format_bytes(metrics.removed_files_size));
    let all = format!(
        "{}, {}",
        counted(metrics.num_of_files_after_restore, "file"),
        format_bytes(metrics.table_size_after_restore)
    );
    out.line(&match report.version_after {
        Some(version) => format!(
            "version {version} is now as version {} was: {back} came back, {out_of_it} left, the table has {all}",
            report.restored_version
        ),
        None => format!(
            "version {} can come back whole: {back} would come back, {out_of_it} would leave, the table would have {all}",
            report.restored_version
        ),
    })
}
