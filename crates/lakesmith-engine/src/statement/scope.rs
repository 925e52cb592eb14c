//! The columns of relations, as far as the tree tells them.
//!
//! # Source
//! Spark `Analyzer.commonNaturalJoinProcessing`: a join by USING or NATURAL gives its keys first, once each.

use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Query, Select,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableFactor, TableWithJoins,
    WildcardAdditionalOptions,
};
use lakesmith::{Error, Result};

use super::functions::call;
use super::names::Unique;
use super::spelling::Spelled;

/// The columns of opened relations as they are spelled, by the relations' names in the tree.
pub(crate) type OpenedColumns = HashMap<String, Vec<String>>;

/// A column of a query.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    /// Name in the tree.
    pub name: String,
    /// Name in results.
    pub spelled: String,
    /// What it is made of, where the query is that of a SELECT.
    pub expr: Expr,
}

/// A column that a FROM gives.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// Name in the tree.
    pub name: String,
    /// Name in results.
    pub spelled: String,
    /// What names it unambiguously.
    pub expr: Expr,
    /// True: the key of a join by USING or NATURAL, which has no relation.
    pub is_key: bool,
}

/// What a FROM gives.
pub(super) struct Joined {
    /// Columns as `*` gives them.
    pub columns: Vec<Column>,
    /// For each join the condition that stands for its USING or NATURAL.
    pub conditions: Vec<Option<Expr>>,
}

/// What can be seen at a place of the tree.
pub(super) struct Scope<'a> {
    /// How names are shown.
    pub spelled: Spelled,
    /// Opened relations.
    pub opened: &'a OpenedColumns,
    /// Common table expressions, the innermost last; `None` for one whose columns are not known.
    pub ctes: Vec<HashMap<String, Option<Vec<Shown>>>>,
}

/// Which rows and columns of its sides a join gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sides {
    /// Keys of the left one, columns of both.
    Left,
    /// Keys of the right one, columns of both.
    Right,
    /// Keys of the one that has the row, columns of both.
    Full,
    /// Columns of the left one.
    LeftAlone,
    /// Columns of the right one.
    RightAlone,
}

impl Scope<'_> {
    /// The columns of a query; `None` if the tree does not tell them.
    ///
    /// # Errors
    /// Usage for a join by columns that are not there.
    pub(super) fn query(&mut self, query: &Query) -> Result<Option<Vec<Shown>>> {
        self.ctes.push(HashMap::new());
        let found = self.with_ctes(query);
        self.ctes.pop();
        found
    }

    fn with_ctes(&mut self, query: &Query) -> Result<Option<Vec<Shown>>> {
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            let columns = self.query(&cte.query)?;
            self.note_cte(&cte.alias, columns);
        }
        self.body(&query.body)
    }

    /// Makes a common table expression known to what comes after it.
    pub(super) fn note_cte(&mut self, alias: &TableAlias, columns: Option<Vec<Shown>>) {
        let columns = columns.and_then(|columns| self.renamed(columns, alias));
        if let Some(innermost) = self.ctes.last_mut() {
            innermost.insert(alias.name.value.clone(), columns);
        }
    }

    fn renamed(&self, mut columns: Vec<Shown>, alias: &TableAlias) -> Option<Vec<Shown>> {
        if !alias.columns.is_empty() && alias.columns.len() != columns.len() {
            return None;
        }
        for (column, to) in columns.iter_mut().zip(&alias.columns) {
            column.name.clone_from(&to.name.value);
            column.spelled = self.spelled.of(&to.name);
        }
        Some(columns)
    }

    fn body(&mut self, body: &SetExpr) -> Result<Option<Vec<Shown>>> {
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { left, .. } => self.body(left),
            SetExpr::Values(values) => {
                let width = values.rows.first().map_or(0, |row| row.len());
                let column = |at: usize| {
                    let name = values_name(at);
                    Shown { expr: Expr::Identifier(Ident::new(&name)), spelled: name.clone(), name }
                };
                Ok(Some((1..=width).map(column).collect()))
            }
            _ => Ok(None),
        }
    }

    /// The columns of a SELECT whose columns are named.
    pub(super) fn select(&mut self, select: &Select) -> Result<Option<Vec<Shown>>> {
        let mut found = Vec::new();
        for item in &select.projection {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let ident = match expr {
                        Expr::Identifier(ident) => ident,
                        Expr::CompoundIdentifier(parts) => match parts.last() {
                            Some(ident) => ident,
                            None => return Ok(None),
                        },
                        _ => return Ok(None),
                    };
                    let (name, spelled) = (ident.value.clone(), self.spelled.of(ident));
                    found.push(Shown { name, spelled, expr: expr.clone() });
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    let (name, spelled) = (alias.value.clone(), self.spelled.of(alias));
                    found.push(Shown { name, spelled, expr: expr.clone() });
                }
                SelectItem::Wildcard(options) => {
                    let Some(columns) = self.from(&select.from)? else { return Ok(None) };
                    let Some(columns) = without(columns, options) else { return Ok(None) };
                    found.extend(columns);
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return Ok(None) };
                    let Some(columns) = self.relation(&select.from, &name.value)? else { return Ok(None) };
                    let Some(columns) = without(columns, options) else { return Ok(None) };
                    found.extend(columns);
                }
                _ => return Ok(None),
            }
        }
        let wanted: Vec<String> = found.iter().map(|c| c.name.clone()).collect();
        let mut names = Unique::new(&wanted);
        found.iter_mut().for_each(|column| column.name = names.take(&column.name));
        Ok(Some(found).filter(|found| !found.is_empty()))
    }

    /// The columns that `*` gives over `from`.
    pub(super) fn from(&mut self, from: &[TableWithJoins]) -> Result<Option<Vec<Column>>> {
        let mut all = Vec::new();
        for one in from {
            let Some(joined) = self.joined(one)? else { return Ok(None) };
            all.extend(joined.columns);
        }
        Ok(Some(all))
    }

    /// The columns of the relation called `name`.
    fn relation(&mut self, from: &[TableWithJoins], name: &str) -> Result<Option<Vec<Column>>> {
        for one in from {
            let relations = std::iter::once(&one.relation).chain(one.joins.iter().map(|join| &join.relation));
            for factor in relations {
                match factor {
                    TableFactor::NestedJoin { table_with_joins, alias: None } => {
                        if let Some(found) = self.relation(std::slice::from_ref(table_with_joins), name)? {
                            return Ok(Some(found));
                        }
                    }
                    _ if called(factor) == Some(name) => return self.factor(factor),
                    _ => {}
                }
            }
        }
        Ok(None)
    }

    /// What a relation and those that are joined with it give.
    pub(super) fn joined(&mut self, from: &TableWithJoins) -> Result<Option<Joined>> {
        let Some(mut columns) = self.factor(&from.relation)? else { return Ok(None) };
        let mut conditions = Vec::new();
        for join in &from.joins {
            let Some(right) = self.factor(&join.relation)? else { return Ok(None) };
            let Some((sides, constraint)) = kind(join) else { return Ok(None) };
            let keys = keys(&columns, &right, constraint)?;
            conditions.push(condition(&columns, &right, &keys));
            columns = merged(columns, right, &keys, sides);
        }
        Ok(Some(Joined { columns, conditions }))
    }

    fn factor(&mut self, factor: &TableFactor) -> Result<Option<Vec<Column>>> {
        let columns = match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                return Ok(self.joined(table_with_joins)?.map(|joined| joined.columns));
            }
            TableFactor::Table { name, args, .. } => {
                let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return Ok(None) };
                let plain = |name: &String| {
                    let lower = name.to_lowercase();
                    Shown { expr: Expr::Identifier(Ident::new(&lower)), name: lower, spelled: name.clone() }
                };
                match (args, self.opened.get(&name.value)) {
                    (Some(_), _) if name.value == "range" => Some(vec![plain(&"id".to_owned())]),
                    (Some(_), _) => None,
                    (None, Some(columns)) => Some(columns.iter().map(plain).collect()),
                    (None, None) => self.ctes.iter().rev().find_map(|ctes| ctes.get(&name.value)).cloned().flatten(),
                }
            }
            TableFactor::Derived { subquery, .. } => self.query(subquery)?,
            _ => None,
        };
        let (TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. }) = factor else { return Ok(None) };
        let columns = match alias {
            Some(alias) => columns.and_then(|columns| self.renamed(columns, alias)),
            None => columns,
        };
        let relation = called(factor);
        Ok(columns.map(|columns| {
            columns
                .into_iter()
                .map(|Shown { name, spelled, .. }| {
                    let column = Ident::with_quote('`', &name);
                    let expr = match relation {
                        Some(relation) => Expr::CompoundIdentifier(vec![Ident::with_quote('`', relation), column]),
                        None => Expr::Identifier(column),
                    };
                    Column { name, spelled, expr, is_key: false }
                })
                .collect()
        }))
    }
}

/// The name of a column of VALUES, counted from 1.
pub(super) fn values_name(at: usize) -> String {
    format!("col{at}")
}

/// What a relation is called.
pub(super) fn called(factor: &TableFactor) -> Option<&str> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(&alias.name.value)
        }
        TableFactor::Table { name, args: None, .. } => {
            name.0.last().and_then(|part| part.as_ident()).map(|i| i.value.as_str())
        }
        _ => None,
    }
}

/// The columns without those that EXCEPT names; `None` if `*` says more, or names one that is not there.
fn without(columns: Vec<Column>, options: &WildcardAdditionalOptions) -> Option<Vec<Shown>> {
    let more = options.opt_ilike.is_some()
        || options.opt_exclude.is_some()
        || options.opt_replace.is_some()
        || options.opt_rename.is_some()
        || options.opt_alias.is_some();
    if more {
        return None;
    }
    let except =
        options.opt_except.iter().flat_map(|e| std::iter::once(&e.first_element).chain(&e.additional_elements));
    let except: Vec<&str> = except.map(|ident| ident.value.as_str()).collect();
    if except.iter().any(|name| !columns.iter().any(|column| column.name == *name)) {
        return None;
    }
    let kept = columns.into_iter().filter(|column| !except.contains(&column.name.as_str()));
    Some(kept.map(|Column { name, spelled, expr, .. }| Shown { name, spelled, expr }).collect())
}

/// What a join gives, and by which constraint; `None` for joins that Spark does not have.
pub(super) fn kind(join: &Join) -> Option<(Sides, &JoinConstraint)> {
    use JoinOperator as J;
    Some(match &join.join_operator {
        J::Join(c) | J::Inner(c) | J::CrossJoin(c) | J::Left(c) | J::LeftOuter(c) => (Sides::Left, c),
        J::Right(c) | J::RightOuter(c) => (Sides::Right, c),
        J::FullOuter(c) => (Sides::Full, c),
        J::Semi(c) | J::LeftSemi(c) | J::Anti(c) | J::LeftAnti(c) => (Sides::LeftAlone, c),
        J::RightSemi(c) | J::RightAnti(c) => (Sides::RightAlone, c),
        _ => return None,
    })
}

/// Places of the keys in the columns of both sides.
fn keys(left: &[Column], right: &[Column], constraint: &JoinConstraint) -> Result<Vec<(usize, usize)>> {
    let place = |side: &str, columns: &[Column], name: &str| {
        let mut places = columns.iter().enumerate().filter(|(_, column)| column.name == name).map(|(at, _)| at);
        match (places.next(), places.next()) {
            (Some(at), None) => Ok(at),
            (Some(_), Some(_)) => Err(Error::usage(format!(
                "the name `{name}` is ambiguous: more than one relation on the {side} side of the join has it"
            ))
            .class("AMBIGUOUS_REFERENCE")),
            (None, _) => {
                let known: Vec<String> = columns.iter().map(|c| format!("`{}`", c.spelled)).collect();
                Err(Error::usage(format!(
                    "USING column `{name}` cannot be resolved on the {side} side of the join; its columns are [{}]",
                    known.join(", ")
                ))
                .class("UNRESOLVED_USING_COLUMN_FOR_JOIN"))
            }
        }
    };
    let names: Vec<String> = match constraint {
        JoinConstraint::Using(names) => {
            let last = |name: &ObjectName| name.0.last().and_then(|part| part.as_ident()).map(|i| i.value.clone());
            names.iter().filter_map(last).collect()
        }
        JoinConstraint::Natural => {
            let common = left.iter().filter(|column| right.iter().any(|other| other.name == column.name));
            common.map(|column| column.name.clone()).collect()
        }
        _ => return Ok(Vec::new()),
    };
    names.iter().map(|name| Ok((place("left", left, name)?, place("right", right, name)?))).collect()
}

fn condition(left: &[Column], right: &[Column], keys: &[(usize, usize)]) -> Option<Expr> {
    let binary = |left: Expr, op: BinaryOperator, right: Expr| Expr::BinaryOp {
        left: Box::new(left),
        op,
        right: Box::new(right),
    };
    let equal = keys.iter().map(|(l, r)| binary(left[*l].expr.clone(), BinaryOperator::Eq, right[*r].expr.clone()));
    equal.reduce(|all, next| binary(all, BinaryOperator::And, next))
}

/// The columns of a join.
fn merged(left: Vec<Column>, right: Vec<Column>, keys: &[(usize, usize)], sides: Sides) -> Vec<Column> {
    let key = |(l, r): &(usize, usize)| {
        let (l, r) = (&left[*l], &right[*r]);
        let of = if matches!(sides, Sides::Right | Sides::RightAlone) { r } else { l };
        let expr = match sides {
            Sides::Full => call("coalesce", [l.expr.clone(), r.expr.clone()]),
            _ => of.expr.clone(),
        };
        Column { name: l.name.clone(), spelled: of.spelled.clone(), expr, is_key: true }
    };
    let mut all: Vec<Column> = keys.iter().map(key).collect();
    let rest = |columns: Vec<Column>, keys: Vec<usize>| {
        columns.into_iter().enumerate().filter(move |(at, _)| !keys.contains(at)).map(|(_, column)| column)
    };
    let (left_keys, right_keys) = keys.iter().copied().unzip();
    if sides != Sides::RightAlone {
        all.extend(rest(left, left_keys));
    }
    if sides != Sides::LeftAlone {
        all.extend(rest(right, right_keys));
    }
    all
}
