//! Number, binary and typed literals.

use lakesmith_core::predicate::Expr;
use lakesmith_core::table::Scalar;
use lakesmith_core::{Error, Result};

use crate::diagnostic::error_at;
use crate::parser::Parser;
use crate::token::{Kind, Token};

/// Reads the number that is next, with its suffix; `negative` if a minus stands before it.
pub(crate) fn number(p: &mut Parser<'_>, negative: bool) -> Result<Expr> {
    let token = p.advance();
    let mut digits = p.source(&token);
    let mut suffix = String::new();
    if let Some(stripped) = digits.strip_suffix('L') {
        digits = stripped;
        suffix.push('L');
    } else if let Kind::Word { value, quoted: false } = &p.peek().kind
        && p.peek().start == token.end
    {
        suffix = value.to_uppercase();
        p.advance();
    }
    let invalid =
        || error_at(token.place, "PARSE_SYNTAX_ERROR", format!("'{digits}{suffix}' is not a number of its type"));
    let text = if negative { format!("-{digits}") } else { digits.to_owned() };
    let is_whole = digits.bytes().all(|b| b.is_ascii_digit());
    let has_exponent = digits.contains(['e', 'E']);
    let double = || text.parse().map(Scalar::Double).map_err(|_| invalid());
    let value = match suffix.as_str() {
        "" if is_whole => text.parse().map(Scalar::Long).or_else(|_| decimal(&text).ok_or_else(invalid))?,
        "" if has_exponent => double()?,
        "" | "BD" => decimal(&text).ok_or_else(invalid)?,
        "L" | "S" | "Y" if is_whole => {
            let value: i64 = text.parse().map_err(|_| invalid())?;
            let (min, max) = match suffix.as_str() {
                "S" => (i64::from(i16::MIN), i64::from(i16::MAX)),
                "Y" => (i64::from(i8::MIN), i64::from(i8::MAX)),
                _ => (i64::MIN, i64::MAX),
            };
            if !(min..=max).contains(&value) {
                return Err(invalid());
            }
            Scalar::Long(value)
        }
        "D" => double()?,
        "F" => Scalar::Double(f64::from(text.parse::<f32>().map_err(|_| invalid())?)),
        _ => return Err(invalid()),
    };
    Ok(Expr::Literal(value))
}

/// Plain or exponent notation with at most 38 digits.
fn decimal(text: &str) -> Option<Scalar> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut unscaled: i128 = format!("{whole}{fraction}").parse().ok()?;
    let mut scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    if scale < 0 {
        unscaled = unscaled.checked_mul(10i128.checked_pow(scale.unsigned_abs())?)?;
        scale = 0;
    }
    let fits = unscaled.unsigned_abs() < 10u128.pow(38) && scale <= 38;
    fits.then_some(Scalar::Decimal(unscaled, scale as i8))
}

/// `X'…'`; an odd number of digits gets a zero in front, as in Spark.
pub(crate) fn binary(digits: &str, token: &Token) -> Result<Expr> {
    let even = if digits.len().is_multiple_of(2) { digits.to_owned() } else { format!("0{digits}") };
    let bytes: Option<Vec<u8>> =
        (0..even.len()).step_by(2).map(|i| even.get(i..i + 2).and_then(|b| u8::from_str_radix(b, 16).ok())).collect();
    bytes.map(|b| Expr::Literal(Scalar::Binary(b))).ok_or_else(|| invalid_typed("X", digits, token))
}

/// The error for a DATE, TIMESTAMP, INTERVAL or X literal that cannot be read.
pub(crate) fn invalid_typed(kind: &str, text: &str, token: &Token) -> Error {
    error_at(
        token.place,
        "INVALID_TYPED_LITERAL",
        format!("The value of the typed literal \"{kind}\" is invalid: '{text}'"),
    )
}
