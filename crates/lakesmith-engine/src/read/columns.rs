//! A table's columns as queries see them, and where each comes from.
//!
//! Names are in lower case inside the engine, so that every spelling of a name is the same name; results get the table's
//! own spelling back.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{
    DataType as ArrowType, Field as ArrowField, FieldRef, Fields, Schema as ArrowSchema, SchemaRef,
};
use datafusion::datasource::table_schema::TableSchema;
use lakesmith::table::{DataType, Field};
use lakesmith::{Error, HiddenColumn, Result, RowFact, Table};
use lakesmith_exec::{primitive_type, variant_fields};
use parquet::arrow::RowNumber;

use super::file_facts::{self, FACTS};

/// Name of the row's number in its file, as the reader counts it.
pub(crate) const ROW_INDEX: &str = "__lakesmith_row_index";
/// Names of the hidden columns that keep row ids.
pub(crate) const ROW_ID: &str = "__lakesmith_row_id";
pub(crate) const ROW_VERSION: &str = "__lakesmith_row_commit_version";

/// The columns of one version of a table.
#[derive(Debug)]
pub(crate) struct Columns {
    /// What queries see: the table's columns in order.
    pub schema: SchemaRef,
    /// What a scan gives: data columns, hidden ones, partition columns, facts of the file, the row's number.
    pub scan: TableSchema,
    /// Data columns as files hold them, in the order of the scan's file schema.
    pub data: Vec<Field>,
    /// Partition columns in the order of partition tuples, with their types in queries.
    pub partitions: Vec<FieldRef>,
    /// Hidden columns that queries see after the others: with one of them, a scan gives facts of files, too.
    pub hidden: Vec<HiddenColumn>,
    /// True: files are matched by field id.
    pub by_id: bool,
    /// Place in the scan of each column that queries see.
    places: Vec<usize>,
    by_name: HashMap<String, Field>,
}

impl Columns {
    /// The columns of `table`, with those of its hidden columns that are `wanted`.
    ///
    /// # Errors
    /// Unsupported for a type that cannot be read.
    pub(crate) fn of(table: &Table, wanted: &[&str]) -> Result<Columns> {
        let state = table.state();
        // A column of the table hides one that would be made up.
        let is_wanted = |column: &HiddenColumn| {
            wanted.contains(&column.name.as_str()) && state.schema.field(&column.name).is_none()
        };
        let made_up: Vec<HiddenColumn> = table.hidden_columns().into_iter().filter(is_wanted).collect();
        let with_facts = !made_up.is_empty();
        let read = table.read_spec();
        let mut data = read.schema.fields.clone();
        let mut file: Vec<ArrowField> = data.iter().map(arrow_field).collect::<Result<_>>()?;
        for (name, physical, id) in hidden(table).into_iter().filter(|_| with_facts) {
            file.push(ArrowField::new(name, ArrowType::Int64, true));
            data.push(Field {
                name: name.to_owned(),
                physical,
                id,
                data_type: DataType::Long,
                nullable: true,
                metadata: Default::default(),
            });
        }
        let partitions: Vec<FieldRef> = state
            .partition_columns
            .iter()
            .map(|name| {
                let field = state.schema.field(name);
                let field = field
                    .ok_or_else(|| Error::corrupt("a partition column is not in the schema").with("column", name))?;
                Ok(Arc::new(arrow_field(field)?))
            })
            .collect::<Result<_>>()?;
        let constants: Fields = {
            let facts = FACTS.iter().filter(|_| with_facts).map(file_facts::field);
            let of_files = made_up.iter().filter_map(|column| match &column.fact {
                RowFact::OfFile(field) => Some(of_file(&column.name, field)),
                _ => None,
            });
            let of_files = of_files.collect::<Result<Vec<_>>>()?;
            partitions.iter().cloned().chain(facts).chain(of_files).collect()
        };
        let row_index = ArrowField::new(ROW_INDEX, ArrowType::Int64, true).with_extension_type(RowNumber);
        let scan = TableSchema::builder(Arc::new(ArrowSchema::new(file)))
            .with_table_partition_cols(constants)
            .with_virtual_columns(if with_facts { vec![Arc::new(row_index)] } else { Vec::new() })
            .build();
        let seen: Vec<ArrowField> = state.schema.fields.iter().map(arrow_field).collect::<Result<_>>()?;
        let place = |field: &ArrowField| {
            scan.table_schema()
                .index_of(field.name())
                .map_err(|e| Error::internal("a column has no place").caused_by(e))
        };
        let places = seen.iter().map(place).collect::<Result<_>>()?;
        let by_name = state.schema.fields.iter().map(|f| (f.name.to_lowercase(), f.clone())).collect();
        Ok(Columns {
            schema: Arc::new(ArrowSchema::new(seen)),
            scan,
            data,
            partitions,
            hidden: made_up,
            by_id: read.match_by_id,
            places,
            by_name,
        })
    }

    /// Place in the scan of the column that queries see at `index`.
    pub(crate) fn place(&self, index: usize) -> usize {
        self.places[index]
    }

    /// The table's field of a column by its name in queries.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.by_name.get(name)
    }
}

/// The scan's column that holds what is the same for all rows of a file.
pub(crate) fn constant(name: &str) -> String {
    format!("__lakesmith_of_file{name}")
}

fn of_file(name: &str, field: &Field) -> Result<FieldRef> {
    Ok(Arc::new(arrow_field(field)?.with_name(constant(name))))
}

fn hidden(table: &Table) -> Vec<(&'static str, String, Option<i32>)> {
    let Some(columns) = table.row_tracking() else { return Vec::new() };
    let ids = columns.field_ids;
    vec![
        (ROW_ID, columns.row_id.clone(), ids.map(|ids| ids.0)),
        (ROW_VERSION, columns.commit_version.clone(), ids.map(|ids| ids.1)),
    ]
}

/// A column as queries see it. Whatever the table promises, files of other writers may hold nulls.
pub(crate) fn arrow_field(field: &Field) -> Result<ArrowField> {
    let data_type = arrow_type(&field.data_type).map_err(|e| e.with("column", &field.name))?;
    Ok(named(field, &field.name.to_lowercase(), data_type))
}

fn named(field: &Field, name: &str, data_type: ArrowType) -> ArrowField {
    let arrow = ArrowField::new(name, data_type, true);
    match field.data_type {
        DataType::Variant => arrow.with_metadata(HashMap::from([(VARIANT.0.to_owned(), VARIANT.1.to_owned())])),
        _ => arrow,
    }
}

/// Marks columns that hold variants.
pub(crate) const VARIANT: (&str, &str) = ("lakesmith.type", "variant");

/// The type of values in queries.
pub(crate) fn arrow_type(data_type: &DataType) -> Result<ArrowType> {
    let child = |field: &Field, name: &str| Ok::<_, Error>(named(field, name, arrow_type(&field.data_type)?));
    if let Some(primitive) = primitive_type(data_type) {
        return Ok(primitive);
    }
    Ok(match data_type {
        DataType::Variant => ArrowType::Struct(variant_fields()),
        DataType::Struct(fields) => {
            let stored = fields.iter().filter(|f| !matches!(f.data_type, DataType::Null));
            let fields = stored.map(|f| child(f, &f.name.to_lowercase())).collect::<Result<Vec<_>>>()?;
            ArrowType::Struct(fields.into())
        }
        DataType::List(element) => ArrowType::List(Arc::new(child(element, "element")?)),
        DataType::Map(key, value) => {
            let entries = vec![child(key, "key")?.with_nullable(false), child(value, "value")?];
            ArrowType::Map(Arc::new(ArrowField::new("entries", ArrowType::Struct(entries.into()), false)), false)
        }
        _ => ArrowType::Null,
    })
}
