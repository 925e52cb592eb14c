//! Tables to vacuum: golden ones and built ones, with the ages that files need.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lakesmith::op::{Operation, Report, VacuumOptions, VacuumReport};
use lakesmith::{Result, Session};

use crate::tables::session;

pub(crate) const HOUR_MS: i64 = 3_600_000;
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// A copy of a golden table, with what git does not keep.
pub(crate) fn golden(name: &str, folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/delta").join(name);
    let target = folder.join(name);
    copy(&source, &target);
    if name == "orphans" {
        fs::create_dir(target.join("emptydir")).unwrap();
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        for file in on_disk(&target).iter().filter(|file| file.contains("-old")) {
            set_time(&target.join(file), old);
        }
    }
    target
}

fn copy(source: &Path, target: &Path) {
    fs::create_dir_all(target).unwrap();
    for entry in fs::read_dir(source).unwrap() {
        let entry = entry.unwrap();
        let to = target.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::write(to, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

/// Every file below a table, the log's and Hadoop's side files left out.
pub(crate) fn on_disk(table: &Path) -> BTreeSet<String> {
    fn walk(root: &Path, folder: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let mut found = BTreeSet::new();
    walk(table, table, &mut found);
    found.retain(|path| !path.starts_with("_delta_log/") && !path.ends_with(".crc"));
    found
}

pub(crate) fn set_time(path: &Path, time: SystemTime) {
    File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

/// Makes a file so old.
pub(crate) fn age(path: &Path, age: Duration) {
    set_time(path, SystemTime::now() - age);
}

/// Makes every file of a table so old.
pub(crate) fn age_all(table: &Path, by: Duration) {
    for file in on_disk(table) {
        age(&table.join(file), by);
    }
}

/// A file that no log knows, so old.
pub(crate) fn stray(table: &Path, path: &str, by: Duration) -> PathBuf {
    let file = table.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, b"stray").unwrap();
    age(&file, by);
    file
}

/// Options that let everything superfluous go at once.
pub(crate) fn at_once() -> VacuumOptions {
    VacuumOptions { retain_ms: Some(0), retention_check: false, no_writers: true, ..VacuumOptions::default() }
}

pub(crate) fn dry(options: VacuumOptions) -> VacuumOptions {
    VacuumOptions { dry_run: true, ..options }
}

pub(crate) fn vacuum_in(session: &Session, table: &Path, options: VacuumOptions) -> Result<VacuumReport> {
    match session.run(table.to_str().unwrap(), Operation::Vacuum(options))? {
        Report::Vacuum(report) => Ok(*report),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn vacuum(table: &Path, options: VacuumOptions) -> Result<VacuumReport> {
    vacuum_in(&session(), table, options)
}

/// The paths of a report, sorted.
pub(crate) fn paths(report: &VacuumReport) -> Vec<String> {
    let mut paths: Vec<String> = report.files.to_vec().unwrap().into_iter().map(|file| file.path).collect();
    paths.sort();
    paths
}

/// What a report kept, as `path: reason`, sorted.
pub(crate) fn kept(report: &VacuumReport) -> Vec<String> {
    let mut kept: Vec<String> = report
        .kept
        .to_vec()
        .unwrap()
        .into_iter()
        .map(|k| format!("{}: {}", k.path, serde_json::to_value(k.reason).unwrap().as_str().unwrap()))
        .collect();
    kept.sort();
    kept
}

/// The `commitInfo` of a version.
pub(crate) fn commit_info(table: &Path, version: u64) -> serde_json::Value {
    let text = fs::read_to_string(table.join(format!("_delta_log/{version:020}.json"))).unwrap();
    assert_eq!(text.lines().count(), 1, "a commit of a vacuum changes nothing");
    serde_json::from_str::<serde_json::Value>(text.trim()).unwrap()["commitInfo"].clone()
}
