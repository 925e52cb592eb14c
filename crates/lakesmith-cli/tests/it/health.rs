//! The health check as people and scripts see it.

use serde_json::Value;

use crate::run::{command, fixture, run};

/// The page of a table, with its path made the same for every run.
fn page(name: &str, more: &[&str]) -> String {
    let (_guard, table) = fixture(name);
    let ran = run(&[&["health", &table], more].concat());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{name}");
    ran.out.replace(&table, "/lake/t")
}

#[test]
fn a_page_shows_sizes_findings_and_the_state_of_the_log() {
    let expected = "\
/lake/t   health 96 of 100
version 23, 24 files, 33.2 KiB, 1.4 KiB on average, 1,200 rows

   file size        files        bytes
   <= 64 KiB           24     33.2 KiB  ########################

info     small-files  -4
         24 files of 1.4 KiB on average, 100.0 % of them below 32 MB: OPTIMIZE would leave 1
         $ lakesmith optimize /lake/t --target-size 1GiB

log          checkpoint at version 20, 3 commits since; 102 files (215.2 KiB)
statistics   3 columns indexed; all 24 files looked at, 0 without
optimized    never
vacuumed     never
";
    assert_eq!(page("plain_24_appends", &[]), expected);
    let expected = "\
/lake/t   health 100 of 100
version 0, 0 files, 0 B, 0 B on average, 0 rows

nothing to complain about

log          no checkpoint, 1 commit; 2 files (2.8 KiB)
optimized    never
vacuumed     never
";
    assert_eq!(page("empty_table", &[]), expected);
}

#[test]
fn deleted_rows_and_odd_paths_come_with_their_cure() {
    let text = page("dv_file", &[]);
    assert!(text.contains("warning  deleted-rows-stored"), "{text}");
    assert!(text.contains("$ lakesmith reorg /lake/t --purge\n"), "{text}");
    let (_guard, table) = fixture("path with spaces %41 & ünï");
    let text = run(&["health", &table, "--deep", "--target-size", "1MiB"]).out;
    assert!(text.contains("0 files missing"), "{text}");
}

#[test]
fn the_document_has_the_agreed_shape() {
    let (_guard, table) = fixture("partitioned_special");
    let document = run(&["health", &table, "--json"]).json();
    let detail = run(&["detail", &table, "--json"]).json();
    for (ours, theirs) in
        [("files", "numFiles"), ("bytes", "sizeInBytes"), ("partitions", "numPartitions"), ("version", "version")]
    {
        assert_eq!(document[ours], detail[theirs], "{ours}");
    }
    let average = document["bytes"].as_u64().unwrap() / document["files"].as_u64().unwrap();
    assert_eq!(document["avg_file_bytes"], average);
    assert!(document["table"].as_str().unwrap().starts_with("file:///"));
    assert!((0..=100).contains(&document["score"].as_u64().unwrap()));
    let bins = document["histogram"].as_array().unwrap();
    assert_eq!(bins.iter().map(|b| b["files"].as_u64().unwrap()).sum::<u64>(), document["files"].as_u64().unwrap());
    assert_eq!(bins.last().unwrap()["upto"], Value::Null);
    assert!(bins[..bins.len() - 1].is_sorted_by_key(|b| b["upto"].as_u64().unwrap()));

    let (_guard, table) = fixture("dv_file");
    let document = run(&["health", &table, "--json"]).json();
    let finding = &document["findings"][0];
    let keys: Vec<&String> = finding.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["id", "severity", "message", "evidence", "command", "points"]);
    assert_eq!((&finding["id"], &finding["severity"]), (&"deleted-rows-stored".into(), &"warning".into()));
    assert_eq!(finding["evidence"]["deleted_rows"], 84);
}

#[test]
fn the_exit_code_follows_fail_on_alone() {
    let (_guard, table) = fixture("dv_file");
    for (severity, code) in [("info", 1), ("warning", 1), ("WARNING", 1), ("critical", 0)] {
        let ran = run(&["health", &table, "--fail-on", severity]);
        assert_eq!(ran.code, code, "{severity}: {}", ran.err);
        assert!(ran.out.contains("deleted-rows-stored"), "the report is printed in any case");
        assert_eq!(ran.err, "", "the findings say it all");
    }
    assert_eq!(run(&["health", &table]).code, 0);
    assert_eq!(run(&["health", &table, "--fail-on", "bad"]).code, 2);
}

#[test]
fn an_older_version_is_diagnosed_as_it_was() {
    let (_guard, table) = fixture("plain_24_appends");
    let document = run(&["health", &table, "--version", "4", "--json"]).json();
    assert_eq!((&document["version"], &document["files"]), (&4.into(), &5.into()));
    assert_eq!(document["log"]["checkpoint_version"], Value::Null);
    let ran = run(&["health", &table, "--version", "99"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.starts_with("error[DELTA_VERSION_NOT_FOUND]: "), "{}", ran.err);
}

#[test]
fn a_table_that_cannot_be_written_is_diagnosed_and_says_why() {
    let (_guard, table) = fixture("unknown_writer_feature");
    let document = run(&["health", &table, "--json"]).json();
    let blocked = &document["findings"][0];
    assert_eq!(blocked["id"], "maintenance-blocked");
    assert_eq!(blocked["evidence"]["features"][0], "fancyFutureThing");
    let (_guard, table) = fixture("unknown_reader_feature");
    assert_eq!(run(&["health", &table]).code, 5);
}

#[test]
fn no_escape_reaches_a_pipe() {
    let (_guard, table) = fixture("dv_file");
    let output = command(&["health", &table]).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(!output.stdout.contains(&0x1b));
}

#[test]
fn a_deep_look_counts_what_a_vacuum_would_delete() {
    let mut reclaimable = 0;
    for name in ["orphans", "dv_file", "cdf", "partitioned_special", "path with spaces %41 & ünï", "plain_24_appends"]
    {
        let (_guard, table) = fixture(name);
        for properties in ["", "'delta.deletedFileRetentionDuration'='interval 0 hours'"] {
            if !properties.is_empty() {
                assert_eq!(run(&["optimize", &table, "--target-size", "1MiB"]).code, 0, "{name}");
                let quoted = table.replace('`', "``");
                let set = run(&["sql", &format!("ALTER TABLE delta.`{quoted}` SET TBLPROPERTIES ({properties})")]);
                assert_eq!(set.code, 0, "{name}: {}", set.err);
            }
            let document = run(&["health", &table, "--deep", "--json"]).json();
            let plan = run(&["vacuum", &table, "--dry-run", "--json"]).json();
            let files = plan["files"].as_array().unwrap();
            let files = files.iter().filter(|file| file["reason"] != "empty_folder").count();
            let found = &document["storage"]["reclaimable"];
            assert_eq!((found["files"].as_u64(), &found["bytes"]), (Some(files as u64), &plan["bytes"]), "{name}");
            reclaimable += files;
        }
    }
    assert!(reclaimable > 24, "{reclaimable}");
}
