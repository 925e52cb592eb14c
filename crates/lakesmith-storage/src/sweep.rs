//! The only code that deletes. It takes a [`SweepPlan`], and a plan cannot be made without its proof.

mod dropped;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use lakesmith_core::op::{EntryList, SweptEntry};
use lakesmith_core::plan::sweep::{Found, FoundKind, Guards, SweepReason, SweepRule, Verdict};
use lakesmith_core::plan::{LogCleanupPlan, LogCut};
use lakesmith_core::{Error, ErrorKind, Result};
use object_store::ObjectStore as _;
use object_store::path::Path;
use tokio::sync::mpsc;

use crate::control::Cancel;
use crate::failure::storage_error;
use crate::local::remove_empty_folder;
use crate::local::temporary::{ABANDONED_AFTER, is_temporary};
use crate::location::{Location, Scheme};
use crate::store::{ObjectInfo, Store};

pub use dropped::DroppedTableProof;

/// Objects sent in one go; S3 takes no more in a request.
const BATCH: usize = 1000;
/// Candidates of a listing handled in one go: several requests' worth, which run side by side.
const JUDGED_BATCH: usize = 8 * BATCH;
/// Single deletions at once.
const SINGLES_IN_FLIGHT: usize = 10;
/// Folders that hold a table's own history, which no run's output lies in.
const LOG_FOLDER: &str = "_delta_log";

/// Folder of a table that holds nothing but our own notes.
pub const NOTES_FOLDER: &str = "_lakesmith";

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

/// Objects that may be deleted.
#[derive(Debug, Clone)]
pub struct SweepPlan {
    targets: Targets,
}

#[derive(Debug, Clone)]
enum Targets {
    /// Each one is proven; stage after stage.
    Stages(Vec<BTreeSet<Location>>),
    /// Each one is judged by the rule right before it goes.
    Judged(Box<Judged>),
    /// Everything of a table.
    Dropped(dropped::Dropped),
    /// This folder and those below it, as far as they hold nothing.
    EmptyFolders(Location),
}

#[derive(Clone)]
struct Judged {
    root: Location,
    rule: SweepRule,
    guards: Guards,
    candidates: EntryList<SweptEntry>,
    renewal: Renewal,
}

/// Asks whether the table was changed since the last answer, and by which rule candidates are judged from now on if so.
pub type Renewal = Arc<dyn Fn() -> BoxFuture<'static, Result<Option<SweepRule>>> + Send + Sync>;

impl std::fmt::Debug for Judged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Judged").field("root", &self.root).field("candidates", &self.candidates).finish_non_exhaustive()
    }
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
        Ok(Self::of_stages(vec![outputs.into_iter().collect()]))
    }

    /// Hidden files in which writes of ours began that nobody will finish: each is older than a day, told by the newest
    /// of the objects `found`, so that only the storage's own clock counts.
    pub fn stale_temporaries(found: &[ObjectInfo]) -> SweepPlan {
        let newest_ms = found.iter().map(|o| o.modified_ms).max().unwrap_or(i64::MIN);
        let age = i64::try_from(ABANDONED_AFTER.as_millis()).unwrap_or(i64::MAX);
        let stale = |o: &&ObjectInfo| {
            is_temporary(o.location.file_name()) && o.modified_ms.checked_add(age).is_some_and(|end| end < newest_ms)
        };
        Self::of_stages(vec![found.iter().filter(stale).map(|o| o.location.clone()).collect()])
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
        Ok(Self::of_stages(stages))
    }

    /// The proven objects in the order in which they go; none of a plan that goes by a listing.
    pub fn objects(&self) -> impl Iterator<Item = &Location> {
        let stages = match &self.targets {
            Targets::Stages(stages) => stages.as_slice(),
            Targets::Judged(_) | Targets::Dropped(_) | Targets::EmptyFolders(_) => &[],
        };
        stages.iter().flatten()
    }

    fn of_stages(stages: Vec<BTreeSet<Location>>) -> Self {
        SweepPlan { targets: Targets::Stages(stages) }
    }

    /// Notes of our own below `root`, such as lists of condemned files.
    ///
    /// # Errors
    /// `Internal` if one lies outside the folder that holds nothing else.
    pub fn own_notes(root: &Location, notes: Vec<Location>) -> Result<SweepPlan> {
        let folder = root.join(NOTES_FOLDER);
        let is_note = |note: &&Location| note.relative_to(&folder).is_some_and(|name| !name.is_empty());
        if let Some(other) = notes.iter().find(|note| !is_note(note)) {
            return Err(Error::internal("something else was taken for a note of ours").with("path", other));
        }
        Ok(Self::of_stages(vec![notes.into_iter().collect()]))
    }

    /// Candidates below `root` that the rule lets go, for a listing whose other tables are `guards`. Before each batch
    /// `renewal` is asked, so that a file that is committed again meanwhile stays.
    pub fn unreferenced(
        root: &Location,
        rule: SweepRule,
        guards: Guards,
        candidates: EntryList<SweptEntry>,
        renewal: Renewal,
    ) -> SweepPlan {
        SweepPlan {
            targets: Targets::Judged(Box::new(Judged { root: root.clone(), rule, guards, candidates, renewal })),
        }
    }
}

/// What became of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// The object.
    pub location: Location,
    /// The candidate that it was, for plans made from a listing.
    pub entry: Option<SweptEntry>,
    /// What became of it.
    pub outcome: SweptOutcome,
}

/// What became of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SweptOutcome {
    /// It does not exist any more.
    Gone,
    /// It stays: the table needs it by now, or a folder is no longer empty.
    Spared,
    /// It could not be deleted, and why.
    Failed(String),
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
    sweep_with(store, plan, &Cancel::default(), &mut |swept| {
        match swept.outcome {
            SweptOutcome::Gone => report.deleted.push(swept.location),
            SweptOutcome::Spared => {}
            SweptOutcome::Failed(reason) => report.failed.push((swept.location, reason)),
        }
        Ok(())
    })
    .await?;
    Ok(report)
}

/// As [`sweep`], telling `each` what became of every object; memory does not grow with their number.
///
/// # Errors
/// Those of `each`, `Cancelled`, `Unavailable` if the candidates can't be read back, and as [`sweep`].
pub async fn sweep_with(
    store: &Store,
    plan: SweepPlan,
    cancel: &Cancel,
    each: &mut dyn FnMut(Swept) -> Result<()>,
) -> Result<()> {
    match plan.targets {
        Targets::Stages(stages) => {
            for stage in stages {
                let objects: Vec<Target> =
                    stage.into_iter().map(|location| Target::new(store, location, None)).collect::<Result<_>>()?;
                let mut all_gone = true;
                for batch in objects.chunks(BATCH) {
                    cancel.check()?;
                    delete_batch(store, batch.to_vec(), &mut |swept| {
                        all_gone &= swept.outcome == SweptOutcome::Gone;
                        each(swept)
                    })
                    .await?;
                }
                // What goes later may be needed by what is still there.
                if !all_gone {
                    break;
                }
            }
            Ok(())
        }
        Targets::Judged(judged) => sweep_judged(store, *judged, cancel, each).await,
        Targets::Dropped(found) => dropped::sweep_dropped(store, found, cancel, each).await,
        Targets::EmptyFolders(root) => dropped::remove_empty(store, &root, each).await,
    }
}

/// An object with its path on the storage.
#[derive(Debug, Clone)]
struct Target {
    path: Path,
    location: Location,
    entry: Option<SweptEntry>,
}

impl Target {
    fn new(store: &Store, location: Location, entry: Option<SweptEntry>) -> Result<Self> {
        Ok(Self { path: store.path(&location)?, location, entry })
    }

    fn swept(self, outcome: SweptOutcome) -> Swept {
        Swept { location: self.location, entry: self.entry, outcome }
    }
}

async fn sweep_judged(
    store: &Store,
    judged: Judged,
    cancel: &Cancel,
    each: &mut dyn FnMut(Swept) -> Result<()>,
) -> Result<()> {
    let judged = Arc::new(judged);
    let mut rule = judged.rule.clone();
    // Files first: a folder is looked at when everything below it has had its turn.
    for folders in [false, true] {
        let (sender, mut batches) = mpsc::channel::<Vec<SweptEntry>>(1);
        let reader = tokio::task::spawn_blocking({
            let judged = Arc::clone(&judged);
            move || judged.read(folders, &sender)
        });
        while let Some(batch) = batches.recv().await {
            cancel.check()?;
            if let Some(newer) = (judged.renewal)().await? {
                rule = newer;
            }
            let mut files = Vec::with_capacity(batch.len());
            for entry in batch {
                let target = Target::new(store, judged.root.join(&entry.path), Some(entry))?;
                match judged.allows(&rule, &target) {
                    true if folders => each(delete_folder(store, target).await)?,
                    true => files.push(target),
                    false => each(target.swept(SweptOutcome::Spared))?,
                }
            }
            delete_batch(store, files, each).await?;
        }
        reader.await.map_err(|e| Error::internal("reading the candidates stopped").caused_by(e))??;
    }
    Ok(())
}

impl Judged {
    /// Sends the candidates that are folders, or those that are not, in batches.
    fn read(&self, folders: bool, sender: &mpsc::Sender<Vec<SweptEntry>>) -> Result<()> {
        let stopped = || Error::new(ErrorKind::Cancelled, "the sweep was stopped");
        let mut batch = Vec::new();
        let read = self.candidates.for_each(|entry| {
            if (entry.reason == SweepReason::EmptyFolder) == folders {
                batch.push(entry);
            }
            if batch.len() < JUDGED_BATCH {
                return Ok(());
            }
            sender.blocking_send(std::mem::take(&mut batch)).map_err(|_| stopped())
        });
        match read {
            // Whoever stopped listening has the reason.
            Err(error) if error.kind() == ErrorKind::Cancelled => Ok(()),
            Err(error) => Err(error),
            Ok(()) => {
                if !batch.is_empty() {
                    let _ = sender.blocking_send(batch);
                }
                Ok(())
            }
        }
    }

    fn allows(&self, rule: &SweepRule, target: &Target) -> bool {
        let Some(entry) = &target.entry else { return false };
        let kind = match entry.reason {
            SweepReason::EmptyFolder => FoundKind::Folder { empty: true },
            SweepReason::Removed => FoundKind::Removed,
            SweepReason::Unreferenced => {
                FoundKind::File { modified_ms: entry.age_ms.map(|age| rule.retention().now_ms() - age) }
            }
        };
        matches!(rule.judge(&Found { path: &entry.path, kind }, &self.guards), Verdict::Delete(_))
    }
}

/// Removes an empty folder, never what is in it.
async fn delete_folder(store: &Store, target: Target) -> Swept {
    if target.location.kind() != Scheme::File || !store.holds(&target.location) {
        return target.swept(SweptOutcome::Spared);
    }
    let outcome = match remove_empty_folder(&target.path).await {
        Ok(true) => SweptOutcome::Gone,
        Ok(false) => SweptOutcome::Spared,
        Err(e) => SweptOutcome::Failed(storage_error(e, "delete", &target.location).to_string()),
    };
    target.swept(outcome)
}

async fn delete_batch(store: &Store, targets: Vec<Target>, each: &mut dyn FnMut(Swept) -> Result<()>) -> Result<()> {
    if targets.is_empty() {
        return Ok(());
    }
    let asked = targets.len();
    let mut pending: BTreeMap<Path, Target> = targets.into_iter().map(|t| (t.path.clone(), t)).collect();
    if !store.refuses_bulk() {
        let paths: Vec<_> = pending.keys().cloned().map(Ok).collect();
        let mut results = store.object_store().delete_stream(futures::stream::iter(paths).boxed());
        while let Some(result) = results.next().await {
            // A failure may stand for the whole request and does not always say for which object.
            if let Ok(path) = result
                && let Some(target) = pending.remove(&path)
            {
                each(target.swept(SweptOutcome::Gone))?;
            }
        }
    }
    let bulk_failed = pending.len() == asked;
    let mut singly = 0;
    let singles = futures::stream::iter(pending.into_values())
        .map(|target| async move { (store.delete_single(&target.path).await, target) });
    let mut singles = singles.buffered(SINGLES_IN_FLIGHT);
    while let Some((result, target)) = singles.next().await {
        let outcome = match result {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {
                singly += 1;
                SweptOutcome::Gone
            }
            Err(e) => {
                let reason = storage_error(e, "delete", &target.location).to_string();
                tracing::warn!(path = %target.location, reason, "an object could not be deleted");
                SweptOutcome::Failed(reason)
            }
        };
        each(target.swept(outcome))?;
    }
    if bulk_failed && singly > 0 {
        store.note_bulk_refusal();
    }
    Ok(())
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
        assert!(SweepPlan::own_uncommitted(outputs(), taken).is_ok());
        assert!(SweepPlan::abandoned(outputs()).is_ok());
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

    #[test]
    fn only_notes_are_notes() {
        let root = Location::parse("memory://t/x").unwrap();
        let plan = |name: &str| SweepPlan::own_notes(&root, vec![root.join(name)]);
        assert!(plan("_lakesmith/condemned/r").is_ok());
        for other in ["_lakesmith", "a.parquet", "_lakesmith2/r", "a/_lakesmith/r"] {
            assert_eq!(plan(other).unwrap_err().kind(), ErrorKind::Internal, "{other}");
        }
    }
}
