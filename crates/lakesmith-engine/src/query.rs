//! A query from its tree to its rows.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::{Query as Ast, Statement};
use futures::StreamExt as _;
use lakesmith::op::TimeTravel;
use lakesmith::{Error, ErrorKind, HIDDEN_NAMES, Location, QueryRows, Result, ScanReport, Session, Table, TableRef};
use tokio::runtime::Runtime;

use crate::context::context;
use crate::failure::translate;
use crate::planner::{Tables, plan};
use crate::read::{LakeTable, ScanSummary, Summaries, Version, metadata_rows};
use crate::statement::{
    Kind, OpenedColumns, Output, Parsed, Places, Relation, Relations, Source, View, mentions, name_outputs,
    only_counts, parse, settle_columns, translate_functions, type_literals,
};
use crate::{explain, files, rows};

/// How often a query that runs looks whether it is to stop.
const CANCEL_CHECK: Duration = Duration::from_millis(100);

/// A query whose relations are open.
pub(crate) struct Prepared {
    context: SessionContext,
    tables: Tables,
    statement: Statement,
    places: Places,
    output: Output,
    summaries: Summaries,
    /// Versions of tables that were opened as they are now.
    newest: Vec<(Location, u64)>,
}

impl Prepared {
    /// Opens what `query` names; `parsed` is the statement that it stands in.
    ///
    /// # Errors
    /// Usage for names that stand for nothing, those of opening tables.
    pub(crate) fn new(
        session: &Session,
        runtime: &Runtime,
        views: &HashMap<String, View>,
        query: &mut Ast,
        parsed: &Parsed,
    ) -> Result<Prepared> {
        let is_table = |path: &str| -> Result<bool> {
            match session.outline_table(&TableRef::Path(path.to_owned()), TimeTravel::Latest) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
                Err(error) => Err(error),
                Ok(_) => Ok(true),
            }
        };
        let mut relations = Relations::new(views, &Table::instant_ms, &is_table, &parsed.spelled);
        relations.find(query)?;
        let (found, mut spelled) = (relations.found, relations.spelled);
        let hidden: Vec<&str> = HIDDEN_NAMES.into_iter().filter(|name| mentions(query, name)).collect();
        let only_counts = only_counts(query);
        name_outputs(query, &mut spelled);
        let mut output = Output { names: None, spellings: spelled.by_name() };
        let prepared = context(session)?;
        let summaries = Summaries::default();
        let mut tables = Tables::new();
        let mut columns = OpenedColumns::new();
        let mut newest = Vec::new();
        for relation in &found {
            let opened = Opened {
                session,
                runtime,
                views,
                context: &prepared,
                hidden: &hidden,
                only_counts,
                summaries: &summaries,
                output: &mut output,
            };
            let (provider, names, version) = opened.provider(relation)?;
            newest.extend(version);
            tables.insert(relation.name.clone(), provider);
            columns.insert(relation.name.clone(), names);
        }
        output.names = settle_columns(query, spelled, &columns, &hidden)?;
        translate_functions(query)?;
        type_literals(query);
        let statement = Statement::Query(Box::new(query.clone()));
        Ok(Prepared { context: prepared, tables, statement, places: parsed.spelled.clone(), output, summaries, newest })
    }

    fn failed(&self, error: DataFusionError) -> Error {
        let error = translate(error, &|name| self.output.spelling(name));
        // DataFusion does not tell where a field of a struct is asked for.
        let field = match error.context_value("field") {
            Some(field) if error.context_value("line").is_none() => field.to_owned(),
            _ => return error,
        };
        let place = self.places.iter().filter(|(_, spelling)| spelling.to_lowercase() == field).map(|(place, _)| place);
        match place.min() {
            Some((line, column)) => error.with("line", line).with("position", column.saturating_sub(1)),
            None => error,
        }
    }

    /// A name as it is spelled.
    pub(crate) fn spelling(&self, name: &str) -> String {
        self.output.spelling(name)
    }

    /// The context in which it is planned.
    pub(crate) fn context(&self) -> &SessionContext {
        &self.context
    }

    /// The plan before anything is chosen, and what its columns are called.
    ///
    /// # Errors
    /// Usage with Spark's class for a query that means nothing.
    pub(crate) fn logical(&self) -> Result<(Vec<String>, LogicalPlan)> {
        let logical = plan(&self.context.state(), &self.tables, self.statement.clone()).map_err(|e| self.failed(e))?;
        let columns: Vec<String> = logical.schema().fields().iter().map(|f| f.name().clone()).collect();
        Ok((self.output.shown(&columns), logical))
    }

    /// A plan that was made from it, with its files chosen.
    ///
    /// # Errors
    /// As [`Prepared::plan`].
    pub(crate) fn physical(&self, runtime: &Runtime, logical: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        let state = self.context.state();
        runtime.block_on(state.create_physical_plan(logical)).map_err(|e| self.failed(e))
    }

    /// The version of the table at `root` that was opened as it is now, if it was.
    pub(crate) fn version_read(&self, root: &Location) -> Option<u64> {
        self.newest.iter().filter(|(table, _)| table == root).map(|(_, version)| *version).min()
    }

    /// True if a plan of it reads the table at `root`.
    pub(crate) fn reads(&self, root: &Location) -> bool {
        let root = root.to_string();
        self.summaries.all().iter().any(|summary| summary.report.table == root)
    }

    /// The plan, with its files chosen.
    ///
    /// # Errors
    /// Usage with Spark's class for a query that means nothing, those of reading metadata.
    pub(crate) fn plan(self, runtime: &Runtime) -> Result<Planned> {
        let (columns, logical) = self.logical()?;
        let physical = self.physical(runtime, &logical)?;
        Ok(Planned { prepared: self, physical, columns })
    }
}

/// The plan of a query over `tables`, by the names that they have there; each of its columns says what it is called.
///
/// # Errors
/// As [`Prepared::logical`].
pub(crate) fn plan_text(context: &SessionContext, tables: &Tables, text: &str) -> Result<LogicalPlan> {
    let parsed = parse(text)?;
    let Kind::Query(query) = &parsed.kind else { return Err(Error::internal("a rule of a table is no query")) };
    let mut query = (**query).clone();
    translate_functions(&mut query)?;
    type_literals(&mut query);
    let statement = Statement::Query(Box::new(query));
    plan(&context.state(), tables, statement).map_err(|e| translate(e, &str::to_owned))
}

struct Opened<'a> {
    session: &'a Session,
    runtime: &'a Runtime,
    views: &'a HashMap<String, View>,
    context: &'a SessionContext,
    /// Names of hidden columns that the query asks for.
    hidden: &'a [&'static str],
    only_counts: bool,
    summaries: &'a Summaries,
    output: &'a mut Output,
}

/// A relation, its columns as they are spelled, and the version of a table that was opened as it is now.
type Provided = (Arc<dyn TableProvider>, Vec<String>, Option<(Location, u64)>);

impl Opened<'_> {
    /// Opens the relation.
    fn provider(self, relation: &Relation) -> Result<Provided> {
        Ok(match &relation.source {
            Source::Table(table, at) => {
                let at: TimeTravel = at.time_travel();
                if let Some(described) = self.session.metadata_table(table, &at)? {
                    let fields = &described.schema.fields;
                    spell(fields, &mut self.output.spellings);
                    let names = fields.iter().map(|field| field.name.clone()).collect();
                    return Ok((Arc::new(metadata_rows(described)?), names, None));
                }
                let missing = |error: Error| match (Table::is_missing(&error), table) {
                    (true, TableRef::Path(_)) => error.class("PATH_NOT_FOUND"),
                    (true, _) => error.class("TABLE_OR_VIEW_NOT_FOUND"),
                    (false, _) => error,
                };
                let newest = at == TimeTravel::Latest;
                let version = match self.only_counts {
                    true => Version::Outlined(self.session.outline_table(table, at).map_err(missing)?),
                    false => Version::Loaded(self.session.open_table(table, at).map_err(missing)?),
                };
                let fields = &version.table().state().schema.fields;
                spell(fields, &mut self.output.spellings);
                let names = fields.iter().map(|field| field.name.clone()).collect();
                let newest = newest.then(|| (version.table().root().clone(), version.table().state().version));
                (Arc::new(LakeTable::new(version, self.hidden, self.summaries.clone())?), names, newest)
            }
            Source::Files(format, path) => {
                let (files, names) = self.runtime.block_on(files::open(self.session, self.context, format, path))?;
                (files, names, None)
            }
            Source::InputFiles(text) => (self.input_files(text)?, vec!["path".to_owned()], None),
        })
    }

    /// The files that a query reads, as a table.
    fn input_files(&self, text: &str) -> Result<Arc<dyn TableProvider>> {
        let parsed = parse(text)?;
        let Kind::Query(query) = &parsed.kind else {
            return Err(Error::usage("input_files takes a query").class("UNSUPPORTED_FEATURE"));
        };
        let mut query = (**query).clone();
        let prepared = Prepared::new(self.session, self.runtime, self.views, &mut query, &parsed)?;
        let planned = prepared.plan(self.runtime)?;
        let summaries = planned.summaries();
        let mut paths: Vec<String> =
            summaries.iter().flat_map(|s| s.read.iter().map(|location| location.to_url().to_string())).collect();
        paths.sort();
        paths.dedup();
        let schema = Arc::new(Schema::new(vec![Field::new("path", DataType::Utf8, false)]));
        let failed = |e| Error::internal("the list of files cannot be made").caused_by(e);
        let batch =
            RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(StringArray::from(paths))]).map_err(failed)?;
        let table = MemTable::try_new(schema, vec![vec![batch]]).map_err(|e| translate(e, &str::to_owned))?;
        Ok(Arc::new(table))
    }
}

/// Notes how columns and fields are spelled.
fn spell(fields: &[lakesmith::table::Field], spellings: &mut HashMap<String, String>) {
    use lakesmith::table::DataType;
    for field in fields {
        let lower = field.name.to_lowercase();
        // A name that the query itself spells is spelled that way.
        spellings.entry(lower).or_insert_with(|| field.name.clone());
        match &field.data_type {
            DataType::Struct(children) => spell(children, spellings),
            DataType::List(element) => spell(std::slice::from_ref(element), spellings),
            DataType::Map(key, value) => {
                spell(std::slice::from_ref(key), spellings);
                spell(std::slice::from_ref(value), spellings);
            }
            _ => {}
        }
    }
}

/// A plan that can be run or explained.
pub(crate) struct Planned {
    prepared: Prepared,
    physical: Arc<dyn ExecutionPlan>,
    columns: Vec<String>,
}

impl Planned {
    /// What is run.
    pub(crate) fn physical(&self) -> Arc<dyn ExecutionPlan> {
        Arc::clone(&self.physical)
    }

    /// What it is run with.
    pub(crate) fn task_ctx(&self) -> Arc<TaskContext> {
        self.prepared.context.task_ctx()
    }

    /// What a failure says to the user.
    pub(crate) fn failed(&self, error: DataFusionError) -> Error {
        self.prepared.failed(error)
    }

    /// What its scans skip and read.
    pub(crate) fn summaries(&self) -> Vec<ScanSummary> {
        self.prepared.summaries.all()
    }

    /// The same as counts.
    pub(crate) fn scans(&self) -> Arc<[ScanReport]> {
        self.summaries().into_iter().map(|summary| summary.report).collect()
    }

    /// Runs it.
    ///
    /// # Errors
    /// Those of the query and of `each`.
    pub(crate) fn run(
        &self,
        runtime: &Runtime,
        session: &Session,
        each: &mut dyn FnMut(QueryRows) -> Result<()>,
    ) -> Result<()> {
        let failed = |e| self.prepared.failed(e);
        let scans = self.scans();
        runtime.block_on(async {
            let mut stream =
                execute_stream(Arc::clone(&self.physical), self.prepared.context.task_ctx()).map_err(failed)?;
            let mut some = false;
            loop {
                let next = match tokio::time::timeout(CANCEL_CHECK, stream.next()).await {
                    Ok(next) => next,
                    Err(_) => {
                        session.cancel().check()?;
                        continue;
                    }
                };
                let Some(batch) = next else { break };
                let batch = batch.map_err(failed)?;
                if batch.num_rows() == 0 {
                    continue;
                }
                let rows = rows::rows(&batch, &self.prepared.output)?;
                each(QueryRows { columns: self.columns.clone(), rows, scans: Arc::clone(&scans) })?;
                some = true;
            }
            match some {
                true => Ok(()),
                false => each(QueryRows { columns: self.columns.clone(), rows: Vec::new(), scans }),
            }
        })
    }

    /// The plan as text.
    ///
    /// # Errors
    /// None today.
    pub(crate) fn explain(&self) -> Result<QueryRows> {
        Ok(explain::plan(&self.physical, self.scans(), false))
    }

    /// The same after a run.
    ///
    /// # Errors
    /// None today.
    pub(crate) fn explain_run(&self) -> Result<QueryRows> {
        Ok(explain::plan(&self.physical, self.scans(), true))
    }
}
