//! One statement's DataFusion: its settings, limits, functions and rules.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::optimizer::{Analyzer, Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_spark::SessionStateBuilderSpark as _;
use lakesmith::{Session, threads};
use object_store::memory::InMemory;

use crate::read::storage_url;
use crate::spark::{GuardFilters, GuardProjections, Range, SparkCommonTypes, SparkMeaning, SparkOperators, SparkTypes};
use crate::text_operands::{TextInExpressions, TextInOperators};

/// Consumers of memory that a failure names.
const CONSUMERS_NAMED: usize = 5;

/// Up to so many bytes or rows, divided by the threads, one side of a join becomes one hash table, which all threads look
/// into; beyond, both sides are split, which costs a copy of every row.
const ONE_TABLE_BYTES: usize = 256 << 20;
const ONE_TABLE_ROWS: usize = 4 << 20;

/// A context with the limits of `session`.
///
/// # Errors
/// Usage for a setting that cannot be read.
pub(crate) fn context(session: &Session) -> lakesmith::Result<SessionContext> {
    let limits = session.settings().limits()?;
    let build = || -> Result<SessionContext> {
        let threads = threads(&limits);
        let mut config = SessionConfig::new().with_target_partitions(threads).with_information_schema(false);
        let options = config.options_mut();
        options.optimizer.hash_join_single_partition_threshold = ONE_TABLE_BYTES / threads;
        options.optimizer.hash_join_single_partition_threshold_rows = ONE_TABLE_ROWS / threads;
        options.sql_parser.enable_ident_normalization = false;
        options.sql_parser.parse_float_as_decimal = true;
        options.sql_parser.map_string_types_to_utf8view = false;
        options.sql_parser.collect_spans = true;
        options.execution.enable_ansi_mode = true;
        options.execution.time_zone = Some("UTC".to_owned());
        options.execution.collect_statistics = false;
        options.execution.parquet.schema_force_view_types = false;
        options.execution.parquet.coerce_int96 = Some("us".to_owned());
        options.execution.parquet.coerce_int96_tz = Some("UTC".to_owned());
        // Nulls come first, as in Spark; last where the order is descending.
        options.sql_parser.default_null_ordering = "nulls_min".to_owned();
        let mut disk = DiskManagerBuilder::default();
        if let Some(folder) = &limits.spill_folder {
            disk = disk.with_mode(DiskManagerMode::Directories(vec![folder.clone()]));
        }
        let pool = FairSpillPool::new(usize::try_from(limits.memory_bytes).unwrap_or(usize::MAX));
        let named = std::num::NonZeroUsize::new(CONSUMERS_NAMED).unwrap_or(std::num::NonZeroUsize::MIN);
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(TrackConsumersPool::new(pool, named)))
            .with_disk_manager_builder(disk)
            .build_arc()?;
        runtime.register_object_store(storage_url()?.as_ref(), Arc::new(InMemory::new()));
        let mut rules = Analyzer::new().rules;
        rules.insert(0, Arc::new(SparkCommonTypes));
        rules.insert(0, Arc::new(TextInExpressions));
        rules.push(Arc::new(SparkMeaning));
        let mut optimizers: Vec<Arc<dyn OptimizerRule + Send + Sync>> = Vec::new();
        for rule in Optimizer::new().rules {
            let moves_filters = rule.name() == "push_down_filter";
            if moves_filters {
                optimizers.push(Arc::new(GuardFilters { moved: false }));
            }
            optimizers.push(rule);
            if moves_filters {
                optimizers.push(Arc::new(GuardFilters { moved: true }));
            }
        }
        let physical = PhysicalOptimizer::new().rules.into_iter().map(|rule| match rule.name() {
            "ProjectionPushdown" => Arc::new(GuardProjections(rule)) as Arc<dyn PhysicalOptimizerRule + Send + Sync>,
            _ => rule,
        });
        let mut state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_default_features()
            .with_spark_features()
            .with_analyzer_rules(rules)
            .with_optimizer_rules(optimizers)
            .with_physical_optimizer_rules(physical.collect())
            .with_type_planner(Arc::new(SparkTypes))
            .build();
        let first: [Arc<dyn ExprPlanner>; 2] = [Arc::new(TextInOperators), Arc::new(SparkOperators)];
        let planners = first.into_iter().chain(state.expr_planners().to_vec()).collect();
        state = SessionStateBuilder::new_from_existing(state).with_expr_planners(planners).build();
        let context = SessionContext::new_with_state(state);
        // Spark's mean of decimals is one; the function that goes by its name gives a DOUBLE.
        context.register_udaf(avg_udaf().as_ref().clone());
        for function in crate::functions::all() {
            context.register_udf(function);
        }
        for function in crate::functions::higher_order() {
            context.register_higher_order_function(Arc::new(function));
        }
        context.register_udtf("range", Arc::new(Range));
        Ok(context)
    };
    build().map_err(|e| crate::failure::translate(e, &str::to_owned))
}
