//! What may fail is not computed for rows that a filter is to keep out: what stands above a filter stays there, and conditions
//! of joins stay whole where they are guarded, for their parts would be computed beforehand, for every row of one side.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::projection::{ProjectionExec, remove_unnecessary_projections, try_embed_projection};

use super::guards::is_guarded;

/// DataFusion's rule for projections, without its way with filters, and with conditions of joins where one is guarded.
#[derive(Debug)]
pub(crate) struct GuardProjections(pub Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for GuardProjections {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        match is_guarding(&plan)? {
            true => plan.transform_down(moved_down).data(),
            false => self.0.optimize(plan, config),
        }
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// The projection further down, if it may go there. One that computes anything gives a filter just its columns.
fn moved_down(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(projection) = plan.downcast_ref::<ProjectionExec>() else { return Ok(Transformed::no(plan)) };
    let computes = projection.expr().iter().any(|part| !part.expr.is::<Column>() && !part.expr.is::<Literal>());
    let Some(filter) = projection.input().downcast_ref::<FilterExec>().filter(|_| computes) else {
        return remove_unnecessary_projections(plan);
    };
    Ok(match try_embed_projection(projection, filter)? {
        Some(embedded) => Transformed::yes(embedded),
        None => Transformed::no(plan),
    })
}

/// True for a plan with filters, or with joins that are guarded.
fn is_guarding(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|plan| match plan.downcast_ref::<NestedLoopJoinExec>().and_then(NestedLoopJoinExec::filter) {
        Some(filter) => holds_guarded(filter.expression()),
        None => Ok(plan.is::<FilterExec>()),
    })
}

fn holds_guarded(expr: &Arc<dyn PhysicalExpr>) -> Result<bool> {
    let mut found = false;
    expr.apply(|expr| {
        found |= is_guarded(expr);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}
