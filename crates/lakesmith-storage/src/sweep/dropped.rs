//! Emptying the folder of a dropped table.
//!
//! The log goes last, so that a drop that was interrupted leaves a table that can be named, and dropped again. What comes
//! into the folder after the plan was made stays, and then the log does, too: it may be somebody else's, or a new table of
//! the same name.

use futures::TryStreamExt as _;
use lakesmith_core::plan::sweep::Guards;
use lakesmith_core::{Error, ErrorKind, Result};

use super::{JUDGED_BATCH, LOG_FOLDER, SweepPlan, Swept, SweptOutcome, Target, Targets, delete_batch, delete_folder};
use crate::control::Cancel;
use crate::location::{Location, Scheme};
use crate::store::{ObjectInfo, Store};

/// Listings of one folder: what a writer adds meanwhile is not chased for ever.
const ROUNDS: usize = 3;

/// Why everything in a folder may be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedTableProof {
    /// The folder of the database in which its catalog keeps tables of its own. The table lies directly in it.
    pub database: Location,
}

impl SweepPlan {
    /// Everything of the table at `root`, which its catalog owns, and then the empty folders.
    ///
    /// # Errors
    /// `Internal` if the folder is not directly in the database's; `Retention` if it is a link, or if another table lies
    /// inside, or metadata of another format by which somebody may still read the files; `Unavailable`.
    pub async fn dropped_table(store: &Store, root: &Location, proof: &DroppedTableProof) -> Result<SweepPlan> {
        let hidden = root.file_name().starts_with(['_', '.']);
        if root.parent().as_ref() != Some(&proof.database) || hidden {
            return Err(Error::internal("a folder that is no table of the database was to be dropped")
                .with("path", root)
                .with("database", &proof.database));
        }
        let is_link = |path: std::path::PathBuf| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
        if root.local_path().is_some_and(is_link) {
            return Err(Error::new(
                ErrorKind::Retention,
                "the table's folder is a link, and what it leads to may be somebody else's; nothing was deleted. Remove the \
                 link by hand",
            )
            .with("path", root));
        }
        let (mut guards, mut newest_ms) = (Guards::default(), None);
        let mut listed = store.list_stream(root);
        while let Some(object) = listed.try_next().await? {
            guards.note(object.location.relative_to(root).unwrap_or_default());
            newest_ms = newest_ms.max(Some(object.modified_ms));
        }
        if let Some((folder, reason)) = guards.iter().next() {
            return Err(Error::new(
                ErrorKind::Retention,
                format!(
                    "the table's folder holds something that does not belong to it: {folder} ({reason:?}); nothing was \
                     deleted. Move it elsewhere, or drop that table first"
                ),
            )
            .with("path", root.join(folder))
            .with("table", root));
        }
        Ok(SweepPlan { targets: Targets::Dropped(Dropped { root: root.clone(), newest_ms, guards }) })
    }

    /// The folder and those below it, each only if it holds nothing: what a dropped database leaves on a local disk.
    pub fn empty_folders(root: &Location) -> SweepPlan {
        SweepPlan { targets: Targets::EmptyFolders(root.clone()) }
    }
}

/// The folder of a dropped table as its plan found it.
#[derive(Debug, Clone)]
pub(super) struct Dropped {
    root: Location,
    /// When the newest object was written, by the storage's own clock; `None` if there was none.
    newest_ms: Option<i64>,
    guards: Guards,
}

impl Dropped {
    /// True if the object is not the plan's; tells `each` so.
    fn came_later(&self, store: &Store, object: &ObjectInfo, each: &mut Each<'_>) -> Result<bool> {
        let path = object.location.relative_to(&self.root).unwrap_or_default();
        if Some(object.modified_ms) <= self.newest_ms && self.guards.covers(path).is_none() {
            return Ok(false);
        }
        let reason = "it came into the folder while the table was being dropped";
        each(Target::new(store, object.location.clone(), None)?.swept(SweptOutcome::Failed(reason.to_owned())))?;
        Ok(true)
    }

    fn is_log(&self, object: &ObjectInfo) -> bool {
        let path = object.location.relative_to(&self.root).unwrap_or_default();
        path.strip_prefix(LOG_FOLDER).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

type Each<'a> = dyn FnMut(Swept) -> Result<()> + 'a;

pub(super) async fn sweep_dropped(
    store: &Store,
    mut dropped: Dropped,
    cancel: &Cancel,
    each: &mut dyn FnMut(Swept) -> Result<()>,
) -> Result<()> {
    if empty(store, &mut dropped, cancel, each).await? && empty_log(store, &dropped, cancel, each).await? {
        remove_empty(store, &dropped.root, each).await?;
    }
    Ok(())
}

/// Deletes all objects but the log's; false if something stays.
async fn empty(store: &Store, dropped: &mut Dropped, cancel: &Cancel, each: &mut Each<'_>) -> Result<bool> {
    let mut all_gone = true;
    for _ in 0..ROUNDS {
        // A folder may be somebody else's by what is listed last.
        let mut listed = store.list_stream(&dropped.root);
        while let Some(object) = listed.try_next().await? {
            dropped.guards.note(object.location.relative_to(&dropped.root).unwrap_or_default());
        }
        let mut listed = store.list_stream(&dropped.root);
        let (mut found, mut batch) = (false, Vec::new());
        let mut end = false;
        while !end {
            match listed.try_next().await? {
                Some(object) => {
                    dropped.guards.note(object.location.relative_to(&dropped.root).unwrap_or_default());
                    if dropped.is_log(&object) {
                        continue;
                    }
                    match dropped.came_later(store, &object, each)? {
                        true => all_gone = false,
                        false => batch.push(Target::new(store, object.location, None)?),
                    }
                }
                None => end = true,
            }
            if batch.len() >= JUDGED_BATCH || (end && !batch.is_empty()) {
                cancel.check()?;
                found = true;
                delete_batch(store, std::mem::take(&mut batch), &mut |swept| {
                    all_gone &= swept.outcome == SweptOutcome::Gone;
                    each(swept)
                })
                .await?;
            }
        }
        if !found || !all_gone {
            return Ok(all_gone);
        }
    }
    Ok(all_gone)
}

/// Deletes the log as it is before its first file goes: once its versions are gone, a new table may begin there.
async fn empty_log(store: &Store, dropped: &Dropped, cancel: &Cancel, each: &mut Each<'_>) -> Result<bool> {
    let mut log = store.list(&dropped.root.join(LOG_FOLDER)).await?;
    let mut all_gone = true;
    for object in &log {
        all_gone &= !dropped.came_later(store, object, each)?;
    }
    while all_gone && !log.is_empty() {
        cancel.check()?;
        let rest = log.split_off(log.len().min(JUDGED_BATCH));
        let batch = log.into_iter().map(|object| Target::new(store, object.location, None)).collect::<Result<_>>()?;
        delete_batch(store, batch, &mut |swept| {
            all_gone &= swept.outcome == SweptOutcome::Gone;
            each(swept)
        })
        .await?;
        log = rest;
    }
    Ok(all_gone)
}

/// Removes empty folders from the bottom up.
pub(super) async fn remove_empty(
    store: &Store,
    root: &Location,
    each: &mut dyn FnMut(Swept) -> Result<()>,
) -> Result<()> {
    if root.kind() != Scheme::File {
        return Ok(());
    }
    let (mut open, mut folders) = (vec![root.clone()], Vec::new());
    while let Some(folder) = open.pop() {
        open.extend(store.children(&folder).await?.folders.iter().map(|name| folder.join(name)));
        folders.push(folder);
    }
    for folder in folders.into_iter().rev() {
        let target = Target::new(store, folder, None)?;
        each(delete_folder(store, target).await)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreOptions;
    use crate::sweep::sweep;

    fn store(bucket: &str, names: &[&str]) -> (Store, Location, tokio::runtime::Runtime) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let root = Location::parse(&format!("memory://{bucket}/db/t")).unwrap();
        let store = Store::open(&root, &StoreOptions::default()).unwrap();
        for name in names {
            runtime.block_on(store.put(&root.join(name), "x".into())).unwrap();
        }
        (store, root, runtime)
    }

    fn proof(root: &Location) -> DroppedTableProof {
        DroppedTableProof { database: root.parent().unwrap() }
    }

    #[test]
    fn everything_goes_and_neighbours_stay() {
        let (store, root, runtime) = store("dropped", &["_delta_log/0.json", "a.parquet", "k=1/b.parquet", ".hidden"]);
        let neighbour = root.parent().unwrap().join("t2/a.parquet");
        runtime.block_on(store.put(&neighbour, "x".into())).unwrap();
        let plan = runtime.block_on(SweepPlan::dropped_table(&store, &root, &proof(&root))).unwrap();
        let report = runtime.block_on(sweep(&store, plan)).unwrap();
        assert_eq!((report.deleted.len(), report.failed.len()), (4, 0));
        assert_eq!(report.deleted[3], root.join("_delta_log/0.json"));
        assert!(runtime.block_on(store.list(&root)).unwrap().is_empty());
        assert!(runtime.block_on(store.exists(&neighbour)).unwrap());
    }

    #[test]
    fn a_folder_that_holds_somebody_elses_is_refused() {
        let others = ["sub/_delta_log/0.json", "metadata/v1.metadata.json", "x/metadata/v1.metadata.json"];
        for (bucket, inside) in ["nested", "iceberg", "nested-iceberg"].into_iter().zip(others) {
            let (store, root, runtime) = store(bucket, &["_delta_log/0.json", inside]);
            let error = runtime.block_on(SweepPlan::dropped_table(&store, &root, &proof(&root))).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Retention, "{inside}");
        }
    }

    #[test]
    fn what_came_since_the_plan_stays_and_the_log_with_it() {
        let later = ["new.parquet", "sub/_delta_log/0.json", "_delta_log/1.json", "metadata/v1.metadata.json"];
        for (bucket, inside) in ["later-file", "later-table", "later-commit", "later-iceberg"].into_iter().zip(later) {
            let (store, root, runtime) = store(bucket, &["_delta_log/0.json", "a.parquet"]);
            let plan = runtime.block_on(SweepPlan::dropped_table(&store, &root, &proof(&root))).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(5));
            runtime.block_on(store.put(&root.join(inside), "x".into())).unwrap();
            let report = runtime.block_on(sweep(&store, plan)).unwrap();
            assert_eq!(report.deleted, [root.join("a.parquet")], "{inside}");
            assert_eq!(report.failed.len(), 1, "{inside}: {report:?}");
            assert_eq!(report.failed[0].0, root.join(inside));
            assert_eq!(runtime.block_on(store.list(&root)).unwrap().len(), 2, "{inside}");
        }
    }

    #[test]
    fn an_older_file_of_a_table_that_was_moved_in_stays() {
        let (here, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir_all(other.path().join("_delta_log")).unwrap();
        for name in ["a.parquet", "_delta_log/0.json"] {
            std::fs::write(other.path().join(name), "x").unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        let root = Location::from_local_path(&here.path().join("t")).unwrap();
        let store = Store::open(&root, &StoreOptions::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for name in ["_delta_log/0.json", "b.parquet"] {
            runtime.block_on(store.put(&root.join(name), "x".into())).unwrap();
        }
        let plan = runtime.block_on(SweepPlan::dropped_table(&store, &root, &proof(&root))).unwrap();
        std::fs::rename(other.path(), here.path().join("t/moved")).unwrap();
        let report = runtime.block_on(sweep(&store, plan)).unwrap();
        assert_eq!(report.deleted, [root.join("b.parquet")]);
        assert!(here.path().join("t/moved/a.parquet").exists() && here.path().join("t/_delta_log/0.json").exists());
        std::fs::create_dir_all(other.path()).unwrap();
    }

    #[test]
    fn what_a_link_leads_to_is_not_dropped() {
        let (here, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir_all(elsewhere.path().join("_delta_log")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), here.path().join("t")).unwrap();
        let root = Location::from_local_path(&here.path().join("t")).unwrap();
        let store = Store::open(&root, &StoreOptions::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let error = runtime.block_on(SweepPlan::dropped_table(&store, &root, &proof(&root))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Retention);
        assert!(elsewhere.path().join("_delta_log").exists());
    }

    #[test]
    fn only_a_table_of_the_database_is_dropped() {
        let (store, root, runtime) = store("elsewhere", &["_delta_log/0.json"]);
        let elsewhere = DroppedTableProof { database: Location::parse("memory://elsewhere").unwrap() };
        let hidden = root.parent().unwrap().join("_lakesmith");
        for (root, proof) in [(&root, &elsewhere), (&hidden, &proof(&root))] {
            let error = runtime.block_on(SweepPlan::dropped_table(&store, root, proof)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal);
        }
    }

    #[test]
    fn empty_folders_go_from_the_bottom_up_and_full_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("d/a/b")).unwrap();
        std::fs::create_dir_all(folder.path().join("d/c")).unwrap();
        std::fs::write(folder.path().join("d/c/x"), "x").unwrap();
        let root = Location::from_local_path(&folder.path().join("d")).unwrap();
        let store = Store::open(&root, &StoreOptions::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(sweep(&store, SweepPlan::empty_folders(&root))).unwrap();
        assert!(!folder.path().join("d/a").exists() && folder.path().join("d/c/x").exists());
    }
}
