//! Which files of a table's log are expired.
//!
//! The newest checkpoint at or before the commit that was current at the cut-off is kept, with its own commit and
//! everything after it; only what lies before goes. So every version that was current at or after the cut-off can still
//! be rebuilt, whatever subset of the expired files is already gone.
//!
//! # Source
//! Delta PROTOCOL.md, "Metadata Cleanup"; protocol RFC "Checkpoint Protection".

use std::collections::BTreeSet;

use crate::table::{LogFile, LogRole, complete_checkpoints};

const DAY_MS: i64 = 86_400_000;

/// What decides how far a log may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogCutRules {
    /// The version that was current at the cut-off; `None` if the log holds no commit as old.
    pub cutoff_version: Option<u64>,
    /// The checkpoint that readers are pointed to; it and what follows it stay.
    pub pointed_to: Option<u64>,
    /// Checkpoints before this version are protected: all of them go at once, or none.
    pub protected_before: u64,
    /// A version that will have a checkpoint by the time of the clean-up.
    pub planned_checkpoint: Option<u64>,
}

/// How far a log may be cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogCut {
    /// What lies before this version may go; its checkpoint and its commit stay.
    Before(u64),
    /// Nothing may go, and why.
    Nothing(String),
}

/// How far the log of these files may be cut.
pub fn log_cut(files: &[LogFile], rules: LogCutRules) -> LogCut {
    let nothing = |why: &str| LogCut::Nothing(why.to_owned());
    let Some(cutoff_version) = rules.cutoff_version else {
        return nothing("no commit is as old as the cut-off");
    };
    let commits: BTreeSet<u64> = files.iter().filter(|f| f.role == LogRole::Commit).map(|f| f.version).collect();
    let Some(latest) = commits.last().copied() else { return nothing("the log holds no commit") };
    let mut checkpoints = complete_checkpoints(files);
    checkpoints.extend(rules.planned_checkpoint);
    let newest = rules.pointed_to.max(rules.planned_checkpoint).unwrap_or(latest).min(cutoff_version).min(latest);
    // A checkpoint does not hold its own commit's provenance, so the commit must be there to stay.
    let Some(keep_from) = checkpoints.range(..=newest).rev().copied().find(|v| commits.contains(v)) else {
        return LogCut::Nothing(format!(
            "version {cutoff_version} was current at the cut-off, and no checkpoint at or before it could take the place \
             of older commits"
        ));
    };
    if let Some(gap) = (keep_from..=latest).find(|v| !commits.contains(v)) {
        return LogCut::Nothing(format!(
            "the commit of version {gap} is missing, so what is older may still be needed"
        ));
    }
    if keep_from < rules.protected_before {
        return LogCut::Nothing(format!(
            "checkpoints before version {} are protected (delta.requireCheckpointProtectionBeforeVersion) and could only \
             go all at once, but the cut-off reaches no further than version {keep_from}",
            rules.protected_before
        ));
    }
    LogCut::Before(keep_from)
}

/// A file that stays although it is old or strange, and why.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct KeptLogFile {
    /// Name below the log's folder.
    pub path: String,
    /// Why it stays.
    pub reason: String,
}

/// Which files of a log go, made by [`plan_log_cleanup`] alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogCleanupPlan {
    cutoff_ms: i64,
    cut: LogCut,
    stages: [Vec<LogFile>; 3],
    kept: Vec<KeptLogFile>,
}

/// The surroundings of a clean-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogCleanupInput<'a> {
    /// Every file below the log's folder.
    pub files: &'a [LogFile],
    /// The cut-off, milliseconds since the epoch.
    pub cutoff_ms: i64,
    /// Now, milliseconds since the epoch.
    pub now_ms: i64,
    /// File names of the sidecars that any checkpoint from the cut on refers to; `None` if that is not known, and then
    /// every sidecar stays.
    pub referenced_sidecars: Option<&'a BTreeSet<String>>,
}

/// Plans a clean-up of a log up to `cut`.
pub fn plan_log_cleanup(input: &LogCleanupInput<'_>, cut: LogCut) -> LogCleanupPlan {
    let mut plan = LogCleanupPlan { cutoff_ms: input.cutoff_ms, cut, stages: Default::default(), kept: Vec::new() };
    // A checkpoint in the making may refer to sidecars that nothing else knows yet.
    let sidecar_cutoff_ms = midnight(input.now_ms.saturating_sub(DAY_MS));
    let mut files: Vec<&LogFile> = input.files.iter().collect();
    files.sort_by(|a, b| (a.version, a.role, &a.name).cmp(&(b.version, b.role, &b.name)));
    for file in files {
        match judge(file, &plan.cut, input, sidecar_cutoff_ms) {
            Ok(stage) => plan.stages[stage].push(file.clone()),
            Err(reason) if file.modified_ms <= input.cutoff_ms || file.role == LogRole::Unknown => {
                plan.kept.push(KeptLogFile { path: file.name.clone(), reason });
            }
            Err(_) => {}
        }
    }
    plan
}

/// In which stage the file goes, or why it stays.
fn judge(file: &LogFile, cut: &LogCut, input: &LogCleanupInput<'_>, sidecar_cutoff_ms: i64) -> Result<usize, String> {
    if file.role == LogRole::Unknown {
        return Err("not a file of the log".to_owned());
    }
    let keep_from = match cut {
        LogCut::Nothing(why) => return Err(why.clone()),
        LogCut::Before(version) => *version,
    };
    let needed = || Err(format!("needed by version {keep_from} or a later one"));
    match file.role {
        LogRole::Commit | LogRole::Checksum | LogRole::HiddenChecksum if file.version < keep_from => Ok(0),
        LogRole::Compaction { .. } | LogRole::Staged if file.version <= keep_from => Ok(0),
        LogRole::Checkpoint | LogRole::CheckpointPart { .. } | LogRole::HiddenCheckpointChecksum
            if file.version < keep_from =>
        {
            Ok(1)
        }
        LogRole::Sidecar => {
            let name = file.name.rsplit('/').next().unwrap_or_default();
            match input.referenced_sidecars {
                None => Err("a checkpoint that stays could not be searched for its sidecars".to_owned()),
                Some(referenced) if referenced.contains(name) => Err("a checkpoint that stays refers to it".to_owned()),
                Some(_) if file.modified_ms <= 0 => Err("the storage does not say how old it is".to_owned()),
                Some(_) if file.modified_ms >= sidecar_cutoff_ms => {
                    Err("younger than a day, so a checkpoint in the making may refer to it".to_owned())
                }
                Some(_) => Ok(2),
            }
        }
        _ => needed(),
    }
}

impl LogCleanupPlan {
    /// The cut-off, milliseconds since the epoch.
    pub fn cutoff_ms(&self) -> i64 {
        self.cutoff_ms
    }

    /// How far the log is cut.
    pub fn cut(&self) -> &LogCut {
        &self.cut
    }

    /// Files to delete, stage after stage and oldest first: commits before the checkpoints that hide them, heads of
    /// checkpoints before their sidecars.
    pub fn stages(&self) -> &[Vec<LogFile>; 3] {
        &self.stages
    }

    /// Files to delete, in that order.
    pub fn expired(&self) -> impl Iterator<Item = &LogFile> {
        self.stages.iter().flatten()
    }

    /// Files that stay although they are old or strange.
    pub fn kept(&self) -> &[KeptLogFile] {
        &self.kept
    }

    /// True if nothing goes.
    pub fn is_empty(&self) -> bool {
        self.stages.iter().all(Vec::is_empty)
    }
}

/// The cut-off of a log that keeps `retention_ms`: the midnight (UTC) before, as Delta rounds it.
pub fn log_cutoff_ms(now_ms: i64, retention_ms: i64) -> i64 {
    midnight(now_ms.saturating_sub(retention_ms))
}

fn midnight(ms: i64) -> i64 {
    ms.div_euclid(DAY_MS).saturating_mul(DAY_MS)
}

#[cfg(test)]
#[path = "log_cleanup_tests.rs"]
mod tests;
