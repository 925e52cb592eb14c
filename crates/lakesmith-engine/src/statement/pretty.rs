//! Names that Spark gives to columns without one.
//!
//! # Source
//! Spark `Expression.sql` and `toPrettySQL`.

use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    Subscript, UnaryOperator, Value,
};

use super::literals::suffix;
use super::spelling::Spelled;

/// Spells expressions as they were written.
pub(crate) struct Pretty<'a> {
    /// How names are shown.
    pub spelled: &'a Spelled,
}

impl Pretty<'_> {
    fn name(&self, ident: &Ident) -> String {
        self.spelled.of(ident)
    }

    /// The name of an expression.
    pub(crate) fn expr(&self, expr: &Expr) -> String {
        match expr {
            Expr::Identifier(ident) => self.name(ident),
            Expr::CompoundIdentifier(parts) => parts.iter().map(|p| self.name(p)).collect::<Vec<_>>().join("."),
            Expr::CompoundFieldAccess { root, access_chain } => {
                let mut text = self.expr(root);
                for access in access_chain {
                    match access {
                        AccessExpr::Dot(field) => text += &format!(".{}", self.expr(field)),
                        AccessExpr::Subscript(Subscript::Index { index }) => text += &format!("[{}]", self.expr(index)),
                        other => text += &other.to_string(),
                    }
                }
                text
            }
            Expr::Nested(inner) => self.expr(inner),
            Expr::Value(value) => match &value.value {
                Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => text.clone(),
                Value::Boolean(value) => value.to_string(),
                Value::Null => "NULL".to_owned(),
                Value::Number(text, _) => match suffix(text) {
                    Some((digits, _)) => digits.to_owned(),
                    None => value.value.to_string(),
                },
                other => other.to_string(),
            },
            Expr::BinaryOp { left, op, right } => {
                format!("({} {} {})", self.expr(left), operator(op), self.expr(right))
            }
            Expr::UnaryOp { op, expr } => match op {
                UnaryOperator::Minus => match expr.as_ref() {
                    Expr::Value(_) => format!("-{}", self.expr(expr)),
                    _ => format!("(- {})", self.expr(expr)),
                },
                UnaryOperator::Not => format!("(NOT {})", self.expr(expr)),
                other => format!("({other} {})", self.expr(expr)),
            },
            Expr::Cast { kind, expr, data_type, .. } => {
                let word = if *kind == CastKind::TryCast { "TRY_CAST" } else { "CAST" };
                format!("{word}({} AS {})", self.expr(expr), data_type.to_string().to_uppercase())
            }
            Expr::RLike { negated, expr, pattern, .. } => {
                let text = format!("RLIKE({}, {})", self.expr(expr), self.expr(pattern));
                if *negated { format!("(NOT {text})") } else { text }
            }
            Expr::IsNull(inner) => format!("({} IS NULL)", self.expr(inner)),
            Expr::IsNotNull(inner) => format!("({} IS NOT NULL)", self.expr(inner)),
            Expr::InList { expr, list, negated } => {
                let list: Vec<String> = list.iter().map(|e| self.expr(e)).collect();
                let inside = format!("({} IN ({}))", self.expr(expr), list.join(", "));
                if *negated { format!("(NOT {inside})") } else { inside }
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                let mut text = "CASE".to_owned();
                if let Some(operand) = operand {
                    text += &format!(" {}", self.expr(operand));
                }
                for when in conditions {
                    text += &format!(" WHEN {} THEN {}", self.expr(&when.condition), self.expr(&when.result));
                }
                if let Some(result) = else_result {
                    text += &format!(" ELSE {}", self.expr(result));
                }
                text + " END"
            }
            Expr::Function(function) => self.function(function),
            Expr::Substring { expr, substring_from, substring_for, .. } => {
                let parts = [Some(expr), substring_from.as_ref(), substring_for.as_ref()];
                let parts: Vec<String> = parts.into_iter().flatten().map(|e| self.expr(e)).collect();
                format!("substring({})", parts.join(", "))
            }
            Expr::Trim { expr, .. } => format!("trim({})", self.expr(expr)),
            Expr::Ceil { expr, .. } => format!("CEIL({})", self.expr(expr)),
            Expr::Floor { expr, .. } => format!("FLOOR({})", self.expr(expr)),
            other => other.to_string(),
        }
    }

    fn function(&self, function: &Function) -> String {
        let name = function.name.to_string();
        let (distinct, args) = match &function.args {
            FunctionArguments::List(list) => {
                let args: Vec<String> = list.args.iter().map(|a| self.argument(&name, a)).collect();
                (list.duplicate_treatment.is_some_and(|d| d.to_string() == "DISTINCT"), args)
            }
            _ => (false, Vec::new()),
        };
        let mut text = format!("{name}({}{})", if distinct { "DISTINCT " } else { "" }, args.join(", "));
        if let Some(filter) = &function.filter {
            text += &format!(" FILTER (WHERE {})", self.expr(filter));
        }
        if let Some(over) = &function.over {
            text += &format!(" OVER {over}");
        }
        text
    }

    fn argument(&self, function: &str, argument: &FunctionArg) -> String {
        let arg = match argument {
            FunctionArg::Unnamed(arg) => arg,
            other => return other.to_string(),
        };
        match arg {
            FunctionArgExpr::Expr(expr) => self.expr(expr),
            // Rows are counted by counting ones.
            FunctionArgExpr::Wildcard if function == "count" => "1".to_owned(),
            other => other.to_string(),
        }
    }
}

fn operator(op: &BinaryOperator) -> String {
    match op {
        BinaryOperator::NotEq => "!=".to_owned(),
        BinaryOperator::MyIntegerDivide => "div".to_owned(),
        other => other.to_string(),
    }
}
