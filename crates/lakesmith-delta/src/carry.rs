//! Deletes that other writers committed while we moved the rows, carried over to our outputs.
//!
//! ```text
//! winner marks rows of an input ──> newest vector of each input ──carried_rows──> rows of outputs ──> one vector file
//! ```

use std::collections::BTreeMap;

use lakesmith_core::Result;
use lakesmith_core::commit::carried_rows;
use lakesmith_core::table::{DeleteInfo, DeletionVector, FileId, GroupEdit};
use lakesmith_storage::{Location, Store};

use crate::actions::{Add, DeletionVectorDescriptor};
use crate::log_state::DeltaTable;
use crate::vector::{info_of, read_vector, relative_path, write_vectors};

/// What deletes committed meanwhile change in one group.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct GroupCarry {
    /// The newest vector of each input that was marked meanwhile, by its index in the group.
    pub inputs: BTreeMap<usize, DeleteInfo>,
    /// The vector of each output that holds deleted rows, by its index in the group.
    pub outputs: BTreeMap<usize, OutputDeletes>,
}

/// Deleted rows of an output.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OutputDeletes {
    /// Some of them.
    Some(DeletionVectorDescriptor),
    /// All: the output is left out of the commit.
    All,
}

/// The deletes that a commit carries over, and the vector files that it wrote for them.
#[derive(Debug, Default)]
pub(crate) struct Carry {
    /// By group.
    pub groups: Vec<GroupCarry>,
    /// Inputs were marked since the vectors were written.
    stale: bool,
    current: Option<Location>,
    written: Vec<Location>,
}

impl Carry {
    /// Nothing to carry yet for this many groups.
    pub(crate) fn new(groups: usize) -> Self {
        Self { groups: vec![GroupCarry::default(); groups], ..Self::default() }
    }

    /// A winner put in `input` of `group` again with another vector. False if it isn't the file that we read.
    ///
    /// # Errors
    /// Corrupt or Unsupported if the winner's descriptor is malformed.
    pub(crate) fn mark(
        &mut self,
        root: &Location,
        base: &DeltaTable,
        (group, input): (usize, usize),
        id: FileId,
        add: &Add,
    ) -> Result<bool> {
        let Some(d) = &add.deletion_vector else { return Ok(false) };
        if u64::try_from(add.size).ok() != Some(base.state.files.get(id).size) {
            return Ok(false);
        }
        self.groups[group].inputs.insert(input, info_of(root, d)?);
        self.stale = true;
        Ok(true)
    }

    /// True if vectors have to be written before the next attempt.
    pub(crate) fn is_stale(&self, kept: &[bool]) -> bool {
        self.stale && self.groups.iter().zip(kept).any(|(group, kept)| *kept && !group.inputs.is_empty())
    }

    /// Reads the newest vectors and writes those of the outputs. Returns the groups whose deletes can't be carried over.
    ///
    /// # Errors
    /// Those of reading and writing vectors.
    pub(crate) async fn refresh(
        &mut self,
        store: &Store,
        root: &Location,
        base: &DeltaTable,
        edits: &[GroupEdit],
        kept: &[bool],
    ) -> Result<Vec<usize>> {
        let mut lost = Vec::new();
        let (mut places, mut vectors) = (Vec::new(), Vec::new());
        for group in (0..edits.len()).filter(|group| kept[*group]) {
            self.groups[group].outputs.clear();
            let Some(deletes) = self.deletes(store, base, group, &edits[group]).await? else {
                lost.push(group);
                continue;
            };
            for (output, vector) in deletes {
                if vector.cardinality() == edits[group].added[output].stats.rows {
                    self.groups[group].outputs.insert(output, OutputDeletes::All);
                } else {
                    places.push((group, output));
                    vectors.push(vector);
                }
            }
        }
        let descriptors = write_vectors(store, root, &vectors).await?;
        self.current = descriptors.first().and_then(|d| relative_path(&d.path_or_inline_dv)).map(|p| root.join(&p));
        self.written.extend(self.current.clone());
        for ((group, output), descriptor) in places.into_iter().zip(descriptors) {
            self.groups[group].outputs.insert(output, OutputDeletes::Some(descriptor));
        }
        self.stale = false;
        Ok(lost)
    }

    async fn deletes(
        &self,
        store: &Store,
        base: &DeltaTable,
        group: usize,
        edit: &GroupEdit,
    ) -> Result<Option<BTreeMap<usize, DeletionVector>>> {
        let mut rows: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for (input, info) in &self.groups[group].inputs {
            let id = edit.removed[*input];
            let old = match base.state.files.get(id).deletes {
                Some(old) => read_vector(store, old).await?,
                None => DeletionVector::default(),
            };
            let new = read_vector(store, info).await?;
            let Some(carried) = carried_rows(&edit.row_map, id, &old, &new) else { return Ok(None) };
            for (output, position) in carried {
                let output = output as usize;
                if edit.added.get(output).is_none_or(|file| position >= file.stats.rows) {
                    return Ok(None);
                }
                rows.entry(output).or_default().push(position);
            }
        }
        Ok(Some(rows.into_iter().map(|(output, rows)| (output, DeletionVector::from_rows(rows))).collect()))
    }

    /// Vector files that were written; all but the one that a commit of `kept` groups names, if it stands.
    pub(crate) fn unused(&self, kept: Option<&[bool]>) -> Vec<Location> {
        let names_one = |group: &GroupCarry| group.outputs.values().any(|o| matches!(o, OutputDeletes::Some(_)));
        let named = kept.is_some_and(|kept| self.groups.iter().zip(kept).any(|(g, kept)| *kept && names_one(g)));
        self.written.iter().filter(|file| !named || self.current.as_ref() != Some(*file)).cloned().collect()
    }
}
