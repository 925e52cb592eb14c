//! Scripts of statements with what they give: every file of `tests/slt`, each in a warehouse of its own.
//!
//! A record is a line that says what comes, the statement, and a blank line after it:
//!
//! - `statement ok`: it succeeds, whatever it gives;
//! - `statement error CLASS`: it fails with that error class;
//! - `query` or `query rowsort`: after `----` its rows, cells parted by ` | `, sorted as text if so said;
//! - `skipif spark` in the line before: Spark has no such statement, and is not asked when it runs the scripts;
//! - lines that begin with `# ` are comments, if they are no row of several cells.
//!
//! `{dir}` stands for a fresh folder outside the warehouse, `{golden}` for that of the golden tables.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use lakesmith::{ErrorKind, Session};
use serde_json::Value;

use crate::asking::{ask_in, fixtures, session};

#[derive(Debug)]
enum Expected {
    Ok,
    Error(String),
    Rows { rows: Vec<String>, sorted: bool },
}

#[derive(Debug)]
struct Record {
    line: usize,
    sql: String,
    expected: Expected,
}

fn records(text: &str) -> Vec<Record> {
    let mut lines =
        text.lines().enumerate().filter(|(_, line)| !line.starts_with("# ") || line.contains(" | ")).peekable();
    let mut found = Vec::new();
    while let Some((at, head)) = lines.next() {
        if head.trim().is_empty() || head == "skipif spark" {
            continue;
        }
        let words: Vec<&str> = head.split_whitespace().collect();
        let mut sql = Vec::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.is_empty() && *line != "----") {
            sql.push(line);
        }
        let expected = match words[..] {
            ["statement", "ok"] => Expected::Ok,
            ["statement", "error", class] => Expected::Error(class.to_owned()),
            ["query"] | ["query", "rowsort"] => {
                assert_eq!(lines.next().map(|(_, line)| line), Some("----"), "line {}: a query without rows", at + 1);
                let mut rows = Vec::new();
                while let Some((_, line)) = lines.next_if(|(_, line)| !line.is_empty()) {
                    rows.push(line.to_owned());
                }
                Expected::Rows { rows, sorted: words.len() == 2 }
            }
            _ => panic!("line {}: {head:?} begins no record", at + 1),
        };
        found.push(Record { line: at + 1, sql: sql.join("\n"), expected });
    }
    found
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) if text.is_empty() => "(empty)".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What is wrong with a record, if anything.
fn judged(session: &mut Session, record: &Record, sql: &str) -> Option<String> {
    let answer = ask_in(session, sql);
    match (&record.expected, answer) {
        (Expected::Ok, Ok(_)) => None,
        (Expected::Error(class), Err(error)) if error.kind() != ErrorKind::Internal => {
            (error.class_name() != class).then(|| format!("expected {class}, got {error:?}"))
        }
        (Expected::Rows { rows, sorted }, Ok(answer)) => {
            let cells = |row: &Vec<Value>| row.iter().map(cell).collect::<Vec<_>>().join(" | ");
            let mut got: Vec<String> = answer.rows.iter().map(cells).collect();
            if *sorted {
                got.sort();
            }
            (got != *rows).then(|| format!("expected\n{}\ngot\n{}", rows.join("\n"), got.join("\n")))
        }
        (_, Err(error)) => Some(format!("failed: {error:?}")),
        (expected, Ok(answer)) => Some(format!("expected {expected:?}, got {} rows", answer.rows.len())),
    }
}

/// Runs one script and says everything that is wrong with it.
fn run(path: &Path) -> (usize, String) {
    let (dir, mut session) = (tempfile::tempdir().unwrap(), session());
    let warehouse = dir.path().join("warehouse");
    ask_in(&mut session, &format!("SET spark.sql.warehouse.dir = {}", warehouse.display())).unwrap();
    let (outside, golden) = (dir.path().join("outside"), fixtures());
    std::fs::create_dir(&outside).unwrap();
    let mut wrong = String::new();
    let records = records(&std::fs::read_to_string(path).unwrap());
    for record in &records {
        let sql = record.sql.replace("{dir}", outside.to_str().unwrap()).replace("{golden}", golden.to_str().unwrap());
        if let Some(complaint) = judged(&mut session, record, &sql) {
            writeln!(wrong, "{}:{}: {}\n{complaint}\n", path.display(), record.line, record.sql).unwrap();
        }
    }
    (records.len(), wrong)
}

#[test]
fn scripts_give_what_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.iter().all(|path| path.extension().is_some_and(|e| e == "slt")), "{paths:?}");
    let (mut count, mut wrong) = (0, String::new());
    for path in paths {
        let (records, complaints) = run(&path);
        count += records;
        wrong += &complaints;
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(count > 300, "{count} records");
}
