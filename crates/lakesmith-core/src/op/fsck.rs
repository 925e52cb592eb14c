//! FSCK: does a table hold what its log says?

use std::collections::BTreeMap;

use crate::units::MIB;

/// How far statistics are compared with the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StatisticsCheck {
    /// Not at all.
    #[default]
    Off,
    /// With what the files' footers say.
    Footers,
    /// With every row.
    Data,
}

/// Options of FSCK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsckOptions {
    /// Statistics.
    pub statistics: StatisticsCheck,
    /// Memory for reading data files, bytes, over all threads.
    pub memory_bytes: u64,
    /// Data files read at once; 0: one a core.
    pub threads: usize,
    /// Findings listed at most; the rest is counted.
    pub findings_max: usize,
}

impl Default for FsckOptions {
    fn default() -> Self {
        Self { statistics: StatisticsCheck::Off, memory_bytes: 512 * MIB, threads: 0, findings_max: 10_000 }
    }
}

/// Something that is not as the log says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct FsckFinding {
    /// What kind of contradiction, in a word for scripts.
    pub kind: String,
    /// The file that it is about, as the log spells it, or below the table.
    pub path: String,
    /// The version in which it shows.
    pub version: u64,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub cure: String,
}

/// Report of FSCK.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct FsckReport {
    /// Location of the table.
    pub table: String,
    /// The version that was checked.
    pub version: u64,
    /// True if nothing was found.
    pub clean: bool,
    /// Live files looked at.
    pub files: u64,
    /// Deletion vectors looked at.
    pub vectors: u64,
    /// Checkpoints compared with the commits that they replace.
    pub checkpoints: u64,
    /// Files whose statistics were compared.
    pub statistics: u64,
    /// Findings by kind, those not listed too.
    pub counts: BTreeMap<String, u64>,
    /// Findings.
    pub findings: Vec<FsckFinding>,
    /// What is unusual but no contradiction.
    pub notes: Vec<FsckFinding>,
}

impl FsckReport {
    /// Takes a finding in; beyond `max` it is only counted.
    pub fn found(&mut self, finding: FsckFinding, max: usize) {
        *self.counts.entry(finding.kind.clone()).or_default() += 1;
        if self.findings.len() < max {
            self.findings.push(finding);
        }
    }

    /// Takes a note in; beyond `max` it is dropped.
    pub fn noted(&mut self, note: FsckFinding, max: usize) {
        if self.notes.len() < max {
            self.notes.push(note);
        }
    }
}
