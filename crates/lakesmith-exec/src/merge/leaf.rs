//! Which leaves of a file are stored just as the output stores them.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use parquet::basic::{Repetition, Type as PhysicalType};
use parquet::schema::types::{ColumnDescPtr, Type};

use super::bounds::Order;
use crate::adapt::Adapt;
use crate::cast::Cast;

/// A leaf of the outputs into which pages can be merged: no list or map is above it.
#[derive(Debug)]
pub(crate) struct Column {
    /// In the outputs' schema.
    pub descriptor: ColumnDescPtr,
    /// As rows in memory have it.
    pub data_type: DataType,
    pub(super) order: Order,
    /// Bytes of a value; `None` if each has a length of its own.
    pub(super) width: Option<usize>,
}

impl Column {
    /// The leaves of a root column of the outputs, whose descriptors are `leaves`; `None` if one of them cannot be merged.
    pub(crate) fn of_root(field: &Field, leaves: &[ColumnDescPtr]) -> Option<Vec<Arc<Column>>> {
        let mut columns = Vec::with_capacity(leaves.len());
        gather(field.data_type(), leaves, &mut columns)?;
        (columns.len() == leaves.len()).then_some(columns)
    }
}

fn gather(data_type: &DataType, leaves: &[ColumnDescPtr], columns: &mut Vec<Arc<Column>>) -> Option<()> {
    if let DataType::Struct(children) = data_type {
        return children.iter().try_for_each(|child| gather(child.data_type(), leaves, columns));
    }
    let descriptor = leaves.get(columns.len())?;
    if descriptor.max_rep_level() != 0 || descriptor.max_def_level() > 100 {
        return None;
    }
    let (order, width) = match (descriptor.physical_type(), data_type) {
        (PhysicalType::BOOLEAN, DataType::Boolean) => (Order::Bool, Some(1)),
        (
            PhysicalType::INT32,
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Date32 | DataType::Decimal128(..),
        ) => (Order::I32, Some(4)),
        (PhysicalType::INT64, DataType::Int64 | DataType::Timestamp(..) | DataType::Decimal128(..)) => {
            (Order::I64, Some(8))
        }
        (PhysicalType::FLOAT, DataType::Float32) => (Order::F32, Some(4)),
        (PhysicalType::DOUBLE, DataType::Float64) => (Order::F64, Some(8)),
        (PhysicalType::BYTE_ARRAY, DataType::Utf8) => (Order::Bytes(true), None),
        (PhysicalType::BYTE_ARRAY, DataType::Binary) => (Order::Bytes(false), None),
        (PhysicalType::FIXED_LEN_BYTE_ARRAY, DataType::Decimal128(..)) => {
            let width = usize::try_from(descriptor.type_length()).ok().filter(|w| (1..=16).contains(w))?;
            (Order::Decimal(width), Some(width))
        }
        _ => return None,
    };
    columns.push(Arc::new(Column { descriptor: Arc::clone(descriptor), data_type: data_type.clone(), order, width }));
    Some(())
}

/// A leaf of an input and the output's leaf that its pages fit.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    column: Arc<Column>,
    /// The output's definition level for each of the input's.
    levels: Vec<u8>,
    pub(super) width: Option<usize>,
}

impl Leaf {
    /// An output's leaf over a chunk that this program wrote.
    pub(super) fn of_own(column: &Arc<Column>) -> Leaf {
        // Levels were kept below 100 when the column was made.
        let max = column.descriptor.max_def_level() as u8;
        Leaf { column: Arc::clone(column), levels: (0..=max).collect(), width: column.width }
    }

    /// Highest definition level in the input.
    pub(super) fn stored_max(&self) -> u8 {
        (self.levels.len() - 1) as u8
    }

    /// Highest definition level in the output.
    pub(super) fn max(&self) -> u8 {
        self.levels.last().copied().unwrap_or(0)
    }

    /// True if levels need not change.
    pub(super) fn keeps_levels(&self) -> bool {
        self.levels.iter().enumerate().all(|(i, level)| i == usize::from(*level))
    }

    /// The output's level for one of the input's.
    pub(super) fn level(&self, stored: u8) -> u8 {
        self.levels.get(usize::from(stored)).copied().unwrap_or(0)
    }

    pub(super) fn is_text(&self) -> bool {
        self.column.order == Order::Bytes(true)
    }

    pub(super) fn is_bool(&self) -> bool {
        self.column.order == Order::Bool
    }
}

/// Pairs the leaves of a file's root column with those of the output; `None` unless values and nesting are stored alike.
/// That the types mean the same is what `adapt` says: it was planned from both.
pub(crate) fn pair(adapt: &Adapt, from: &Type, to: &Type, columns: &[Arc<Column>]) -> Option<Vec<Leaf>> {
    let mut leaves = Vec::with_capacity(columns.len());
    walk(adapt, from, to, columns, Vec::new(), 0, &mut leaves)?;
    (leaves.len() == columns.len()).then_some(leaves)
}

fn walk(
    adapt: &Adapt,
    from: &Type,
    to: &Type,
    columns: &[Arc<Column>],
    mut levels: Vec<u8>,
    mut level: u8,
    leaves: &mut Vec<Leaf>,
) -> Option<()> {
    if !from.get_basic_info().has_repetition() || !to.get_basic_info().has_repetition() {
        return None;
    }
    match (from.get_basic_info().repetition(), to.get_basic_info().repetition()) {
        (Repetition::REQUIRED, Repetition::REQUIRED) => {}
        (Repetition::REQUIRED, Repetition::OPTIONAL) => level += 1,
        (Repetition::OPTIONAL, Repetition::OPTIONAL) => {
            levels.push(level);
            level += 1;
        }
        _ => return None,
    }
    match (adapt, from, to) {
        (Adapt::Primitive(Cast::None), Type::PrimitiveType { physical_type, type_length, .. }, to)
            if to.is_primitive() =>
        {
            let column = columns.get(leaves.len())?;
            let same = column.descriptor.physical_type() == *physical_type
                && (*physical_type != PhysicalType::FIXED_LEN_BYTE_ARRAY
                    || column.descriptor.type_length() == *type_length);
            if !same || i16::from(level) != column.descriptor.max_def_level() {
                return None;
            }
            levels.push(level);
            leaves.push(Leaf { column: Arc::clone(column), levels, width: column.width });
            Some(())
        }
        (Adapt::Struct(parts), Type::GroupType { fields: from, .. }, Type::GroupType { fields: to, .. }) => {
            if parts.len() != from.len() || parts.len() != to.len() {
                return None;
            }
            parts.iter().enumerate().try_for_each(|(i, (index, adapt))| {
                if *index != Some(i) {
                    return None;
                }
                walk(adapt, &from[i], &to[i], columns, levels.clone(), level, leaves)
            })
        }
        _ => None,
    }
}
