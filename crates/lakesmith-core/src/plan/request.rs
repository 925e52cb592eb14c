//! What an OPTIMIZE asks for: compaction, an order, or clustering; and the one entry to the three planners.
//!
//! ```text
//! optimize(&state, &options, predicate, &mut LayoutContext { indexed_leaves, run_id, new_cube_id, bounds }) -> RewritePlan
//! ```
//! A caller sees from [`mode`] what the context must hold: nothing for compaction; the leaves with statistics for an
//! order; and for clustering with a budget the bounds of the keys that [`super::cluster::keys`] names.

use super::{RewritePlan, budget, cluster, compact, keys, order};
use crate::error::{Error, Result};
use crate::op::OptimizeOptions;
use crate::predicate::BoundPredicate;
use crate::table::{Scalar, TableState};

/// Which planner an OPTIMIZE needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Packing of small files.
    Compaction,
    /// ZORDER BY and its kin.
    Ordering,
    /// The table's own clustering.
    Clustering,
}

impl Mode {
    /// # Errors
    /// Usage if the request is for another planner.
    pub(super) fn expect(self, wanted: Mode) -> Result<()> {
        if self == wanted {
            return Ok(());
        }
        Err(Error::usage(format!("the request is for {self:?}, not for {wanted:?}; plan it with plan::optimize")))
    }
}

/// Smallest and largest value of one key in each file of the table, in the table's order; `None` where they are unknown.
/// Strings are as cut as the log has them.
pub type KeyBounds = Vec<Option<(Scalar, Scalar)>>;

/// What a planner must be told beyond the table and the options.
pub struct LayoutContext<'a> {
    /// Physical paths of the leaves that get statistics.
    pub indexed_leaves: &'a [Vec<String>],
    /// Name of this run, different from that of every other.
    pub run_id: &'a str,
    /// Names a cube that no other has; called once for every new cube.
    pub new_cube_id: &'a mut dyn FnMut() -> String,
    /// Bounds of the clustering keys, key by key; empty without a budget.
    pub bounds: &'a [KeyBounds],
}

/// Plans an OPTIMIZE of the files whose partition matches `predicate`.
///
/// # Errors
/// Usage, with Spark's classes, for requests that the table's layout forbids or whose columns cannot order rows.
pub fn optimize(
    state: &TableState,
    options: &OptimizeOptions,
    predicate: Option<&BoundPredicate>,
    context: &mut LayoutContext<'_>,
) -> Result<RewritePlan> {
    match mode(state, options)? {
        Mode::Compaction => compact(state, options, predicate),
        Mode::Ordering => order(state, options, predicate, context.indexed_leaves, context.run_id),
        Mode::Clustering => match options.budget_bytes {
            Some(bytes) if !options.full && !options.force => budget::budget(state, options, bytes, context),
            _ => cluster(state, options, context.run_id, context.new_cube_id),
        },
    }
}

/// The planner that a request needs.
///
/// # Errors
/// Usage, with Spark's classes, for requests that the table's layout forbids.
///
/// # Source
/// Delta Spark `OptimizeTableCommand.scala` (checks), `OptimizeTableStrategy.scala` (`getMode`).
pub fn mode(state: &TableState, options: &OptimizeOptions) -> Result<Mode> {
    // As in Spark, the feature alone makes a table clustered, with or without keys.
    let clustered = state.has_feature("clustering");
    if clustered {
        if let Some(predicate) = &options.predicate {
            return Err(Error::usage(format!(
                "OPTIMIZE command for Delta table with clustering doesn't support partition predicates. Please remove \
                 the predicates: {}.",
                options.predicate_text.clone().unwrap_or_else(|| predicate.spark_text())
            ))
            .class("DELTA_CLUSTERING_WITH_PARTITION_PREDICATE"));
        }
        if let Some(by) = &options.order_by {
            let columns: Vec<String> = by.columns.iter().map(|parts| keys::attribute_name(parts)).collect();
            return Err(Error::usage(format!(
                "OPTIMIZE command for Delta table with clustering cannot specify ZORDER BY. Please remove ZORDER BY ({}).",
                columns.join(", ")
            ))
            .class("DELTA_CLUSTERING_WITH_ZORDER_BY"));
        }
    }
    let has_keys = clustered && state.clustering_columns.as_ref().is_some_and(|c| !c.is_empty());
    if options.full && !has_keys {
        return Err(Error::usage(
            "OPTIMIZE FULL is only supported for clustered tables with non-empty clustering columns.",
        )
        .class("DELTA_OPTIMIZE_FULL_NOT_SUPPORTED"));
    }
    if options.budget_bytes.is_some() && !has_keys {
        return Err(Error::usage(
            "a budget chooses among files that overlap in the clustering keys, and the table has none; give the keys \
             with ALTER TABLE … CLUSTER BY, or leave the budget out",
        ));
    }
    Ok(match (&options.order_by, has_keys) {
        (_, true) => Mode::Clustering,
        (Some(_), false) => Mode::Ordering,
        (None, false) => Mode::Compaction,
    })
}
