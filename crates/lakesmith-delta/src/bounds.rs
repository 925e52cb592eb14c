//! What the statistics in the log say of columns, file by file: smallest and largest values, or nothing.
//!
//! The log is read again for them: statistics of ten million files would not fit beside the files themselves.

use std::collections::HashMap;
use std::sync::Arc;

use delta_kernel::scan::StatsOptions;
use lakesmith_core::layout::OrderKey;
use lakesmith_core::plan::KeyBounds;
use lakesmith_core::table::{ColumnBounds, FileId, FileTable, TableState};
use lakesmith_core::{Error, Result};
use lakesmith_storage::{Location, Store};
use serde::de::MapAccess;
use serde_json::Value;

use crate::alter::was_float;
use crate::bound_values::{highest, lowest, value};
use crate::file_rows::each_statistics;
use crate::log_state::DeltaTable;
use crate::schema::find_column;
use crate::stats::physical_field;
use crate::stats_text::{Keep, Node, Part, plant, read as read_text};
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
    let files: Vec<FileId> = (0..table.state.files.len() as u32).map(FileId).collect();
    let bounds = column_bounds(store, root, table, keys, &files).await?;
    let both =
        |column: ColumnBounds| column.low.into_iter().zip(column.high).map(|(low, high)| low.zip(high)).collect();
    Ok(bounds.into_iter().map(both).collect())
}

/// What the statistics say of each of `columns` in `files` of `table`, in their order; the log is read once.
///
/// # Errors
/// As [`key_bounds`].
pub async fn column_bounds(
    store: &Store,
    root: &Location,
    table: &DeltaTable,
    columns: &[OrderKey],
    files: &[FileId],
) -> Result<Vec<ColumnBounds>> {
    if columns.is_empty() || files.is_empty() {
        return Ok(vec![ColumnBounds::unknown(files.len()); columns.len()]);
    }
    let (state, keys, count) = (Arc::clone(&table.state), columns.to_vec(), files.len());
    let mut places = vec![None; state.files.len()];
    for (place, file) in (0..).zip(files) {
        places[file.0 as usize] = Some(place);
    }
    read(store, root, table, move |scan| {
        let mut collector = Collector::new(&state, &keys, &places, count);
        scan(&mut |path, stats| collector.take(path, stats))?;
        Ok((collector.bounds, collector.lacks_text))
    })
    .await
}

/// For each of `columns`, how many files say nothing of it in their statistics: neither bounds nor a count of nulls.
/// Columns are logical paths in any case; the table's files need not be loaded.
///
/// # Errors
/// As [`crate::load`].
pub async fn files_without_statistics(
    store: &Store,
    root: &Location,
    table: &DeltaTable,
    columns: &[Vec<String>],
) -> Result<Vec<u64>> {
    let mut tree = Vec::new();
    for (place, column) in columns.iter().enumerate() {
        let path = find_column(&table.state.schema, column).unwrap_or_default();
        plant(&mut tree, &path.iter().map(|f| f.physical.clone()).collect::<Vec<_>>(), place);
    }
    let count = columns.len();
    read(store, root, table, move |scan| {
        let (mut without, mut lacks_text) = (vec![0; count], false);
        scan(&mut |_, stats| {
            lacks_text |= stats.is_none();
            let found =
                Found::in_text(stats.unwrap_or_default(), &tree, count).unwrap_or_else(|| Found::nothing(count));
            for (place, without) in without.iter_mut().enumerate() {
                let says = [&found.low, &found.high, &found.nulls].into_iter().any(|part| part[place].is_some());
                *without += u64::from(!says);
            }
            Ok(())
        })?;
        Ok((without, lacks_text))
    })
    .await
}

/// Takes the path and the statistics of a file.
pub(crate) type Take<'a> = &'a mut dyn FnMut(&str, Option<&str>) -> Result<()>;

/// Gives what `collect` makes of the live files, which it scans. It also says whether a file that may have statistics has
/// none as text: a checkpoint may hold them as columns only, and then it is called again with those as text.
pub(crate) async fn read<T: Send + 'static>(
    store: &Store,
    root: &Location,
    table: &DeltaTable,
    collect: impl Fn(&dyn Fn(Take<'_>) -> Result<()>) -> Result<(T, bool)> + Send + 'static,
) -> Result<T> {
    let kernel = table.log.view.open(store, root)?;
    let (version, root) = (table.state.version, root.clone());
    engine::blocking(move || {
        let snapshot =
            load::build(&kernel, Some(version)).map_err(|e| engine::translate(e, &root).with("path", &root))?;
        let collected = |stats: StatsOptions| {
            collect(&|take| {
                let each = &mut |batch| each_statistics(batch, take).map(|()| true);
                load::scan(&kernel, &root, &snapshot, stats.clone(), each).map(drop)
            })
        };
        match collected(StatsOptions::json_only())? {
            (found, false) => Ok(found),
            (_, true) => collected(StatsOptions::all()).map(|(found, _)| found),
        }
    })
    .await
}

struct Collector<'a> {
    files: &'a FileTable,
    keys: &'a [OrderKey],
    /// Keys that were FLOAT once.
    floats: Vec<bool>,
    /// The place of each file among those that are asked for.
    places: &'a [Option<u32>],
    tree: Vec<(String, Node)>,
    bounds: Vec<ColumnBounds>,
    next: usize,
    by_path: Option<HashMap<&'a str, usize>>,
    /// A file of which rows were counted has no statistics as text.
    lacks_text: bool,
}

impl<'a> Collector<'a> {
    fn new(state: &'a TableState, keys: &'a [OrderKey], places: &'a [Option<u32>], count: usize) -> Self {
        let mut tree = Vec::new();
        for (place, key) in keys.iter().enumerate() {
            plant(&mut tree, &key.path, place);
        }
        let floats = keys.iter().map(|key| physical_field(&state.schema, &key.path).is_some_and(was_float)).collect();
        let bounds = vec![ColumnBounds::unknown(count); keys.len()];
        Self { files: &state.files, keys, floats, places, tree, bounds, next: 0, by_path: None, lacks_text: false }
    }

    fn take(&mut self, path: &str, stats: Option<&str>) -> Result<()> {
        let row = self.row(path)?;
        let Some(place) = self.places[row] else { return Ok(()) };
        let file = self.files.get(FileId(row as u32));
        let Some(text) = stats else {
            self.lacks_text |= file.rows.is_some();
            return Ok(());
        };
        let Some(found) = Found::in_text(text, &self.tree, self.keys.len()) else { return Ok(()) };
        let row = place as usize;
        for (place, key) in self.keys.iter().enumerate() {
            let was_float = self.floats[place];
            let bound = |value_of: &Option<Value>| value(&key.data_type, value_of.as_ref()?);
            let column = &mut self.bounds[place];
            column.low[row] = bound(&found.low[place]).map(|min| lowest(min, was_float));
            column.high[row] = bound(&found.high[place]).map(|max| highest(max, was_float));
            column.nulls[row] = found.nulls[place].as_ref().and_then(Value::as_u64);
            column.tight[row] = found.tight;
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
    nulls: Vec<Option<Value>>,
    /// Unless they tell otherwise.
    tight: bool,
}

impl Found {
    fn nothing(columns: usize) -> Self {
        Self { low: vec![None; columns], high: vec![None; columns], nulls: vec![None; columns], tight: true }
    }

    /// `None` if the statistics can't be read: then they say nothing.
    fn in_text(text: &str, tree: &[(String, Node)], columns: usize) -> Option<Self> {
        let mut found = Self::nothing(columns);
        read_text(text, tree, &mut found).ok()?;
        Some(found)
    }
}

impl Keep for Found {
    fn is_there(&mut self) {}

    fn wants(&self, part: Part) -> bool {
        part != Part::Rows
    }

    fn rows(&mut self, _rows: Option<u64>) {}

    fn tight(&mut self, tight: Option<bool>) {
        self.tight = tight.unwrap_or(true);
    }

    fn value<'de, A: MapAccess<'de>>(&mut self, part: Part, column: usize, map: &mut A) -> Result<(), A::Error> {
        let values = match part {
            Part::Minima => &mut self.low,
            Part::Maxima => &mut self.high,
            Part::Nulls | Part::Rows | Part::Tight => &mut self.nulls,
        };
        values[column] = map.next_value()?;
        Ok(())
    }
}
