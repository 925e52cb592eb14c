//! `typeof`

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

/// The name of its argument's type.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct TypeName {
    signature: Signature,
}

impl Default for TypeName {
    fn default() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for TypeName {
    fn name(&self) -> &str {
        "typeof"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(ScalarValue::Utf8(Some(name(args.arg_fields[0].data_type())))))
    }
}

/// Spark's name of a type.
///
/// # Source
/// Spark `DataType.catalogString`.
pub(super) fn name(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "void".to_owned(),
        DataType::Boolean => "boolean".to_owned(),
        DataType::Int8 => "tinyint".to_owned(),
        DataType::Int16 => "smallint".to_owned(),
        DataType::Int32 => "int".to_owned(),
        DataType::Int64 => "bigint".to_owned(),
        DataType::Float32 => "float".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Decimal128(precision, scale) => format!("decimal({precision},{scale})"),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary".to_owned(),
        DataType::Date32 => "date".to_owned(),
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp_ntz".to_owned(),
        DataType::Timestamp(..) => "timestamp".to_owned(),
        DataType::List(element) => format!("array<{}>", name(element.data_type())),
        DataType::Struct(fields) => {
            let fields: Vec<String> = fields.iter().map(|f| format!("{}:{}", f.name(), name(f.data_type()))).collect();
            format!("struct<{}>", fields.join(","))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                format!("map<{},{}>", name(fields[0].data_type()), name(fields[1].data_type()))
            }
            other => other.to_string(),
        },
        other => other.to_string().to_lowercase(),
    }
}
