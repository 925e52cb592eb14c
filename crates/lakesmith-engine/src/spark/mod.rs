//! Spark's meaning of expressions where DataFusion's is another one.

mod arithmetic;
mod casts;
mod decimal;
mod decimal_sum;
mod failing;
pub(crate) mod float_order;
mod function;
mod guarded_projections;
mod guards;
mod item;
mod planner;
mod promotion;
mod range;
mod ranks;
mod rule;
mod sums;
mod truth;
mod types;

pub(crate) use arithmetic::out_of_range;
pub(crate) use guarded_projections::GuardProjections;
pub(crate) use guards::{GuardFilters, is_guarded};
pub(crate) use planner::SparkOperators;
pub(crate) use promotion::SparkCommonTypes;
pub(crate) use range::Range;
pub(crate) use rule::SparkMeaning;
pub(crate) use types::SparkTypes;
