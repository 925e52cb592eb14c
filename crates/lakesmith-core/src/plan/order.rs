//! OPTIMIZE … ZORDER BY and its kin: the files of each partition are rewritten together in one order of rows.
//!
//! Contract: one group a partition. Fixed point: outputs carry [`LAYOUT_TAG`], and a partition whose files all have the
//! wanted layout is left alone.
//!
//! # Source
//! Delta Spark `OptimizeTableCommand.scala` (`validateZorderByColumns`, one bin a partition, `approxNumFiles`). The tag,
//! and with it the fixed point, is Lakesmith's own.

use std::collections::BTreeMap;

use super::compact::{has_too_many_deletes, matching_partitions};
use super::keys::{Found, attribute_name, find, lacking_field};
use super::request::{self, Mode};
use super::{FileGroup, RewritePlan, invariant, partition_ranks, sort_by_size};
use crate::error::{Error, Result};
use crate::layout::tag::{LAYOUT_TAG, Layout, LayoutTag, layout};
use crate::layout::{OrderKey, RowOrder};
use crate::op::{Compat, OptimizeOptions, OrderBy};
use crate::predicate::BoundPredicate;
use crate::table::{FileId, FileMarks, FileTable, TableState};

/// Plans an ordering, by [`OptimizeOptions::order_by`], of the partitions that match `predicate`.
///
/// `indexed_leaves`: physical paths of the leaves that get statistics; `run_id`: a name that no other run has.
///
/// # Errors
/// Usage, with Spark's classes, for requests that the table's layout forbids and columns that don't exist, are partition
/// columns or have no statistics; Unsupported for columns whose values have no order.
pub fn order(
    state: &TableState,
    options: &OptimizeOptions,
    predicate: Option<&BoundPredicate>,
    indexed_leaves: &[Vec<String>],
    run_id: &str,
) -> Result<RewritePlan> {
    request::mode(state, options)?.expect(Mode::Ordering)?;
    let Some(by) = &options.order_by else { return Err(Error::usage("no columns to order by are given")) };
    let keys = keys(state, by, indexed_leaves, options.stats_check)?;
    let files = &state.files;
    let matching = matching_partitions(state, predicate)?;
    let ranks = partition_ranks(files);
    let mut plan = RewritePlan::default();
    let mut by_partition: BTreeMap<u32, Vec<FileId>> = BTreeMap::new();
    let keeps_unknown = options.compat == Compat::Lakesmith && !options.force;
    for file in files.iter().filter(|f| matching[f.partition_index as usize]) {
        plan.considered_files += 1;
        if keeps_unknown && layout(file.marks) == Layout::Unknown {
            plan.unknown_layouts.push(file.id);
        } else {
            by_partition.entry(ranks[file.partition_index as usize]).or_default().push(file.id);
        }
    }
    for mut ids in by_partition.into_values() {
        let bytes = ids.iter().map(|id| files.get(*id).size).sum();
        let order = RowOrder { curve: by.curve, keys: keys.clone(), files: output_files(bytes, options) };
        if is_finished(state, options, &ids, &order) {
            continue;
        }
        sort_by_size(files, &mut ids);
        plan.groups.push(FileGroup {
            partition_index: files.get(ids[0]).partition_index,
            files: ids,
            bytes,
            marks: marks(options, &order, run_id),
            order: Some(order),
        });
    }
    assert!(invariant::groups_are_disjoint(&plan) && invariant::groups_share_a_partition(&plan, files));
    Ok(plan)
}

/// Files to cut a group of so many input bytes into.
pub(super) fn output_files(bytes: u64, options: &OptimizeOptions) -> u64 {
    (bytes / options.sizes.target_bytes.max(1)).max(1)
}

/// Marks of the outputs of an ordering: the layout, for those who know it.
pub(super) fn marks(options: &OptimizeOptions, order: &RowOrder, run_id: &str) -> FileMarks {
    let mut marks = FileMarks::default();
    if options.compat == Compat::Lakesmith {
        let tag = LayoutTag::new(order, run_id, options.sizes.target_bytes);
        marks.tags.insert(LAYOUT_TAG.into(), Some(tag.to_text()));
    }
    marks
}

/// True if the files of a partition have this layout already and not too many deleted rows.
fn is_finished(state: &TableState, options: &OptimizeOptions, ids: &[FileId], order: &RowOrder) -> bool {
    let target = options.sizes.target_bytes;
    options.compat == Compat::Lakesmith
        && !options.force
        && ids.iter().map(|id| state.files.get(*id)).all(|file| {
            let same = matches!(layout(file.marks), Layout::Known(tag) if tag.matches(order, target));
            same && !has_too_many_deletes(&file, &options.sizes)
        })
}

/// True if one run laid these files out as `group` wants it, and none has deleted rows: with nothing beside them, they
/// would only be written again as they are.
pub fn is_laid_out(files: &FileTable, group: &FileGroup, ids: impl IntoIterator<Item = FileId>) -> bool {
    let (Some(order), Layout::Known(wanted)) = (&group.order, layout(&group.marks)) else { return false };
    let mut run = None;
    ids.into_iter().map(|id| files.get(id)).all(|file| match layout(file.marks) {
        Layout::Known(tag) if tag.matches(order, wanted.target) && file.deletes.is_none() => {
            *run.get_or_insert_with(|| tag.run.clone()) == tag.run
        }
        _ => false,
    })
}

/// The columns in `by`, checked in Spark's order; a column that is named twice counts once.
///
/// # Errors
/// As [`order()`].
pub fn keys(
    state: &TableState,
    by: &OrderBy,
    indexed_leaves: &[Vec<String>],
    stats_check: bool,
) -> Result<Vec<OrderKey>> {
    let mut keys: Vec<OrderKey> = Vec::new();
    let mut without_statistics = Vec::new();
    let mut without_order = None;
    for parts in &by.columns {
        let name = attribute_name(parts);
        let is_partition = |c: &String| parts.len() == 1 && c.to_lowercase() == parts[0].to_lowercase();
        if state.partition_columns.iter().any(is_partition) {
            return Err(Error::usage(format!(
                "{name} is a partition column. Z-Ordering can only be performed on data columns"
            ))
            .class("DELTA_ZORDERING_ON_PARTITION_COLUMN")
            .with("column", name));
        }
        let path = match find(&state.schema, parts) {
            Found::Nothing => {
                if let Some((part, fields)) = lacking_field(&state.schema, parts) {
                    let fields = fields.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", ");
                    return Err(Error::usage(format!("No such struct field `{part}` in {fields}."))
                        .class("FIELD_NOT_FOUND")
                        .with("column", name));
                }
                return Err(Error::usage(format!("Z-Ordering column {name} does not exist in data schema."))
                    .class("DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST")
                    .with("column", name));
            }
            Found::NoOrder(path, data_type) => {
                without_order.get_or_insert_with(|| {
                    Error::unsupported(format!(
                        "rows cannot be ordered by {name}, whose type is {}; order by columns, or by fields of a struct, that \
                         hold one number, text, date or timestamp a row",
                        data_type.simple_string()
                    ))
                    .with("column", &name)
                });
                path
            }
            Found::Key(key) => {
                let path = key.path.clone();
                if keys.iter().all(|k| k.path != path) {
                    keys.push(key);
                }
                path
            }
        };
        if stats_check && !indexed_leaves.iter().any(|leaf| leaf.starts_with(&path)) {
            without_statistics.push(name);
        }
    }
    if !without_statistics.is_empty() {
        return Err(Error::usage(format!(
            "Z-Ordering on [{}] will be ineffective, because we currently do not collect stats for these columns. You can \
             disable this check by setting\n SET \
             spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled = false",
            without_statistics.join(", ")
        ))
        .class("DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS"));
    }
    match without_order {
        Some(error) => Err(error),
        None if keys.is_empty() => Err(Error::usage("no columns to order by are given")),
        None => Ok(keys),
    }
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
