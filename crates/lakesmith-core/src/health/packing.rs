//! What OPTIMIZE would do, from sizes and tags alone.
//!
//! The selection and the packing are those of [`crate::plan::compact()`]; the prediction is compared with its plans in the tests.
//! Of [`crate::plan::cluster()`] it foresees what new files bring about: with them all small cubes are redone. Which cube a
//! file is in is not known here. So in a table whose cubes together are as large as a finished one, no cube is counted; nor
//! are several small cubes, written by several runs, that would be redone without any new file.

use super::tally::{TAGGED, TalliedFiles};
use crate::op::{CubeSizes, FileSizes};
use crate::plan::{bin_pack, compact};

/// What OPTIMIZE would do in one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Packing {
    /// Files to write.
    pub outputs: u64,
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
        self.inputs.saturating_sub(self.outputs)
    }
}

/// The packing of each partition.
pub(super) fn packings(files: &TalliedFiles, sizes: &FileSizes, clustered: bool) -> Vec<Packing> {
    if clustered {
        return clustering(files, sizes);
    }
    let mut deleted_heavy: Vec<u32> = Vec::new();
    for marked in &files.marked {
        if compact::deletes_too_many(marked.rows, marked.deleted, sizes) {
            deleted_heavy.push(marked.file);
        }
    }
    let is_heavy = |file: u32| deleted_heavy.binary_search(&file).is_ok();
    let is_candidate = |file: u32| {
        let i = file as usize;
        files.size[i] < sizes.min_file_bytes || is_heavy(file)
    };
    let mut found = vec![Packing::default(); files.partitions.len()];
    for of_partition in &mut by_partition(files, is_candidate) {
        // Each partition by itself stays within the caches.
        of_partition.sort_unstable();
        let Some((_, first)) = of_partition.first() else { continue };
        let packing = &mut found[files.partition[*first as usize] as usize];
        let (size, of_partition): (Vec<u64>, Vec<u32>) = of_partition.iter().copied().unzip();
        let tagged = |file: &&u32| files.flags[**file as usize] & TAGGED != 0;
        let modified = |file: &u32| files.modified_ms[*file as usize];
        let last_run_ms = of_partition.iter().filter(tagged).map(modified).max();
        for range in bin_pack::next_fit(&size, sizes.target_bytes) {
            let bin = &of_partition[range.clone()];
            let strangers = bin.iter().filter(|f| !tagged(f)).map(modified);
            let settled = compact::is_settled(strangers, last_run_ms);
            if bin.iter().any(|f| is_heavy(*f)) || (bin.len() > 1 && !settled) {
                packing.outputs += 1;
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

/// What clustering would do to the one partition of a clustered table.
fn clustering(files: &TalliedFiles, sizes: &FileSizes) -> Vec<Packing> {
    let mut found = vec![Packing::default(); files.partitions.len()];
    let outside = files.outside_cubes();
    let Some(first) = found.first_mut().filter(|_| outside.files > 0) else { return found };
    let in_cubes = files.bytes().saturating_sub(outside.bytes);
    (first.inputs, first.input_bytes) = match in_cubes < CubeSizes::default().min_bytes {
        true => (files.len() as u64, files.bytes()),
        false => (outside.files, outside.bytes),
    };
    first.outputs = (first.input_bytes / sizes.target_bytes.max(1)).max(1);
    found
}

/// Size and place of the files that are candidates, partition by partition.
fn by_partition(files: &TalliedFiles, is_candidate: impl Fn(u32) -> bool) -> Vec<Vec<(u64, u32)>> {
    let mut count = vec![0; files.partitions.len()];
    files.partition.iter().for_each(|partition| count[*partition as usize] += 1);
    let mut found: Vec<Vec<(u64, u32)>> = count.into_iter().map(Vec::with_capacity).collect();
    for (file, partition) in (0u32..).zip(&files.partition).filter(|(file, _)| is_candidate(*file)) {
        found[*partition as usize].push((files.size[file as usize], file));
    }
    found
}
