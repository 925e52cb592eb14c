//! Plans in files: carried out as far as a fresh plan agrees, whatever somebody wrote into them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lakesmith::op::{ApplyOptions, ApplyReport, Operation, Report, TimeTravel, VacuumOptions};
use lakesmith::{Error, ErrorKind, Result};
use lakesmith_testkit::{BuiltTable, TableBuilder};
use serde_json::{Value, json};

use crate::tables::{files, ids, on_disk, optimize, run, session, small_files};

fn lines(plan: &Path) -> Vec<Value> {
    std::fs::read_to_string(plan).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn write_lines(plan: &Path, lines: &[Value]) {
    std::fs::write(plan, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}

/// Puts entries before the end of a plan and corrects its count.
fn add_entries(plan: &Path, entries: &[Value]) {
    let mut all = lines(plan);
    let mut end = all.pop().unwrap();
    all.extend(entries.iter().map(|e| json!({ "file": e })));
    end["end"]["files"] = json!(all.len() - 1);
    all.push(end);
    write_lines(plan, &all);
}

fn apply(plan: &Path, options: &ApplyOptions) -> Result<ApplyReport> {
    match session().apply(plan, options)? {
        Report::Apply(report) => Ok(*report),
        other => panic!("{other:?}"),
    }
}

fn refused(plan: &Path) -> Error {
    apply(plan, &ApplyOptions::default()).unwrap_err()
}

fn plan_optimize(table: &BuiltTable, plan: &Path) {
    let session = session();
    let Operation::Optimize(mut options) = optimize(&session) else { panic!() };
    options.limits.plan_out = Some(plan.to_owned());
    let report = run(&session, table, Operation::Optimize(options)).unwrap();
    assert!(!report.committed);
}

fn plan_vacuum(table: &BuiltTable, plan: &Path) {
    let options = VacuumOptions {
        retain_ms: Some(0),
        retention_check: false,
        no_writers: true,
        plan_out: Some(plan.to_owned()),
        ..VacuumOptions::default()
    };
    session().run(&table.folder.to_string_lossy(), Operation::Vacuum(options)).unwrap();
}

fn said_again() -> ApplyOptions {
    ApplyOptions { no_retention_check: true, no_writers: true, ..ApplyOptions::default() }
}

fn on_storage(table: &BuiltTable) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(&table.folder).unwrap().map(|e| e.unwrap().path());
    entries.filter(|path| path.is_file()).collect()
}

#[test]
fn a_plan_is_carried_out_and_nothing_is_left_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(&dir.path().join("t"));
    let plan = dir.path().join("plan.jsonl");
    let rows = ids(&table);
    plan_optimize(&table, &plan);
    assert_eq!(lines(&plan).len(), 2 + 8);
    let dry = apply(&plan, &ApplyOptions { dry_run: true, ..ApplyOptions::default() }).unwrap();
    assert_eq!((dry.planned_files, dry.left_out), (8, 0));
    assert_eq!(files(&table).len(), 8);
    let done = apply(&plan, &ApplyOptions::default()).unwrap();
    assert_eq!((done.planned_files, done.left_out, done.operation.as_str()), (8, 0, "optimize"));
    assert_eq!(files(&table).len(), 1);
    assert_eq!(ids(&table), rows);
    // What it would rewrite is gone, and nothing to do is done.
    let again = apply(&plan, &ApplyOptions::default()).unwrap();
    assert_eq!((again.planned_files, again.left_out), (8, 8));
    assert!(matches!(*again.report, Report::Optimize(ref report) if report.version_after.is_none()));
    assert_eq!((files(&table).len(), ids(&table)), (1, rows));
}

#[test]
fn a_part_of_a_plan_is_a_plan_and_what_others_did_meanwhile_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(&dir.path().join("t"));
    let plan = dir.path().join("plan.jsonl");
    let rows = ids(&table);
    plan_optimize(&table, &plan);
    let mut all = lines(&plan);
    let dropped: Vec<Value> = all.splice(1..3, []).collect();
    all.last_mut().unwrap()["end"]["files"] = json!(6);
    // A file that has another size by now is another file.
    all[1]["file"]["size"] = json!(1);
    write_lines(&plan, &all);
    let done = apply(&plan, &ApplyOptions::default()).unwrap();
    assert_eq!((done.planned_files, done.left_out), (6, 1));
    assert_eq!(done.not_applied[0].path, all[1]["file"]["path"].as_str().unwrap());
    assert_eq!(ids(&table), rows);
    let left: BTreeSet<String> = files(&table).into_iter().map(|f| f.path).collect();
    for kept in dropped.iter().chain([&all[1]]) {
        assert!(left.contains(kept["file"]["path"].as_str().unwrap()), "{kept}");
    }
    assert_eq!(left.len(), 4);
}

#[test]
fn added_entries_are_named_and_never_touched() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(&dir.path().join("t"));
    let (plan, outside) = (dir.path().join("plan.jsonl"), dir.path().join("precious.parquet"));
    std::fs::write(&outside, "precious").unwrap();
    let session = session();
    run(&session, &table, optimize(&session)).unwrap();
    let live = files(&table);
    plan_vacuum(&table, &plan);
    let planned = lines(&plan).len() as u64 - 2;
    let absolute = outside.to_string_lossy().into_owned();
    let forged = [
        json!({"path": "../precious.parquet", "size": 8}),
        json!({"path": absolute, "size": 8}),
        json!({"path": format!("file://{absolute}"), "size": 8}),
        json!({"path": live[0].path, "size": live[0].size}),
        json!({"path": "_delta_log/00000000000000000000.json", "size": 1}),
        json!({"path": "", "size": 0}),
        json!({"path": "/", "size": 0}),
    ];
    add_entries(&plan, &forged);
    let before = on_storage(&table);
    let done = apply(&plan, &said_again()).unwrap();
    assert_eq!((done.planned_files, done.left_out), (planned + forged.len() as u64, forged.len() as u64));
    assert!(outside.exists() && on_disk(&table, &live[0].path).exists());
    assert!(table.folder.join("_delta_log/00000000000000000000.json").exists());
    assert_eq!(before.len() - on_storage(&table).len(), planned as usize);
    assert_eq!(ids(&table).len(), 760);

    // The same entries in the plan of a rewrite.
    let table = small_files(&dir.path().join("u"));
    plan_optimize(&table, &plan);
    add_entries(&plan, &forged);
    let done = apply(&plan, &ApplyOptions::default()).unwrap();
    assert_eq!((done.left_out, files(&table).len()), (forged.len() as u64, 1));
    assert!(outside.exists());
}

#[test]
fn a_vacuum_deletes_only_what_was_approved() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(&dir.path().join("t"));
    let plan = dir.path().join("plan.jsonl");
    let session = session();
    run(&session, &table, optimize(&session)).unwrap();
    plan_vacuum(&table, &plan);
    let mut all = lines(&plan);
    let spared = all.remove(1)["file"]["path"].as_str().unwrap().to_owned();
    let planned = all.len() as u64 - 2;
    all.last_mut().unwrap()["end"]["files"] = json!(planned);
    write_lines(&plan, &all);
    // Guards that the plan switched off are guards until they are switched off again.
    let unsaid = refused(&plan);
    assert_eq!(unsaid.kind(), ErrorKind::Retention);
    assert!(unsaid.message().contains("--no-retention-check"), "{unsaid}");
    let half = ApplyOptions { no_retention_check: true, ..ApplyOptions::default() };
    assert!(apply(&plan, &half).unwrap_err().message().contains("--no-writers"));
    let done = apply(&plan, &said_again()).unwrap();
    assert_eq!((done.planned_files, done.left_out), (planned, 0));
    assert!(table.folder.join(&spared).exists());
    for line in &all[1..all.len() - 1] {
        assert!(!table.folder.join(line["file"]["path"].as_str().unwrap()).exists(), "{line}");
    }
}

#[test]
fn a_retention_that_is_written_into_a_plan_meets_the_guard() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(&dir.path().join("t"));
    let plan = dir.path().join("plan.jsonl");
    let options = VacuumOptions { plan_out: Some(plan.clone()), ..VacuumOptions::default() };
    session().run(&table.folder.to_string_lossy(), Operation::Vacuum(options)).unwrap();
    let mut all = lines(&plan);
    all[0]["plan"]["operation"]["vacuum"]["retain_ms"] = json!(0);
    write_lines(&plan, &all);
    assert_eq!(refused(&plan).kind(), ErrorKind::Retention);
}

#[test]
fn a_table_that_moved_in_a_way_that_matters_refuses_the_plan() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(&dir.path().join("t"));
    let plan = dir.path().join("plan.jsonl");
    plan_optimize(&table, &plan);
    let original = lines(&plan);
    let change = |key: &str, value: Value| {
        let mut all = original.clone();
        all[0]["plan"][key] = value;
        write_lines(&plan, &all);
        refused(&plan)
    };
    assert_eq!(change("table_id", json!("another")).kind(), ErrorKind::Retention);
    assert_eq!(change("version", json!(1_000_000)).kind(), ErrorKind::Retention);
    assert_eq!(change("configuration", json!("0")).kind(), ErrorKind::Retention);
    assert_eq!(change("format", json!(2)).kind(), ErrorKind::Unsupported);
    assert_eq!(change("table", json!("relative/path")).kind(), ErrorKind::Usage);
    assert_eq!(change("table", json!("file:///nowhere/at/all")).kind(), ErrorKind::NotFound);
    let other = TableBuilder::new(dir.path().join("other")).append(10, 3).build().unwrap();
    // The builder gives every table the same identity, but not the same history.
    assert_eq!(change("table", json!(other.root.to_string())).kind(), ErrorKind::Retention);
    write_lines(&plan, &original);
    let pinned = ApplyOptions { table: Some(other.folder.to_string_lossy().into_owned()), ..ApplyOptions::default() };
    assert_eq!(apply(&plan, &pinned).unwrap_err().kind(), ErrorKind::Retention);
    let set = lakesmith::op::AlterProperties {
        set: [("delta.targetFileSize".to_owned(), "1mb".to_owned())].into(),
        allow_arbitrary: true,
        ..Default::default()
    };
    session().run(&table.folder.to_string_lossy(), Operation::AlterProperties(set)).unwrap();
    assert!(refused(&plan).message().contains("have changed"));
    assert_eq!(files(&table).len(), 8);
}

#[test]
fn files_that_are_no_plan_are_one_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(&dir.path().join("t"));
    let plan = dir.path().join("plan.jsonl");
    assert_eq!(refused(&plan).kind(), ErrorKind::NotFound);
    plan_optimize(&table, &plan);
    let whole = std::fs::read(&plan).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    let without_end: String = text.lines().take(9).map(|line| format!("{line}\n")).collect();
    let mut twice = whole.clone();
    twice.extend_from_slice(&whole);
    let cases: Vec<Vec<u8>> = vec![
        vec![],
        b"{}\n".to_vec(),
        b"not json\n".to_vec(),
        vec![0xff; 100],
        whole[..whole.len() / 2].to_vec(),
        whole[..whole.len() - 1].to_vec(),
        without_end.into_bytes(),
        twice,
        text.replace("\"files\":8", "\"files\":7").into_bytes(),
        text.replacen("\"size\"", "\"sise\"", 1).into_bytes(),
        text.replacen("\"force\"", "\"forced\"", 1).into_bytes(),
        [text.lines().next().unwrap().as_bytes(), b"\n", &vec![b'x'; 3 << 20], b"\n"].concat(),
    ];
    for (number, bytes) in cases.into_iter().enumerate() {
        std::fs::write(&plan, bytes).unwrap();
        let error = refused(&plan);
        assert_eq!(error.kind(), ErrorKind::Usage, "case {number}: {error}");
    }
    assert_eq!(files(&table).len(), 8);
    let at = session().run(&table.folder.to_string_lossy(), Operation::Detail(TimeTravel::Latest)).unwrap();
    let Report::Detail(detail) = at else { panic!() };
    assert_eq!(detail.version, table.version);
}

#[test]
fn a_huge_plan_is_read_within_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(&dir.path().join("t"));
    let plan = dir.path().join("plan.jsonl");
    plan_optimize(&table, &plan);
    let mut text: Vec<String> = std::fs::read_to_string(&plan).unwrap().lines().map(str::to_owned).collect();
    text.pop();
    let added = 200_000;
    text.extend((0..added).map(|i| format!(r#"{{"file":{{"path":"no/such/file-{i}","size":{i}}}}}"#)));
    text.push(format!(r#"{{"end":{{"files":{}}}}}"#, 8 + added));
    std::fs::write(&plan, text.join("\n") + "\n").unwrap();
    let done = apply(&plan, &ApplyOptions::default()).unwrap();
    assert_eq!((done.planned_files, done.left_out), (8 + added, added));
    assert_eq!(done.not_applied.len(), 1_000);
    assert_eq!(files(&table).len(), 1);
}
