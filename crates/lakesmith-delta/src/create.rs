//! CREATE TABLE: the first version of a table, without files; REPLACE TABLE: a version that begins it anew.
//!
//! # Source
//! Delta Spark `CreateDeltaTableCommand`, `OptimisticTransaction.updateMetadataForNewTable`.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use lakesmith_core::op::CreateTable;
use lakesmith_core::plan::keys::reference_name;
use lakesmith_core::table::{DataType, Field, FileTable, NewFile, OperationInfo, Schema};
use lakesmith_core::{Error, Result};
use lakesmith_storage::{Location, Store, World};
use serde_json::{Map, json};

use crate::actions::{Action, Add, CommitInfo, Format, Metadata, Protocol};
use crate::alter::{defaults_not_enabled, set_default};
use crate::assemble::{domain, lines, new_add, parameters};
use crate::clustering::{CLUSTERING_FEATURES, domain as clustering_domain, keys, schema_spelling};
use crate::commit::CommitContext;
use crate::features::{WRITER_VERSION_FEATURES, check_features, with_features};
use crate::log_cleanup::PROTECTED_BEFORE;
use crate::log_state::DeltaTable;
use crate::mapping_upgrade::with_mapping;
use crate::properties::{Change, FileUse, MAX_COLUMN_ID, NewConfiguration, clock_goes_on};
use crate::puts::{Holder, Puts, commit_name};
use crate::schema::find_column;
use crate::schema_text::{schema_string, tree};
use crate::tip::{IN_COMMIT_TIMESTAMPS, ROW_TRACKING_DOMAIN, Tip, is_true};
use crate::version_checksum;
use crate::version_state::VersionState;
use crate::write_spec::{COMMIT_VERSION_COLUMN, ROW_ID_COLUMN};

/// Characters that Spark keeps out of the names of columns in files.
const FORBIDDEN: &[char] = &[' ', ',', ';', '{', '}', '(', ')', '\n', '\t', '='];

/// What a new table is to be: metadata, protocol and domains, checked as Delta checks them.
///
/// # Errors
/// Usage, mostly with Spark's classes, for columns, keys and properties that can't be; Unsupported for a property that we
/// can't begin a table with.
pub fn new_table(root: &Location, options: &CreateTable, world: &dyn World) -> Result<NewConfiguration> {
    begin(root, options, world, None)
}

/// What a table is to be after REPLACE TABLE: as a new one, with the features that it had. Its files go.
///
/// # Errors
/// As [`new_table`]; Usage (`DELTA_CANNOT_MODIFY_APPEND_ONLY`) if the table takes appends only.
pub fn replace_table(table: &DeltaTable, options: &CreateTable, world: &dyn World) -> Result<NewConfiguration> {
    let state = &table.state;
    if state.property_is_true("delta.appendOnly") && !state.files.is_empty() {
        return Err(Error::usage(
            "This table is configured to only allow appends. If you would like to permit updates or deletes, use 'ALTER \
             TABLE … SET TBLPROPERTIES (delta.appendOnly=false)'.",
        )
        .class("DELTA_CANNOT_MODIFY_APPEND_ONLY")
        .with("path", &state.location));
    }
    if !options.partition_by.is_empty() && state.has_feature("clustering") {
        return Err(Error::usage("Replacing a clustered Delta table with a partitioned table is not allowed.")
            .class("DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE")
            .with("path", &state.location));
    }
    let stops_clock = |(key, value): (&String, &String)| {
        key.eq_ignore_ascii_case(IN_COMMIT_TIMESTAMPS) && !value.eq_ignore_ascii_case("true")
    };
    if state.property_is_true(IN_COMMIT_TIMESTAMPS) && options.properties.iter().any(stops_clock) {
        return Err(clock_goes_on().with("path", &state.location));
    }
    let mut new = begin(&Location::from_canonical(&state.location)?, options, world, Some(table))?;
    if let Some(metadata) = &mut new.metadata {
        // The times of earlier commits stay those that the table's own clock gave them, and a log of which a part is
        // protected stays so: both are the log's, not that of what the table was.
        let of_log = |key: &&String| {
            key.to_lowercase().contains("incommittimestamp") || key.eq_ignore_ascii_case(PROTECTED_BEFORE)
        };
        let kept = state.properties.iter().filter(|(key, _)| of_log(key));
        for (key, value) in kept {
            metadata.configuration.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    if new.protocol.as_ref() == Some(&table.log.protocol) {
        new.protocol = None;
    }
    if new.domains.is_empty() && state.clustering_columns.as_ref().is_some_and(|keys| !keys.is_empty()) {
        new.domains = clustering_domain(&[]);
    }
    new.files = FileUse::Removed;
    Ok(new)
}

/// `from`: the table that was there.
fn begin(
    root: &Location,
    options: &CreateTable,
    world: &dyn World,
    from: Option<&DeltaTable>,
) -> Result<NewConfiguration> {
    let at_root = |e: Error| e.with("path", root);
    check_columns(&options.schema.fields, &mut Vec::new()).map_err(at_root)?;
    let fields = with_defaults(options, from, world.now_ms()).map_err(at_root)?;
    let mut metadata = Metadata {
        id: world.new_uuid().to_string(),
        name: None,
        description: options.comment.clone(),
        format: Format { provider: "parquet".into(), options: BTreeMap::new(), unknown: Map::new() },
        schema_string: schema_string(&fields),
        partition_columns: partition_columns(&options.schema, &options.partition_by).map_err(at_root)?,
        configuration: BTreeMap::new(),
        created_time: Some(world.now_ms()),
        unknown: Map::new(),
    };
    let first = || Protocol {
        min_reader_version: 1,
        min_writer_version: 2,
        reader_features: None,
        writer_features: None,
        unknown: Map::new(),
    };
    let mut protocol = from.map_or_else(first, |table| table.log.protocol.clone());
    let plain = table(root, &metadata, &first())?;
    let mut change = Change::new(&plain.state, true);
    for (key, value) in &options.properties {
        change.set(key, value, options.allow_arbitrary).map_err(at_root)?;
    }
    change.check_retention()?;
    // Below the versions that list features each number stands for some; at those the list alone counts.
    let (reader, writer) = change.versions;
    if from.is_some_and(|t| writer > t.state.min_writer_version || reader > t.state.min_reader_version) {
        return Err(at_root(Error::unsupported(
            "the protocol of a table that is replaced can't be raised by number; name features instead, as in \
             delta.feature.deletionVectors = supported",
        )));
    }
    if from.is_none() && (3..WRITER_VERSION_FEATURES).contains(&writer) {
        protocol.min_writer_version = writer;
        protocol.min_reader_version = if writer >= 5 { reader.clamp(1, 2) } else { 1 };
    }
    let mut features: BTreeSet<String> = change.features;
    features.extend(features_of_types(&options.schema.fields).into_iter().map(str::to_owned));
    metadata.configuration = change.properties;
    metadata.description = options.comment.clone().or(change.description);
    if change.maps_columns {
        let mut name = |_: &str| format!("col-{}", world.new_uuid());
        // Ids are not given twice over a table's life.
        let used = from.and_then(|t| t.state.property(MAX_COLUMN_ID)).and_then(|v| v.trim().parse().ok()).unwrap_or(0);
        let (text, max_id) = with_mapping(&metadata.schema_string, used, &mut name).map_err(at_root)?;
        metadata.schema_string = text;
        metadata.configuration.insert(MAX_COLUMN_ID.to_owned(), max_id.to_string());
    } else {
        check_names(&options.schema.fields).map_err(at_root)?;
    }
    if is_true(&metadata, "delta.enableRowTracking") {
        for (key, prefix) in [(ROW_ID_COLUMN, "_row-id-col-"), (COMMIT_VERSION_COLUMN, "_row-commit-version-col-")] {
            metadata.configuration.insert(key.to_owned(), format!("{prefix}{}", world.new_uuid()));
        }
    }
    let mut domains = BTreeMap::new();
    if !options.cluster_by.is_empty() {
        if !options.partition_by.is_empty() {
            return Err(at_root(
                Error::usage("CLUSTER BY and PARTITIONED BY can't be used together; leave one of them out")
                    .class("DELTA_CLUSTER_BY_WITH_PARTITIONED_BY"),
            ));
        }
        let unknown = |column: &&Vec<String>| find_column(&options.schema, column).is_none();
        if let Some(column) = options.cluster_by.iter().find(unknown) {
            let name = column.iter().map(|part| format!("`{part}`")).collect::<Vec<_>>().join(".");
            return Err(at_root(
                Error::usage(format!(
                    "The feature is not supported: Invalid partitioning: {name} is missing or is in a map or array."
                ))
                .class("UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED")
                .with("column", name),
            ));
        }
        let mapped = table(root, &metadata, &protocol)?;
        domains = clustering_domain(&keys(&mapped, &options.cluster_by).map_err(at_root)?);
        features.extend(CLUSTERING_FEATURES.map(str::to_owned));
    }
    protocol = with_features(&protocol, &features.iter().map(String::as_str).collect::<Vec<_>>());
    check_features(&table(root, &metadata, &protocol)?)?;
    Ok(NewConfiguration { metadata: Some(metadata), protocol: Some(protocol), domains, files: FileUse::Untouched })
}

/// The columns with their default values, which need a feature of their own.
fn with_defaults(options: &CreateTable, from: Option<&DeltaTable>, now_ms: i64) -> Result<Vec<Field>> {
    let mut fields = options.schema.fields.clone();
    const FEATURE: &str = "allowColumnDefaults";
    let is_asked = |key: &String| key.eq_ignore_ascii_case(&format!("delta.feature.{FEATURE}"));
    let allowed = from.is_some_and(|t| t.state.has_feature(FEATURE)) || options.properties.keys().any(is_asked);
    for (column, default) in &options.defaults {
        if !allowed {
            return Err(defaults_not_enabled("CREATE TABLE"));
        }
        if let Some(field) = fields.iter_mut().find(|f| f.name == *column) {
            set_default(field, default, now_ms).map_err(|e| e.with("column", column))?;
        }
    }
    Ok(fields)
}

/// Checks that a table is what CREATE TABLE says of the one at its location.
///
/// # Errors
/// Usage, with Spark's classes, for other columns, partitions, clustering keys or properties.
pub fn check_same_table(table: &DeltaTable, options: &CreateTable) -> Result<()> {
    let state = &table.state;
    let differs = |class: &'static str, what: &str, specified: String, existing: String| {
        Err(Error::usage(format!(
            "The specified {what} does not match the existing {what} at {}.\n\n== Specified ==\n{specified}\n\n== Existing \
             ==\n{existing}",
            state.location
        ))
        .class(class)
        .with("path", &state.location))
    };
    if !options.schema.fields.is_empty() {
        if !same_columns(&options.schema.fields, &state.schema.fields) {
            let (specified, existing) = (tree(&options.schema.fields), tree(&state.schema.fields));
            return differs("DELTA_CREATE_TABLE_SCHEME_MISMATCH", "schema", specified, existing);
        }
        let partitions = partition_columns(&options.schema, &options.partition_by)?;
        if partitions != state.partition_columns {
            let class = "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING";
            return differs(class, "partitioning", partitions.join(", "), state.partition_columns.join(", "));
        }
        let keys = schema_spelling(&state.schema, &options.cluster_by);
        let existing = state.clustering_columns.clone().unwrap_or_default();
        if keys != existing {
            let list = |keys: &[Vec<String>]| keys.iter().map(|k| reference_name(k)).collect::<Vec<_>>().join(", ");
            let class = "DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING";
            return differs(class, "clustering", list(&keys), list(&existing));
        }
    }
    if !options.properties.is_empty() && options.properties != state.properties {
        let list = |properties: &BTreeMap<String, String>| {
            properties.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join("\n")
        };
        let class = "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY";
        return differs(class, "properties", list(&options.properties), list(&state.properties));
    }
    Ok(())
}

/// Names, types and nullability; ids, comments and physical names aside.
fn same_columns(specified: &[Field], existing: &[Field]) -> bool {
    specified.len() == existing.len()
        && specified.iter().zip(existing).all(|(s, e)| s.name == e.name && same_field(s, e))
}

fn same_field(specified: &Field, existing: &Field) -> bool {
    specified.nullable == existing.nullable
        && match (&specified.data_type, &existing.data_type) {
            (DataType::Struct(s), DataType::Struct(e)) => same_columns(s, e),
            (DataType::List(s), DataType::List(e)) => same_field(s, e),
            (DataType::Map(sk, sv), DataType::Map(ek, ev)) => {
                same_field(&Field { nullable: ek.nullable, ..(**sk).clone() }, ek) && same_field(sv, ev)
            }
            (s, e) => s == e,
        }
}

/// Checks that no other files lie where a table is to be made, nor what a log without commits left behind: a checksum or a
/// checkpoint of another table would be taken for the new one's.
///
/// # Errors
/// Usage if there are and no first version, `Unavailable` from the storage.
pub async fn check_room(store: &Store, root: &Location) -> Result<()> {
    let (mut listed, mut in_the_way) = (store.list_stream(root), None);
    while let Some(info) = listed.next().await {
        let info = info?;
        let inside = info.location.relative_to(root).unwrap_or_default();
        match inside.strip_prefix("_delta_log/") {
            // Another writer was faster; the put finds that out.
            Some(name) if name == commit_name(0) => return Ok(()),
            // What another writer begins, or what a killed one left.
            Some(name) if is_begun(name) => {}
            Some(_) => in_the_way = Some(inside.to_owned()),
            // A data file in which a write begins, or which a killed one left.
            None if is_unfinished(inside) => {}
            None => {
                in_the_way = Some(inside.to_owned());
                break;
            }
        }
    }
    match in_the_way {
        // A table that is made while its folder is listed may show its files and not its first version.
        Some(inside) if !store.exists(&root.join(&format!("_delta_log/{}", commit_name(0)))).await? => {
            Err(no_room(root, &inside))
        }
        _ => Ok(()),
    }
}

/// True for the hidden file that a write of ours begins in and that gets its name when it is whole.
fn is_unfinished(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with('.') && name.ends_with(".lakesmith-tmp")
}

/// True for the hidden file of a log in which a write begins: no reader looks at it, nor at its checksum.
fn is_begun(name: &str) -> bool {
    let Some(rest) = name.strip_prefix('.') else { return false };
    // The checksum that Hadoop keeps beside a commit would be compared with the new one.
    let is_checksum = rest.ends_with(".crc") && rest.starts_with(|c: char| c.is_ascii_digit());
    !is_checksum && !rest.contains('/')
}

fn no_room(root: &Location, inside: &str) -> Error {
    Error::usage(format!(
        "Cannot create table ('delta.`{root}`'). The associated location ('{root}') is not empty and also not a Delta table."
    ))
    .class("DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION")
    .with("path", root)
    .with("file", inside)
}

/// Makes the first version; false if there is a table already.
///
/// # Errors
/// `Unavailable` from the storage, `Cancelled`.
pub async fn create(
    store: &Store,
    root: &Location,
    new: &NewConfiguration,
    rows: &FirstRows<'_>,
    operation: &OperationInfo,
    context: &CommitContext<'_>,
) -> Result<bool> {
    let (Some(metadata), Some(protocol)) = (&new.metadata, &new.protocol) else {
        return Err(Error::internal("a new table has neither metadata nor protocol").with("path", root));
    };
    let transaction_id = context.world.new_uuid().to_string();
    let now_ms = context.world.now_ms();
    let table = becoming(root, new, None)?;
    let tip = Tip::of(&table);
    let mut mark = tip.row_id_mark;
    let mut files = Vec::with_capacity(rows.files.len());
    for file in rows.files {
        let add = new_add(&table, &tip, file, None, 0, &mut mark)?;
        files.push(Action::Add(Box::new(Add { data_change: true, ..add })));
    }
    let info = CommitInfo {
        in_commit_timestamp: is_true(metadata, IN_COMMIT_TIMESTAMPS).then_some(now_ms),
        timestamp: Some(now_ms),
        operation: Some(operation.name.clone()),
        operation_parameters: Some(parameters(operation)?),
        isolation_level: Some("Serializable".into()),
        is_blind_append: Some(true),
        operation_metrics: Some(rows.metrics.iter().map(|(k, v)| (k.clone(), v.as_str().into())).collect()),
        user_metadata: operation.user_metadata.clone(),
        engine_info: Some(context.engine_info.clone()),
        txn_id: Some(transaction_id.clone()),
        ..CommitInfo::default()
    };
    let mut actions =
        vec![Action::CommitInfo(info), Action::Metadata(metadata.clone()), Action::Protocol(protocol.clone())];
    actions.extend(new.domains.iter().map(|(name, text)| domain(name, text.clone())));
    if mark != tip.row_id_mark {
        actions.push(domain(ROW_TRACKING_DOMAIN, json!({ "rowIdHighWaterMark": mark }).to_string()));
    }
    actions.append(&mut files);
    let mut puts = Puts::new(store, root, context, &transaction_id, None);
    let commit = lines(&actions)?;
    if let Holder::Another = puts.put(0, &commit).await.map_err(|e| e.with("table", root))? {
        return Ok(false);
    }
    if let Err(error) = version_checksum::write_first(store, root, metadata, protocol, &commit).await {
        tracing::debug!(%error, "the new table stands without a checksum of its version");
    }
    Ok(true)
}

/// The table that `new` makes: a new one, or `from` without its files.
///
/// # Errors
/// Corrupt if the metadata contradicts itself.
pub fn becoming(root: &Location, new: &NewConfiguration, from: Option<&DeltaTable>) -> Result<DeltaTable> {
    let metadata = new.metadata.as_ref().or(from.map(|t| &t.log.metadata));
    let protocol = new.protocol.as_ref().or(from.map(|t| &t.log.protocol));
    match metadata.zip(protocol) {
        Some((metadata, protocol)) => table(root, metadata, protocol),
        None => Err(Error::internal("a new table has neither metadata nor protocol").with("path", root)),
    }
}

/// Rows that a new table begins with.
#[derive(Debug, Clone, Copy)]
pub struct FirstRows<'a> {
    /// Their files, written for what [`becoming`] says.
    pub files: &'a [NewFile],
    /// Counters for the history.
    pub metrics: &'a BTreeMap<String, String>,
}

/// The table as its first version has it.
fn table(root: &Location, metadata: &Metadata, protocol: &Protocol) -> Result<DeltaTable> {
    let state = VersionState {
        version: 0,
        protocol: protocol.clone(),
        metadata: metadata.clone(),
        domains: BTreeMap::new(),
        commit_timestamp_ms: 0,
        in_commit_timestamps: false,
        checkpoint_version: None,
        empty_commit: None,
        file: None,
        view: Default::default(),
    };
    let schema = state.schema()?;
    state.into_table(root, schema, FileTable::default())
}

pub(crate) fn check_columns(fields: &[Field], path: &mut Vec<String>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for field in fields {
        path.push(field.name.clone());
        if !seen.insert(field.name.to_lowercase()) {
            return Err(Error::usage(format!(
                "The column `{}` already exists. Choose another name or rename the existing column.",
                path.join("`.`").to_lowercase()
            ))
            .class("COLUMN_ALREADY_EXISTS")
            .with("column", path.join(".")));
        }
        check_inner(&field.data_type, path)?;
        path.pop();
    }
    Ok(())
}

fn check_inner(data_type: &DataType, path: &mut Vec<String>) -> Result<()> {
    match data_type {
        DataType::Struct(inner) => check_columns(inner, path),
        DataType::List(element) => check_inner(&element.data_type, path),
        DataType::Map(key, value) => {
            check_inner(&key.data_type, path)?;
            check_inner(&value.data_type, path)
        }
        _ => Ok(()),
    }
}

/// Files hold these names, unless columns are mapped.
pub(crate) fn check_names(fields: &[Field]) -> Result<()> {
    let mut names = Vec::new();
    collect_names(fields, &mut names);
    let wrong: Vec<&str> = names.into_iter().filter(|name| name.contains(FORBIDDEN)).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Error::usage(format!(
        "Found invalid character(s) among ' ,;{{}}()\\n\\t=' in the column names of your schema.\nInvalid column names: \
         {}.\nPlease use other characters and try again.\nAlternatively, enable Column Mapping to keep using these \
         characters.",
        wrong.join(", ")
    ))
    .class("DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES")
    .with("columns", wrong.join(", ")))
}

fn collect_names<'a>(fields: &'a [Field], names: &mut Vec<&'a str>) {
    for field in fields {
        names.push(&field.name);
        collect_inner(&field.data_type, names);
    }
}

fn collect_inner<'a>(data_type: &'a DataType, names: &mut Vec<&'a str>) {
    match data_type {
        DataType::Struct(inner) => collect_names(inner, names),
        DataType::List(element) => collect_inner(&element.data_type, names),
        DataType::Map(key, value) => {
            collect_inner(&key.data_type, names);
            collect_inner(&value.data_type, names);
        }
        _ => {}
    }
}

/// Features without which a column of the type may not be there.
pub(crate) fn features_of_types(fields: &[Field]) -> BTreeSet<&'static str> {
    fn walk(data_type: &DataType, found: &mut BTreeSet<&'static str>) {
        match data_type {
            DataType::TimestampNtz => {
                found.insert("timestampNtz");
            }
            DataType::Variant => {
                found.insert("variantType");
            }
            DataType::Struct(inner) => inner.iter().for_each(|f| walk(&f.data_type, found)),
            DataType::List(element) => walk(&element.data_type, found),
            DataType::Map(key, value) => {
                walk(&key.data_type, found);
                walk(&value.data_type, found);
            }
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    fields.iter().for_each(|f| walk(&f.data_type, &mut found));
    found
}

/// The partition columns in the schema's spelling.
fn partition_columns(schema: &Schema, names: &[String]) -> Result<Vec<String>> {
    let mut columns: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let field = schema.field(name).ok_or_else(|| {
            Error::usage(format!("Partition column {name} not found in schema {}", tree(&schema.fields)))
                .class("DELTA_INVALID_PARTITION_COLUMN")
                .with("column", name)
        })?;
        if columns.contains(&field.name) {
            return Err(Error::usage(format!("the partition column {} is named twice", field.name))
                .class("DELTA_DUPLICATE_COLUMNS_FOUND")
                .with("column", name));
        }
        let nested = matches!(
            field.data_type,
            DataType::Struct(_) | DataType::List(_) | DataType::Map(..) | DataType::Variant | DataType::Null
        );
        if nested {
            return Err(Error::usage(format!(
                "a column of type {} can't be a partition column",
                field.data_type.simple_string()
            ))
            .class("INVALID_PARTITION_COLUMN_DATA_TYPE")
            .with("column", name));
        }
        columns.push(field.name.clone());
    }
    if !columns.is_empty() && columns.len() == schema.fields.len() {
        return Err(
            Error::usage("Cannot use all columns for partition columns.").class("ALL_PARTITION_COLUMNS_NOT_ALLOWED")
        );
    }
    Ok(columns)
}
