//! Smallest and largest values of columns, file by file, from the statistics in the log.
//!
//! The log is read again for them: statistics of ten million files would not fit beside the files themselves.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use delta_kernel::scan::StatsOptions;
use lakesmith_core::layout::OrderKey;
use lakesmith_core::plan::KeyBounds;
use lakesmith_core::table::{FileId, FileTable};
use lakesmith_core::{Error, Result};
use lakesmith_storage::{Location, Store};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::bound_values::{value, widened};
use crate::file_rows::each_statistics;
use crate::log_state::DeltaTable;
use crate::quick::stats_text::{Name, Node, plant};
use crate::{engine, load};

/// The bounds of each key in the files of `table`, whose log is read once. For many files ask for one key at a time.
///
/// # Errors
/// As [`crate::load`]; `Corrupt` if the log no longer gives the same files.
pub async fn key_bounds(
    store: &Store,
    root: &Location,
    table: &DeltaTable,
    keys: &[OrderKey],
) -> Result<Vec<KeyBounds>> {
    if keys.is_empty() || table.state.files.is_empty() {
        return Ok(vec![vec![None; table.state.files.len()]; keys.len()]);
    }
    let kernel = table.log.view.open(store, root)?;
    let (state, root, keys) = (Arc::clone(&table.state), root.clone(), keys.to_vec());
    engine::blocking(move || {
        let snapshot =
            load::build(&kernel, Some(state.version)).map_err(|e| engine::translate(e, &root).with("path", &root))?;
        let collect = |stats| {
            let mut collector = Collector::new(&state.files, &keys);
            load::scan(&kernel, &root, &snapshot, stats, &mut |batch| {
                each_statistics(batch, &mut |path, stats| collector.take(path, stats)).map(|()| true)
            })?;
            Ok::<_, Error>((collector.bounds, collector.lacks_text))
        };
        match collect(StatsOptions::json_only())? {
            (bounds, false) => Ok(bounds),
            // A checkpoint may hold statistics as columns only.
            (_, true) => collect(StatsOptions::all()).map(|(bounds, _)| bounds),
        }
    })
    .await
}

struct Collector<'a> {
    files: &'a FileTable,
    keys: &'a [OrderKey],
    tree: Vec<(String, Node)>,
    bounds: Vec<KeyBounds>,
    next: usize,
    by_path: Option<HashMap<&'a str, usize>>,
    /// A file of which rows were counted has no statistics as text.
    lacks_text: bool,
}

impl<'a> Collector<'a> {
    fn new(files: &'a FileTable, keys: &'a [OrderKey]) -> Self {
        let mut tree = Vec::new();
        for (place, key) in keys.iter().enumerate() {
            plant(&mut tree, &key.path, place);
        }
        let bounds = vec![vec![None; files.len()]; keys.len()];
        Self { files, keys, tree, bounds, next: 0, by_path: None, lacks_text: false }
    }

    fn take(&mut self, path: &str, stats: Option<&str>) -> Result<()> {
        let row = self.row(path)?;
        let file = self.files.get(FileId(row as u32));
        let Some(text) = stats else {
            self.lacks_text |= file.rows.is_some();
            return Ok(());
        };
        let mut found = Found { low: vec![None; self.keys.len()], high: vec![None; self.keys.len()] };
        let mut json = serde_json::Deserializer::from_str(text);
        // Statistics that can't be read say nothing.
        if (Statistics { tree: &self.tree, found: &mut found }).deserialize(&mut json).is_err() {
            return Ok(());
        }
        for (place, key) in self.keys.iter().enumerate() {
            let bound = |value_of: &Option<Value>| value(&key.data_type, value_of.as_ref()?);
            self.bounds[place][row] = bound(&found.low[place]).zip(bound(&found.high[place]).map(widened));
        }
        Ok(())
    }

    /// The file's row; the log is read in one order each time, as a rule.
    fn row(&mut self, path: &str) -> Result<usize> {
        let expected = self.next;
        self.next += 1;
        if self.by_path.is_none() && expected < self.files.len() {
            let file = self.files.get(FileId(expected as u32));
            if file.path == path {
                return Ok(expected);
            }
        }
        let files = self.files;
        let by_path =
            self.by_path.get_or_insert_with(|| files.iter().enumerate().map(|(row, file)| (file.path, row)).collect());
        by_path
            .get(path)
            .copied()
            .ok_or_else(|| Error::corrupt("the log gives other files than before; run again").with("file", path))
    }
}

struct Found {
    low: Vec<Option<Value>>,
    high: Vec<Option<Value>>,
}

/// One file's statistics, of which only the bounds of known columns are kept.
struct Statistics<'a> {
    tree: &'a [(String, Node)],
    found: &'a mut Found,
}

impl<'de> DeserializeSeed<'de> for Statistics<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Statistics<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("statistics")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(part) = map.next_key_seed(Name(&["minValues", "maxValues"]))? {
            match part {
                Some(0) => map.next_value_seed(Columns { tree: self.tree, values: &mut self.found.low })?,
                Some(_) => map.next_value_seed(Columns { tree: self.tree, values: &mut self.found.high })?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Values by column name.
struct Columns<'a> {
    tree: &'a [(String, Node)],
    values: &'a mut [Option<Value>],
}

impl<'de> DeserializeSeed<'de> for Columns<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Columns<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values by column")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let names: Vec<&str> = self.tree.iter().map(|(name, _)| name.as_str()).collect();
        while let Some(column) = map.next_key_seed(Name(&names))? {
            match column.map(|place| &self.tree[place].1) {
                Some(Node::Leaf(place)) => self.values[*place] = map.next_value::<Option<Value>>()?,
                Some(Node::Struct(inner)) => {
                    map.next_value_seed(Columns { tree: inner, values: &mut *self.values })?;
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}
