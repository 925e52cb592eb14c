//! Functions of texts.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, StringArray};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int32Type};
use datafusion::common::Result;

use super::builtin::{Builtin, cast_to};
use crate::spark::out_of_range;

/// # Source
/// Spark `InitCap`, `StringLocate`, `FormatNumber`, `Conv`.
pub(super) const FUNCTIONS: [Builtin; 4] = [
    Builtin {
        name: "initcap",
        arguments: 1..=1,
        takes: |types| cast_to(types, &[DataType::Utf8]),
        gives: |_| DataType::Utf8,
        apply: |arrays, _| {
            let texts = arrays[0].as_string::<i32>().iter();
            Ok(Arc::new(texts.map(|text| text.map(initials)).collect::<StringArray>()))
        },
    },
    Builtin {
        name: "locate",
        arguments: 2..=3,
        takes: |types| cast_to(types, &[DataType::Utf8, DataType::Utf8, DataType::Int32]),
        gives: |_| DataType::Int32,
        apply: |arrays, _| {
            let (parts, texts) = (arrays[0].as_string::<i32>(), arrays[1].as_string::<i32>());
            let starts = arrays.get(2).map(|starts| starts.as_primitive::<Int32Type>());
            let place = |row: usize| match starts {
                // From a place that is not known, nothing is found.
                Some(starts) if starts.is_null(row) => Some(0),
                _ if parts.is_null(row) || texts.is_null(row) => None,
                _ => Some(place(parts.value(row), texts.value(row), starts.map_or(1, |starts| starts.value(row)))),
            };
            Ok(Arc::new((0..texts.len()).map(place).collect::<Int32Array>()))
        },
    },
    Builtin {
        name: "format_number",
        arguments: 2..=2,
        takes: |types| {
            let number = match &types[0] {
                DataType::Decimal128(..) => types[0].clone(),
                whole if whole.is_integer() => DataType::Decimal128(20, 0),
                float if float.is_floating() => DataType::Float64,
                DataType::Null | DataType::Utf8 => DataType::Float64,
                _ => return None,
            };
            types[1].is_integer().then(|| vec![number, DataType::Int32])
        },
        gives: |_| DataType::Utf8,
        apply: |arrays, _| {
            let digits = arrays[1].as_primitive::<Int32Type>();
            let row = |row: usize| {
                let count = usize::try_from(digits.value(row)).ok()?;
                if digits.is_null(row) || arrays[0].is_null(row) {
                    return None;
                }
                Some(match arrays[0].data_type() {
                    DataType::Decimal128(_, scale) => {
                        let unscaled = arrays[0].as_primitive::<Decimal128Type>().value(row);
                        let kept = half_even(unscaled, i32::from(*scale) - count as i32);
                        grouped(&with_point(kept, i32::from(*scale).min(count as i32)), count)
                    }
                    _ => match arrays[0].as_primitive::<Float64Type>().value(row) {
                        value if value.is_nan() => "NaN".to_owned(),
                        value if value.is_infinite() => if value > 0.0 { "∞" } else { "-∞" }.to_owned(),
                        value => grouped(&format!("{value:.count$}"), count),
                    },
                })
            };
            Ok(Arc::new((0..digits.len()).map(row).collect::<StringArray>()))
        },
    },
    Builtin {
        name: "conv",
        arguments: 3..=3,
        takes: |types| cast_to(types, &[DataType::Utf8, DataType::Int32, DataType::Int32]),
        gives: |_| DataType::Utf8,
        apply: conv,
    },
];

/// Every word between blanks with a capital in front.
fn initials(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut begins = true;
    for c in text.chars() {
        if begins {
            out.extend(c.to_uppercase());
        } else {
            out.extend(c.to_lowercase());
        }
        begins = c == ' ';
    }
    out
}

/// The place of `part` in `text` from `start` on, both from 1; 0 if it is not there.
fn place(part: &str, text: &str, start: i32) -> i32 {
    let Some(skipped) = usize::try_from(start).ok().and_then(|start| start.checked_sub(1)) else { return 0 };
    let from = match text.char_indices().nth(skipped) {
        Some((at, _)) => at,
        None if text.chars().count() == skipped => text.len(),
        None => return 0,
    };
    text[from..].find(part).map_or(0, |at| (skipped + text[from..from + at].chars().count() + 1) as i32)
}

/// A number without its last `drop` digits, rounded to the even neighbour where it lies between two.
pub(super) fn half_even(number: i128, drop: i32) -> i128 {
    let Some(unit) = u32::try_from(drop).ok().filter(|drop| *drop > 0).map(|drop| 10i128.checked_pow(drop)) else {
        return number;
    };
    let Some(unit) = unit else { return 0 };
    let (whole, rest) = (number.div_euclid(unit), number.rem_euclid(unit));
    let up = match (rest * 2).cmp(&unit) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => whole % 2 != 0,
        std::cmp::Ordering::Greater => true,
    };
    whole + i128::from(up)
}

fn with_point(number: i128, scale: i32) -> String {
    let scale = usize::try_from(scale).unwrap_or(0);
    let digits = format!("{:0width$}", number.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{}{whole}.{fraction}", if number < 0 { "-" } else { "" })
}

/// The number with a comma before every third digit and `count` digits after the point.
fn grouped(number: &str, count: usize) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut out = sign.to_owned();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if count > 0 {
        out.push('.');
        out += &format!("{fraction:0<count$}");
    }
    out
}

fn conv(arrays: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let texts = arrays[0].as_string::<i32>();
    let bases = [&arrays[1], &arrays[2]].map(|bases| bases.as_primitive::<Int32Type>());
    let row = |row: usize| {
        if texts.is_null(row) || bases.iter().any(|b| b.is_null(row)) {
            return Ok(None);
        }
        converted(texts.value(row), bases[0].value(row), bases[1].value(row))
    };
    Ok(Arc::new((0..texts.len()).map(row).collect::<Result<StringArray>>()?))
}

fn converted(text: &str, from: i32, to: i32) -> Result<Option<String>> {
    let (Some(from), Some(base)) = (radix(from), radix(to.saturating_abs())) else { return Ok(None) };
    let text = text.trim_matches(' ');
    if text.is_empty() {
        return Ok(None);
    }
    let (mut negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let mut value = 0u64;
    for digit in digits.chars().map_while(|c| c.to_digit(from)) {
        let more = value.checked_mul(u64::from(from)).and_then(|v| v.checked_add(u64::from(digit)));
        value = more.ok_or_else(|| out_of_range("conv"))?;
    }
    if negative && to > 0 {
        value = if value.cast_signed() < 0 { u64::MAX } else { value.wrapping_neg() };
    }
    if to < 0 && value.cast_signed() < 0 {
        value = value.wrapping_neg();
        negative = true;
    }
    let mut digits = Vec::new();
    while value > 0 || digits.is_empty() {
        let digit = char::from_digit((value % u64::from(base)) as u32, base);
        digits.extend(digit.map(|digit| digit.to_ascii_uppercase()));
        value /= u64::from(base);
    }
    digits.extend((negative && to < 0).then_some('-'));
    Ok(Some(digits.iter().rev().collect()))
}

fn radix(base: i32) -> Option<u32> {
    u32::try_from(base).ok().filter(|base| (2..=36).contains(base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_parted_by_blanks() {
        assert_eq!(initials("sPark  sql-x éa"), "Spark  Sql-x Éa");
    }

    #[test]
    fn places_are_counted_from_one() {
        for (part, text, start, expected) in [
            ("bar", "foobarbar", 1, 4),
            ("bar", "foobarbar", 5, 7),
            ("", "abc", 1, 1),
            ("a", "éa", 1, 2),
            ("a", "a", 0, 0),
            ("a", "a", 9, 0),
        ] {
            assert_eq!(place(part, text, start), expected, "{part} {text} {start}");
        }
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(grouped(&with_point(half_even(12_332_123_456, 2), 4), 4), "12,332.1235");
        assert_eq!(grouped(&with_point(half_even(-5, 0), 0), 2), "-5.00");
        assert_eq!(grouped("1234567", 0), "1,234,567");
        assert_eq!([half_even(25, 1), half_even(35, 1), half_even(-25, 1), half_even(26, 1)], [2, 4, -2, 3]);
    }

    #[test]
    fn numbers_change_their_base() {
        for (text, from, to, expected) in [
            ("100", 2, 10, Some("4")),
            ("-10", 16, -10, Some("-16")),
            ("zz", 36, 10, Some("1295")),
            ("-1", 10, 16, Some("FFFFFFFFFFFFFFFF")),
            ("1x", 10, 10, Some("1")),
            ("", 10, 10, None),
            ("1", 1, 10, None),
        ] {
            assert_eq!(converted(text, from, to).unwrap().as_deref(), expected, "{text} {from} {to}");
        }
    }
}
