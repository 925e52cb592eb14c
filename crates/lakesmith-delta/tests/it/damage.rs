//! Damaged logs, checkpoints, hints and vectors: each gives a table or a clear error, whatever the damage.
//!
//! Damage follows from a seed, which a failure names. `LAKESMITH_TEST_ALL` tries many more.

use std::path::{Path, PathBuf};

use lakesmith_core::op::{HistoryOptions, TimeTravel};
use lakesmith_core::table::DeletionVector;
use lakesmith_core::{Error, ErrorKind};
use lakesmith_delta::{DeltaTable, history, input_files, read_spec, read_vector, write_spec};

use crate::tables::{PROTOCOL, TestTable, add, metadata};

/// What damage inserts beside noise: tokens that mean something to one of the parsers.
const TOKENS: [&str; 18] = [
    "null",
    "true",
    "-1",
    "0",
    "1e999",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "3.5",
    "\"\"",
    "{}",
    "[]",
    "\\u0000",
    "\\ud800",
    "%2",
    "__HIVE_DEFAULT_PARTITION__",
    "\n",
    "\u{fffd}",
];

struct Damage(u64);

impl Damage {
    fn seeded(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Steele and Vigna's SplitMix.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// One to three changes.
    fn of(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(3) {
            self.change(&mut bytes);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len());
        let end = (at + 1 + self.below(24)).min(bytes.len());
        match self.below(7) {
            _ if bytes.is_empty() => bytes.push(self.next() as u8),
            0 => bytes[at] ^= 1 << self.below(8),
            1 => bytes[at] = self.next() as u8,
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => drop(bytes.splice(at..at, TOKENS[self.below(TOKENS.len())].bytes()).collect::<Vec<_>>()),
            _ => self.replace_number(bytes, at),
        }
    }

    fn replace_number(&mut self, bytes: &mut Vec<u8>, from: usize) {
        let Some(start) = bytes[from..].iter().position(u8::is_ascii_digit).map(|i| from + i) else { return };
        let digits = bytes[start..].iter().take_while(|b| b.is_ascii_digit()).count();
        let token = TOKENS[self.below(TOKENS.len())].bytes();
        drop(bytes.splice(start..start + digits, token).collect::<Vec<_>>());
    }
}

fn rounds(sample: u64) -> u64 {
    if std::env::var_os("LAKESMITH_TEST_ALL").is_some() { sample * 5 } else { sample }
}

/// A panic of the kernel or of ours comes back as an internal error.
fn is_clear(error: &Error, context: &str) {
    assert_ne!(error.kind(), ErrorKind::Internal, "{context}: {error}");
}

/// Loads the table and asks for everything that a rewrite would.
async fn read(table: &TestTable, context: &str) {
    match table.try_load(TimeTravel::Latest).await {
        Ok(loaded) => everything_asked_for(table, &loaded, context).await,
        Err(error) => is_clear(&error, context),
    }
    if let Err(error) = history(&table.store(), &table.root(), HistoryOptions::default(), &Default::default()).await {
        is_clear(&error, context);
    }
}

async fn everything_asked_for(table: &TestTable, loaded: &DeltaTable, context: &str) {
    let ids: Vec<_> = loaded.state.files.iter().map(|f| f.id).collect();
    for error in [
        read_spec(loaded).err(),
        write_spec(loaded, None, None, 1000).err(),
        input_files(loaded, &table.root(), &ids).err(),
    ]
    .into_iter()
    .flatten()
    {
        is_clear(&error, context);
    }
    for info in loaded.state.files.iter().filter_map(|f| f.deletes) {
        if let Err(error) = read_vector(&table.store(), info).await {
            is_clear(&error, context);
        }
    }
}

/// Damages one file of a golden table at a time, each seed another one.
async fn each_damaged(name: &str, sample: u64, is_victim: impl Fn(&str) -> bool) {
    let table = TestTable::golden(name);
    let mut victims = files_below(&table.path());
    victims.retain(|path| is_victim(path.strip_prefix(table.path()).unwrap().to_str().unwrap()));
    victims.sort();
    assert!(!victims.is_empty(), "{name}");
    for seed in 0..rounds(sample) {
        let mut damage = Damage::seeded(seed);
        let victim = &victims[damage.below(victims.len())];
        let good = std::fs::read(victim).unwrap();
        std::fs::write(victim, damage.of(&good)).unwrap();
        read(&table, &format!("{name}: {} damaged with seed {seed}", victim.display())).await;
        std::fs::write(victim, good).unwrap();
    }
    table.load().await;
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_below(&entry.path()))
        } else {
            found.push(entry.path())
        }
    }
    found
}

fn is_commit(name: &str) -> bool {
    name.starts_with("_delta_log/0") && name.ends_with(".json") && !name.contains("checkpoint")
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_commits() {
    let names = [
        "dv_file",
        "dv_inline",
        "row_tracking",
        "colmap_name",
        "ict",
        "liquid_after",
        "partitioned_special",
        "nan_inf",
    ];
    for name in names {
        each_damaged(name, 25, is_commit).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_hints_to_checkpoints() {
    for name in ["multipart_checkpoint", "v2_checkpoint_parquet", "log_cleaned"] {
        each_damaged(name, 20, |file| file.ends_with("_last_checkpoint")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_checkpoints() {
    for name in ["multipart_checkpoint", "v2_checkpoint_parquet", "log_cleaned"] {
        each_damaged(name, 25, |file| file.starts_with("_delta_log/") && file.ends_with(".parquet")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_vectors() {
    for name in ["dv_file", "dv_random_prefix"] {
        each_damaged(name, 60, |file| file.ends_with(".bin")).await;
    }
}

#[test]
fn damaged_bitmaps() {
    let rows = (0..3000).filter(|n| n % 7 < 3).chain([70_000, 1 << 33, (1 << 40) + 5]);
    let good = DeletionVector::from_rows(rows).encode();
    for seed in 0..rounds(2000) {
        // What is decoded must be usable, whatever it holds.
        if let Ok(vector) = DeletionVector::decode(&Damage::seeded(seed).of(&good)) {
            assert_eq!(vector.iter().take(100_000).count() as u64, vector.cardinality().min(100_000), "seed {seed}");
            assert!(vector.max().is_none_or(|max| vector.contains(max)), "seed {seed}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn partition_values_of_any_text() {
    let types = [
        "boolean",
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "decimal(10,2)",
        "decimal(38,38)",
        "date",
        "timestamp",
        "timestamp_ntz",
        "string",
        "binary",
    ];
    let seeds = [
        "true",
        "-128",
        "2024-02-29",
        "2024-10-09 19:00:00.123456",
        "1E-18",
        "NaN",
        "-0.00",
        "a b%20é",
        "9999-12-31T23:59:59.999999Z",
    ];
    for (number, kind) in types.iter().enumerate() {
        let protocol = r#"{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["timestampNtz"],"writerFeatures":["timestampNtz"]}}"#;
        for seed in 0..rounds(30) {
            let mut damage = Damage::seeded(seed * 100 + number as u64);
            let text = damage.of(seeds[damage.0 as usize % seeds.len()].as_bytes());
            let text = String::from_utf8_lossy(&text).into_owned();
            let commit = [protocol, &metadata(kind, true, "{}"), &add("a", Some(&text), 1)].join("\n");
            read(&TestTable::with_commits(&[&commit]), &format!("{kind} '{text}'")).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_and_vector_descriptions_of_any_text() {
    let stats = r#"{"numRecords":5,"minValues":{"id":1,"p":"a"},"maxValues":{"id":9,"p":"é"},"nullCount":{"id":0,"p":2},"tightBounds":true}"#;
    let vector =
        r#"{"storageType":"u","pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","offset":4,"sizeInBytes":40,"cardinality":6}"#;
    for seed in 0..rounds(150) {
        let mut damage = Damage::seeded(seed);
        let stats = String::from_utf8_lossy(&damage.of(stats.as_bytes())).into_owned();
        let vector = String::from_utf8_lossy(&damage.of(vector.as_bytes())).into_owned();
        let stats = serde_json::Value::from(stats);
        // A description that is no JSON any more makes the whole line invalid, which is a case too.
        let line = format!(
            r#"{{"add":{{"path":"a","partitionValues":{{}},"size":1,"modificationTime":1,"dataChange":true,"stats":{stats},"deletionVector":{vector}}}}}"#
        );
        let commit = [PROTOCOL, &metadata("string", false, "{}"), &line].join("\n");
        read(&TestTable::with_commits(&[&commit]), &format!("seed {seed}: {line}")).await;
    }
}
