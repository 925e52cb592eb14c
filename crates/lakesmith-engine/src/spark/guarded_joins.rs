//! Conditions of joins stay whole where they are guarded: computing parts of them beforehand, for every row of one side,
//! would ask rows that the guard keeps out.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::projection::remove_unnecessary_projections;

use super::guards::is_guarded;

/// DataFusion's rule for projections, without its way with conditions of joins where one is guarded.
#[derive(Debug)]
pub(crate) struct GuardJoins(pub Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for GuardJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        match joins_guarded(&plan)? {
            true => plan.transform_down(remove_unnecessary_projections).data(),
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

fn joins_guarded(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|plan| match plan.downcast_ref::<NestedLoopJoinExec>().and_then(NestedLoopJoinExec::filter) {
        Some(filter) => holds_guarded(filter.expression()),
        None => Ok(false),
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
