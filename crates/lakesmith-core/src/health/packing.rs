//! What OPTIMIZE would do, from sizes and tags alone.
//!
//! The selection and the packing are those of [`crate::plan::compact()`]; the prediction is compared with its plans in the tests.

use super::tally::{IN_CUBE, TAGGED, TalliedFiles};
use crate::op::FileSizes;
use crate::plan::{bin_pack, compact};

/// What OPTIMIZE would do in one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Packing {
    /// Groups to rewrite, each into one file.
    pub groups: u64,
    /// Files to replace.
    pub inputs: u64,
    pub input_bytes: u64,
    /// Files of bins that are finished work for this target, and the bins.
    pub settled: u64,
    pub settled_groups: u64,
}

impl Packing {
    /// Files that OPTIMIZE would make fewer.
    pub(super) fn saved(&self) -> u64 {
        self.inputs.saturating_sub(self.groups)
    }
}

/// The packing of each partition.
pub(super) fn packings(files: &TalliedFiles, sizes: &FileSizes, clustered: bool) -> Vec<Packing> {
    let mut deleted_heavy: Vec<u32> = Vec::new();
    for marked in &files.marked {
        if compact::deletes_too_many(marked.rows, marked.deleted, sizes) {
            deleted_heavy.push(marked.file);
        }
    }
    let is_heavy = |file: u32| deleted_heavy.binary_search(&file).is_ok();
    let mut candidates: Vec<u32> = (0..files.len() as u32)
        .filter(|file| {
            let i = *file as usize;
            let in_cube = clustered && files.flags[i] & IN_CUBE != 0;
            !in_cube && (files.size[i] < sizes.min_file_bytes || is_heavy(*file))
        })
        .collect();
    candidates.sort_unstable_by_key(|file| (files.partition[*file as usize], files.size[*file as usize], *file));
    let mut found = vec![Packing::default(); files.partitions.len()];
    for of_partition in candidates.chunk_by(|a, b| files.partition[*a as usize] == files.partition[*b as usize]) {
        let packing = &mut found[files.partition[of_partition[0] as usize] as usize];
        let size: Vec<u64> = of_partition.iter().map(|file| files.size[*file as usize]).collect();
        let tagged = |file: &&u32| files.flags[**file as usize] & TAGGED != 0;
        let modified = |file: &u32| files.modified_ms[*file as usize];
        let last_run_ms = of_partition.iter().filter(tagged).map(modified).max();
        for range in bin_pack::next_fit(&size, sizes.target_bytes) {
            let bin = &of_partition[range.clone()];
            let strangers = bin.iter().filter(|f| !tagged(f)).map(modified);
            let settled = compact::is_settled(strangers, last_run_ms);
            if bin.iter().any(|f| is_heavy(*f)) || (bin.len() > 1 && !settled) {
                packing.groups += 1;
                packing.inputs += bin.len() as u64;
                packing.input_bytes += size[range].iter().sum::<u64>();
            } else if bin.len() > 1 {
                packing.settled += bin.len() as u64;
                packing.settled_groups += 1;
            }
        }
    }
    found
}
