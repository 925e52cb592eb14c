//! Sums of long decimals: exact, and a failure where the whole sum has too many digits.
//!
//! A sum is kept in a number of 128 bits and a count of how often these were passed, so that it may have more digits on its
//! way than at its end.

use std::mem::{size_of, size_of_val};
use std::sync::{Arc, LazyLock};

use arrow::array::{Array as _, ArrayRef, AsArray, BooleanArray, Decimal128Array, Decimal256Array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type, Field, FieldRef, i256,
};
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
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, "sum"), state_type(args.return_type())?, true))])
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

/// The type of sums that are not whole yet.
fn state_type(result: &DataType) -> Result<DataType> {
    match result {
        DataType::Decimal128(_, scale) => Ok(DataType::Decimal256(DECIMAL256_MAX_PRECISION, *scale)),
        other => exec_err!("{other} is no decimal"),
    }
}

/// A sum: `low + passed * 2^128`.
#[derive(Debug, Default, Clone, Copy)]
struct Wide {
    low: i128,
    passed: i64,
}

impl Wide {
    fn add(&mut self, value: i128) {
        let (sum, over) = self.low.overflowing_add(value);
        self.low = sum;
        if over {
            self.passed += if value < 0 { -1 } else { 1 };
        }
    }

    fn add_state(&mut self, state: i256) {
        let (low, high) = state.to_parts();
        let low = low as i128;
        self.add(low);
        // Taken as a signed number, the lower half of a state may stand for 2^128 more.
        self.passed += high as i64 + i64::from(low < 0);
    }

    fn state(self) -> i256 {
        i256::from_i128(self.low).wrapping_add(i256::from_parts(0, i128::from(self.passed)))
    }

    /// The whole sum, if it has no more digits than a decimal may have.
    fn whole(self) -> Result<i128> {
        let limit = 10i128.pow(u32::from(DECIMAL128_MAX_PRECISION));
        match self.passed == 0 && self.low < limit && self.low > -limit {
            true => Ok(self.low),
            false => Err(out_of_range("decimal")),
        }
    }
}

/// The sum of all rows.
#[derive(Debug)]
struct One {
    data_type: DataType,
    sum: Option<Wide>,
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<Decimal128Type>();
        if values.null_count() == values.len() {
            return Ok(());
        }
        let sum = self.sum.get_or_insert_default();
        match values.nulls() {
            None => values.values().iter().for_each(|value| sum.add(*value)),
            Some(_) => values.iter().flatten().for_each(|value| sum.add(value)),
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let DataType::Decimal128(precision, scale) = self.data_type else { return exec_err!("a sum is no decimal") };
        Ok(ScalarValue::Decimal128(self.sum.map(Wide::whole).transpose()?, precision, scale))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let DataType::Decimal256(precision, scale) = state_type(&self.data_type)? else {
            return exec_err!("a state is no decimal");
        };
        Ok(vec![ScalarValue::Decimal256(self.sum.map(Wide::state), precision, scale)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for state in states[0].as_primitive::<Decimal256Type>().iter().flatten() {
            self.sum.get_or_insert_default().add_state(state);
        }
        Ok(())
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// A sum a group.
struct Groups {
    data_type: DataType,
    sums: Vec<Wide>,
    /// True for groups with a value.
    seen: Vec<bool>,
}

impl Groups {
    fn grow(&mut self, groups: usize) {
        self.sums.resize(groups, Wide::default());
        self.seen.resize(groups, false);
    }

    /// The sums of some groups, and which of them have none.
    fn taken(&mut self, emit_to: EmitTo) -> (Vec<Wide>, Option<NullBuffer>) {
        let (sums, seen) = (emit_to.take_needed(&mut self.sums), emit_to.take_needed(&mut self.seen));
        let nulls = NullBuffer::new(BooleanBuffer::from(seen));
        (sums, Some(nulls).filter(|nulls| nulls.null_count() > 0))
    }

    fn states(&self, sums: Vec<i256>, nulls: Option<NullBuffer>) -> Result<Vec<ArrayRef>> {
        let states = Decimal256Array::new(sums.into(), nulls).with_data_type(state_type(&self.data_type)?);
        Ok(vec![Arc::new(states)])
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
        self.grow(total_num_groups);
        let values = values[0].as_primitive::<Decimal128Type>();
        let mut add = |group: usize, value: i128| {
            self.sums[group].add(value);
            self.seen[group] = true;
        };
        let pairs = group_indices.iter().zip(values.values().iter());
        if opt_filter.is_none() && values.null_count() == 0 {
            pairs.for_each(|(group, value)| add(*group, *value));
        } else {
            for (row, (group, value)) in pairs.enumerate() {
                if values.is_valid(row) && opt_filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row)) {
                    add(*group, *value);
                }
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let (sums, nulls) = self.taken(emit_to);
        let sums: Vec<i128> = sums.into_iter().map(Wide::whole).collect::<Result<_>>()?;
        Ok(Arc::new(Decimal128Array::new(sums.into(), nulls).with_data_type(self.data_type.clone())))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let (sums, nulls) = self.taken(emit_to);
        self.states(sums.into_iter().map(Wide::state).collect(), nulls)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total_num_groups: usize) -> Result<()> {
        self.grow(total_num_groups);
        for (group, state) in groups.iter().zip(states[0].as_primitive::<Decimal256Type>().iter()) {
            if let Some(state) = state {
                self.sums[*group].add_state(state);
                self.seen[*group] = true;
            }
        }
        Ok(())
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = values[0].as_primitive::<Decimal128Type>();
        let kept = opt_filter.map(|filter| {
            let kept: BooleanBuffer = filter.iter().map(|kept| kept.unwrap_or(false)).collect();
            NullBuffer::new(kept)
        });
        let nulls = NullBuffer::union(values.nulls(), kept.as_ref());
        self.states(values.values().iter().map(|value| i256::from_i128(*value)).collect(), nulls)
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<Wide>() + self.seen.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: DataType = DataType::Decimal128(38, 2);
    const MOST: i128 = 10i128.pow(38) - 1;

    fn decimals(values: &[Option<i128>]) -> ArrayRef {
        Arc::new(Decimal128Array::from(values.to_vec()).with_data_type(TYPE))
    }

    fn one() -> One {
        One { data_type: TYPE, sum: None }
    }

    fn groups() -> Groups {
        Groups { data_type: TYPE, sums: Vec::new(), seen: Vec::new() }
    }

    #[test]
    fn groups_are_summed_apart_and_those_without_a_value_are_null() {
        let mut sums = groups();
        sums.update_batch(&[decimals(&[Some(1), None, Some(3), Some(-7)])], &[0, 1, 0, 2], None, 4).unwrap();
        let filter = BooleanArray::from(vec![Some(true), Some(false), None]);
        sums.update_batch(&[decimals(&[Some(10), Some(20), Some(30)])], &[3, 0, 0], Some(&filter), 4).unwrap();
        let states = sums.convert_to_state(&[decimals(&[Some(5), Some(2), None])], Some(&filter)).unwrap();
        sums.merge_batch(&states, &[2, 1, 1], 4).unwrap();
        assert_eq!(&sums.evaluate(EmitTo::First(2)).unwrap(), &decimals(&[Some(4), None]));
        assert_eq!(&sums.evaluate(EmitTo::All).unwrap(), &decimals(&[Some(-2), Some(10)]));
    }

    /// The sum of the parts, each summed for itself first, in both ways.
    fn sums(parts: &[Vec<i128>]) -> [Option<i128>; 2] {
        let (mut whole, mut grouped) = (one(), groups());
        for part in parts {
            let values = [decimals(&part.iter().copied().map(Some).collect::<Vec<_>>())];
            let (mut first, mut first_grouped) = (one(), groups());
            first.update_batch(&values).unwrap();
            first_grouped.update_batch(&values, &vec![0; part.len()], None, 1).unwrap();
            let state = first.state().unwrap()[0].to_array().unwrap();
            whole.merge_batch(&[state]).unwrap();
            grouped.merge_batch(&first_grouped.state(EmitTo::All).unwrap(), &[0], 1).unwrap();
        }
        let one = match whole.evaluate() {
            Ok(ScalarValue::Decimal128(sum, ..)) => sum,
            _ => None,
        };
        let grouped = grouped.evaluate(EmitTo::All).ok();
        [one, grouped.map(|sums| sums.as_primitive::<Decimal128Type>().value(0))]
    }

    #[test]
    fn sums_are_exact_or_fail_whatever_they_pass_on_their_way() {
        for (parts, expected) in [
            (vec![vec![MOST, 1]], None),
            (vec![vec![MOST; 9]], None),
            (vec![vec![-MOST, -1]], None),
            (vec![vec![-MOST; 9]], None),
            (vec![vec![MOST; 9], vec![-MOST; 9], vec![7]], Some(7)),
            (vec![vec![-MOST; 9], vec![MOST; 10]], Some(MOST)),
            (vec![vec![MOST, MOST, -MOST], vec![-5, 2]], Some(MOST - 3)),
            (vec![vec![-3], vec![-4, 1]], Some(-6)),
        ] {
            assert_eq!(sums(&parts), [expected; 2], "{parts:?}");
        }
    }
}
