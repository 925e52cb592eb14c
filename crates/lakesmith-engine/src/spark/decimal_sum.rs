//! Sums of long decimals: taken in the numbers that hold them, and a failure where one has too many digits.

use std::mem::{size_of, size_of_val};
use std::sync::{Arc, LazyLock};

use arrow::array::{Array as _, ArrayRef, AsArray, BooleanArray, Decimal128Array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};

use super::arithmetic::out_of_range;

static SUM: LazyLock<Arc<AggregateUDF>> =
    LazyLock::new(|| Arc::new(AggregateUDF::from(DecimalSum { signature: Signature::any(1, Volatility::Immutable) })));

/// The aggregate: of decimals, without DISTINCT.
pub(super) fn decimal_sum() -> Arc<AggregateUDF> {
    Arc::clone(&SUM)
}

/// # Source
/// Spark `Sum`: a DECIMAL(p,s) becomes a DECIMAL(min(38, p + 10),s), and ANSI mode fails beyond.
#[derive(Debug, PartialEq, Eq, Hash)]
struct DecimalSum {
    signature: Signature,
}

impl AggregateUDFImpl for DecimalSum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::Decimal128(precision, scale)] => {
                Ok(DataType::Decimal128(precision.saturating_add(10).min(DECIMAL128_MAX_PRECISION), *scale))
            }
            other => exec_err!("{other:?} is no decimal"),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, "sum"), args.return_type().clone(), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(One { data_type: args.return_type().clone(), sum: None }))
    }

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups { data_type: args.return_type().clone(), sums: Vec::new(), seen: Vec::new() }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// The sum, if it has no more digits than a decimal may have.
fn fitting(sum: i128) -> Result<i128> {
    let limit = 10i128.pow(u32::from(DECIMAL128_MAX_PRECISION));
    if sum < limit && sum > -limit { Ok(sum) } else { Err(out_of_range("decimal")) }
}

fn added(sum: i128, value: i128) -> Result<i128> {
    sum.checked_add(value).ok_or_else(|| out_of_range("decimal"))
}

/// The sum of all rows.
#[derive(Debug)]
struct One {
    data_type: DataType,
    sum: Option<i128>,
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<Decimal128Type>();
        if values.null_count() == values.len() {
            return Ok(());
        }
        let start = self.sum.unwrap_or(0);
        let sum = match values.nulls() {
            None => values.values().iter().try_fold(start, |sum, value| added(sum, *value))?,
            Some(_) => values.iter().flatten().try_fold(start, added)?,
        };
        self.sum = Some(sum);
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let DataType::Decimal128(precision, scale) = self.data_type else { return exec_err!("a sum is no decimal") };
        Ok(ScalarValue::Decimal128(self.sum.map(fitting).transpose()?, precision, scale))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// A sum a group.
struct Groups {
    data_type: DataType,
    sums: Vec<i128>,
    /// True for groups with a value.
    seen: Vec<bool>,
}

impl Groups {
    fn take(&mut self, values: &Decimal128Array, groups: &[usize], wanted: Option<&BooleanArray>) -> Result<()> {
        let Groups { sums, seen, .. } = self;
        let mut overflow = false;
        let mut add = |group: usize, value: i128| {
            let (sum, over) = sums[group].overflowing_add(value);
            sums[group] = sum;
            seen[group] = true;
            overflow |= over;
        };
        let pairs = groups.iter().zip(values.values().iter());
        if wanted.is_none() && values.null_count() == 0 {
            pairs.for_each(|(group, value)| add(*group, *value));
        } else {
            for (row, (group, value)) in pairs.enumerate() {
                if values.is_valid(row) && wanted.is_none_or(|wanted| wanted.is_valid(row) && wanted.value(row)) {
                    add(*group, *value);
                }
            }
        }
        if overflow { Err(out_of_range("decimal")) } else { Ok(()) }
    }
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.sums.resize(total_num_groups, 0);
        self.seen.resize(total_num_groups, false);
        self.take(values[0].as_primitive::<Decimal128Type>(), group_indices, opt_filter)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let (sums, seen) = (emit_to.take_needed(&mut self.sums), emit_to.take_needed(&mut self.seen));
        sums.iter().try_for_each(|sum| fitting(*sum).map(drop))?;
        let nulls = NullBuffer::new(BooleanBuffer::from(seen));
        let sums = Decimal128Array::new(sums.into(), Some(nulls).filter(|nulls| nulls.null_count() > 0));
        Ok(Arc::new(sums.with_data_type(self.data_type.clone())))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total_num_groups: usize) -> Result<()> {
        self.update_batch(states, groups, None, total_num_groups)
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = values[0].as_primitive::<Decimal128Type>();
        let kept = opt_filter.map(|filter| {
            let kept: BooleanBuffer = filter.iter().map(|kept| kept.unwrap_or(false)).collect();
            NullBuffer::new(kept)
        });
        let nulls = NullBuffer::union(values.nulls(), kept.as_ref());
        let states = Decimal128Array::new(values.values().clone(), nulls).with_data_type(self.data_type.clone());
        Ok(vec![Arc::new(states)])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<i128>() + self.seen.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: DataType = DataType::Decimal128(38, 2);

    fn decimals(values: &[Option<i128>]) -> ArrayRef {
        Arc::new(Decimal128Array::from(values.to_vec()).with_data_type(TYPE))
    }

    #[test]
    fn groups_are_summed_apart_and_those_without_a_value_are_null() {
        let mut sums = Groups { data_type: TYPE, sums: Vec::new(), seen: Vec::new() };
        sums.update_batch(&[decimals(&[Some(1), None, Some(3), Some(-7)])], &[0, 1, 0, 2], None, 4).unwrap();
        let filter = BooleanArray::from(vec![Some(true), Some(false), None]);
        sums.update_batch(&[decimals(&[Some(10), Some(20), Some(30)])], &[3, 0, 0], Some(&filter), 4).unwrap();
        let states = sums.convert_to_state(&[decimals(&[Some(1), Some(2), None])], Some(&filter)).unwrap();
        assert_eq!(&states[0], &decimals(&[Some(1), None, None]));
        assert_eq!(&sums.evaluate(EmitTo::First(2)).unwrap(), &decimals(&[Some(4), None]));
        assert_eq!(&sums.evaluate(EmitTo::All).unwrap(), &decimals(&[Some(-7), Some(10)]));
    }

    #[test]
    fn sums_with_too_many_digits_fail_and_never_wrap() {
        let most = 10i128.pow(38) - 1;
        for rows in [vec![Some(most), Some(1)], vec![Some(most); 2], vec![Some(-most), Some(-1)], vec![Some(-most); 4]]
        {
            let mut one = One { data_type: TYPE, sum: None };
            let failed = one.update_batch(&[decimals(&rows)]).and_then(|()| one.evaluate().map(drop));
            assert!(failed.is_err(), "{rows:?}");
            let mut groups = Groups { data_type: TYPE, sums: Vec::new(), seen: Vec::new() };
            let places = vec![0; rows.len()];
            let failed = groups.update_batch(&[decimals(&rows)], &places, None, 1);
            assert!(failed.and_then(|()| groups.evaluate(EmitTo::All).map(drop)).is_err(), "{rows:?}");
        }
        let mut one = One { data_type: TYPE, sum: None };
        assert_eq!(one.evaluate().unwrap(), ScalarValue::Decimal128(None, 38, 2));
        one.update_batch(&[decimals(&[Some(most), None, Some(-most), Some(5)])]).unwrap();
        assert_eq!(one.evaluate().unwrap(), ScalarValue::Decimal128(Some(5), 38, 2));
    }
}
