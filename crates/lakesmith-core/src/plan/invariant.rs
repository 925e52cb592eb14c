//! Named predicates over plans, shared by the planners' assertions and the property tests.

use std::collections::BTreeSet;

use super::RewritePlan;
use crate::table::FileTable;

/// No file is in two groups or twice in one.
pub fn groups_are_disjoint(plan: &RewritePlan) -> bool {
    let mut seen = BTreeSet::new();
    plan.groups.iter().flat_map(|g| &g.files).all(|f| seen.insert(*f))
}

/// No group is empty and each stays within one partition.
pub fn groups_share_a_partition(plan: &RewritePlan, files: &FileTable) -> bool {
    plan.groups
        .iter()
        .all(|g| !g.files.is_empty() && g.files.iter().all(|f| files.get(*f).partition_index == g.partition_index))
}

/// Files of one cube are never mixed with files of another or of none.
pub fn groups_share_a_cube(plan: &RewritePlan, files: &FileTable) -> bool {
    plan.groups.iter().all(|g| {
        let mut cubes = g.files.iter().map(|f| files.get(*f).marks.tag(super::ZCUBE_TAG));
        let first = cubes.next();
        cubes.all(|c| Some(c) == first)
    })
}
