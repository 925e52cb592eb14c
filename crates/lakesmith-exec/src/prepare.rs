//! What all outputs of a task share: their columns, and how they are written, as a look at the inputs suggests.

use std::sync::Arc;

use lakesmith_core::Result;
use lakesmith_core::table::{DataType, Field, RewriteTask};
use lakesmith_storage::Location;
use parquet::basic::LogicalType;
use parquet::schema::types::Type;

use crate::encoding::EncodingChoice;
use crate::footer;
use crate::output::OutputPlan;
use crate::rewrite::{TAIL_BYTES, TaskContext};
use crate::target::{Strings, Target};

/// Footers looked at to choose codec and dictionaries.
const SAMPLED_FOOTERS: usize = 16;

/// The columns of a task's outputs and the plan of their writer, which may hold `writer_bytes`.
///
/// # Errors
/// Unsupported for a column that no file can hold; those of reading footers.
pub(crate) fn outputs(
    task: &RewriteTask,
    context: &TaskContext,
    strings: Strings,
    writer_bytes: u64,
) -> Result<(Target, OutputPlan)> {
    let root = Location::from_canonical(&task.root)?;
    let (choice, annotate_variant) = sample(task, context)?;
    let target = Target::new(&task.read, &task.write, annotate_variant, strings)?;
    let mut plan = OutputPlan::new(
        (Arc::clone(&target.schema), Arc::clone(&target.declared)),
        Arc::clone(&task.write),
        root,
        task.output_stem.clone(),
        &choice,
        writer_bytes,
    )?;
    // No file holds a VOID column, so it has no statistics either.
    plan.stats_leaves.retain(|path| !is_void(&task.read.schema.fields, path));
    Ok((target, plan))
}

/// True if the column at this physical path holds nothing but nulls without a type.
pub(crate) fn is_void(fields: &[Field], path: &[String]) -> bool {
    let Some((name, rest)) = path.split_first() else { return false };
    match fields.iter().find(|f| f.physical == *name).map(|f| &f.data_type) {
        Some(DataType::Null) => true,
        Some(DataType::Struct(children)) => is_void(children, rest),
        _ => false,
    }
}

/// Looks at some inputs' footers: codec, dictionaries, and whether variants carry the annotation.
fn sample(task: &RewriteTask, context: &TaskContext) -> Result<(EncodingChoice, bool)> {
    let mut choice = EncodingChoice::default();
    let mut annotated = false;
    let step = task.inputs.len().div_ceil(SAMPLED_FOOTERS).max(1);
    for input in task.inputs.iter().step_by(step) {
        context.check()?;
        let location = Location::from_canonical(&input.location)?;
        let read = footer::read(&context.store, &location, input.size, TAIL_BYTES);
        let footer = context.control.runtime.block_on(read)?;
        choice.observe(&footer.metadata);
        annotated |= has_variant(footer.metadata.file_metadata().schema());
    }
    Ok((choice, annotated))
}

fn has_variant(stored: &Type) -> bool {
    matches!(stored.get_basic_info().logical_type_ref(), Some(LogicalType::Variant(_)))
        || stored.is_group() && stored.get_fields().iter().any(|t| has_variant(t))
}
