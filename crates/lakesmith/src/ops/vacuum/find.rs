//! Where candidates come from: the folder, the log, or somebody else's listing.

use std::collections::HashSet;

use lakesmith_core::Result;
use lakesmith_core::plan::sweep::{PathHash, SweepRule};
use lakesmith_delta::DeltaTable;
use lakesmith_storage::{Survey, Surveyor, survey};

use super::{Vacuum, inventory};

impl Vacuum<'_> {
    /// Lists the folder.
    pub(super) fn list(&self, rule: &SweepRule) -> Result<Survey> {
        let options = &self.session.options;
        options.progress.begin("listing", 0);
        let found = self.session.runtime.block_on(survey(self.store, self.root, rule, &options.cancel));
        options.progress.end();
        found
    }

    /// Reads the commits since the last vacuum up to `covered`.
    pub(super) fn read_log(&self, rule: &SweepRule, covered: Option<u64>) -> Result<Survey> {
        let mut surveyor = Surveyor::new(self.root, rule);
        let Some(covered) = covered else { return surveyor.finish() };
        let mut seen = HashSet::new();
        let mut each = |file: lakesmith_delta::RemovedFile| {
            if seen.insert(PathHash::of(&file.path)) {
                surveyor.removed(&file.path, file.size, file.removed_ms)?;
            }
            Ok(())
        };
        let cutoff_ms = rule.retention().cutoff_ms();
        let cancel = &self.session.options.cancel;
        let read = lakesmith_delta::removed_files(self.store, self.root, covered, cutoff_ms, cancel, &mut each);
        self.session.runtime.block_on(read)?;
        surveyor.finish_unlisted(self.store, self.session.runtime.handle(), cancel)
    }

    /// Reads an inventory.
    pub(super) fn read_inventory(&self, rule: &SweepRule, wanted: &lakesmith_core::op::Inventory) -> Result<Survey> {
        let mut surveyor = Surveyor::new(self.root, rule);
        inventory::read(self.session, self.root, wanted, &mut |entry| surveyor.entry(&entry))?;
        surveyor.finish_unlisted(self.store, self.session.runtime.handle(), &self.session.options.cancel)
    }

    /// How far a vacuum of this run covers the log.
    pub(super) fn covered(&self, table: &DeltaTable) -> Result<Option<u64>> {
        let covered = lakesmith_delta::covered_version(self.store, self.root, table, self.retention.cutoff_ms());
        self.session.runtime.block_on(covered)
    }
}
