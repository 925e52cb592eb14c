//! Plans in files, from the command line.

use crate::run::{fixture, run};

#[test]
fn a_plan_is_written_and_carried_out_with_documented_exit_codes() {
    let (guard, table) = fixture("plain_24_appends");
    let plan = guard.path().join("plan.jsonl").to_str().unwrap().to_owned();
    let planned = run(&["optimize", &table, "--plan-out", &plan, "--json"]).json();
    assert_eq!(planned["committed"].as_bool(), Some(false));
    assert_eq!(run(&["files", &table, "--json"]).json().as_array().unwrap().len(), 24);
    let dry = run(&["apply", &plan, "--dry-run"]);
    assert_eq!(dry.code, 0, "{}", dry.err);
    assert!(dry.out.contains("24 of the plan's 24 files, made on version 23"), "{}", dry.out);
    let done = run(&["apply", &plan, "--table", &table, "--json"]).json();
    assert_eq!((done["operation"].as_str(), done["left_out"].as_u64()), (Some("optimize"), Some(0)));
    assert_eq!(done["report"]["version_after"].as_u64(), Some(24));
    let again = run(&["apply", &plan]);
    assert_eq!(again.code, 0, "{}", again.err);
    assert!(again.out.contains("nothing to do") && again.out.contains("0 of the plan's 24 files"), "{}", again.out);
    let (_other, other) = fixture("dv_file");
    let refused = run(&["apply", &plan, "--table", &other]);
    assert_eq!((refused.code, refused.out.as_str()), (3, ""));
    assert!(refused.err.starts_with("error[REFUSED]: "), "{}", refused.err);
    assert_eq!(run(&["apply", "/no/such/plan"]).code, 1);
    std::fs::write(&plan, "{}\n").unwrap();
    assert_eq!(run(&["apply", &plan]).code, 2);
    let condemned = run(&["vacuum", &table, "--condemn", "7", "--plan-out", &plan]);
    assert_eq!(condemned.code, 2);
}
