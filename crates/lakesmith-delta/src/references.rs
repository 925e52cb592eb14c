//! Everything that the log of a table names: live files, files kept for time travel, files removed before the retention,
//! and the deletion vectors of all of them.
//!
//! # Source
//! Delta PROTOCOL.md, "Add File and Remove File" and "Deletion Vectors"; Delta Spark `VacuumCommand.getValidRelativePaths`.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array, StringArray, StructArray};
use arrow::datatypes::Int64Type;
use delta_kernel::Engine;
use delta_kernel::engine::arrow_data::EngineDataArrowExt as _;
use delta_kernel::schema::{DataType, SchemaRef, StructField, StructType};
use delta_kernel::snapshot::Snapshot;
use lakesmith_core::plan::sweep::{LoggedPath, NameRule, References, ReferencesBuilder, Retention, SweepRule};
use lakesmith_core::table::vector::VectorLocation;
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Location, Store};
use percent_encoding::percent_decode_str;

use crate::engine::{self, KERNEL_ROOT, translate};
use crate::log_state::DeltaTable;
use crate::vacuum_log::{Removed, covered_version, removes_since};
use crate::vector::checked_path;

const REMOVE: &str = "remove";

/// Collects the paths that a log names, with the table's root as their base.
pub(crate) struct Namer<'a> {
    root: &'a Location,
    builder: ReferencesBuilder,
}

/// What a version within the retention needs of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Live,
    Retained,
    Removed,
}

impl<'a> Namer<'a> {
    pub(crate) fn new(root: &'a Location) -> Self {
        Self { root, builder: ReferencesBuilder::default() }
    }

    /// A path as it stands in the log.
    ///
    /// # Errors
    /// `Corrupt` if it is no path.
    pub(crate) fn path(&mut self, stored: &str, need: Need) -> Result<()> {
        let location = match self.root.resolve(stored) {
            Ok(location) => location,
            // A storage that we don't know: the name is all there is.
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                let name = stored.rsplit('/').next().unwrap_or(stored);
                let name = percent_decode_str(name).decode_utf8_lossy();
                self.add(LoggedPath::Elsewhere { file_name: &name }, need);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        // Some writers don't encode names: then the text itself is the name.
        let as_stored = if stored.contains('%') { self.undecoded(stored) } else { None };
        self.location(&location, as_stored.as_deref(), Location::is_absolute(stored), need);
        Ok(())
    }

    /// A stored path below the root, read without decoding it.
    fn undecoded(&self, stored: &str) -> Option<String> {
        let below = if Location::is_absolute(stored) {
            let root = format!("/{}/", self.root.key());
            let at = stored.find(&root)?;
            &stored[at + root.len()..]
        } else {
            stored
        };
        let parts: Vec<&str> = below.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        Some(parts.join("/")).filter(|path| !path.is_empty())
    }

    fn location(&mut self, location: &Location, as_stored: Option<&str>, absolute: bool, need: Need) {
        match location.relative_to(self.root).filter(|path| !path.is_empty()) {
            Some(path) => self.add(LoggedPath::Below { path, as_stored, absolute }, need),
            None => self.add(LoggedPath::Elsewhere { file_name: location.file_name() }, need),
        }
    }

    /// A deletion vector as it stands in the log. Inline ones have no file.
    ///
    /// # Errors
    /// `Corrupt` if its name is no identifier, `Unsupported` for a kind that we don't know.
    pub(crate) fn vector(&mut self, storage_type: &str, path_or_inline: &str, need: Need) -> Result<()> {
        match storage_type {
            "i" => Ok(()),
            "p" => self.path(path_or_inline, need),
            "u" => {
                let path = checked_path(path_or_inline)?;
                self.add(LoggedPath::Below { path: &path, as_stored: None, absolute: false }, need);
                Ok(())
            }
            other => Err(Error::unsupported(format!("the deletion vector storage type '{other}' is not known"))
                .with("vector", path_or_inline)),
        }
    }

    fn add(&mut self, path: LoggedPath<'_>, need: Need) {
        match need {
            Need::Live => self.builder.live(path),
            Need::Retained => self.builder.retained(path),
            Need::Removed => self.builder.removed(path),
        }
    }

    pub(crate) fn live(&mut self, table: &DeltaTable) -> Result<()> {
        for file in table.state.files.iter() {
            self.path(file.path, Need::Live)?;
            let Some(deletes) = file.deletes else { continue };
            if let VectorLocation::File { location, .. } = &deletes.at {
                let absolute = deletes.storage_type == "p";
                self.location(&Location::from_canonical(location)?, None, absolute, Need::Live);
            }
        }
        Ok(())
    }

    pub(crate) fn complete(self) -> References {
        self.builder.complete()
    }
}

/// What the log of `table` names. `table` must have been loaded with its files; files that left it at or after
/// `cutoff_ms` are kept for time travel.
///
/// Checkpoints forget a removed file after the table's own retention. Where `cutoff_ms` reaches further back,
/// `beyond_checkpoints` reads the commits since then as well.
///
/// # Errors
/// `Corrupt` for a path or vector that can't be understood: nothing may be deleted then. `Unavailable` from the storage.
pub async fn references(
    store: &Store,
    root: &Location,
    table: &DeltaTable,
    cutoff_ms: i64,
    beyond_checkpoints: bool,
) -> Result<References> {
    let mut namer = Namer::new(root);
    if beyond_checkpoints {
        let covered = covered_version(store, root, table, cutoff_ms).await?;
        let from = covered.map_or(0, |version| version + 1);
        let mut each = |remove: &Removed| {
            namer.path(&remove.path, Need::Retained)?;
            match &remove.deletion_vector {
                Some(vector) => namer.vector(&vector.storage_type, &vector.path_or_inline_dv, Need::Retained),
                None => Ok(()),
            }
        };
        removes_since(store, root, from..=table.state.version, &mut each).await?;
    }
    namer.live(table)?;
    for tombstone in tombstones(store, root, table.state.version).await? {
        let need = if tombstone.deletion_timestamp_ms >= cutoff_ms { Need::Retained } else { Need::Removed };
        namer.path(&tombstone.path, need)?;
        if let Some((storage_type, path_or_inline)) = &tombstone.vector {
            namer.vector(storage_type, path_or_inline, need)?;
        }
    }
    Ok(namer.complete())
}

/// What a VACUUM of `table` may delete. `table` must have been loaded with its files; `beyond_checkpoints` as in
/// [`references`].
///
/// # Errors
/// As [`references`].
pub async fn sweep_rule(
    store: &Store,
    root: &Location,
    table: &DeltaTable,
    retention: Retention,
    beyond_checkpoints: bool,
) -> Result<SweepRule> {
    let references = references(store, root, table, retention.cutoff_ms(), beyond_checkpoints).await?;
    Ok(SweepRule::unreferenced(retention, references, names(table)))
}

/// The names below the table's root that no VACUUM looks at.
pub(crate) fn names(table: &DeltaTable) -> NameRule {
    let formats = table.state.property("delta.universalFormat.enabledFormats").unwrap_or_default();
    let is_iceberg_too = formats.split(',').any(|format| format.trim().eq_ignore_ascii_case("iceberg"));
    NameRule::new(&table.state.partition_columns, is_iceberg_too)
}

/// A `remove` of the log.
struct Tombstone {
    path: String,
    /// 0 if the log does not say.
    deletion_timestamp_ms: i64,
    vector: Option<(String, String)>,
}

/// Every `remove` that the newest checkpoint and the commits since hold. A path may come more than once.
async fn tombstones(store: &Store, root: &Location, version: u64) -> Result<Vec<Tombstone>> {
    let engine = engine::open(store, root)?;
    let root = root.clone();
    engine::blocking(move || read(engine.as_ref(), version).map_err(|e| e.with("table", &root))).await
}

fn read(engine: &dyn Engine, version: u64) -> Result<Vec<Tombstone>> {
    let at = Location::parse(KERNEL_ROOT)?;
    let failed = |e| translate(e, &at).with("version", version);
    let snapshot = Snapshot::builder_for(KERNEL_ROOT).at_version(version).build(engine).map_err(failed)?;
    let mut found = Vec::new();
    for batch in snapshot.log_segment().read_actions(engine, schema()).map_err(failed)? {
        let batch = batch.map_err(failed)?.actions.try_into_record_batch().map_err(failed)?;
        let Some(removes) = batch.column_by_name(REMOVE).and_then(|c| c.as_struct_opt()) else { continue };
        take(removes, &mut found)?;
    }
    Ok(found)
}

/// Only what a sweep wants: other columns are neither read nor parsed.
fn schema() -> SchemaRef {
    let vector = StructType::new_unchecked([
        StructField::nullable("storageType", DataType::STRING),
        StructField::nullable("pathOrInlineDv", DataType::STRING),
    ]);
    let remove = StructType::new_unchecked([
        StructField::nullable("path", DataType::STRING),
        StructField::nullable("deletionTimestamp", DataType::LONG),
        StructField::nullable("deletionVector", vector),
    ]);
    Arc::new(StructType::new_unchecked([StructField::nullable(REMOVE, remove)]))
}

fn take(removes: &StructArray, found: &mut Vec<Tombstone>) -> Result<()> {
    let missing = || Error::internal("the kernel's rows lack a column of the removed files");
    let text = |of: &StructArray, name: &str| -> Result<StringArray> {
        of.column_by_name(name).and_then(|c| c.as_string_opt::<i32>()).cloned().ok_or_else(missing)
    };
    let times: &Int64Array = removes
        .column_by_name("deletionTimestamp")
        .and_then(|c| c.as_primitive_opt::<Int64Type>())
        .ok_or_else(missing)?;
    let vectors = removes.column_by_name("deletionVector").and_then(|c| c.as_struct_opt()).ok_or_else(missing)?;
    let paths = text(removes, "path")?;
    let (kinds, names) = (text(vectors, "storageType")?, text(vectors, "pathOrInlineDv")?);
    for row in 0..removes.len() {
        if removes.is_null(row) || paths.is_null(row) {
            continue;
        }
        let has_vector = vectors.is_valid(row) && kinds.is_valid(row) && names.is_valid(row);
        found.push(Tombstone {
            path: paths.value(row).to_owned(),
            deletion_timestamp_ms: if times.is_null(row) { 0 } else { times.value(row) },
            vector: has_vector.then(|| (kinds.value(row).to_owned(), names.value(row).to_owned())),
        });
    }
    Ok(())
}
