//! Functions on text and numbers.

use super::arithmetic::{numbers, overflow};
use super::coerce::Type;
use super::functions::{Param, Signature};
use super::time_functions::{long, text};
use super::{BinaryOp, cast};
use crate::error::Result;
use crate::table::Scalar;

/// Characters that padding makes at most: a typing error must not fill the memory.
const MAX_PADDED: usize = 100_000;

const TEXT: &[Param] = &[Param::Text];
const TWO_TEXTS: &[Param] = &[Param::Text, Param::Text];
const TEXT_AND_NUMBER: &[Param] = &[Param::Text, Param::Int];

const fn fixed(
    names: &'static [&'static str],
    params: &'static [Param],
    returns: Type,
    call: super::eval::Call,
) -> Signature {
    Signature { names, params, required: params.len(), repeats: false, returns: Some(returns), call }
}

pub(super) const SIGNATURES: &[Signature] = &[
    Signature {
        names: &["concat"],
        params: TEXT,
        required: 0,
        repeats: true,
        returns: Some(Type::String),
        call: |a| string(a.iter().map(cast::text).collect::<String>()),
    },
    fixed(&["lower", "lcase"], TEXT, Type::String, |a| string(text(a, 0)?.to_lowercase())),
    fixed(&["upper", "ucase"], TEXT, Type::String, |a| string(text(a, 0)?.to_uppercase())),
    fixed(&["length", "char_length", "character_length", "len"], TEXT, Type::Int, |a| {
        Ok(Scalar::Long(text(a, 0)?.chars().count() as i64))
    }),
    fixed(&["trim"], TEXT, Type::String, |a| string(text(a, 0)?.trim_matches(' '))),
    fixed(&["ltrim"], TEXT, Type::String, |a| string(text(a, 0)?.trim_start_matches(' '))),
    fixed(&["rtrim"], TEXT, Type::String, |a| string(text(a, 0)?.trim_end_matches(' '))),
    Signature {
        names: &["substring", "substr"],
        params: &[Param::Text, Param::Int, Param::Int],
        required: 2,
        repeats: false,
        returns: Some(Type::String),
        call: |a| string(substring(text(a, 0)?, long(a, 1)?, a.get(2).map(|_| long(a, 2)).transpose()?)),
    },
    fixed(&["left"], TEXT_AND_NUMBER, Type::String, |a| string(substring(text(a, 0)?, 1, Some(long(a, 1)?)))),
    fixed(&["right"], TEXT_AND_NUMBER, Type::String, |a| {
        let count = long(a, 1)?;
        string(if count <= 0 { String::new() } else { substring(text(a, 0)?, -count, None) })
    }),
    Signature {
        names: &["lpad"],
        params: &[Param::Text, Param::Int, Param::Text],
        required: 2,
        repeats: false,
        returns: Some(Type::String),
        call: |a| {
            let (value, padding) = padded(a)?;
            string(padding + &value)
        },
    },
    Signature {
        names: &["rpad"],
        params: &[Param::Text, Param::Int, Param::Text],
        required: 2,
        repeats: false,
        returns: Some(Type::String),
        call: |a| {
            let (value, padding) = padded(a)?;
            string(value + &padding)
        },
    },
    fixed(&["replace"], &[Param::Text, Param::Text, Param::Text], Type::String, |a| {
        let (value, search) = (text(a, 0)?, text(a, 1)?);
        string(if search.is_empty() { value.to_owned() } else { value.replace(search, text(a, 2)?) })
    }),
    fixed(&["startswith"], TWO_TEXTS, Type::Boolean, |a| Ok(Scalar::Boolean(text(a, 0)?.starts_with(text(a, 1)?)))),
    fixed(&["endswith"], TWO_TEXTS, Type::Boolean, |a| Ok(Scalar::Boolean(text(a, 0)?.ends_with(text(a, 1)?)))),
    fixed(&["contains"], TWO_TEXTS, Type::Boolean, |a| Ok(Scalar::Boolean(text(a, 0)?.contains(text(a, 1)?)))),
    Signature {
        names: &["abs"],
        params: &[Param::Number],
        required: 1,
        repeats: false,
        returns: None,
        call: |a| {
            Ok(match &a[0] {
                Scalar::Long(n) => Scalar::Long(n.checked_abs().ok_or_else(|| overflow("long"))?),
                Scalar::Double(d) => Scalar::Double(d.abs()),
                Scalar::Decimal(unscaled, scale) => Scalar::Decimal(unscaled.abs(), *scale),
                other => other.clone(),
            })
        },
    },
    Signature {
        names: &["mod"],
        params: &[Param::Number, Param::Number],
        required: 2,
        repeats: false,
        returns: None,
        call: |a| numbers(BinaryOp::Modulo, Type::Long, &a[0], &a[1]),
    },
    Signature {
        names: &["pmod"],
        params: &[Param::Number, Param::Number],
        required: 2,
        repeats: false,
        returns: None,
        call: |a| {
            let modulo = |value: &Scalar| numbers(BinaryOp::Modulo, Type::Long, value, &a[1]);
            let rest = modulo(&a[0])?;
            let negative = match &rest {
                Scalar::Long(n) => *n < 0,
                Scalar::Double(d) => *d < 0.0,
                Scalar::Decimal(unscaled, _) => *unscaled < 0,
                _ => false,
            };
            if negative { modulo(&numbers(BinaryOp::Plus, Type::Long, &rest, &a[1])?) } else { Ok(rest) }
        },
    },
];

fn string(value: impl Into<String>) -> Result<Scalar> {
    Ok(Scalar::String(value.into()))
}

/// Characters from `position` (from 1; negative: from the end), at most `length`.
fn substring(value: &str, position: i64, length: Option<i64>) -> String {
    let count = value.chars().count() as i64;
    let start = match position {
        1.. => position - 1,
        0 => 0,
        _ => count.saturating_add(position),
    };
    // The length counts from the start even when that lies before the text.
    let end = length.map_or(count, |length| start.saturating_add(length)).clamp(0, count);
    let start = start.clamp(0, count);
    value.chars().skip(start as usize).take((end - start).max(0) as usize).collect()
}

/// The value cut to the length asked for, and the padding that it lacks.
fn padded(arguments: &[Scalar]) -> Result<(String, String)> {
    let length = usize::try_from(long(arguments, 1)?).unwrap_or(0);
    if length > MAX_PADDED {
        return Err(overflow("padding"));
    }
    let pad = if arguments.len() > 2 { text(arguments, 2)? } else { " " };
    let value: String = text(arguments, 0)?.chars().take(length).collect();
    let missing = length - value.chars().count();
    let padding = if pad.is_empty() { String::new() } else { pad.chars().cycle().take(missing).collect() };
    Ok((value, padding))
}
