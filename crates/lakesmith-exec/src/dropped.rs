//! Does a file hold a column that the table no longer has?

use std::collections::BTreeSet;

use futures::{StreamExt as _, TryStreamExt as _};
use lakesmith_core::table::{DataType, Field, FileId, InputFile, ReadSpec};
use lakesmith_core::{ErrorKind, Result};
use lakesmith_storage::{Cancel, Location, Progress, Store};
use parquet::schema::types::Type;

use crate::adapt::same_name;
use crate::footer;

const TAIL_BYTES: u64 = 64 << 10;
/// Footers read at once.
const CONCURRENT_FOOTERS: usize = 32;

/// The files of `inputs` for which [`dropped_column_in_footer`] is true; progress counts the bytes of files looked at. The calling thread must
/// not be one of the runtime's.
///
/// # Errors
/// As [`dropped_column_in_footer`]; Cancelled.
pub fn files_with_dropped_columns(
    store: &Store,
    inputs: &[InputFile],
    spec: &ReadSpec,
    hidden: &[String],
    cancel: &Cancel,
    progress: &dyn Progress,
    runtime: &tokio::runtime::Handle,
) -> Result<BTreeSet<FileId>> {
    let look = async |input: &InputFile| -> Result<Option<FileId>> {
        cancel.check()?;
        let location = Location::from_canonical(&input.location)?;
        let dropped = match dropped_column_in_footer(store, &location, input.size, spec, hidden).await {
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                // It could not be rewritten either.
                tracing::warn!(%error, "a file is left as it is");
                false
            }
            other => other?,
        };
        progress.advance(input.size, 0);
        Ok(dropped.then_some(input.id))
    };
    runtime.block_on(
        futures::stream::iter(inputs)
            .map(look)
            .buffer_unordered(CONCURRENT_FOOTERS)
            .try_filter_map(|found| std::future::ready(Ok(found)))
            .try_collect(),
    )
}

/// True if the file's footer names a column, at any depth, that `spec` lacks: by physical name without regard to case.
/// `hidden` are top-level names that never count: row-tracking columns and partition columns written into files.
///
/// # Errors
/// NotFound, Corrupt, those of the storage.
/// # Source
/// Delta Spark `OptimizeTableCommand.scala`, `DeltaReorgTableHelper.fileHasDifferentTypes` and its sibling for dropped columns.
pub async fn dropped_column_in_footer(
    store: &Store,
    location: &Location,
    size: u64,
    spec: &ReadSpec,
    hidden: &[String],
) -> Result<bool> {
    let footer = footer::read(store, location, size, TAIL_BYTES).await?;
    let root = footer.metadata.file_metadata().schema();
    let visible = |t: &Type| !hidden.iter().any(|h| same_name(h, t.name()));
    let fields: Vec<&Field> = spec.schema.fields.iter().collect();
    Ok(root.get_fields().iter().filter(|t| visible(t)).any(|t| lacks(&fields, t)))
}

fn lacks(fields: &[&Field], stored: &Type) -> bool {
    match fields.iter().find(|f| same_name(&f.physical, stored.name())) {
        Some(field) => has_dropped(&field.data_type, stored),
        None => true,
    }
}

fn has_dropped(data_type: &DataType, stored: &Type) -> bool {
    if stored.is_primitive() {
        return false;
    }
    match data_type {
        DataType::Struct(children) => {
            let children: Vec<&Field> = children.iter().collect();
            stored.get_fields().iter().any(|t| lacks(&children, t))
        }
        DataType::List(element) => list_element(stored).is_some_and(|t| has_dropped(&element.data_type, t)),
        DataType::Map(key, value) => match stored.get_fields() {
            [entries] if !entries.is_primitive() && entries.get_fields().len() == 2 => {
                let parts = entries.get_fields();
                has_dropped(&key.data_type, &parts[0]) || has_dropped(&value.data_type, &parts[1])
            }
            _ => false,
        },
        _ => false,
    }
}

/// The element of a list in any of its layouts.
///
/// # Source
/// Parquet LogicalTypes.md, "Backward-compatibility rules" of lists.
fn list_element(list: &Type) -> Option<&Type> {
    let [repeated] = list.get_fields() else { return None };
    if repeated.is_primitive() {
        return None;
    }
    let is_element = repeated.get_fields().len() != 1
        || repeated.name() == "array"
        || repeated.name() == format!("{}_tuple", list.name());
    if is_element { Some(repeated) } else { repeated.get_fields().first().map(AsRef::as_ref) }
}
