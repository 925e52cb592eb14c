//! Vacuums that don't list, and those that delete in two steps.

use std::fs;

use lakesmith::ErrorKind;
use lakesmith::op::{Inventory, VacuumMode, VacuumOptions};
use lakesmith_testkit::TableBuilder;

use crate::sweeping::{DAY, age, age_all, at_once, dry, golden, kept, on_disk, paths, stray, vacuum};
use crate::tables::{optimize, run, session, small_files};

fn lite() -> VacuumOptions {
    VacuumOptions { mode: VacuumMode::Lite, ..at_once() }
}

#[test]
fn lite_takes_what_the_log_removed_and_no_orphans() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let session = session();
    run(&session, &table, optimize(&session)).unwrap();
    let orphan = stray(&table.folder, "orphan.parquet", 60 * DAY);
    let vectors = on_disk(&table.folder).into_iter().filter(|p| p.ends_with(".bin"));
    let mut expected: Vec<String> = table.files.iter().map(|f| f.path.clone()).chain(vectors).collect();
    expected.sort();
    assert_eq!(paths(&vacuum(&table.folder, dry(lite())).unwrap()), expected);
    let report = vacuum(&table.folder, lite()).unwrap();
    assert_eq!((paths(&report), report.directories), (expected, 1));
    assert!(table.files.iter().all(|f| !table.folder.join(&f.path).exists()) && orphan.exists());
    assert_eq!(paths(&vacuum(&table.folder, lite()).unwrap()), Vec::<String>::new());
    assert_eq!(paths(&vacuum(&table.folder, at_once()).unwrap()), ["orphan.parquet"]);
}

#[test]
fn lite_deletes_odd_partitions_for_real() {
    let dir = tempfile::tempdir().unwrap();
    let mut builder = TableBuilder::new(dir.path()).partitioned_by(&["p"]);
    for value in [Some("a b"), Some("2026-01-01 00:00:00"), Some("50%"), None] {
        builder = builder.append_partition(&[value], 10, 2);
    }
    let table = [0, 2, 4, 6].into_iter().fold(builder, TableBuilder::remove_file).build().unwrap();
    // A commit of this very millisecond is within any retention.
    for commit in fs::read_dir(table.folder.join("_delta_log")).unwrap() {
        age(&commit.unwrap().path(), DAY);
    }
    let report = vacuum(&table.folder, lite()).unwrap();
    assert_eq!(report.files.len(), 4);
    for file in &table.files {
        assert_eq!(table.folder.join(&file.path).exists(), file.live, "{}", file.path);
    }
}

#[test]
fn lite_keeps_what_is_live_again_or_within_the_retention() {
    let dir = tempfile::tempdir().unwrap();
    let table = TableBuilder::new(dir.path()).append(20, 2).remove_file(0).build().unwrap();
    // A restore brings the removed file back.
    let added = fs::read_to_string(table.folder.join("_delta_log/00000000000000000001.json")).unwrap();
    let add = added.lines().find(|line| line.contains(&table.files[0].path)).unwrap();
    fs::write(table.folder.join("_delta_log/00000000000000000003.json"), format!("{add}\n")).unwrap();
    assert_eq!(paths(&vacuum(&table.folder, lite()).unwrap()), Vec::<String>::new());
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let session = session();
    run(&session, &table, optimize(&session)).unwrap();
    let normal = VacuumOptions { mode: VacuumMode::Lite, ..VacuumOptions::default() };
    assert_eq!(paths(&vacuum(&table.folder, normal).unwrap()), Vec::<String>::new());
}

#[test]
fn lite_works_on_a_pruned_log_after_one_full_vacuum() {
    let dir = tempfile::tempdir().unwrap();
    let table = golden("log_cleaned", dir.path());
    let error = vacuum(&table, lite()).unwrap_err();
    assert_eq!((error.class_name(), error.kind()), ("DELTA_CANNOT_VACUUM_LITE", ErrorKind::Retention));
    vacuum(&table, at_once()).unwrap();
    let note = fs::read_to_string(table.join("_delta_log/_last_vacuum_info")).unwrap();
    assert!(note.starts_with("{\"latestCommitVersionOutsideOfRetentionWindow\":"), "{note}");
    assert_eq!(paths(&vacuum(&table, lite()).unwrap()), Vec::<String>::new());
    // A vacuum that covers less does not take that back.
    vacuum(&table, VacuumOptions::default()).unwrap();
    assert!(vacuum(&table, lite()).is_ok());
}

#[test]
fn condemned_files_go_when_their_days_are_over_and_pardoned_ones_start_anew() {
    let dir = tempfile::tempdir().unwrap();
    let table = golden("orphans", dir.path());
    let condemn = |days: u64| VacuumOptions { condemn_ms: Some(days * 86_400_000), ..VacuumOptions::default() };
    let before = on_disk(&table);
    let first = vacuum(&table, condemn(7)).unwrap();
    let run = first.condemned.clone().unwrap();
    assert_eq!((run.files, paths(&first)), (6, vec![]));
    assert_eq!(kept(&first).iter().filter(|k| k.ends_with(": condemned")).count(), 6);
    let again = vacuum(&table, condemn(7)).unwrap();
    assert_eq!((again.condemned.clone(), paths(&again)), (None, vec![]));

    let pardoned = VacuumOptions { pardon: Some(run.run.clone()), ..VacuumOptions::default() };
    assert_eq!(vacuum(&table, pardoned.clone()).unwrap().pardoned, Some(run.run));
    assert_eq!(vacuum(&table, pardoned).unwrap_err().kind(), ErrorKind::NotFound);

    // A list that is due at once; meanwhile one of its files has come into the table.
    assert_eq!(vacuum(&table, condemn(0)).unwrap().condemned.unwrap().files, 6);
    let add = serde_json::json!({"add": {"path": "orphan-old.parquet", "partitionValues": {}, "size": 1,
        "modificationTime": 1, "dataChange": true}});
    let version = fs::read_dir(table.join("_delta_log"))
        .unwrap()
        .filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|x| x == "json"))
        .count();
    fs::write(table.join(format!("_delta_log/{version:020}.json")), format!("{add}\n")).unwrap();
    stray(&table, "later.parquet", 60 * DAY);
    let done = vacuum(&table, condemn(7)).unwrap();
    assert_eq!(done.files.len(), 5);
    assert!(table.join("orphan-old.parquet").exists() && table.join("later.parquet").exists());
    assert!(!table.join("k=1/orphan-old.parquet").exists());
    assert!(done.condemned.unwrap().files >= 1);
    assert!(before.len() > on_disk(&table).len());
}

#[test]
fn lists_of_another_form_are_left_alone_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let table = golden("orphans", dir.path());
    let future = "{\"lakesmith.condemned\":99,\"table\":\"x\",\"run\":\"r\",\"condemned_ms\":0,\"due_ms\":0}\n";
    fs::create_dir_all(table.join("_lakesmith/condemned")).unwrap();
    fs::write(table.join("_lakesmith/condemned/r.jsonl"), future).unwrap();
    let report = vacuum(&table, VacuumOptions { condemn_ms: Some(1000), ..VacuumOptions::default() }).unwrap();
    assert!(kept(&report).contains(&"_lakesmith/condemned/r.jsonl: unknown_list".to_owned()));
    let pardon = VacuumOptions { pardon: Some("r".into()), ..VacuumOptions::default() };
    assert_eq!(vacuum(&table, pardon).unwrap_err().kind(), ErrorKind::Unsupported);
    vacuum(&table, at_once()).unwrap();
    assert!(table.join("_lakesmith/condemned/r.jsonl").exists());
}

#[test]
fn an_inventory_stands_for_the_listing() {
    let dir = tempfile::tempdir().unwrap();
    let table = golden("orphans", dir.path());
    age_all(&table, 60 * DAY);
    let uri = format!("file:{}", table.display());
    let inventory = dir.path().join("inventory.csv");
    let live = on_disk(&table).into_iter().find(|p| p.starts_with("part-")).unwrap();
    let rows = [
        format!("{uri}/orphan-old.parquet,10,false,1"),
        format!("{uri}/sub%20dir/orphan-old.parquet,10,false,1700000000000"),
        format!("{uri}/{live},10,false,1700000000000"),
        format!("{uri}/orphan-young.parquet,10,false,"),
        format!("{uri}/k=1,0,true,1700000000000"),
        format!("file:{}/elsewhere.parquet,10,false,1", dir.path().display()),
    ];
    fs::write(&inventory, format!("path,length,isDir,modificationTime\n{}\n", rows.join("\n"))).unwrap();
    let options = |location: &str| VacuumOptions {
        inventory: Some(Inventory { location: location.to_owned(), format: None }),
        ..VacuumOptions::default()
    };
    let report = vacuum(&table, options(inventory.to_str().unwrap())).unwrap();
    assert_eq!(paths(&report), ["orphan-old.parquet", "sub dir/orphan-old.parquet"]);
    assert_eq!((kept(&report), report.directories), (vec!["orphan-young.parquet: no_modification_time".into()], 2));
    assert!(table.join(live).exists() && table.join("k=1/orphan-old.parquet").exists());
    fs::write(&inventory, "path,size\n").unwrap();
    let error = vacuum(&table, options(inventory.to_str().unwrap())).unwrap_err();
    assert_eq!((error.class_name(), error.kind()), ("DELTA_INVALID_INVENTORY_SCHEMA", ErrorKind::Usage));
    let missing = dir.path().join("none.csv");
    assert_eq!(vacuum(&table, options(missing.to_str().unwrap())).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn sql_answers_as_spark_does() {
    let dir = tempfile::tempdir().unwrap();
    let table = golden("orphans", dir.path());
    let mut session = session();
    let mut results = Vec::new();
    let name = format!("delta.`{}`", table.display());
    let text = format!(
        "SET spark.databricks.delta.retentionDurationCheck.enabled = false; SET lakesmith.vacuum.noWriters = true; \
         VACUUM {name} RETAIN 0 HOURS DRY RUN; VACUUM {name} RETAIN 0 HOURS"
    );
    session
        .sql(&text, &mut |result| {
            results.push(result);
            Ok(())
        })
        .unwrap();
    let root = format!("file:{}", table.display());
    assert_eq!((results[2].columns.as_slice(), results[2].rows.len()), (["path".to_owned()].as_slice(), 7));
    assert!(results[2].rows.contains(&vec![format!("{root}/sub dir/orphan-old.parquet").into()]));
    assert_eq!(results[3].rows, [[serde_json::Value::from(root)]]);
    assert!(matches!(results[3].report, Some(lakesmith::op::Report::Vacuum(_))));
}

#[test]
fn tables_inside_the_table_are_left_alone_without_a_listing_too() {
    let dir = tempfile::tempdir().unwrap();
    let table = golden("orphans", dir.path());
    age_all(&table, 60 * DAY);
    for inner in ["inner/part-0.parquet", "deep/er/lake/data/part-0.parquet"] {
        stray(&table, inner, 60 * DAY);
    }
    stray(&table, "inner/_delta_log/00000000000000000000.json", 60 * DAY);
    stray(&table, "deep/er/lake/metadata/v1.metadata.json", 60 * DAY);
    stray(&table, "plain/part-0.parquet", 60 * DAY);
    let uri = format!("file:{}", table.display());
    let files = ["inner/part-0.parquet", "deep/er/lake/data/part-0.parquet", "plain/part-0.parquet"];
    let rows: Vec<String> = files.iter().map(|file| format!("{uri}/{file},5,false,1700000000000")).collect();
    let inventory = dir.path().join("inventory.csv");
    fs::write(&inventory, format!("path,length,isDir,modificationTime\n{}\n", rows.join("\n"))).unwrap();
    let location = inventory.to_str().unwrap().to_owned();
    let listed = VacuumOptions { inventory: Some(Inventory { location, format: None }), ..at_once() };
    // The log once knew them: a table inside had been committed as files of this one.
    let removes: Vec<String> = files
        .iter()
        .map(|file| {
            serde_json::json!({"remove": {"path": file, "deletionTimestamp": 1, "dataChange": true}}).to_string()
        })
        .collect();
    fs::write(table.join("_delta_log/00000000000000000003.json"), removes.join("\n")).unwrap();
    for options in [dry(listed.clone()), dry(lite()), listed, lite()] {
        let is_dry = options.dry_run;
        let report = vacuum(&table, options).unwrap();
        assert!(kept(&report).contains(&"inner: foreign_table".to_owned()), "{:?}", kept(&report));
        if is_dry {
            assert!(paths(&report).contains(&"plain/part-0.parquet".to_owned()));
        }
        assert!(paths(&report).iter().all(|path| !path.starts_with("inner") && !path.starts_with("deep")));
    }
    assert!(table.join("inner/part-0.parquet").exists() && table.join(files[1]).exists());
    assert!(!table.join("plain/part-0.parquet").exists());
}

#[test]
fn an_inventory_that_is_out_of_date_does_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let table = golden("orphans", dir.path());
    // Written again since the inventory was taken, whose times are seconds besides.
    stray(&table, "young.parquet", std::time::Duration::ZERO);
    let uri = format!("file:{}", table.display());
    let inventory = dir.path().join("inventory.csv");
    let rows = format!("{uri}/young.parquet,5,false,1700000000\n{uri}/gone.parquet,5,false,1700000000");
    fs::write(&inventory, format!("path,length,isDir,modificationTime\n{rows}\n")).unwrap();
    let location = inventory.to_str().unwrap().to_owned();
    let options = VacuumOptions { inventory: Some(Inventory { location, format: None }), ..VacuumOptions::default() };
    let report = vacuum(&table, options).unwrap();
    assert_eq!((paths(&report), kept(&report)), (vec![], vec!["young.parquet: too_young".to_owned()]));
    assert!(table.join("young.parquet").exists());
}
