//! The relations of a query: tables, versions and views that it names.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Query, SelectItem,
    SetExpr, TableAlias, TableFactor, TableVersion, Value, VisitMut as _, VisitorMut, With, visit_expressions,
};
use lakesmith::op::TimeTravel;
use lakesmith::{Error, ErrorKind, Result, TableRef};

use super::spelling::{Places, Spelled};

/// How the names begin that relations get.
pub(super) const RELATION_PREFIX: &str = "__lakesmith_";

/// What a name in FROM stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    /// A table at a version.
    Table(TableRef, At),
    /// Files of a format at a path.
    Files(String, String),
    /// The files that a query reads.
    InputFiles(String),
}

/// Which version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum At {
    /// The newest.
    Latest,
    /// By number.
    Version(u64),
    /// By time, milliseconds since the epoch.
    Time(i64),
    /// By the name of a branch or a tag.
    Named(String),
}

impl At {
    /// For the session to open.
    pub(crate) fn time_travel(&self) -> TimeTravel {
        match self {
            At::Latest => TimeTravel::Latest,
            At::Version(version) => TimeTravel::Version(*version),
            At::Time(ms) => TimeTravel::Timestamp(*ms),
            At::Named(name) => TimeTravel::Reference(name.clone()),
        }
    }
}

/// A relation that is to be opened, and the name that the tree now has for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Relation {
    /// Name in the tree.
    pub name: String,
    /// What it stands for.
    pub source: Source,
}

/// A temporary view.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// Its query, at lines that no other text has.
    pub query: Query,
    /// Spellings of names in it.
    pub spelled: Places,
}

/// Finds the relations of queries and gives them names of their own.
pub(crate) struct Relations<'a> {
    /// Temporary views by name.
    pub views: &'a HashMap<String, View>,
    /// Turns text into milliseconds.
    pub instant: &'a dyn Fn(&str) -> Result<i64>,
    /// True for the path of a table.
    pub is_table: &'a dyn Fn(&str) -> Result<bool>,
    /// How names are shown, also those of the views that were put in.
    pub spelled: Spelled,
    /// What was found.
    pub found: Vec<Relation>,
    scopes: Vec<HashSet<String>>,
    done: HashSet<String>,
    /// The WITH clauses of the queries that are being visited.
    visited: Vec<Option<With>>,
}

impl<'a> Relations<'a> {
    /// Nothing is found yet.
    pub(crate) fn new(
        views: &'a HashMap<String, View>,
        instant: &'a dyn Fn(&str) -> Result<i64>,
        is_table: &'a dyn Fn(&str) -> Result<bool>,
        spelled: &Places,
    ) -> Self {
        Self {
            views,
            instant,
            is_table,
            spelled: Spelled::new(spelled.clone()),
            found: Vec::new(),
            scopes: Vec::new(),
            done: HashSet::new(),
            visited: Vec::new(),
        }
    }

    /// Finds the relations of `query`.
    ///
    /// # Errors
    /// Usage for a version that is none.
    pub(crate) fn find(&mut self, query: &mut Query) -> Result<()> {
        match query.visit(self) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    fn named(&mut self, source: Source) -> String {
        if let Some(known) = self.found.iter().find(|r| r.source == source) {
            return known.name.clone();
        }
        let name = format!("{RELATION_PREFIX}{}", self.found.len());
        self.done.insert(name.clone());
        self.found.push(Relation { name: name.clone(), source });
        name
    }

    fn table(&mut self, factor: &mut TableFactor) -> Result<()> {
        let sampled = match factor {
            TableFactor::Table { sample, .. } | TableFactor::Derived { sample, .. } => sample.is_some(),
            _ => false,
        };
        if sampled {
            return Err(Error::unsupported("TABLESAMPLE is not supported yet").class("UNSUPPORTED_FEATURE"));
        }
        let TableFactor::Table { name, alias, args, version, .. } = factor else { return Ok(()) };
        let parts: Vec<String> =
            name.0.iter().filter_map(|part| part.as_ident().map(|ident| ident.value.clone())).collect();
        let [.., last] = parts.as_slice() else { return Ok(()) };
        if let Some(args) = args {
            if parts.len() == 1 && last == "input_files" {
                let text = match args.args.as_slice() {
                    [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value)))] => match &value.value {
                        Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => text.clone(),
                        _ => return Err(no_query()),
                    },
                    _ => return Err(no_query()),
                };
                let unique = self.named(Source::InputFiles(text));
                rename(factor, &unique, "input_files");
            }
            return Ok(());
        }
        if self.done.contains(last) && parts.len() == 1 {
            return Ok(());
        }
        if parts.len() == 1 && self.scopes.iter().any(|scope| scope.contains(last)) {
            return Ok(());
        }
        if parts.len() == 1
            && version.is_none()
            && let Some(View { mut query, spelled }) = self.views.get(last).cloned()
        {
            self.spelled.extend(&spelled);
            let alias = alias.take().unwrap_or_else(|| named(last));
            let scopes = std::mem::take(&mut self.scopes);
            let found = self.find(&mut query);
            self.scopes = scopes;
            found?;
            *factor =
                TableFactor::Derived { lateral: false, subquery: Box::new(query), alias: Some(alias), sample: None };
            return Ok(());
        }
        let at = version.take().map(|v| self.version(v)).transpose()?;
        let shown = last.clone();
        let source = match parts.as_slice() {
            [format, path] if format == "delta" => {
                // A folder that is really called so is meant itself.
                let (path, at) = match travelled(path, None)? {
                    (_, At::Latest) => (path.clone(), at.unwrap_or(At::Latest)),
                    _ if (self.is_table)(path)? => (path.clone(), at.unwrap_or(At::Latest)),
                    _ => travelled(path, at)?,
                };
                Source::Table(TableRef::Path(path), at)
            }
            [format, path] if ["parquet", "csv", "json"].contains(&format.as_str()) => {
                Source::Files(format.clone(), path.clone())
            }
            [_, _] if !matches!(TableRef::of_parts(parts.clone()), TableRef::Name(_)) => {
                Source::Table(TableRef::of_parts(parts), at.unwrap_or(At::Latest))
            }
            _ => {
                let (last, at) = travelled(&shown, at)?;
                let mut parts = parts.clone();
                if let Some(name) = parts.last_mut() {
                    *name = last;
                }
                Source::Table(TableRef::Name(parts), at)
            }
        };
        let unique = self.named(source);
        rename(factor, &unique, &shown);
        Ok(())
    }

    fn version(&self, version: TableVersion) -> Result<At> {
        let wrong = |text: String| {
            Error::usage(format!("the version '{text}' of the table is not a number or a time"))
                .class("INVALID_TIME_TRAVEL_SPEC")
        };
        match version {
            TableVersion::VersionAsOf(expr) => {
                let text = literal(&expr).ok_or_else(|| wrong(expr.to_string()))?;
                Ok(text.parse().map_or(At::Named(text), At::Version))
            }
            TableVersion::TimestampAsOf(expr) | TableVersion::ForSystemTimeAsOf(expr) => {
                let text = literal(&expr).ok_or_else(|| wrong(expr.to_string()))?;
                (self.instant)(&text).map(At::Time).map_err(|e| match e.kind() {
                    ErrorKind::Usage => e.class("INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT"),
                    _ => e,
                })
            }
            other => Err(wrong(other.to_string())),
        }
    }
}

fn no_query() -> Error {
    Error::usage("input_files takes one query as text, as in input_files('SELECT * FROM t')")
        .class("DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE")
}

fn literal(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => Some(text.to_string()),
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        Expr::TypedString(typed) => match &typed.value.value {
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        Expr::Nested(inner) => literal(inner),
        Expr::Cast { expr, .. } => literal(expr),
        _ => None,
    }
}

/// Takes `@v12` and `@yyyyMMddHHmmssSSS` off the end of a name.
///
/// # Source
/// Delta Spark `DeltaTimeTravelSpec.resolvePath`.
fn travelled(name: &str, at: Option<At>) -> Result<(String, At)> {
    let found = name.rsplit_once('@').and_then(|(base, suffix)| Some((base, travel(suffix)?)));
    match (found, at) {
        (Some(_), Some(_)) => Err(Error::usage("the version of a table is given twice, by '@' and by AS OF")
            .class("MULTIPLE_TIME_TRAVEL_SPEC")),
        (Some((base, at)), None) => Ok((base.to_owned(), at)),
        (None, at) => Ok((name.to_owned(), at.unwrap_or(At::Latest))),
    }
}

fn travel(suffix: &str) -> Option<At> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match suffix.strip_prefix(['v', 'V']) {
        Some(number) if digits(number) => number.parse().ok().map(At::Version),
        Some(_) => None,
        None if suffix.len() == 17 && digits(suffix) => {
            let part = |range: std::ops::Range<usize>| &suffix[range];
            let text = format!(
                "{}-{}-{}T{}:{}:{}.{}Z",
                part(0..4),
                part(4..6),
                part(6..8),
                part(8..10),
                part(10..12),
                part(12..14),
                part(14..17)
            );
            let instant: jiff::Timestamp = text.parse().ok()?;
            Some(At::Time(instant.as_millisecond()))
        }
        None => None,
    }
}

fn named(name: &str) -> TableAlias {
    TableAlias { explicit: true, name: Ident::with_quote('`', name), columns: Vec::new(), at: None }
}

/// Gives the relation another name; what it was called stays its alias.
fn rename(factor: &mut TableFactor, unique: &str, shown: &str) {
    if let TableFactor::Table { name, alias, args, .. } = factor {
        *name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(unique))]);
        *args = None;
        alias.get_or_insert_with(|| named(shown));
    }
}

/// True if a column of `query` is called `name`, which is in lower case.
pub(crate) fn mentions(query: &Query, name: &str) -> bool {
    let found = visit_expressions(query, |expr| {
        let is_it = match expr {
            Expr::Identifier(ident) => ident.value == name,
            Expr::CompoundIdentifier(parts) => parts.iter().any(|part| part.value == name),
            _ => false,
        };
        if is_it { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found.is_break()
}

/// True if a query asks for nothing but how many rows there are.
pub(crate) fn only_counts(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let counts = |item: &SelectItem| {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { return false };
        let Expr::Function(call) = expr else { return false };
        let FunctionArguments::List(arguments) = &call.args else { return false };
        let of_rows = |argument: &FunctionArg| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => true,
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => matches!(expr, Expr::Value(_)),
            _ => false,
        };
        call.name.to_string() == "count" && arguments.args.iter().all(of_rows)
    };
    !select.projection.is_empty() && select.projection.iter().all(counts)
}

impl VisitorMut for Relations<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.scopes.push(HashSet::new());
        // A common table expression is known to those after it; its own body means the table of that name. The visit that
        // goes on from here is to pass the bodies over: each is visited once.
        let mut with = query.with.take();
        if let Some(with) = &mut with {
            for cte in &mut with.cte_tables {
                if with.recursive {
                    self.note(&cte.alias.name.value);
                }
                cte.query.visit(self)?;
                self.note(&cte.alias.name.value);
            }
        }
        self.visited.push(with);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.scopes.pop();
        query.with = self.visited.pop().flatten();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        match self.table(factor) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl Relations<'_> {
    fn note(&mut self, name: &str) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned());
        }
    }
}
