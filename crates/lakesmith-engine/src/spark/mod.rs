//! Spark's meaning of expressions where DataFusion's is another one.

mod arithmetic;
mod casts;
mod decimal;
pub(crate) mod float_order;
mod item;
mod planner;
mod promotion;
mod range;
mod rule;
mod sums;
mod types;

pub(crate) use planner::SparkOperators;
pub(crate) use promotion::SparkCommonTypes;
pub(crate) use range::Range;
pub(crate) use rule::SparkMeaning;
pub(crate) use types::SparkTypes;
