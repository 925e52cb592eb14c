//! Names of output columns: as they were written, or as Spark makes them up.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, ExceptSelectItem, Expr, Ident, Query, Select, SelectItem, SetExpr, Spanned as _, TableFactor,
    VisitMut as _, VisitorMut,
};

use super::pretty::Pretty;
use super::relations::RELATION_PREFIX;

/// What the results' columns are called.
#[derive(Debug, Clone, Default)]
pub(crate) struct Output {
    /// One name a column, if the query names each of them; a query with `*` does not.
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
/// `hidden`: a column of tables that `*` leaves out.
pub(crate) fn name_outputs(
    query: &mut Query,
    spelled: &HashMap<(u64, u64), String>,
    hidden: Option<&'static str>,
) -> Output {
    let mut naming = Naming { pretty: Pretty { spelled }, relations: HashSet::new(), hidden };
    let _ = query.visit(&mut Relations(&mut naming.relations));
    let _ = query.visit(&mut naming);
    let names = outermost(&mut query.body).map(|select| naming.outermost(select));
    let spellings = spelled.values().filter(|s| s.chars().any(char::is_uppercase));
    Output { names: names.flatten(), spellings: spellings.map(|s| (s.to_lowercase(), s.clone())).collect() }
}

fn outermost(body: &mut SetExpr) -> Option<&mut Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => outermost(&mut query.body),
        SetExpr::SetOperation { left, .. } => outermost(left),
        _ => None,
    }
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
    pretty: Pretty<'a>,
    relations: HashSet<String>,
    hidden: Option<&'static str>,
}

impl VisitorMut for Naming<'_> {
    type Break = ();

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.hide(select);
        let mut taken: HashSet<String> = HashSet::new();
        for item in &mut select.projection {
            let planned = match item {
                SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
                SelectItem::UnnamedExpr(expr) => match self.own_name(expr) {
                    Some(name) => name,
                    None => self.name_of(expr).to_lowercase(),
                },
                _ => continue,
            };
            let mut unique = planned.clone();
            let mut count = 1;
            while !taken.insert(unique.clone()) {
                count += 1;
                unique = format!("{planned}#{count}");
            }
            let expr = match item {
                SelectItem::ExprWithAlias { alias, .. } if alias.value == unique => continue,
                SelectItem::ExprWithAlias { expr, .. } => expr.clone(),
                SelectItem::UnnamedExpr(expr) if self.own_name(expr).as_ref() == Some(&unique) => continue,
                SelectItem::UnnamedExpr(expr) => expr.clone(),
                _ => continue,
            };
            let mut alias = Ident::with_quote('`', unique);
            // The place tells the spelling of a name that was given.
            alias.span = match item {
                SelectItem::ExprWithAlias { alias, .. } => alias.span,
                _ => expr.span(),
            };
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
        ControlFlow::Continue(())
    }
}

impl Naming<'_> {
    /// Lets `*` over tables leave out what they hide.
    fn hide(&self, select: &mut Select) {
        let Some(hidden) = self.hidden else { return };
        let is_table = |factor: &TableFactor| match factor {
            TableFactor::Table { name, .. } => name.to_string().starts_with(RELATION_PREFIX),
            _ => false,
        };
        let any = select.from.iter().any(|f| is_table(&f.relation) || f.joins.iter().any(|j| is_table(&j.relation)));
        if !any {
            return;
        }
        for item in &mut select.projection {
            if let SelectItem::Wildcard(options) = item {
                let also = options.opt_except.take();
                let rest = also.into_iter().flat_map(|e| std::iter::once(e.first_element).chain(e.additional_elements));
                options.opt_except =
                    Some(ExceptSelectItem { first_element: Ident::new(hidden), additional_elements: rest.collect() });
            }
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
        match expr {
            Expr::CompoundIdentifier(parts) => parts.last().map(|p| self.pretty.name(p)).unwrap_or_default(),
            Expr::CompoundFieldAccess { access_chain, .. } => match access_chain.last() {
                Some(AccessExpr::Dot(Expr::Identifier(field))) => self.pretty.name(field),
                _ => self.pretty.expr(expr),
            },
            // A cast column keeps its name.
            Expr::Cast { expr, .. } if matches!(**expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) => {
                self.name_of(expr)
            }
            other => self.pretty.expr(other),
        }
    }

    /// The columns' names as they are shown; `None` if there is a `*`.
    fn outermost(&self, select: &Select) -> Option<Vec<String>> {
        let name = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(expr) => Some(self.name_of(expr)),
            SelectItem::ExprWithAlias { expr, alias } => {
                let made_up = self.name_of(expr);
                let base = alias.value.split('#').next().unwrap_or_default();
                if alias.span == expr.span() && made_up.to_lowercase() == base {
                    return Some(made_up);
                }
                let plain = Ident { value: base.to_owned(), ..alias.clone() };
                Some(self.pretty.name(&plain))
            }
            _ => None,
        };
        select.projection.iter().map(name).collect()
    }
}
