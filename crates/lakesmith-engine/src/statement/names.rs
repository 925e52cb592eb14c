//! Names of output columns: as they were written, or as Spark makes them up.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Query, Select, SelectItem, TableFactor, VisitMut as _, VisitorMut,
};

use super::pretty::Pretty;
use super::spelling::Spelled;

/// What the results' columns are called.
#[derive(Debug, Clone, Default)]
pub(crate) struct Output {
    /// One name a column, if the tree tells them all.
    pub names: Option<Vec<String>>,
    /// Spellings by name in lower case, for the rest.
    pub spellings: HashMap<String, String>,
}

impl Output {
    /// The names to show for columns that the plan calls `planned`.
    pub(crate) fn shown(&self, planned: &[String]) -> Vec<String> {
        match &self.names {
            Some(names) if names.len() == planned.len() => names.clone(),
            _ => planned.iter().map(|name| self.spelling(name)).collect(),
        }
    }

    /// The spelling of a name.
    pub(crate) fn spelling(&self, name: &str) -> String {
        self.spellings.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }
}

/// Names every column of every SELECT in the query, so that no two of one SELECT are called the same.
pub(crate) fn name_outputs(query: &mut Query, spelled: &mut Spelled) {
    let mut naming = Naming { spelled, relations: HashSet::new() };
    let _ = query.visit(&mut Relations(&mut naming.relations));
    let _ = query.visit(&mut naming);
}

/// Collects what relations are called.
struct Relations<'a>(&'a mut HashSet<String>);

impl VisitorMut for Relations<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let alias = match factor {
            TableFactor::Table { alias, name, .. } => {
                if let (None, Some(last)) = (&alias, name.0.last().and_then(|p| p.as_ident())) {
                    self.0.insert(last.value.clone());
                }
                alias
            }
            TableFactor::Derived { alias, .. } | TableFactor::UNNEST { alias, .. } => alias,
            _ => return ControlFlow::Continue(()),
        };
        self.0.extend(alias.as_ref().map(|a| a.name.value.clone()));
        ControlFlow::Continue(())
    }
}

struct Naming<'a> {
    spelled: &'a mut Spelled,
    relations: HashSet<String>,
}

impl VisitorMut for Naming<'_> {
    type Break = ();

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let planned: Vec<Option<String>> = select.projection.iter().map(|item| self.planned(item)).collect();
        let mut names = Unique::new(planned.iter().flatten());
        for (item, planned) in select.projection.iter_mut().zip(planned) {
            let Some(planned) = planned else { continue };
            let unique = names.take(&planned);
            let (expr, shown) = match item {
                SelectItem::ExprWithAlias { alias, .. } if alias.value == unique => continue,
                SelectItem::ExprWithAlias { expr, alias } => (expr.clone(), self.spelled.of(alias)),
                SelectItem::UnnamedExpr(expr) if self.own_name(expr).as_ref() == Some(&unique) => continue,
                SelectItem::UnnamedExpr(expr) => (expr.clone(), self.name_of(expr)),
                _ => continue,
            };
            *item = SelectItem::ExprWithAlias { expr, alias: self.spelled.give(&unique, &shown) };
        }
        ControlFlow::Continue(())
    }
}

/// Names that are taken once each.
pub(super) struct Unique {
    wanted: HashSet<String>,
    taken: HashSet<String>,
}

impl Unique {
    /// Nothing is taken yet; names that are made up are none of `wanted`.
    pub(super) fn new<'a>(wanted: impl IntoIterator<Item = &'a String>) -> Self {
        Self { wanted: wanted.into_iter().cloned().collect(), taken: HashSet::new() }
    }

    /// The name, or one that is made up after it.
    pub(super) fn take(&mut self, name: &str) -> String {
        let mut unique = name.to_owned();
        let mut count = 1;
        while (count > 1 && self.wanted.contains(&unique)) || !self.taken.insert(unique.clone()) {
            count += 1;
            unique = format!("{name}#{count}");
        }
        unique
    }
}

impl Naming<'_> {
    fn planned(&self, item: &SelectItem) -> Option<String> {
        match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
            SelectItem::UnnamedExpr(expr) => {
                Some(self.own_name(expr).unwrap_or_else(|| self.name_of(expr).to_lowercase()))
            }
            _ => None,
        }
    }

    /// The name that a column keeps without an alias, with its relation's.
    fn own_name(&self, expr: &Expr) -> Option<String> {
        match expr {
            Expr::Identifier(ident) => Some(ident.value.clone()),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [relation, column] if self.relations.contains(&relation.value) => Some(column.value.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    fn name_of(&self, expr: &Expr) -> String {
        let pretty = Pretty { spelled: self.spelled };
        match expr {
            Expr::CompoundIdentifier(parts) => parts.last().map(|p| self.spelled.of(p)).unwrap_or_default(),
            Expr::CompoundFieldAccess { access_chain, .. } => match access_chain.last() {
                Some(AccessExpr::Dot(Expr::Identifier(field))) => self.spelled.of(field),
                _ => pretty.expr(expr),
            },
            // A cast column keeps its name.
            Expr::Cast { expr, .. } if matches!(**expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) => {
                self.name_of(expr)
            }
            other => pretty.expr(other),
        }
    }
}
