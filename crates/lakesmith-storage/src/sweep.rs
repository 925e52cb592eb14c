//! The only code that deletes. It takes a [`SweepPlan`], and a plan cannot be made without its proof.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use lakesmith_core::plan::{LogCleanupPlan, LogCut};
use lakesmith_core::{Error, ErrorKind, Result};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use crate::failure::storage_error;
use crate::local::temporary::{ABANDONED_AFTER, is_temporary};
use crate::location::Location;
use crate::store::{ObjectInfo, Store};

/// Objects sent in one go; S3 takes no more in a request.
const BATCH: usize = 1000;
/// Single deletions at once.
const SINGLES_IN_FLIGHT: usize = 10;
/// Folders that hold a table's own history, which no run's output lies in.
const LOG_FOLDER: &str = "_delta_log";

/// Why the outputs of a run are known to be unreferenced.
///
/// While a version number that the run tried to put is still free, a late put may land there and refer to the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UncommittedProof {
    /// Every version number that the run ever sent a commit for; empty if it failed before the first.
    pub tried_versions: Vec<u64>,
    /// Each of them was read back and holds a commit with another writer's transaction id.
    pub all_taken_by_others: bool,
}

/// What takes the place of the log's older files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointProof {
    /// The table was loaded whole from the checkpoint of this version.
    pub loaded_from: u64,
}

/// Objects that may be deleted, stage after stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepPlan {
    stages: Vec<BTreeSet<Location>>,
}

impl UncommittedProof {
    /// The run failed before it sent its first commit.
    pub fn never_tried() -> Self {
        Self::default()
    }
}

impl SweepPlan {
    /// The files that this run wrote and did not commit.
    ///
    /// # Errors
    /// `Retention` if a commit that names them may still appear; then they must stay, as orphans.
    pub fn own_uncommitted(outputs: Vec<Location>, proof: UncommittedProof) -> Result<SweepPlan> {
        if !proof.tried_versions.is_empty() && !proof.all_taken_by_others {
            let versions: Vec<String> = proof.tried_versions.iter().map(u64::to_string).collect();
            return Err(Error::new(
                ErrorKind::Retention,
                "the files of this run stay, because a commit that names them may still appear; a later vacuum removes \
                 them if none does",
            )
            .with("versions", versions.join(" ")));
        }
        let in_log = |output: &&Location| output.key().split('/').any(|segment| segment == LOG_FOLDER);
        if let Some(output) = outputs.iter().find(in_log) {
            return Err(Error::internal("a log file was listed as a run's output").with("path", output));
        }
        Ok(SweepPlan { stages: vec![outputs.into_iter().collect()] })
    }

    /// Hidden files in which writes of ours began that nobody will finish: each is older than a day, told by the newest
    /// of the objects `found`, so that only the storage's own clock counts.
    pub fn stale_temporaries(found: &[ObjectInfo]) -> SweepPlan {
        let newest_ms = found.iter().map(|o| o.modified_ms).max().unwrap_or(i64::MIN);
        let age = i64::try_from(ABANDONED_AFTER.as_millis()).unwrap_or(i64::MAX);
        let stale = |o: &&ObjectInfo| {
            is_temporary(o.location.file_name()) && o.modified_ms.checked_add(age).is_some_and(|end| end < newest_ms)
        };
        SweepPlan { stages: vec![found.iter().filter(stale).map(|o| o.location.clone()).collect()] }
    }

    /// The outputs of a task that failed before any commit was tried.
    ///
    /// # Errors
    /// `Internal` if a log file is among them.
    pub fn abandoned(outputs: Vec<Location>) -> Result<SweepPlan> {
        Self::own_uncommitted(outputs, UncommittedProof::never_tried())
    }

    /// The expired files of the log in `log_folder`, oldest first.
    ///
    /// # Errors
    /// `Internal` if the table was not loaded from the checkpoint that takes their place, or if a file lies elsewhere.
    pub fn log_expired(log_folder: &Location, plan: &LogCleanupPlan, proof: CheckpointProof) -> Result<SweepPlan> {
        match plan.cut() {
            LogCut::Before(version) if *version == proof.loaded_from => {}
            LogCut::Nothing(_) if plan.is_empty() => {}
            _ => {
                return Err(Error::internal("the log was to be cut at a checkpoint that no table was loaded from")
                    .with("path", log_folder)
                    .with("version", proof.loaded_from));
            }
        }
        let mut stages = Vec::new();
        for stage in plan.stages() {
            let objects: BTreeSet<Location> = stage.iter().map(|file| log_folder.join(&file.name)).collect();
            if let Some(outside) = objects.iter().find(|o| !o.key().split('/').any(|s| s == LOG_FOLDER)) {
                return Err(Error::internal("a file outside of a log was called expired").with("path", outside));
            }
            stages.push(objects);
        }
        Ok(SweepPlan { stages })
    }

    /// The objects in the order in which they go.
    pub fn objects(&self) -> impl Iterator<Item = &Location> {
        self.stages.iter().flatten()
    }
}

/// What is gone and what is not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Objects that do not exist any more, including those that did not exist before.
    pub deleted: Vec<Location>,
    /// Objects that could not be deleted, with the reason.
    pub failed: Vec<(Location, String)>,
}

/// Deletes the objects of `plan`: in bulk, and what the storage did not confirm again one by one. A stage of which
/// something stays is the last.
///
/// # Errors
/// `Internal` if an object lies on another storage. A deletion that fails is reported, not an error.
pub async fn sweep(store: &Store, plan: SweepPlan) -> Result<SweepReport> {
    let mut report = SweepReport::default();
    for stage in plan.stages {
        let objects: Vec<(Path, Location)> =
            stage.into_iter().map(|l| Ok((store.path(&l)?, l))).collect::<Result<_>>()?;
        for batch in objects.chunks(BATCH) {
            sweep_batch(store, batch.iter().cloned().collect(), &mut report).await;
        }
        // What goes later may be needed by what is still there.
        if !report.failed.is_empty() {
            break;
        }
    }
    Ok(report)
}

async fn sweep_batch(store: &Store, mut pending: BTreeMap<Path, Location>, report: &mut SweepReport) {
    let inner = store.object_store();
    let paths: Vec<_> = pending.keys().cloned().map(Ok).collect();
    let mut results = inner.delete_stream(futures::stream::iter(paths).boxed());
    while let Some(result) = results.next().await {
        // A failure may stand for the whole request and does not always say for which object.
        if let Ok(path) = result
            && let Some(location) = pending.remove(&path)
        {
            report.deleted.push(location);
        }
    }
    let singles: Vec<_> = futures::stream::iter(pending)
        .map(|(path, location)| {
            let inner = &inner;
            async move { (inner.delete(&path).await, location) }
        })
        .buffered(SINGLES_IN_FLIGHT)
        .collect()
        .await;
    for (result, location) in singles {
        match result {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => report.deleted.push(location),
            Err(e) => {
                let reason = storage_error(e, "delete", &location).to_string();
                tracing::warn!(path = %location, reason, "an object could not be deleted");
                report.failed.push((location, reason));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs() -> Vec<Location> {
        vec![Location::parse("memory://t/b.parquet").unwrap(), Location::parse("memory://t/a.parquet").unwrap()]
    }

    #[test]
    fn outputs_may_go_only_when_no_commit_can_name_them() {
        let free = UncommittedProof { tried_versions: vec![4, 5], all_taken_by_others: false };
        let error = SweepPlan::own_uncommitted(outputs(), free).unwrap_err();
        assert_eq!((error.kind(), error.context_value("versions")), (ErrorKind::Retention, Some("4 5")));
        let taken = UncommittedProof { tried_versions: vec![4, 5], all_taken_by_others: true };
        assert_eq!(SweepPlan::own_uncommitted(outputs(), taken).unwrap().objects().count(), 2);
        assert_eq!(SweepPlan::abandoned(outputs()).unwrap().objects().count(), 2);
    }

    #[test]
    fn only_hidden_files_of_ours_that_are_a_day_old_by_the_storages_clock_are_stale() {
        let hour = 3_600_000;
        let at = |name: &str, hours: i64| ObjectInfo {
            location: Location::parse(&format!("/t/{name}")).unwrap(),
            size: 1,
            modified_ms: 1_000_000 * hour + hours * hour,
        };
        let id = "0123456789abcdef0123456789abcdef";
        let ours = format!("_delta_log/.{id}.lakesmith-tmp");
        let sum = format!("_delta_log/..{id}.lakesmith-tmp.crc");
        let names = [
            ours.as_str(),
            &sum,
            "_delta_log/.x.lakesmith-tmp",
            "_delta_log/.00000000000000000001.json.crc",
            "part-0.parquet",
            ".lakesmith-tmp",
        ];
        let stale = |newest: i64| {
            let mut found: Vec<ObjectInfo> = names.iter().map(|name| at(name, 0)).collect();
            found.push(at("_delta_log/00000000000000000002.json", newest));
            let plan = SweepPlan::stale_temporaries(&found);
            plan.objects().map(|l| l.key().strip_prefix("t/").unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(stale(24), Vec::<String>::new());
        assert_eq!(stale(25), [sum.clone(), ours.clone()]);
    }

    #[test]
    fn a_log_file_is_never_an_output() {
        let log = vec![Location::parse("memory://t/x/_delta_log/00000000000000000001.json").unwrap()];
        assert_eq!(SweepPlan::abandoned(log).unwrap_err().kind(), ErrorKind::Internal);
    }
}
