//! Functions that take functions: of the elements of arrays, and of the values of rows.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int32Array, ListArray, MapArray, StructArray, UInt32Array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{concat, filter, interleave, take, take_arrays};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderSignature, HigherOrderUDF,
    HigherOrderUDFImpl, LambdaArgument, LambdaParametersProgress, ValueOrLambda, Volatility,
};

use super::membership::places;

/// All of them.
pub(super) fn all() -> Vec<HigherOrderUDF> {
    use Kind as K;
    [
        K::Exists,
        K::Forall,
        K::Filter,
        K::Transform,
        K::Aggregate("aggregate"),
        K::Aggregate("reduce"),
        K::ZipWith,
        K::MapFilter,
        K::TransformValues,
        K::Try,
    ]
    .into_iter()
    .map(|kind| {
        HigherOrderUDF::new_from_impl(OfLambdas {
            kind,
            signature: HigherOrderSignature::variadic_any(Volatility::Immutable),
        })
    })
    .collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Exists,
    Forall,
    Filter,
    Transform,
    Aggregate(&'static str),
    ZipWith,
    MapFilter,
    TransformValues,
    /// A function of the values before it; NULL where it fails.
    Try,
}

/// # Source
/// Spark `higherOrderFunctions.scala`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfLambdas {
    kind: Kind,
    signature: HigherOrderSignature,
}

/// What a call is made of.
struct Call<'a> {
    values: Vec<ArrayRef>,
    lambdas: Vec<&'a LambdaArgument>,
    rows: usize,
}

impl HigherOrderUDFImpl for OfLambdas {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Exists => "exists",
            Kind::Forall => "forall",
            Kind::Filter => "filter",
            Kind::Transform => "transform",
            Kind::Aggregate(name) => name,
            Kind::ZipWith => "zip_with",
            Kind::MapFilter => "map_filter",
            Kind::TransformValues => "transform_values",
            Kind::Try => "__lakesmith_try",
        }
    }

    fn signature(&self) -> &HigherOrderSignature {
        &self.signature
    }

    fn lambda_parameters(
        &self,
        _step: usize,
        fields: &[ValueOrLambda<FieldRef, Option<FieldRef>>],
    ) -> Result<LambdaParametersProgress> {
        let values: Vec<&FieldRef> = fields
            .iter()
            .filter_map(|field| match field {
                ValueOrLambda::Value(field) => Some(field),
                ValueOrLambda::Lambda(_) => None,
            })
            .collect();
        let lambdas = fields.len() - values.len();
        let shape = match self.kind {
            Kind::Aggregate(_) => values.len() == 2 && (1..=2).contains(&lambdas),
            Kind::ZipWith => values.len() == 2 && lambdas == 1,
            Kind::Try => lambdas == 1,
            _ => values.len() == 1 && lambdas == 1,
        };
        if !shape || !matches!(fields.last(), Some(ValueOrLambda::Lambda(_))) {
            return plan_err!("{} expects other arguments but received {} of them", self.name(), fields.len());
        }
        let index = || nullable(&DataType::Int32);
        let parameters = match self.kind {
            Kind::Exists | Kind::Forall => vec![vec![self.element(values[0])?]],
            Kind::Filter | Kind::Transform => vec![vec![self.element(values[0])?, index()]],
            Kind::Aggregate(_) => {
                let state = nullable(values[1].data_type());
                let mut all = vec![vec![Arc::clone(&state), self.element(values[0])?]];
                all.extend((lambdas == 2).then(|| vec![state]));
                all
            }
            Kind::ZipWith => vec![vec![self.element(values[0])?, self.element(values[1])?]],
            Kind::MapFilter | Kind::TransformValues => {
                let (key, value) = self.entry(values[0].data_type())?;
                vec![vec![nullable(key.data_type()), nullable(value.data_type())]]
            }
            Kind::Try => vec![values.iter().map(|value| nullable(value.data_type())).collect()],
        };
        Ok(LambdaParametersProgress::Complete(parameters))
    }

    fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs) -> Result<FieldRef> {
        let (mut values, mut results) = (Vec::new(), Vec::new());
        for field in args.arg_fields {
            match field {
                ValueOrLambda::Value(field) => values.push(field.data_type()),
                ValueOrLambda::Lambda(field) => results.push(field.data_type()),
            }
        }
        let is_truth = matches!(self.kind, Kind::Exists | Kind::Forall | Kind::Filter | Kind::MapFilter);
        if is_truth && !matches!(results[0], DataType::Boolean | DataType::Null) {
            return plan_err!(
                "Failed to coerce: the function of {} must give BOOLEAN, not {}",
                self.name(),
                results[0]
            );
        }
        let result = match self.kind {
            Kind::Exists | Kind::Forall => DataType::Boolean,
            Kind::Filter | Kind::MapFilter => values[0].clone(),
            Kind::Transform | Kind::ZipWith => DataType::new_list(results[0].clone(), true),
            Kind::Aggregate(name) => {
                if results[0] != values[1] {
                    return plan_err!(
                        "Failed to coerce: the function of {name} must give what it starts with, {}, not {}",
                        values[1],
                        results[0]
                    );
                }
                results[results.len() - 1].clone()
            }
            Kind::TransformValues => {
                let (key, _) = self.entry(values[0])?;
                let entries = vec![key, Arc::new(Field::new("value", results[0].clone(), true))];
                let entries = Field::new("entries", DataType::Struct(entries.into()), false);
                DataType::Map(Arc::new(entries), false)
            }
            Kind::Try => results[0].clone(),
        };
        Ok(nullable(&result))
    }

    fn invoke_with_args(&self, args: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let mut call = Call { values: Vec::new(), lambdas: Vec::new(), rows: args.number_rows };
        for arg in &args.args {
            match arg {
                ValueOrLambda::Value(value) => call.values.push(value.to_array(args.number_rows)?),
                ValueOrLambda::Lambda(lambda) => call.lambdas.push(lambda),
            }
        }
        let result = args.return_field.data_type();
        let given = match self.kind {
            Kind::Exists => decided(&call, true)?,
            Kind::Forall => decided(&call, false)?,
            Kind::Filter => filtered(&call, result)?,
            Kind::Transform => transformed(&call, result)?,
            Kind::Aggregate(_) => aggregated(&call)?,
            Kind::ZipWith => zipped(&call, result)?,
            Kind::MapFilter | Kind::TransformValues => mapped(&call, result, self.kind == Kind::MapFilter)?,
            Kind::Try => tried(&call, result)?,
        };
        Ok(ColumnarValue::Array(given))
    }
}

impl OfLambdas {
    fn element(&self, list: &FieldRef) -> Result<FieldRef> {
        match list.data_type() {
            DataType::List(field) => Ok(nullable(field.data_type())),
            other => plan_err!("Failed to coerce: {} takes an array, not {other}", self.name()),
        }
    }

    fn entry(&self, map: &DataType) -> Result<(FieldRef, FieldRef)> {
        if let DataType::Map(entries, _) = map
            && let DataType::Struct(fields) = entries.data_type()
            && let [key, value] = fields.as_ref()
        {
            return Ok((Arc::clone(key), Arc::clone(value)));
        }
        plan_err!("Failed to coerce: {} takes a map, not {map}", self.name())
    }
}

fn nullable(data_type: &DataType) -> FieldRef {
    Arc::new(Field::new("", data_type.clone(), true))
}

/// Elements of arrays in one row, and where they came from.
struct Elements {
    /// Their places among the values, none for what an array lacks.
    at: UInt32Array,
    /// Their rows.
    rows: UInt32Array,
    /// Their numbers in their arrays.
    index: Int32Array,
    offsets: OffsetBuffer<i32>,
}

impl Elements {
    fn of(list: &ListArray) -> Self {
        let (mut at, mut rows, mut index, mut lengths) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for row in 0..list.len() {
            let places = places(list, row).unwrap_or_default();
            lengths.push(places.len());
            index.extend((0..places.len()).map(|at| at as i32));
            rows.extend(places.clone().map(|_| row as u32));
            at.extend(places.map(|at| at as u32));
        }
        Self { at: at.into(), rows: rows.into(), index: index.into(), offsets: OffsetBuffer::from_lengths(lengths) }
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    /// What the function gives for each element.
    fn asked(&self, lambda: &LambdaArgument, values: &ArrayRef) -> Result<ArrayRef> {
        let value = || Ok(take(values, &self.at, None)?);
        let index = || Ok(Arc::new(self.index.clone()) as ArrayRef);
        let given = lambda.evaluate(&[&value, &index], |columns| Ok(take_arrays(columns, &self.rows, None)?))?;
        given.into_array(self.len())
    }
}

fn truths(array: &ArrayRef) -> Result<BooleanArray> {
    Ok(arrow::compute::cast(array, &DataType::Boolean)?.as_boolean().clone())
}

/// Whether some element is `sought`; NULL if only an unknown one may be. Otherwise the opposite.
fn decided(call: &Call<'_>, sought: bool) -> Result<ArrayRef> {
    let list = call.values[0].as_list::<i32>();
    let elements = Elements::of(list);
    let given = truths(&elements.asked(call.lambdas[0], list.values())?)?;
    let row = |row: usize| {
        let range = elements.offsets[row] as usize..elements.offsets[row + 1] as usize;
        if list.is_null(row) {
            return None;
        }
        if range.clone().any(|at| given.is_valid(at) && given.value(at) == sought) {
            return Some(sought);
        }
        (!range.into_iter().any(|at| given.is_null(at))).then_some(!sought)
    };
    Ok(Arc::new((0..list.len()).map(row).collect::<BooleanArray>()))
}

fn filtered(call: &Call<'_>, result: &DataType) -> Result<ArrayRef> {
    let list = call.values[0].as_list::<i32>();
    let elements = Elements::of(list);
    let keep = truths(&elements.asked(call.lambdas[0], list.values())?)?;
    let kept = filter(&take(list.values(), &elements.at, None)?, &keep)?;
    listed(result, kept_offsets(&elements.offsets, &keep), kept, list)
}

fn kept_offsets(offsets: &OffsetBuffer<i32>, keep: &BooleanArray) -> OffsetBuffer<i32> {
    let count = |range: &[i32]| {
        (range[0] as usize..range[1] as usize).filter(|at| keep.is_valid(*at) && keep.value(*at)).count()
    };
    OffsetBuffer::from_lengths(offsets.windows(2).map(count).collect::<Vec<_>>())
}

fn transformed(call: &Call<'_>, result: &DataType) -> Result<ArrayRef> {
    let list = call.values[0].as_list::<i32>();
    let elements = Elements::of(list);
    let given = elements.asked(call.lambdas[0], list.values())?;
    listed(result, elements.offsets, given, list)
}

fn listed(result: &DataType, offsets: OffsetBuffer<i32>, values: ArrayRef, like: &ListArray) -> Result<ArrayRef> {
    let DataType::List(field) = result else { return exec_err!("{result} is no array") };
    Ok(Arc::new(ListArray::try_new(Arc::clone(field), offsets, values, like.nulls().cloned())?))
}

/// Goes through the arrays side by side, one element of each at a time.
fn aggregated(call: &Call<'_>) -> Result<ArrayRef> {
    let list = call.values[0].as_list::<i32>();
    let mut state = Arc::clone(&call.values[1]);
    let ranges: Vec<_> = (0..list.len()).map(|row| places(list, row).unwrap_or_default()).collect();
    let longest = ranges.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
    for step in 0..longest {
        let rows: UInt32Array = (0..ranges.len()).filter(|r| ranges[*r].len() > step).map(|r| Some(r as u32)).collect();
        let at: UInt32Array = rows.values().iter().map(|r| Some((ranges[*r as usize].start + step) as u32)).collect();
        let before = || Ok(take(&state, &rows, None)?);
        let element = || Ok(take(list.values(), &at, None)?);
        let given = call.lambdas[0]
            .evaluate(&[&before, &element], |columns| Ok(take_arrays(columns, &rows, None)?))?
            .into_array(rows.len())?;
        let mut from: Vec<(usize, usize)> = (0..ranges.len()).map(|row| (0, row)).collect();
        for (at, row) in rows.values().iter().enumerate() {
            from[*row as usize] = (1, at);
        }
        state = interleave(&[&state, &given], &from)?;
    }
    if let Some(finish) = call.lambdas.get(1) {
        let end = || Ok(Arc::clone(&state));
        state = finish.evaluate(&[&end], |columns| Ok(columns.to_vec()))?.into_array(call.rows)?;
    }
    let rows: UInt32Array = (0..list.len()).map(|row| list.is_valid(row).then_some(row as u32)).collect();
    Ok(take(&state, &rows, None)?)
}

/// The shorter array goes on with NULLs.
fn zipped(call: &Call<'_>, result: &DataType) -> Result<ArrayRef> {
    let lists = [call.values[0].as_list::<i32>(), call.values[1].as_list::<i32>()];
    let (mut rows, mut at, mut lengths) = (Vec::new(), [Vec::new(), Vec::new()], Vec::new());
    let mut known = Vec::with_capacity(call.rows);
    for row in 0..lists[0].len() {
        let ranges = lists.map(|list| places(list, row));
        known.push(ranges.iter().all(Option::is_some));
        let ranges = if known[row] { ranges.map(Option::unwrap_or_default) } else { [0..0, 0..0] };
        let length = ranges[0].len().max(ranges[1].len());
        for (at, range) in at.iter_mut().zip(ranges) {
            at.extend((0..length).map(|step| (step < range.len()).then_some((range.start + step) as u32)));
        }
        rows.extend(std::iter::repeat_n(row as u32, length));
        lengths.push(length);
    }
    let (rows, at) = (UInt32Array::from(rows), at.map(UInt32Array::from));
    let left = || Ok(take(lists[0].values(), &at[0], None)?);
    let right = || Ok(take(lists[1].values(), &at[1], None)?);
    let given = call.lambdas[0]
        .evaluate(&[&left, &right], |columns| Ok(take_arrays(columns, &rows, None)?))?
        .into_array(rows.len())?;
    let DataType::List(field) = result else { return exec_err!("{result} is no array") };
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(Arc::clone(field), offsets, given, Some(known.into()))?))
}

fn mapped(call: &Call<'_>, result: &DataType, filters: bool) -> Result<ArrayRef> {
    let map = call.values[0].as_map();
    let entries: ArrayRef = Arc::new(map.entries().clone());
    let field = Arc::new(Field::new("item", entries.data_type().clone(), true));
    let list = ListArray::try_new(field, map.offsets().clone(), entries, map.nulls().cloned())?;
    let elements = Elements::of(&list);
    let key = || Ok(take(map.keys(), &elements.at, None)?);
    let value = || Ok(take(map.values(), &elements.at, None)?);
    let given = call.lambdas[0]
        .evaluate(&[&key, &value], |columns| Ok(take_arrays(columns, &elements.rows, None)?))?
        .into_array(elements.len())?;
    let DataType::Map(field, sorted) = result else { return exec_err!("{result} is no map") };
    let DataType::Struct(fields) = field.data_type() else { return exec_err!("{result} is no map") };
    let (columns, offsets) = if filters {
        let keep = truths(&given)?;
        (vec![filter(&key()?, &keep)?, filter(&value()?, &keep)?], kept_offsets(&elements.offsets, &keep))
    } else {
        (vec![key()?, given], elements.offsets.clone())
    };
    let entries = StructArray::try_new(fields.clone(), columns, None)?;
    Ok(Arc::new(MapArray::try_new(Arc::clone(field), offsets, entries, map.nulls().cloned(), *sorted)?))
}

/// All rows at once; where that fails, one by one.
fn tried(call: &Call<'_>, result: &DataType) -> Result<ArrayRef> {
    let asked = |from: usize, count: usize| {
        let values: Vec<_> = call.values.iter().map(|value| value.slice(from, count)).collect();
        let given: Vec<_> = values.iter().map(|value| move || Ok(Arc::clone(value))).collect();
        let given: Vec<&dyn Fn() -> Result<ArrayRef>> = given.iter().map(|f| f as _).collect();
        let columns = |columns: &[ArrayRef]| Ok(columns.iter().map(|c| c.slice(from, count)).collect());
        call.lambdas[0].evaluate(&given, columns)?.into_array(count)
    };
    if let Ok(all) = asked(0, call.rows) {
        return Ok(all);
    }
    let none = arrow::array::new_null_array(result, 1);
    let rows: Vec<ArrayRef> = (0..call.rows).map(|row| asked(row, 1).unwrap_or_else(|_| Arc::clone(&none))).collect();
    Ok(concat(&rows.iter().map(AsRef::as_ref).collect::<Vec<_>>())?)
}
