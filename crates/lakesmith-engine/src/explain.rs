//! A plan as text: first the files, by what they are skipped, then the operators.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use lakesmith::{QueryRows, ScanReport};

/// The rows of EXPLAIN, one a line; `ran`: with what the operators measured.
pub(crate) fn plan(physical: &Arc<dyn ExecutionPlan>, scans: Arc<[ScanReport]>, ran: bool) -> QueryRows {
    let mut text = String::from("== Files ==\n");
    for scan in scans.iter() {
        text += &format!("{scan}\n");
    }
    text += "\n== Physical Plan ==\n";
    text += &match ran {
        true => DisplayableExecutionPlan::with_metrics(physical.as_ref()).indent(false).to_string(),
        false => DisplayableExecutionPlan::new(physical.as_ref()).indent(false).to_string(),
    };
    QueryRows { columns: vec!["plan".to_owned()], rows: text.lines().map(|line| vec![line.into()]).collect(), scans }
}
