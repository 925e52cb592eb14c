//! Spark's meaning of expressions where DataFusion's is another one.

mod arithmetic;
mod decimal;
pub(crate) mod float_order;
mod planner;
mod range;
mod rule;

pub(crate) use planner::SparkOperators;
pub(crate) use range::Range;
pub(crate) use rule::SparkMeaning;
