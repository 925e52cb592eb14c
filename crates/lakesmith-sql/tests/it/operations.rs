use lakesmith_core::op::{Compat, Operation};
use lakesmith_sql::{Settings, StatementKind, parse, to_operation};

fn operation(text: &str, settings: &Settings) -> Operation {
    match parse(text).unwrap().remove(0).kind {
        StatementKind::Table { op, .. } => to_operation(&op, settings).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn settings_reach_every_operation() {
    let mut settings = Settings::default();
    for (key, value) in [
        ("spark.databricks.delta.optimize.maxFileSize", "256k"),
        ("spark.databricks.delta.commitInfo.userMetadata", "nightly"),
        ("spark.databricks.delta.allowArbitraryProperties.enabled", "true"),
        ("lakesmith.compat", "spark"),
    ] {
        settings.set(key, value).unwrap();
    }
    let Operation::Optimize(o) = operation("OPTIMIZE t WHERE p = 'a' ZORDER BY (x)", &settings) else { panic!() };
    assert_eq!((o.sizes.target_bytes, o.sizes.min_file_bytes, o.compat), (262_144, 1 << 30, Compat::Spark));
    assert_eq!(o.predicate.unwrap().spark_text(), "('p = a)");
    assert_eq!(o.predicate_text.as_deref(), Some("p = 'a'"));
    assert_eq!(o.order_by.unwrap().columns, [["x"]]);
    assert_eq!(o.limits.user_metadata.as_deref(), Some("nightly"));
    assert!(!o.full && !o.limits.dry_run);
    let Operation::Reorg(r) = operation("REORG TABLE t APPLY (PURGE)", &settings) else { panic!() };
    assert_eq!((r.sizes.target_bytes, r.predicate), (262_144, None));
    let Operation::AlterProperties(a) = operation("ALTER TABLE t SET TBLPROPERTIES (a.b = 1)", &settings) else {
        panic!()
    };
    assert!(a.allow_arbitrary && !a.dry_run);
    assert_eq!(a.set.get("a.b").map(String::as_str), Some("1"));
    let Operation::History(h) = operation("DESCRIBE HISTORY t LIMIT 3", &settings) else { panic!() };
    assert_eq!(h.limit, Some(3));
    assert!(matches!(operation("DESCRIBE DETAIL t", &settings), Operation::Detail(_)));
    assert_eq!(operation("SHOW TBLPROPERTIES t (k)", &settings), Operation::ShowProperties(Some("k".into())));
}
