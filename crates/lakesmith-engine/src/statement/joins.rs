//! Joins by USING and NATURAL as joins by conditions, and `*` as the columns that it gives, where DataFusion would give
//! others: the keys of RIGHT and FULL joins are not those of the left side alone.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ExceptSelectItem, Expr, Ident, Join, JoinConstraint, JoinOperator, OrderBy, OrderByKind, Query, Select, SelectItem,
    SetExpr, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, VisitMut as _, VisitorMut, With,
};
use lakesmith::{Error, Result};

use super::relations::RELATION_PREFIX;
use super::scope::{Column, OpenedColumns, Scope, Shown, called, kind, values_name};
use super::spelling::Spelled;

/// Settles the columns of joins in a query whose columns are named, and tells what its own columns are called.
/// `hidden`: columns of opened relations that `*` leaves out.
///
/// # Errors
/// Usage for a join by columns that are not there.
pub(crate) fn settle_columns(
    query: &mut Query,
    spelled: Spelled,
    opened: &OpenedColumns,
    hidden: &[&'static str],
) -> Result<Option<Vec<String>>> {
    let mut settling =
        Settling { scope: Scope { spelled, opened, ctes: Vec::new() }, hidden, visited: Vec::new(), unnamed: 0 };
    if let ControlFlow::Break(error) = query.visit(&mut settling) {
        return Err(error);
    }
    let columns = settling.scope.query(query)?;
    Ok(columns.map(|columns| columns.into_iter().map(|column| column.spelled).collect()))
}

struct Settling<'a> {
    scope: Scope<'a>,
    hidden: &'a [&'static str],
    /// The WITH clauses of the queries that are being visited.
    visited: Vec<Option<With>>,
    /// Relations that got a name here.
    unnamed: usize,
}

impl VisitorMut for Settling<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.scope.ctes.push(HashMap::new());
        // As in the search for relations: the visit that goes on from here is to pass the bodies over.
        let mut with = query.with.take();
        for cte in with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            cte.query.visit(self)?;
            name_columns(&cte.query, &mut cte.alias);
            match self.scope.query(&cte.query) {
                Ok(columns) => self.scope.note_cte(&cte.alias, columns),
                Err(error) => return ControlFlow::Break(error),
            }
        }
        self.visited.push(with);
        match self.body(&mut query.body, query.order_by.as_mut()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.scope.ctes.pop();
        query.with = self.visited.pop().flatten();
        ControlFlow::Continue(())
    }
}

impl Settling<'_> {
    fn body(&mut self, body: &mut SetExpr, order_by: Option<&mut OrderBy>) -> Result<()> {
        match body {
            SetExpr::Select(select) => self.select(select, order_by),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left, None)?;
                self.body(right, None)
            }
            _ => Ok(()),
        }
    }

    fn select(&mut self, select: &mut Select, order_by: Option<&mut OrderBy>) -> Result<()> {
        let is_alone = matches!(select.from.as_slice(), [one] if one.joins.is_empty());
        for from in &mut select.from {
            self.name_values(from);
            if !is_alone {
                self.name_derived(from);
            }
        }
        let by_keys = select.from.iter().any(is_by_keys);
        let columns = self.scope.from(&select.from)?;
        let keys: HashMap<String, Expr> = columns.iter().flatten().filter(|c| c.is_key).map(key).collect();
        self.stars(select, columns.is_some(), !keys.is_empty())?;
        if !by_keys {
            return Ok(());
        }
        let outputs: Option<HashSet<String>> =
            self.scope.select(select)?.map(|shown| shown.into_iter().map(|column| column.name).collect());
        for from in &mut select.from {
            self.conditions(from)?;
        }
        // A name that two relations have, beside the key or not, is ambiguous.
        let mut count: HashMap<&str, usize> = HashMap::new();
        columns.iter().flatten().for_each(|column| *count.entry(&column.name).or_default() += 1);
        let keys = keys.into_iter().filter(|(name, _)| count.get(name.as_str()) == Some(&1)).collect();
        let mut replacing = Replacing { keys, depth: 0 };
        for item in &mut select.projection {
            replacing.item(item);
        }
        let _ = select.visit(&mut replacing);
        if let Some(OrderBy { kind: OrderByKind::Expressions(order), .. }) = order_by {
            if let Some(outputs) = outputs {
                replacing.keys.retain(|name, _| !outputs.contains(name));
            }
            for by in order {
                let _ = by.expr.visit(&mut replacing);
            }
        }
        Ok(())
    }

    /// Writes out what `*` gives, if DataFusion would give something else.
    fn stars(&mut self, select: &mut Select, known: bool, with_keys: bool) -> Result<()> {
        let is_star = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
        if !select.projection.iter().any(is_star) {
            return Ok(());
        }
        let hides = !self.hidden.is_empty() && select.from.iter().any(has_opened);
        let shown = if known { self.scope.select(select)? } else { None };
        let Some(shown) = shown else {
            if hides {
                hide(select, self.hidden);
            }
            return Ok(());
        };
        let plain = |column: &Shown| own_name(&column.expr).is_some_and(|own| own == column.name);
        if hides || with_keys || select.projection.len() > 1 || !shown.iter().all(plain) {
            select.projection = shown.into_iter().map(|column| self.item(column)).collect();
        }
        Ok(())
    }

    fn item(&mut self, Shown { name, spelled, mut expr }: Shown) -> SelectItem {
        let ident = self.scope.spelled.give(&name, &spelled);
        if own_name(&expr).is_some_and(|own| own == name) {
            match &mut expr {
                Expr::Identifier(own) => *own = ident,
                Expr::CompoundIdentifier(parts) => parts.last_mut().into_iter().for_each(|own| *own = ident.clone()),
                _ => {}
            }
            return SelectItem::UnnamedExpr(expr);
        }
        SelectItem::ExprWithAlias { expr, alias: ident }
    }

    /// Puts conditions in the place of USING and NATURAL.
    fn conditions(&mut self, from: &mut TableWithJoins) -> Result<()> {
        let joined = self.scope.joined(from)?;
        match joined {
            Some(joined) => {
                for (join, condition) in from.joins.iter_mut().zip(joined.conditions) {
                    let is_natural = by_keys(join) == Some(&JoinConstraint::Natural);
                    if let Some(constraint) = constraint(join) {
                        match condition {
                            Some(condition) => *constraint = JoinConstraint::On(condition),
                            None if is_natural => *constraint = JoinConstraint::None,
                            None => {}
                        }
                    }
                }
            }
            None => {
                let inner = |join: &Join| {
                    use JoinOperator as J;
                    by_keys(join).is_none()
                        || matches!(
                            join.join_operator,
                            J::Join(JoinConstraint::Using(_))
                                | J::Inner(JoinConstraint::Using(_))
                                | J::Left(JoinConstraint::Using(_))
                                | J::LeftOuter(JoinConstraint::Using(_))
                        )
                };
                if !from.joins.iter().all(inner) {
                    return Err(Error::unsupported(
                        "the columns of a relation that is joined by USING or NATURAL are not known before the query runs; \
                         join by ON",
                    )
                    .class("UNSUPPORTED_FEATURE"));
                }
            }
        }
        for factor in factors(from) {
            if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
                self.conditions(table_with_joins)?;
            }
        }
        Ok(())
    }

    /// Gives relations without a name one, so that their columns can be named; and joins by one side the name of the side.
    fn name_derived(&mut self, from: &mut TableWithJoins) {
        for join in &mut from.joins {
            join.join_operator = match std::mem::replace(&mut join.join_operator, JoinOperator::CrossApply) {
                JoinOperator::Semi(constraint) => JoinOperator::LeftSemi(constraint),
                JoinOperator::Anti(constraint) => JoinOperator::LeftAnti(constraint),
                other => other,
            };
        }
        for factor in factors(from) {
            match factor {
                TableFactor::Derived { alias: alias @ None, .. }
                | TableFactor::Table { alias: alias @ None, args: Some(_), .. } => *alias = Some(self.fresh()),
                TableFactor::NestedJoin { table_with_joins, .. } => self.name_derived(table_with_joins),
                _ => {}
            }
        }
    }

    /// Calls the columns of VALUES what Spark does.
    fn name_values(&mut self, from: &mut TableWithJoins) {
        for factor in factors(from) {
            match factor {
                TableFactor::Derived { subquery, alias, .. } => {
                    if matches!(subquery.body.as_ref(), SetExpr::Values(_)) {
                        name_columns(subquery, alias.get_or_insert_with(|| self.fresh()));
                    }
                }
                TableFactor::NestedJoin { table_with_joins, .. } => self.name_values(table_with_joins),
                _ => {}
            }
        }
    }

    fn fresh(&mut self) -> TableAlias {
        self.unnamed += 1;
        let name = Ident::new(format!("{RELATION_PREFIX}unnamed_{}", self.unnamed));
        TableAlias { explicit: true, name, columns: Vec::new(), at: None }
    }
}

/// Names the columns of VALUES, unless the relation does.
fn name_columns(query: &Query, alias: &mut TableAlias) {
    if let (SetExpr::Values(values), true) = (query.body.as_ref(), alias.columns.is_empty()) {
        let width = values.rows.first().map_or(0, |row| row.len());
        let column = |at| TableAliasColumnDef { name: Ident::new(values_name(at)), data_type: None };
        alias.columns = (1..=width).map(column).collect();
    }
}

fn key(column: &Column) -> (String, Expr) {
    (column.name.clone(), column.expr.clone())
}

fn own_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Identifier(ident) => Some(&ident.value),
        Expr::CompoundIdentifier(parts) if parts.len() == 2 => parts.last().map(|ident| ident.value.as_str()),
        _ => None,
    }
}

fn factors(from: &mut TableWithJoins) -> impl Iterator<Item = &mut TableFactor> {
    std::iter::once(&mut from.relation).chain(from.joins.iter_mut().map(|join| &mut join.relation))
}

fn any_factor(from: &TableWithJoins, test: &dyn Fn(&TableFactor) -> bool) -> bool {
    std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)).any(|factor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => any_factor(table_with_joins, test),
        other => test(other),
    })
}

fn has_opened(from: &TableWithJoins) -> bool {
    any_factor(from, &|factor| match factor {
        TableFactor::Table { name, .. } => name.to_string().starts_with(RELATION_PREFIX) && called(factor).is_some(),
        _ => false,
    })
}

fn is_by_keys(from: &TableWithJoins) -> bool {
    let nested = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => is_by_keys(table_with_joins),
        _ => false,
    };
    nested(&from.relation) || from.joins.iter().any(|join| by_keys(join).is_some() || nested(&join.relation))
}

/// The USING or NATURAL of a join.
fn by_keys(join: &Join) -> Option<&JoinConstraint> {
    kind(join)
        .map(|(_, constraint)| constraint)
        .filter(|c| matches!(c, JoinConstraint::Using(_) | JoinConstraint::Natural))
}

fn constraint(join: &mut Join) -> Option<&mut JoinConstraint> {
    use JoinOperator as J;
    match &mut join.join_operator {
        J::Join(c)
        | J::Inner(c)
        | J::CrossJoin(c)
        | J::Left(c)
        | J::LeftOuter(c)
        | J::Right(c)
        | J::RightOuter(c)
        | J::FullOuter(c)
        | J::Semi(c)
        | J::LeftSemi(c)
        | J::Anti(c)
        | J::LeftAnti(c)
        | J::RightSemi(c)
        | J::RightAnti(c) => Some(c),
        _ => None,
    }
}

/// Lets `*` leave out columns, whatever the others are.
fn hide(select: &mut Select, hidden: &[&'static str]) {
    for item in &mut select.projection {
        if let SelectItem::Wildcard(options) = item {
            let also = options.opt_except.take();
            let also = also.into_iter().flat_map(|e| std::iter::once(e.first_element).chain(e.additional_elements));
            let mut all = hidden.iter().map(|name| Ident::new(*name)).chain(also);
            options.opt_except =
                all.next().map(|first_element| ExceptSelectItem { first_element, additional_elements: all.collect() });
        }
    }
}

/// Puts what keys are made of in their place.
struct Replacing {
    keys: HashMap<String, Expr>,
    depth: usize,
}

impl Replacing {
    /// A key that is selected keeps its name.
    fn item(&self, item: &mut SelectItem) {
        if let SelectItem::UnnamedExpr(Expr::Identifier(ident)) = item
            && let Some(expr) = self.keys.get(&ident.value)
        {
            let (mut expr, ident) = (expr.clone(), ident.clone());
            *item = match &mut expr {
                Expr::CompoundIdentifier(parts) => {
                    parts.last_mut().into_iter().for_each(|own| *own = ident.clone());
                    SelectItem::UnnamedExpr(expr)
                }
                _ => SelectItem::ExprWithAlias { expr, alias: ident },
            };
        }
    }
}

impl VisitorMut for Replacing {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Expr::Identifier(ident) = expr
            && let Some(made_of) = self.keys.get(&ident.value)
        {
            *expr = made_of.clone();
        }
        ControlFlow::Continue(())
    }
}
