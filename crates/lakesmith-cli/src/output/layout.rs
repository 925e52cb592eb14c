//! The overlap of files in the keys of an order, as text.

use lakesmith::Result;
use lakesmith::layout::depth::Depth;
use lakesmith::op::optimize::KeyLayout;
use lakesmith::units::format_count;

use super::Stdout;
use super::tables::{grid, printable};

/// Prints a row for each key, and the advice below; nothing without keys.
///
/// # Errors
/// Unavailable when it cannot be written.
pub(super) fn report(out: &mut Stdout, keys: &[KeyLayout]) -> Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let has_run = keys.iter().any(|key| key.depth_after.is_some());
    let columns = ["files to open for one value of", "files", "before", "worst", "after", "worst"];
    let columns = if has_run { &columns[..] } else { &columns[..4] };
    let row = |key: &KeyLayout| {
        let mut cells = vec![key.column.clone(), format_count(key.files)];
        cells.extend(depth(&key.depth_before));
        cells.extend(key.depth_after.iter().flat_map(depth));
        cells
    };
    grid(out, columns, &[1, 2, 3, 4, 5][..columns.len() - 1], keys.iter().map(row))?;
    for (key, advice) in keys.iter().flat_map(|key| key.advice.iter().map(move |advice| (key, advice))) {
        out.line(&printable(&format!("{}: {advice}", key.column)))?;
    }
    Ok(())
}

/// Mean and worst, in files.
pub(super) fn depth(of: &Depth) -> [String; 2] {
    let unknown = || "unknown".to_owned();
    [of.mean.map_or_else(unknown, |mean| format!("{mean:.1}")), of.worst.map_or_else(unknown, format_count)]
}
