//! Groups into commits.

use super::{FileGroup, RewritePlan, bin_pack};

/// Splits a plan's groups into batches of at most `batch_bytes` input bytes (a larger group stands alone); each batch is
/// one commit. `None`: one batch. An empty plan has none.
///
/// # Source
/// Delta Spark `BinPackingUtils.binPackBySize`: ascending size, next-fit.
pub fn into_batches(plan: RewritePlan, batch_bytes: Option<u64>) -> Vec<Vec<FileGroup>> {
    let mut groups = plan.groups;
    if groups.is_empty() {
        return Vec::new();
    }
    let Some(capacity) = batch_bytes else { return vec![groups] };
    groups.sort_by_key(|g| g.bytes);
    let sizes: Vec<u64> = groups.iter().map(|g| g.bytes).collect();
    let mut rest = groups.into_iter();
    bin_pack::next_fit(&sizes, capacity).into_iter().map(|bin| rest.by_ref().take(bin.len()).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::FileMarks;

    fn plan(bytes: &[u64]) -> RewritePlan {
        let marks = FileMarks::default();
        let group =
            |b: &u64| FileGroup { files: vec![], partition_index: 0, bytes: *b, marks: marks.clone(), order: None };
        RewritePlan { groups: bytes.iter().map(group).collect(), ..RewritePlan::default() }
    }

    #[test]
    fn batches_keep_every_group_within_the_limit() {
        let sizes = |batches: Vec<Vec<FileGroup>>| -> Vec<Vec<u64>> {
            batches.iter().map(|b| b.iter().map(|g| g.bytes).collect()).collect()
        };
        assert_eq!(sizes(into_batches(plan(&[5, 1, 20, 4]), Some(10))), vec![vec![1, 4, 5], vec![20]]);
        assert_eq!(sizes(into_batches(plan(&[5, 1]), None)), vec![vec![5, 1]]);
        assert!(into_batches(plan(&[]), Some(1)).is_empty());
    }
}
