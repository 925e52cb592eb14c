//! A folder for spilled rows that takes less than they need.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::memory::make_table;
use crate::run::{command, finished};

const FILES: u64 = 5;

/// Mounts a small file system at `$0` that only the command sees.
const SMALL_DISK: &str = "mount -t tmpfs -o size=1m spill \"$0\" && exec \"$@\"";
/// Files of more than half a mebibyte are refused.
const SMALL_FILES: &str = "trap '' XFSZ; ulimit -f 1024; exec \"$@\"";

#[test]
fn a_full_disk_stops_the_ordering_and_nothing_is_left() {
    let folders = tempfile::tempdir().unwrap();
    let (table, spill) = (folders.path().join("table"), folders.path().join("spill"));
    std::fs::create_dir_all(&table).unwrap();
    std::fs::create_dir(&spill).unwrap();
    make_table(&table, FILES);
    let before = listing(&table);
    let order = ["--sort-by", "text", "--memory", "12MiB", "--target-size", "256KiB", "--json"];
    let mut arguments = vec!["optimize", table.to_str().unwrap(), "--spill-dir", spill.to_str().unwrap()];
    arguments.extend(order);
    let mut unshare = Command::new("unshare");
    unshare.args(["--map-root-user", "--mount", "sh", "-c"]);
    // Where no file system can be mounted, a limit on files stands for the full disk.
    let mounts = unshare.arg("mount -t tmpfs spill \"$0\"").arg(&spill).output().is_ok_and(|o| o.status.success());
    let mut limited = Command::new(if mounts { "unshare" } else { "sh" });
    limited.args(if mounts {
        &["--map-root-user", "--mount", "sh", "-c", SMALL_DISK][..]
    } else {
        &["-c", SMALL_FILES]
    });
    let plain = command(&arguments);
    limited.arg(&spill).arg(plain.get_program()).args(plain.get_args());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    let ran = finished(limited.output().unwrap());
    let line = ran.err.lines().find(|line| line.starts_with("{\"error\"")).unwrap_or_else(|| panic!("{}", ran.err));
    let error: Value = serde_json::from_str(line).unwrap();
    let (class, text) = (error["error"]["class"].as_str(), error["error"]["message"].as_str().unwrap());
    assert_eq!(class, Some(if mounts { "INSUFFICIENT_DISK_SPACE" } else { "UNAVAILABLE" }), "{error}");
    assert!(ran.code != 0 && text.contains("--spill-dir"), "{}: {error}", ran.code);
    assert_eq!(listing(&table), before);
    assert!(listing(&spill).is_empty());
}

/// Files and folders below a folder.
fn listing(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            found.extend(listing(&entry.path()));
        }
        found.insert(entry.path().to_str().unwrap().to_owned());
    }
    found
}
