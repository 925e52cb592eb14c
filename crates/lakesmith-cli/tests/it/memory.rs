//! The memory limit, held by the kernel where it lets itself be asked, else by watching the process.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};

use crate::run::command;

const LIMIT: u64 = 256 << 20;
const FILES: u64 = 100;
const ROWS_A_FILE: u64 = 20_000;
const LONGEST: usize = 16 << 20;

#[test]
fn compaction_stays_within_its_memory() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().to_str().unwrap();
    make_table(folder.path(), FILES);
    let (output, peak) = run_within(LIMIT, &["optimize", table, "--memory", "64MiB", "--threads", "2", "--json"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} (stopped for taking more than {LIMIT} bytes?): {errors}", output.status);
    assert!(peak.is_none_or(|peak| peak <= LIMIT), "{peak:?} bytes were held");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["metrics"]["numFilesRemoved"], FILES);
    let commit = fs::read_to_string(folder.path().join("_delta_log/00000000000000000001.json")).unwrap();
    let rows: u64 = commit.lines().filter_map(added_rows).sum();
    assert_eq!(rows, FILES * ROWS_A_FILE);
}

fn added_rows(line: &str) -> Option<u64> {
    let action: Value = serde_json::from_str(line).unwrap();
    let stats: Value = serde_json::from_str(action["add"]["stats"].as_str()?).unwrap();
    stats["numRecords"].as_u64()
}

/// Text that does not compress, 2 MB a file, and one text that is longer than many files.
pub(crate) fn make_table(folder: &Path, files: u64) {
    let fields = ["id", "text"].map(|name| {
        let kind = if name == "id" { "long" } else { "string" };
        json!({"name": name, "type": kind, "nullable": true, "metadata": {}})
    });
    let schema = json!({"type": "struct", "fields": fields}).to_string();
    let mut log = format!("{}\n", json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}));
    let metadata = json!({"metaData": {
        "id": "5ac1e2f0-0d3a-4a6e-9d0b-7a2f4a1c9b11", "format": {"provider": "parquet", "options": {}},
        "schemaString": schema, "partitionColumns": [], "configuration": {}, "createdTime": 0
    }});
    writeln!(log, "{metadata}").unwrap();
    for number in 0..files {
        let name = format!("part-{number:05}.parquet");
        let first = number * ROWS_A_FILE;
        let ids = Int64Array::from_iter_values((first..first + ROWS_A_FILE).map(|id| id as i64));
        let texts =
            (first..first + ROWS_A_FILE).map(|id| if id == 31 { "long ".repeat(LONGEST / 5) } else { noise(id) });
        let texts = StringArray::from_iter_values(texts);
        let columns: [(&str, ArrayRef, bool); 2] = [("id", Arc::new(ids), true), ("text", Arc::new(texts), true)];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        // Pages of some files are merged, those of others have to be decoded.
        let codec = if number % 4 == 3 { Compression::LZ4_RAW } else { Compression::SNAPPY };
        let properties = WriterProperties::builder().set_compression(codec).build();
        let file = fs::File::create(folder.join(&name)).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let size = fs::metadata(folder.join(&name)).unwrap().len();
        let stats = json!({"numRecords": ROWS_A_FILE}).to_string();
        let add = json!({"add": {
            "path": name, "partitionValues": {}, "size": size, "modificationTime": 1_700_000_000_000u64 + number,
            "dataChange": true, "stats": stats
        }});
        writeln!(log, "{add}").unwrap();
    }
    fs::create_dir(folder.join("_delta_log")).unwrap();
    fs::write(folder.join("_delta_log/00000000000000000000.json"), log).unwrap();
}

/// A hundred characters that look random.
fn noise(id: u64) -> String {
    let mut text = String::with_capacity(112);
    let mut state = id;
    while text.len() < 100 {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        write!(text, "{:016x}", mixed ^ mixed >> 27).unwrap();
    }
    text
}

/// Runs the command, which is killed when it takes more than `limit` bytes. Without the kernel's help, its peak is told.
fn run_within(limit: u64, args: &[&str]) -> (Output, Option<u64>) {
    let plain = command(args);
    let Some(group) = Group::new(limit) else {
        let mut child = command(args).spawn().unwrap();
        let status = format!("/proc/{}/status", child.id());
        let mut peak = 0;
        while child.try_wait().unwrap().is_none() {
            peak = peak.max(high_water(&status).unwrap_or(0));
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(peak > 0, "the process could not be watched");
        return (child.wait_with_output().unwrap(), Some(peak));
    };
    let mut limited = Command::new("sh");
    limited.args(["-c", "echo $$ > \"$0\"/cgroup.procs && exec \"$@\""]).arg(&group.folder);
    limited.arg(plain.get_program()).args(plain.get_args());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    (limited.stdin(Stdio::null()).output().unwrap(), None)
}

/// `VmHWM` of a process in bytes.
fn high_water(status: &str) -> Option<u64> {
    let text = fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// A control group, of either version, that is removed in the end.
struct Group {
    folder: PathBuf,
}

impl Group {
    fn new(limit: u64) -> Option<Group> {
        [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")].iter().find_map(
            |(parent, knob)| {
                let folder = Path::new(parent).join(format!("lakesmith-test-{}", std::process::id()));
                fs::create_dir(&folder).ok()?;
                let group = Group { folder };
                fs::write(group.folder.join(knob), limit.to_string()).ok()?;
                let set = fs::read_to_string(group.folder.join(knob)).ok()?;
                (set.trim() == limit.to_string()).then_some(())?;
                Some(group)
            },
        )
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // An empty group can always be removed; a full one holds nothing but its last process on its way out.
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() || !self.folder.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
