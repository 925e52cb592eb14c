//! A function as a table entry: what it takes, what it gives, and what it does with arrays.

use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Result, plan_datafusion_err, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use super::{arrays, given};

/// A function of Spark's.
#[derive(Debug, Clone)]
pub(super) struct Builtin {
    /// Its name, in lower case.
    pub name: &'static str,
    /// How many arguments it may have.
    pub arguments: RangeInclusive<usize>,
    /// The types that its arguments are cast to; `None` if it takes no such arguments.
    pub takes: fn(&[DataType]) -> Option<Vec<DataType>>,
    /// The type of its result for arguments of those types.
    pub gives: fn(&[DataType]) -> DataType,
    /// Its results, one a row.
    pub apply: fn(&[ArrayRef], &DataType) -> Result<ArrayRef>,
}

impl Builtin {
    /// The function as DataFusion knows functions.
    pub(super) fn registered(self) -> ScalarUDF {
        ScalarUDF::from(Registered { builtin: self, signature: Signature::user_defined(Volatility::Immutable) })
    }
}

/// The type of an instant.
pub(super) fn instant() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// Arguments of `to`, as many as are given, if those given can be cast implicitly.
pub(super) fn cast_to(types: &[DataType], to: &[DataType]) -> Option<Vec<DataType>> {
    types.iter().zip(to).all(|(from, to)| is_cast(from, to)).then(|| to[..types.len()].to_vec())
}

/// True if Spark casts a value of one type to another where a function wants it.
///
/// # Source
/// Spark `AnsiTypeCoercion.implicitCast`.
fn is_cast(from: &DataType, to: &DataType) -> bool {
    use DataType as D;
    let is_time = |t: &D| matches!(t, D::Date32 | D::Timestamp(..));
    match to {
        _ if from == to || matches!(from, D::Null) => true,
        D::Utf8 => !from.is_nested(),
        D::Date32 | D::Timestamp(..) => is_time(from) || matches!(from, D::Utf8),
        to if to.is_numeric() => from.is_numeric() || matches!(from, D::Utf8),
        _ => false,
    }
}

#[derive(Debug)]
struct Registered {
    builtin: Builtin,
    signature: Signature,
}

impl PartialEq for Registered {
    fn eq(&self, other: &Self) -> bool {
        self.builtin.name == other.builtin.name
    }
}

impl Eq for Registered {}

impl Hash for Registered {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.builtin.name.hash(state);
    }
}

impl ScalarUDFImpl for Registered {
    fn name(&self) -> &str {
        self.builtin.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let Builtin { name, arguments, takes, .. } = &self.builtin;
        if !arguments.contains(&types.len()) {
            let (least, most) = (arguments.start(), arguments.end());
            return plan_err!("{name} expects {least} to {most} arguments but received {}", types.len());
        }
        takes(types).ok_or_else(|| {
            let types: Vec<String> = types.iter().map(super::type_name::name).collect();
            plan_datafusion_err!("{name} has no use for ({}), which nothing can coerce", types.join(", "))
        })
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok((self.builtin.gives)(types))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (arrays, scalar) = arrays(&args)?;
        given((self.builtin.apply)(&arrays, args.return_field.data_type())?, scalar)
    }
}
