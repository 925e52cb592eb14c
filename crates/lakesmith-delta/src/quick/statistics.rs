//! Which statistics the live files carry, judged on a sample or on all of them.

use std::collections::BTreeSet;

use lakesmith_core::health::StatisticsFacts;
use lakesmith_core::table::{DataType, Field};
use serde::de::{IgnoredAny, MapAccess};

use crate::DeltaTable;
use crate::read::data_fields;
use crate::stats_text::{Keep, Node, Part, plant, read};
use crate::write_spec::stats_leaves;

/// Statistics of files as the log has them, kept until the schema is known.
#[derive(Debug)]
pub(crate) struct Sample {
    limit: usize,
    texts: Vec<Option<Box<str>>>,
    /// Live files offered so far.
    pub offered: u64,
}

impl Sample {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, texts: Vec::new(), offered: 0 }
    }

    /// Takes the statistics of a live file while there is room.
    pub(crate) fn offer(&mut self, text: Option<&str>) {
        self.offered += 1;
        if self.texts.len() < self.limit {
            self.texts.push(text.map(Into::into));
        }
    }

    /// Files that may still be looked at.
    pub(crate) fn room(&self) -> usize {
        self.limit - self.texts.len()
    }

    pub(crate) fn into_texts(self) -> Vec<Option<Box<str>>> {
        self.texts
    }
}

/// Judges statistics by what the table asks for.
pub(crate) struct Judge {
    facts: StatisticsFacts,
    /// Logical names of the leaves that should have bounds.
    expected: Vec<String>,
    /// The same by physical name.
    tree: Vec<(String, Node)>,
    found: Found,
}

/// What the statistics of a file say of columns.
#[derive(Debug, Default)]
struct Found {
    /// Whether a column has a minimum.
    minima: Vec<bool>,
    /// Its number of nulls.
    nulls: Vec<Option<u64>>,
    rows: Option<u64>,
    is_there: bool,
}

impl Keep for Found {
    fn is_there(&mut self) {
        self.is_there = true;
    }

    fn wants(&self, part: Part) -> bool {
        !matches!(part, Part::Maxima | Part::Tight)
    }

    fn rows(&mut self, rows: Option<u64>) {
        self.rows = rows;
    }

    fn value<'de, A: MapAccess<'de>>(&mut self, part: Part, column: usize, map: &mut A) -> Result<(), A::Error> {
        match part {
            Part::Minima => self.minima[column] = map.next_value::<Option<IgnoredAny>>()?.is_some(),
            _ => self.nulls[column] = map.next_value()?,
        }
        Ok(())
    }
}

struct Leaf<'a> {
    logical: Vec<&'a str>,
    physical: Vec<String>,
    data_type: &'a DataType,
}

impl Judge {
    pub(crate) fn new(table: &DeltaTable) -> Self {
        let mut leaves = Vec::new();
        for field in data_fields(table) {
            collect(field, &mut Vec::new(), &mut Vec::new(), &mut leaves);
        }
        let indexed: BTreeSet<Vec<String>> = stats_leaves(table).into_iter().collect();
        let name = |leaf: &Leaf<'_>| leaf.logical.join(".");
        let clustering = table.state.clustering_columns.iter().flatten();
        let facts = StatisticsFacts {
            columns_indexed: indexed.len() as u64,
            columns_not_indexed: leaves
                .iter()
                .filter(|leaf| has_bounds(leaf.data_type) && !indexed.contains(&leaf.physical))
                .map(name)
                .collect(),
            clustering_not_indexed: clustering
                .filter(|key| leaves.iter().any(|leaf| leaf.logical == **key && !indexed.contains(&leaf.physical)))
                .map(|key| key.join("."))
                .collect(),
            ..StatisticsFacts::default()
        };
        // Bounds of floats are rightly left out where there is a NaN.
        let judged = |leaf: &&Leaf<'_>| !matches!(leaf.data_type, DataType::Float | DataType::Double);
        let (mut expected, mut tree) = (Vec::new(), Vec::new());
        for leaf in
            leaves.iter().filter(|leaf| has_bounds(leaf.data_type) && indexed.contains(&leaf.physical)).filter(judged)
        {
            plant(&mut tree, &leaf.physical, expected.len());
            expected.push(name(leaf));
        }
        Self { facts, expected, tree, found: Found::default() }
    }

    /// Looks at a live file's statistics.
    pub(crate) fn take(&mut self, text: Option<&str>) {
        self.facts.files_read += 1;
        let found = &mut self.found;
        (found.rows, found.is_there) = (None, false);
        found.minima.clear();
        found.minima.resize(self.expected.len(), false);
        found.nulls.clear();
        found.nulls.resize(self.expected.len(), None);
        let understood = read(text.unwrap_or_default(), &self.tree, found).is_ok();
        let (rows, is_empty) = (found.rows, !found.is_there);
        if text.is_none() || !understood || is_empty {
            self.facts.files_without += 1;
            self.facts.files_without_rows += 1;
            return;
        }
        if rows.is_none() {
            self.facts.files_without_rows += 1;
        }
        if rows == Some(0) {
            return;
        }
        for (name, (minimum, nulls)) in self.expected.iter().zip(found.minima.iter().zip(&found.nulls)) {
            let all_null = rows.is_some() && *nulls == rows;
            if !minimum && !all_null {
                *self.facts.columns_lacking.entry(name.clone()).or_default() += 1;
            }
        }
    }

    pub(crate) fn finish(mut self, live_files: u64) -> StatisticsFacts {
        self.facts.complete = self.facts.files_read == live_files;
        self.facts
    }
}

/// Types that get a minimum and a maximum.
fn has_bounds(data_type: &DataType) -> bool {
    use DataType::{Byte, Date, Decimal, Double, Float, Integer, Long, Short, String, Timestamp, TimestampNtz};
    matches!(
        data_type,
        Byte | Short | Integer | Long | Float | Double | Decimal { .. } | Date | Timestamp | TimestampNtz | String
    )
}

fn collect<'a>(field: &'a Field, logical: &mut Vec<&'a str>, physical: &mut Vec<String>, leaves: &mut Vec<Leaf<'a>>) {
    logical.push(&field.name);
    physical.push(field.physical.clone());
    match &field.data_type {
        DataType::Struct(inner) => inner.iter().for_each(|f| collect(f, logical, physical, leaves)),
        data_type => leaves.push(Leaf { logical: logical.clone(), physical: physical.clone(), data_type }),
    }
    logical.pop();
    physical.pop();
}
