//! The tag that says how a file's rows were laid out, and for which target, so that a second run finds nothing to do.
//!
//! `lakesmith.layout` = `{"v":1,"curve":"hilbert","columns":[["s","a"]],"run":"…","target":1073741824}`. Columns are
//! physical paths: a renamed column leaves the files in order.

use super::{Curve, RowOrder};
use crate::table::FileMarks;

/// Key of the tag with the layout.
pub const LAYOUT_TAG: &str = "lakesmith.layout";

/// Key of the tag on outputs of bin-packing: the target in bytes for which they were packed. A bin whose files all carry
/// this run's target is finished work, however much its outputs shrank.
pub const TARGET_TAG: &str = "lakesmith.target";

const VERSION: u64 = 1;

/// How the rows of a file are laid out.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LayoutTag {
    v: u64,
    /// The curve.
    pub curve: Curve,
    /// Physical paths of the keys, the most significant first.
    pub columns: Vec<Vec<String>>,
    /// The run that wrote the file: files of one run and partition overlap as little as the curve allows.
    pub run: String,
    // Last, so that the target can be read without the rest.
    /// Bytes a file for which the rows were cut.
    pub target: u64,
}

/// What a file says of its layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// Nothing.
    None,
    /// This.
    Known(LayoutTag),
    /// Something that a newer version of Lakesmith, or nobody, understands.
    Unknown,
}

impl LayoutTag {
    /// The tag of the outputs of `run` that are cut for `target` bytes.
    pub fn new(order: &RowOrder, run: &str, target: u64) -> Self {
        Self {
            v: VERSION,
            curve: order.curve,
            columns: order.keys.iter().map(|key| key.path.clone()).collect(),
            run: run.to_owned(),
            target,
        }
    }

    /// The tag's value.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// True if a run with this order and target would lay out the rows in the same way.
    pub fn matches(&self, order: &RowOrder, target: u64) -> bool {
        // With one key all curves are the order of its values.
        let same_curve = self.curve == order.curve || self.columns.len() == 1;
        self.target == target && same_curve && self.columns.iter().eq(order.keys.iter().map(|key| &key.path))
    }
}

/// The layout of a file with these marks.
pub fn layout(marks: &FileMarks) -> Layout {
    match marks.tag(LAYOUT_TAG) {
        None => Layout::None,
        Some(text) => match serde_json::from_str::<LayoutTag>(text) {
            Ok(tag) if tag.v == VERSION => Layout::Known(tag),
            _ => Layout::Unknown,
        },
    }
}

/// The target in bytes that a tag names: that of bin-packing, or that of a layout; `None` for any other tag.
pub fn target_in(key: &str, value: Option<&str>) -> Option<u64> {
    match key {
        TARGET_TAG => value?.parse().ok(),
        LAYOUT_TAG => target_of_layout(value?),
        _ => None,
    }
}

/// The target in bytes for which a file with these marks was written.
pub fn packed_for(marks: &FileMarks) -> Option<u64> {
    [TARGET_TAG, LAYOUT_TAG].iter().find_map(|key| target_in(key, marks.tag(key)))
}

/// Without reading the whole text if it is as we write it: tables have millions of files.
fn target_of_layout(text: &str) -> Option<u64> {
    let ending = || text.strip_prefix("{\"v\":1,")?.strip_suffix('}')?.rsplit_once(",\"target\":")?.1.parse().ok();
    ending()
        .or_else(|| serde_json::from_str::<LayoutTag>(text).ok().filter(|tag| tag.v == VERSION).map(|tag| tag.target))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::OrderKey;
    use crate::table::DataType;

    fn order(curve: Curve, columns: &[&[&str]]) -> RowOrder {
        let path = |c: &&[&str]| c.iter().map(|part| part.to_string()).collect::<Vec<_>>();
        let key = |c| OrderKey { path: path(c), name: path(c), data_type: DataType::Long };
        RowOrder { curve, keys: columns.iter().map(key).collect(), files: 1 }
    }

    fn marks(key: &str, value: &str) -> FileMarks {
        FileMarks { tags: [(key.to_string(), Some(value.to_string()))].into(), clustering_provider: None }
    }

    #[test]
    fn a_tag_is_read_as_it_was_written() {
        let tag = LayoutTag::new(&order(Curve::Zorder, &[&["s", "a"], &["b"]]), "r", 7);
        let text = r#"{"v":1,"curve":"zorder","columns":[["s","a"],["b"]],"run":"r","target":7}"#;
        assert_eq!(tag.to_text(), text);
        assert_eq!(layout(&marks(LAYOUT_TAG, text)), Layout::Known(tag));
        assert_eq!(layout(&FileMarks::default()), Layout::None);
        assert_eq!(layout(&marks(LAYOUT_TAG, &text.replace("\"v\":1", "\"v\":2"))), Layout::Unknown);
        assert_eq!(layout(&marks(LAYOUT_TAG, "{")), Layout::Unknown);
    }

    #[test]
    fn a_layout_matches_its_order_keys_and_target() {
        let (ab, ba) = (order(Curve::Zorder, &[&["a"], &["b"]]), order(Curve::Zorder, &[&["b"], &["a"]]));
        let tag = LayoutTag::new(&ab, "r", 7);
        assert!(tag.matches(&ab, 7));
        assert!(!tag.matches(&ab, 8) && !tag.matches(&ba, 7) && !tag.matches(&order(Curve::Zorder, &[&["a"]]), 7));
        assert!(!tag.matches(&order(Curve::Hilbert, &[&["a"], &["b"]]), 7));
        let one = LayoutTag::new(&order(Curve::Zorder, &[&["a"]]), "r", 7);
        assert!(one.matches(&order(Curve::Sort, &[&["a"]]), 7));
    }

    #[test]
    fn the_target_of_a_layout_is_one_of_packing_too() {
        let named = order(Curve::Sort, &[&["a\",\"target\":5}", "\"target\":6"]]);
        let text = LayoutTag::new(&named, ",\"target\":9}", 70).to_text();
        assert_eq!(packed_for(&marks(LAYOUT_TAG, &text)), Some(70));
        let reordered = r#"{ "target":71, "v":1, "curve":"sort", "columns":[["a"]], "run":"r" }"#;
        assert_eq!(packed_for(&marks(LAYOUT_TAG, reordered)), Some(71));
        assert_eq!(packed_for(&marks(LAYOUT_TAG, &text.replace("\"v\":1", "\"v\":2"))), None);
        assert_eq!(packed_for(&marks(TARGET_TAG, "72")), Some(72));
        assert_eq!(packed_for(&marks("OPTIMIZE_TARGET_SIZE", "72")), None);
    }
}
