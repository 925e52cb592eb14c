//! Spark's meaning of expressions where DataFusion's is another one.

mod arithmetic;
mod casts;
mod common_type;
mod decimal;
pub(crate) mod float_order;
mod item;
mod planner;
mod range;
mod rule;
mod sums;
mod types;

pub(crate) use common_type::SparkCommonTypes;
pub(crate) use planner::SparkOperators;
pub(crate) use range::Range;
pub(crate) use rule::SparkMeaning;
pub(crate) use types::SparkTypes;
