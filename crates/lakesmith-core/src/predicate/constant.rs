//! Expressions without columns: the default values of columns.
//!
//! # Source
//! Spark `ResolveDefaultColumns`, `Cast.canANSIStoreAssign`.

use super::Expr;
use super::bind::Binder;
use super::cast;
use super::coerce::Type;
use crate::error::{Error, Result};
use crate::table::DataType;

/// Checks that `expr` has a value of its own that a column of the type can hold. `now_ms`: as for predicates.
///
/// # Errors
/// Usage (`INVALID_DEFAULT_VALUE.…`) if it names a column or an unknown function, has another type or does not fit;
/// `Unsupported` for a type whose values we can't judge.
pub fn check_default(expr: &Expr, to: &DataType, now_ms: i64) -> Result<()> {
    let invalid = |class: &'static str, why: String| Error::usage(why).class(class);
    let unresolved = |e: Error| {
        invalid("INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION", format!("the default value fails to resolve: {e}"))
    };
    let binder = Binder::without_columns(now_ms.saturating_mul(1000));
    binder.check_columns(expr).map_err(unresolved)?;
    let bound = binder.bind(expr, 0).map_err(unresolved)?;
    if bound.ty == Type::Null {
        return Ok(());
    }
    let Some(target) = Type::of(to) else {
        return Err(Error::unsupported(format!(
            "a default value of type {} other than NULL is not supported yet; use Spark for it",
            to.simple_string()
        ))
        .class("UNSUPPORTED_FEATURE"));
    };
    if !is_assignable(bound.ty, target) {
        return Err(invalid(
            "INVALID_DEFAULT_VALUE.DATA_TYPE",
            format!(
                "the default value requires \"{}\" type, but the statement provided a value of incompatible \"{}\" type",
                to.simple_string().to_uppercase(),
                bound.ty.name()
            ),
        ));
    }
    let fits = bound.node.eval(&[]).and_then(|value| cast::to_data_type(&value, to));
    fits.map(|_| ())
        .map_err(|e| invalid("INVALID_DEFAULT_VALUE.DATA_TYPE", format!("the default value does not fit: {e}")))
}

fn is_assignable(from: Type, to: Type) -> bool {
    let instant = |t: Type| matches!(t, Type::Date | Type::Timestamp | Type::TimestampNtz);
    from == to
        || (from.is_number() && to.is_number())
        || (to == Type::String && from != Type::Binary)
        || (instant(from) && instant(to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Scalar;

    fn class(expr: Expr, to: DataType) -> Option<String> {
        check_default(&expr, &to, 0).err().map(|e| e.class_name().to_owned())
    }

    #[test]
    fn defaults_are_judged_by_type_and_value() {
        let number = |n| Expr::Literal(Scalar::Long(n));
        assert_eq!(class(number(5), DataType::Byte), None);
        assert_eq!(class(number(300), DataType::Byte).as_deref(), Some("INVALID_DEFAULT_VALUE.DATA_TYPE"));
        assert_eq!(class(number(5), DataType::Double), None);
        assert_eq!(class(number(5), DataType::String), None);
        let text = || Expr::Literal(Scalar::String("abc".into()));
        assert_eq!(class(text(), DataType::Double).as_deref(), Some("INVALID_DEFAULT_VALUE.DATA_TYPE"));
        assert_eq!(class(text(), DataType::String), None);
        assert_eq!(class(Expr::Literal(Scalar::Null), DataType::Struct(vec![])), None);
        let column = Expr::Column(vec!["nope".into()]);
        assert_eq!(class(column, DataType::Long).as_deref(), Some("INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION"));
        assert_eq!(class(number(1), DataType::Variant).as_deref(), Some("UNSUPPORTED_FEATURE"));
    }
}
