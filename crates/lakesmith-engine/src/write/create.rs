//! CREATE TABLE … AS SELECT and its kin: a table that is there with all of its rows, or not at all.

use std::cell::RefCell;

use lakesmith::{CreateFrom, Error, Result, RowChange, RowRules, create_table};

use super::columns::Given;
use super::fill::fill;
use super::insert::laid_out;
use super::schema::schema;
use super::{Running, in_insert, sink};
use crate::query::Prepared;
use crate::statement::{Files, Kind};

/// Runs the statement, whose query is the one that was parsed.
///
/// # Errors
/// Those of CREATE TABLE and of the query; nothing is made then.
pub(crate) fn create(running: Running<'_>, head: &CreateFrom) -> Result<()> {
    let Running { session, runtime, views, parsed } = running;
    let Kind::Query(query) = &parsed.kind else {
        return Err(Error::usage("Syntax error: a table is made from a query").class("PARSE_SYNTAX_ERROR"));
    };
    let mut source = (**query).clone();
    let prepared = Prepared::new(session, runtime, views, &mut source, parsed)?;
    let (names, logical) = prepared.logical()?;
    let mut options = create_table(&head.clauses, session.settings());
    let fields: Vec<_> = logical.schema().fields().iter().cloned().collect();
    options.schema = schema(&names, fields.iter().map(|f| f.as_ref()), &|name| prepared.spelling(name))?;
    let logical = RefCell::new(Some(logical));
    let write = |change: &RowChange<'_>| {
        // What the query has read must be what is replaced.
        change.check_unmoved(prepared.version_read(change.root()))?;
        // Another writer made the table while its rows were written.
        let logical = logical.borrow_mut().take().ok_or_else(|| change.made_by_another())?;
        let given: Vec<Given> = (0..names.len()).map(Given::Source).collect();
        let filled = fill(prepared.context(), change, &RowRules::default(), logical, &given, None)?;
        let physical = prepared.physical(runtime, &filled.plan).map_err(in_insert)?;
        let files: Option<Files> = parsed.files;
        let (physical, writers, spread) = laid_out(change, physical, files)?;
        sink::write(runtime, change, &physical, &prepared.context().task_ctx(), (writers, spread), &filled.checks)
    };
    session.create_table_from(&head.table, &options, &write)
}
