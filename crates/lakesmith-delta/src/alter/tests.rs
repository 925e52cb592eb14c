//! Changes of a small table, judged by the metadata that they make.

use lakesmith_core::op::{AddedColumn, ColumnChange, ColumnDefault, CreateTable, Position};
use lakesmith_core::predicate::Expr;
use lakesmith_core::table::{DataType, Scalar};
use lakesmith_storage::{FixedWorld, Location};

use super::*;
use crate::create::new_table;
use crate::schema::{ColumnMapping, parse_schema};
use crate::version_state::VersionState;

const COLUMNS: &str = r#"{"type":"struct","fields":[
    {"name":"id","type":"long","nullable":true,"metadata":{}},
    {"name":"s","type":{"type":"struct","fields":[
        {"name":"x","type":"integer","nullable":true,"metadata":{}},
        {"name":"y","type":"string","nullable":true,"metadata":{}}]},"nullable":true,"metadata":{}},
    {"name":"l","type":{"type":"array","elementType":"integer","containsNull":true},"nullable":true,"metadata":{}},
    {"name":"p","type":"string","nullable":true,"metadata":{}},
    {"name":"c","type":"integer","nullable":true,"metadata":{}}]}"#;

fn table(properties: &[(&str, &str)], clustered: bool) -> DeltaTable {
    let root = Location::parse("memory://alter/t").unwrap();
    let schema = parse_schema(COLUMNS, ColumnMapping::None).unwrap();
    let options = CreateTable {
        schema,
        partition_by: if clustered { vec![] } else { vec!["p".into()] },
        cluster_by: if clustered { vec![vec!["c".into()]] } else { vec![] },
        properties: properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        ..CreateTable::default()
    };
    let new = new_table(&root, &options, &FixedWorld::new(1)).unwrap();
    let state = VersionState {
        version: 0,
        protocol: new.protocol.unwrap(),
        metadata: new.metadata.unwrap(),
        domains: new.domains,
        commit_timestamp_ms: 0,
        in_commit_timestamps: false,
        checkpoint_version: None,
        empty_commit: None,
        file: None,
        view: Default::default(),
    };
    let schema = state.schema().unwrap();
    state.into_table(&root, schema, Default::default()).unwrap()
}

fn path(text: &str) -> Vec<String> {
    text.split('.').map(str::to_owned).collect()
}

fn alter(table: &DeltaTable, change: TableChange) -> Result<Option<Altered>> {
    alter_table(table, &change, false, &FixedWorld::new(1))
}

fn class(table: &DeltaTable, change: TableChange) -> String {
    match alter(table, change.clone()) {
        Err(error) => error.class_name().to_owned(),
        Ok(_) => panic!("{change:?}"),
    }
}

/// The schema after a change, as Spark writes types.
fn schema(altered: Result<Option<Altered>>) -> String {
    let metadata = altered.unwrap().unwrap().configuration.metadata.unwrap();
    let fields = parse_schema(&metadata.schema_string, ColumnMapping::None).unwrap().fields;
    DataType::Struct(fields).simple_string()
}

fn added(at: &str, data_type: DataType, position: Option<Position>) -> TableChange {
    let mut parent = path(at);
    let name = parent.pop().unwrap();
    let field = Field { physical: name.clone(), name, id: None, data_type, nullable: true, metadata: BTreeMap::new() };
    TableChange::AddColumns(vec![AddedColumn { parent, field, has_default: false, position }])
}

fn changed(at: &str, change: impl FnOnce(&mut ColumnChange)) -> TableChange {
    let mut one = ColumnChange { path: path(at), ..ColumnChange::default() };
    change(&mut one);
    TableChange::ChangeColumns(vec![one])
}

fn renamed(from: &str, to: &str) -> TableChange {
    TableChange::RenameColumn { path: path(from), to: to.to_owned() }
}

fn dropped(columns: &[&str]) -> TableChange {
    TableChange::DropColumns { paths: columns.iter().map(|c| path(c)).collect(), if_exists: false }
}

const MAPPED: (&str, &str) = ("delta.columnMapping.mode", "name");

#[test]
fn columns_come_where_they_are_put() {
    let table = table(&[], false);
    let start = "struct<id:bigint,s:struct<x:int,y:string>,l:array<int>,p:string,c:int";
    assert_eq!(schema(alter(&table, added("n", DataType::Date, None))), format!("{start},n:date>"));
    let first = schema(alter(&table, added("n", DataType::Date, Some(Position::First))));
    assert!(first.starts_with("struct<n:date,id:bigint,"), "{first}");
    let after = schema(alter(&table, added("S.n", DataType::Date, Some(Position::After("X".into())))));
    assert!(after.contains("s:struct<x:int,n:date,y:string>"), "{after}");
    let altered = alter(&table, added("S.n", DataType::Long, Some(Position::After("x".into())))).unwrap().unwrap();
    let history = r#"[{\"column\":{\"name\":\"s.n\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}},\"position\":\"AFTER x\"}]"#;
    assert_eq!((altered.operation, &altered.parameters[0].1), ("ADD COLUMNS", &format!("\"{history}\"")));
    assert_eq!(altered.configuration.protocol, None);
}

#[test]
fn columns_that_can_not_be_added_are_refused() {
    let table = table(&[("delta.enableChangeDataFeed", "true")], false);
    for (at, data_type, position, expected) in [
        ("ID", DataType::Date, None, "FIELD_ALREADY_EXISTS"),
        ("s.X", DataType::Date, None, "FIELD_ALREADY_EXISTS"),
        ("n", DataType::Date, Some(Position::After("nope".into())), "FIELD_NOT_FOUND"),
        ("nope.n", DataType::Date, None, "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("id.n", DataType::Date, None, "INVALID_FIELD_NAME"),
        ("l.element.n", DataType::Date, None, "INVALID_FIELD_NAME"),
        ("a b", DataType::Date, None, "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        ("n", DataType::TimestampNtz, None, "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT"),
        ("_change_type", DataType::String, None, "RESERVED_CDC_COLUMNS_ON_WRITE"),
    ] {
        assert_eq!(class(&table, added(at, data_type, position)), expected, "{at}");
    }
    let TableChange::AddColumns(mut two) = added("n", DataType::Date, None) else { panic!("columns are added") };
    two.push(AddedColumn { field: Field { name: "N".into(), ..two[0].field.clone() }, ..two[0].clone() });
    assert_eq!(class(&table, TableChange::AddColumns(two.clone())), "COLUMN_ALREADY_EXISTS");
    two.truncate(1);
    two[0].field.nullable = false;
    assert_eq!(class(&table, TableChange::AddColumns(two.clone())), "DELTA_OPERATION_NOT_ALLOWED");
    two[0].has_default = true;
    assert_eq!(
        class(&table, TableChange::AddColumns(two)),
        "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED"
    );
}

#[test]
fn new_columns_of_mapped_tables_get_ids_that_nobody_had() {
    let table = table(&[MAPPED], false);
    let before: i64 = table.state.properties[MAX_COLUMN_ID].parse().unwrap();
    let inner = Field {
        name: "a b".into(),
        physical: "a b".into(),
        id: None,
        data_type: DataType::Long,
        nullable: true,
        metadata: BTreeMap::new(),
    };
    let altered = alter(&table, added("n", DataType::Struct(vec![inner]), None)).unwrap().unwrap();
    let metadata = altered.configuration.metadata.unwrap();
    assert_eq!(metadata.configuration[MAX_COLUMN_ID], (before + 2).to_string());
    let fields = parse_schema(&metadata.schema_string, ColumnMapping::Name).unwrap().fields;
    let last = fields.last().unwrap();
    assert!(last.physical.starts_with("col-") && last.id == i32::try_from(before + 1).ok());
    let DataType::Struct(inner) = &last.data_type else { panic!("a struct was added") };
    assert!(inner[0].physical.starts_with("col-") && inner[0].name == "a b");
}

#[test]
fn names_change_only_where_files_do_not_hold_them() {
    let plain = table(&[], false);
    assert_eq!(class(&plain, renamed("c", "d")), "DELTA_UNSUPPORTED_RENAME_COLUMN");
    assert_eq!(class(&plain, dropped(&["c"])), "DELTA_UNSUPPORTED_DROP_COLUMN");
    assert_eq!(class(&plain, renamed("nope", "d")), "UNRESOLVED_COLUMN.WITH_SUGGESTION");
    assert_eq!(class(&plain, renamed("c", "ID")), "FIELD_ALREADY_EXISTS");
    let mapped = table(&[MAPPED, ("delta.dataSkippingStatsColumns", "id,s.x,c")], false);
    let altered = alter(&mapped, renamed("P", "p p")).unwrap().unwrap();
    let metadata = altered.configuration.metadata.unwrap();
    assert_eq!(metadata.partition_columns, ["p p"]);
    let physical = |fields: &[Field]| fields.iter().map(|f| f.physical.clone()).collect::<Vec<_>>();
    let fields = parse_schema(&metadata.schema_string, ColumnMapping::Name).unwrap().fields;
    assert_eq!(physical(&fields), physical(&mapped.state.schema.fields));
    assert_eq!(altered.parameters[1], ("newColumnPath".to_owned(), "\"p p\"".to_owned()));
    let altered = alter(&mapped, renamed("s", "t")).unwrap().unwrap();
    let configuration = altered.configuration.metadata.unwrap().configuration;
    assert_eq!(configuration["delta.dataSkippingStatsColumns"], "id,t.x,c");
    let altered = alter(&mapped, dropped(&["s.x", "C"])).unwrap().unwrap();
    assert_eq!(altered.parameters[0].1, r#""[\"s.x\",\"c\"]""#);
    let metadata = altered.configuration.metadata.unwrap();
    assert_eq!(metadata.configuration["delta.dataSkippingStatsColumns"], "id");
    let fields = parse_schema(&metadata.schema_string, ColumnMapping::Name).unwrap().fields;
    assert_eq!(DataType::Struct(fields).simple_string(), "struct<id:bigint,s:struct<y:string>,l:array<int>,p:string>");
}

#[test]
fn columns_that_something_rests_on_stay() {
    let mapped = table(&[MAPPED], false);
    assert_eq!(class(&mapped, dropped(&["p"])), "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN");
    assert_eq!(class(&mapped, dropped(&["id", "s", "l", "c"])), "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA");
    assert_eq!(class(&mapped, dropped(&["s.x", "s.y"])), "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA");
    assert_eq!(class(&mapped, dropped(&["l.element"])), "DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE");
    let clustered = table(&[MAPPED], true);
    assert_eq!(class(&clustered, dropped(&["c"])), "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN");
    assert!(alter(&clustered, renamed("c", "d")).unwrap().is_some());
    let mut constrained = mapped.clone();
    constrained.log.metadata.configuration.insert("delta.constraints.k".into(), "s . x > 0".into());
    for change in [dropped(&["s"]), renamed("s.x", "z"), renamed("s", "z")] {
        assert_eq!(class(&constrained, change), "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE");
    }
    assert!(alter(&constrained, renamed("s.y", "z")).unwrap().is_some());
    let missing = TableChange::DropColumns { paths: vec![path("nope")], if_exists: true };
    assert!(alter(&mapped, missing).unwrap().is_none());
}

#[test]
fn keys_are_not_moved_out_of_the_statistics() {
    let clustered = table(&[("delta.dataSkippingNumIndexedCols", "6")], true);
    let wide = added("n", DataType::Long, Some(Position::First));
    assert_eq!(class(&clustered, wide), "DELTA_CLUSTERING_COLUMN_MISSING_STATS");
    assert!(alter(&clustered, added("n", DataType::Long, None)).unwrap().is_some());
    let first = alter(&clustered, changed("c", |c| c.position = Some(Position::First)));
    assert!(schema(first).starts_with("struct<c:int,id:bigint,"));
}

#[test]
fn one_thing_of_a_column_changes_and_the_rest_stays() {
    let plain = table(&[], false);
    let commented = alter(&plain, changed("C", |c| c.comment = Some("it's".into()))).unwrap().unwrap();
    assert_eq!(commented.operation, "CHANGE COLUMN");
    let history = r#"{\"name\":\"c\",\"type\":\"integer\",\"nullable\":true,\"metadata\":{\"comment\":\"it's\"}}"#;
    assert_eq!(commented.parameters, [("column".to_owned(), format!("\"{history}\""))]);
    let moved = schema(alter(&plain, changed("c", |c| c.position = Some(Position::After("id".into())))));
    assert!(moved.starts_with("struct<id:bigint,c:int,s:"), "{moved}");
    let moved = schema(alter(&plain, changed("id", |c| c.position = Some(Position::After("p".into())))));
    assert!(moved.ends_with(",p:string,id:bigint,c:int>"), "{moved}");
    let moved = schema(alter(&plain, changed("s.x", |c| c.position = Some(Position::After("y".into())))));
    assert!(moved.contains("s:struct<y:string,x:int>"), "{moved}");
    let same = |data_type| changed("c", |c| c.data_type = Some(data_type));
    assert!(alter(&plain, same(DataType::Integer)).unwrap().is_none());
    for (change, expected) in [
        (changed("c", |c| c.position = Some(Position::After("nope".into()))), "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        (changed("s.x", |c| c.position = Some(Position::After("id".into()))), "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        (changed("nope", |c| c.comment = Some("x".into())), "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        (changed("l.element", |c| c.comment = Some("x".into())), "DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY"),
        (changed("c", |c| c.nullable = Some(false)), "_LEGACY_ERROR_TEMP_2330"),
        (same(DataType::Long), "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
        (same(DataType::String), "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
        (same(DataType::Byte), "NOT_SUPPORTED_CHANGE_COLUMN"),
        (changed("s", |c| c.data_type = Some(DataType::Struct(vec![]))), "CANNOT_UPDATE_FIELD.STRUCT_TYPE"),
        (changed("l", |c| c.data_type = Some(DataType::Long)), "CANNOT_UPDATE_FIELD.ARRAY_TYPE"),
    ] {
        assert_eq!(class(&plain, change.clone()), expected, "{change:?}");
    }
}

#[test]
fn types_grow_and_say_so() {
    let wide = table(&[("delta.enableTypeWidening", "true")], false);
    let to = |at: &str, data_type: DataType| changed(at, |c| c.data_type = Some(data_type));
    let changes = |altered: Altered, column: &str| {
        let metadata = altered.configuration.metadata.unwrap();
        let fields = parse_schema(&metadata.schema_string, ColumnMapping::None).unwrap();
        fields.field(column).unwrap().metadata["delta.typeChanges"].clone()
    };
    let altered = alter(&wide, to("c", DataType::Long)).unwrap().unwrap();
    assert!(!altered.parameters[0].1.contains("typeChanges"), "{}", altered.parameters[0].1);
    assert_eq!(changes(altered, "c"), r#"[{"toType":"long","fromType":"integer"}]"#);
    let altered = alter(&wide, to("l.element", DataType::Long)).unwrap().unwrap();
    assert_eq!(changes(altered, "l"), r#"[{"toType":"long","fromType":"integer","fieldPath":"element"}]"#);
    let decimal = |precision, scale| DataType::Decimal { precision, scale };
    for (at, data_type) in
        [("c", decimal(12, 2)), ("id", decimal(20, 0)), ("c", DataType::Double), ("s.x", DataType::Long)]
    {
        assert!(alter(&wide, to(at, data_type.clone())).unwrap().is_some(), "{data_type:?}");
    }
    for (at, data_type) in
        [("c", decimal(11, 2)), ("id", decimal(19, 0)), ("id", DataType::Double), ("c", DataType::Float)]
    {
        assert_eq!(class(&wide, to(at, data_type.clone())), "NOT_SUPPORTED_CHANGE_COLUMN", "{data_type:?}");
    }
}

#[test]
fn defaults_need_their_feature_and_a_value_that_fits() {
    let set = |text: &str, value: Option<Expr>| {
        changed("c", |c| c.default = Some(Some(ColumnDefault { text: text.into(), value })))
    };
    let five = || Some(Expr::Literal(Scalar::Long(5)));
    let plain = table(&[], false);
    assert_eq!(class(&plain, set("5", five())), "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED");
    let able = table(&[("delta.feature.allowColumnDefaults", "supported")], false);
    let altered = alter(&able, set("2 + 3", five())).unwrap().unwrap();
    assert!(altered.configuration.metadata.unwrap().schema_string.contains(r#""CURRENT_DEFAULT":"2 + 3""#));
    let text = Some(Expr::Literal(Scalar::String("abc".into())));
    assert_eq!(class(&able, set("'abc'", text)), "INVALID_DEFAULT_VALUE.DATA_TYPE");
    assert_eq!(class(&able, set("f(1)", None)), "UNSUPPORTED_FEATURE");
}

#[test]
fn constraints_are_added_to_empty_tables_and_dropped() {
    let condition = |column: &str| {
        let (left, right) = (Box::new(Expr::Column(path(column))), Box::new(Expr::Literal(Scalar::Long(0))));
        Expr::Binary { op: lakesmith_core::predicate::BinaryOp::Gt, left, right }
    };
    let add = |name: &str, condition: Option<Expr>| TableChange::AddConstraint {
        name: name.into(),
        check: "id > 0".into(),
        condition,
    };
    let plain = table(&[], false);
    let altered = alter(&plain, add("Pos", Some(condition("id")))).unwrap().unwrap();
    assert_eq!(altered.configuration.metadata.as_ref().unwrap().configuration["delta.constraints.pos"], "id > 0");
    assert_eq!(altered.configuration.files, FileUse::Read);
    let protocol = altered.configuration.protocol.unwrap();
    assert!(crate::features::expand(&protocol).contains(&"checkConstraints".to_owned()));
    assert_eq!(class(&plain, add("k", Some(condition("nope")))), "UNRESOLVED_COLUMN.WITH_SUGGESTION");
    assert_eq!(class(&plain, add("k", Some(condition("s.x")))), "UNSUPPORTED_FEATURE");
    assert_eq!(class(&plain, add("k", None)), "UNSUPPORTED_FEATURE");
    assert_eq!(class(&plain, add("k", Some(Expr::Column(path("id"))))), "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT");
    let judged = |change| alter_table(&plain, &change, true, &FixedWorld::new(1));
    assert!(judged(add("k", Some(condition("s.x")))).unwrap().is_some());
    assert!(judged(add("k", None)).is_err() && judged(add("k", Some(condition("nope")))).is_err());
    let mut there = plain.clone();
    there.log.metadata.configuration.insert("delta.constraints.pos".into(), "id > 0".into());
    assert_eq!(class(&there, add("POS", Some(condition("id")))), "DELTA_CONSTRAINT_ALREADY_EXISTS");
    let drop = |name: &str, if_exists| TableChange::DropConstraint { name: name.into(), if_exists };
    let altered = alter(&there, drop("Pos", false)).unwrap().unwrap();
    assert!(altered.configuration.metadata.unwrap().configuration.is_empty());
    assert_eq!(altered.parameters[2], ("existed".to_owned(), "\"true\"".to_owned()));
    assert_eq!(class(&plain, drop("nope", false)), "DELTA_CONSTRAINT_DOES_NOT_EXIST");
    let altered = alter(&plain, drop("nope", true)).unwrap().unwrap();
    assert_eq!(altered.parameters[1], ("existed".to_owned(), "\"false\"".to_owned()));
}
