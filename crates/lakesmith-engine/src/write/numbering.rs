//! Numbers for rows of identity columns, as a function in the plan: each row that is asked gets the next one.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::Int64Array;
use arrow::datatypes::DataType;
use datafusion::common::{Result as PlanResult, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use lakesmith::Identity;

/// The numbers of one column in one statement.
pub(super) struct Numbers {
    /// Place of the column.
    pub place: usize,
    identity: Identity,
    given: AtomicU64,
}

impl Numbers {
    pub(super) fn new(place: usize, identity: Identity) -> Arc<Self> {
        Arc::new(Self { place, identity, given: AtomicU64::new(0) })
    }

    /// How many were given.
    pub(super) fn count(&self) -> u64 {
        self.given.load(Ordering::Relaxed)
    }

    /// The expression that gives the next number to each row.
    pub(super) fn expression(self: &Arc<Self>) -> Expr {
        let function = Function { numbers: Arc::clone(self), signature: Signature::nullary(Volatility::Volatile) };
        ScalarUDF::from(function).call(Vec::new())
    }

    fn take(&self, rows: usize) -> PlanResult<Int64Array> {
        let from = self.given.fetch_add(rows as u64, Ordering::Relaxed);
        let number = |at: u64| {
            let steps = i64::try_from(at).ok()?.checked_mul(self.identity.step)?;
            self.identity.next?.checked_add(steps)
        };
        match (from..from + rows as u64).map(number).collect::<Option<Vec<i64>>>() {
            Some(numbers) => Ok(Int64Array::from(numbers)),
            None => exec_err!("overflow: an identity column ran out of numbers"),
        }
    }
}

struct Function {
    numbers: Arc<Numbers>,
    signature: Signature,
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.numbers, &other.numbers)
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.numbers.place.hash(state);
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "numbers of column {}", self.numbers.place)
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        "__lakesmith_next_number"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> PlanResult<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        Ok(ColumnarValue::Array(Arc::new(self.numbers.take(args.number_rows)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_given_twice_and_none_is_invented() {
        let numbers = Numbers::new(0, Identity { next: Some(7), step: -3, takes_values: false });
        assert_eq!(numbers.take(2).unwrap().values().as_ref(), [7, 4]);
        assert_eq!(numbers.take(0).unwrap().len(), 0);
        assert_eq!(numbers.take(1).unwrap().values().as_ref(), [1]);
        assert_eq!(numbers.count(), 3);
        let last = Numbers::new(0, Identity { next: Some(i64::MAX), step: 1, takes_values: true });
        assert_eq!(last.take(1).unwrap().values().as_ref(), [i64::MAX]);
        assert!(last.take(1).is_err());
        assert!(Numbers::new(0, Identity { next: None, step: 1, takes_values: true }).take(1).is_err());
    }
}
