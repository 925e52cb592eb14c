//! The log's statistics of some live files, for a file that is put in again.

use std::collections::HashMap;

use lakesmith_core::Result;
use lakesmith_core::table::FileId;
use lakesmith_storage::{Location, Store};
use serde_json::{Map, Value};

use crate::bounds::read;
use crate::log_state::DeltaTable;

/// The texts of the statistics of `files`, in their order; the log is read once.
///
/// # Errors
/// As [`crate::load`].
pub(crate) async fn statistics_texts(
    store: &Store,
    root: &Location,
    table: &DeltaTable,
    files: &[FileId],
) -> Result<Vec<Option<String>>> {
    let places: HashMap<String, usize> =
        files.iter().enumerate().map(|(place, id)| (table.state.files.get(*id).path.to_owned(), place)).collect();
    let counted: Vec<bool> = files.iter().map(|id| table.state.files.get(*id).rows.is_some()).collect();
    read(store, root, table, move |scan| {
        let mut texts = vec![None; counted.len()];
        let mut lacks_text = false;
        scan(&mut |path, stats| {
            if let Some(place) = places.get(path) {
                lacks_text |= stats.is_none() && counted[*place];
                texts[*place] = stats.map(str::to_owned);
            }
            Ok(())
        })?;
        Ok((texts, lacks_text))
    })
    .await
}

/// Statistics of a file of which rows are deleted: those of all its rows, whose bounds need not be met by the rows that are
/// left.
///
/// # Source
/// Delta PROTOCOL.md, "Per-file Statistics" (`tightBounds`).
pub(crate) fn with_wide_bounds(text: Option<&str>, physical_rows: u64) -> String {
    let known = text.and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
    let mut stats = known.unwrap_or_default();
    stats.insert("numRecords".to_owned(), physical_rows.into());
    stats.insert("tightBounds".to_owned(), false.into());
    Value::Object(stats).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_stay_to_the_last_digit_and_are_called_wide() {
        let text = r#"{"numRecords":3,"minValues":{"d":-12345678901234567890123456789012345.678},"maxValues":{"d":1.10},"nullCount":{"d":0},"tightBounds":true}"#;
        let wide = with_wide_bounds(Some(text), 3);
        assert_eq!(wide, text.replace("true", "false"));
        assert_eq!(with_wide_bounds(None, 7), r#"{"numRecords":7,"tightBounds":false}"#);
        assert_eq!(with_wide_bounds(Some("no JSON"), 7), r#"{"numRecords":7,"tightBounds":false}"#);
    }
}
