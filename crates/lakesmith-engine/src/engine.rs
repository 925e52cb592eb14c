//! The engine of a session: what it runs, and what it remembers between statements.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use datafusion::sql::sqlparser::ast::CreateView;
use lakesmith::{Error, Query, QueryEngine, QueryRows, Result, ScanReport, Session, create_from};
use tokio::runtime::Runtime;

use crate::deep::deep;
use crate::query::Prepared;
use crate::statement::{Change, ELSEWHERE, Explain, Kind, Parsed, View, parse, parse_at};
use crate::write::{self, Running};

/// Address space for the stack of a thread that evaluates expressions, which goes as deep as they do.
const STACK_BYTES: usize = 64 << 20;

/// Runs SELECT and its kin. One session has one: temporary views live here.
#[derive(Default)]
pub struct Engine {
    views: Mutex<HashMap<String, View>>,
    /// Lines that the texts of views have taken.
    lines: AtomicU64,
    runtime: OnceLock<Runtime>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine without views.
    pub fn new() -> Self {
        Self::default()
    }

    fn runtime(&self) -> Result<&Runtime> {
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime);
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_name("lakesmith-query")
            .thread_stack_size(STACK_BYTES)
            .build()
            .map_err(|e| Error::unavailable("cannot start the threads of the query engine").caused_by(e))?;
        Ok(self.runtime.get_or_init(|| runtime))
    }

    fn views(&self) -> HashMap<String, View> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn create_view(&self, session: &Session, text: &str, parsed: &Parsed, view: &CreateView) -> Result<()> {
        let name = view.name.to_string().replace('`', "");
        let mut views = self.views();
        if views.contains_key(&name) && !view.or_replace {
            if view.if_not_exists {
                return Ok(());
            }
            return Err(Error::usage(format!(
                "the temporary view `{name}` exists already; say CREATE OR REPLACE TEMPORARY VIEW to replace it"
            ))
            .class("TEMP_TABLE_OR_VIEW_ALREADY_EXISTS"));
        }
        // A view that cannot be planned is none; what it replaces is not there for it.
        views.remove(&name);
        let mut query = (*view.query).clone();
        let runtime = self.runtime()?;
        Prepared::new(session, runtime, &views, &mut query, parsed)?.plan(runtime)?;
        let mut kept = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        let length = text.lines().count() as u64 + 1;
        let lines = ELSEWHERE + self.lines.fetch_add(length, Ordering::Relaxed);
        let again = parse_at(text, lines)?;
        let Kind::CreateView(view) = again.kind else { return Err(Error::internal("a view became another statement")) };
        kept.insert(name, View { query: *view.query, spelled: again.spelled });
        Ok(())
    }

    fn drop_view(&self, name: &str, may_be_missing: bool) -> Result<()> {
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        match views.remove(name) {
            None if !may_be_missing => {
                Err(Error::usage(format!("the temporary view `{name}` cannot be found"))
                    .class("TABLE_OR_VIEW_NOT_FOUND"))
            }
            _ => Ok(()),
        }
    }
}

impl QueryEngine for Engine {
    fn scans(&self, session: &Session, query: Query<'_>) -> Result<Arc<[ScanReport]>> {
        deep(&mut |_| Ok(()), |_| self.scanned(session, query.text)).map_err(|e| in_text(e, query))
    }

    fn run(&self, session: &Session, query: Query<'_>, each: &mut dyn FnMut(QueryRows) -> Result<()>) -> Result<()> {
        deep(each, |each| self.statement(session, query.text, each)).map_err(|e| in_text(e, query))
    }
}

impl Engine {
    fn scanned(&self, session: &Session, text: &str) -> Result<Arc<[ScanReport]>> {
        let parsed = parse(text)?;
        let Kind::Query(ast) = &parsed.kind else {
            return Err(Error::usage("only a query can be explained").class("UNSUPPORTED_FEATURE"));
        };
        let mut ast = (**ast).clone();
        let runtime = self.runtime()?;
        let planned = Prepared::new(session, runtime, &self.views(), &mut ast, &parsed)?.plan(runtime)?;
        Ok(planned.scans())
    }

    fn statement(&self, session: &Session, text: &str, each: &mut dyn FnMut(QueryRows) -> Result<()>) -> Result<()> {
        if let Some(head) = create_from(text)? {
            // The query stands where it stood, so that places in it are those of the statement.
            let blank = text[..head.query].chars().map(|c| if c == '\n' { c } else { ' ' });
            let parsed = parse(&(blank.collect::<String>() + &text[head.query..]))?;
            let running = Running { session, runtime: self.runtime()?, views: &self.views(), parsed: &parsed };
            write::create(running, &head)?;
            return each(QueryRows::default());
        }
        let parsed = parse(text)?;
        match &parsed.kind {
            Kind::Query(ast) => {
                let mut ast = (**ast).clone();
                let runtime = self.runtime()?;
                let prepared = Prepared::new(session, runtime, &self.views(), &mut ast, &parsed)?;
                match parsed.explain {
                    None => prepared.plan(runtime)?.run(runtime, session, each),
                    Some(Explain::Plan) => each(prepared.plan(runtime)?.explain()?),
                    Some(Explain::Analyze) => {
                        let plan = prepared.plan(runtime)?;
                        plan.run(runtime, session, &mut |_| Ok(()))?;
                        each(plan.explain_run()?)
                    }
                }
            }
            Kind::CreateView(view) => {
                self.create_view(session, text, &parsed, view)?;
                each(QueryRows::default())
            }
            Kind::Change(change) => {
                let (views, runtime) = (self.views(), self.runtime()?);
                let running = Running { session, runtime, views: &views, parsed: &parsed };
                match change {
                    Change::Insert(statement) => {
                        write::insert(running, statement)?;
                        each(QueryRows::default())
                    }
                    Change::Delete(statement) => write::delete(running, statement, each),
                }
            }
            Kind::DropView(name, may_be_missing) => {
                self.drop_view(name, *may_be_missing)?;
                each(QueryRows::default())
            }
        }
    }
}

/// The place of an error in the whole text rather than in the statement.
fn in_text(error: Error, query: Query<'_>) -> Error {
    let number = |key: &str| error.context_value(key).and_then(|v| v.parse::<u64>().ok());
    let (Some(line), Some(position)) = (number("line"), number("position")) else { return error };
    let position = if line == 1 { position + query.span.column - 1 } else { position };
    error.replacing("line", line + query.span.line - 1).replacing("position", position)
}
