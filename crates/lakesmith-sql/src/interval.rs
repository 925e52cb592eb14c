//! INTERVAL literals.
//!
//! # Source
//! Spark `AstBuilder.visitInterval`, `IntervalUtils`.

use lakesmith_core::Result;
use lakesmith_core::predicate::{Expr, IntervalField};

use crate::diagnostic::error_at;
use crate::literal::invalid_typed;
use crate::parser::Parser;
use crate::token::{Kind, Token};

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// What a literal adds up to.
#[derive(Default)]
struct Sum {
    months: i32,
    days: i32,
    micros: i64,
    fields: Option<(IntervalField, IntervalField)>,
}

impl Sum {
    /// Adds `value` units; `None` if the unit is unknown or the sum leaves its type.
    fn add(&mut self, value: &str, unit: &str) -> Option<()> {
        let unit = unit.to_lowercase();
        let (field, scale) = match unit.strip_suffix('s').unwrap_or(&unit) {
            "year" => (IntervalField::Year, 12),
            "month" => (IntervalField::Month, 1),
            "week" => (IntervalField::Day, 7),
            "day" => (IntervalField::Day, 1),
            "hour" => (IntervalField::Hour, HOUR),
            "minute" => (IntervalField::Minute, MINUTE),
            "second" => return self.add_micros(decimal_micros(value)?),
            "millisecond" => (IntervalField::Second, 1000),
            "microsecond" => (IntervalField::Second, 1),
            _ => return None,
        };
        let amount = value.trim().parse::<i64>().ok()?.checked_mul(scale)?;
        match field {
            IntervalField::Year | IntervalField::Month => {
                self.months = self.months.checked_add(i32::try_from(amount).ok()?)?
            }
            IntervalField::Day => self.days = self.days.checked_add(i32::try_from(amount).ok()?)?,
            _ => self.micros = self.micros.checked_add(amount)?,
        }
        self.widen(field);
        Some(())
    }

    fn add_micros(&mut self, micros: i64) -> Option<()> {
        self.micros = self.micros.checked_add(micros)?;
        self.widen(IntervalField::Second);
        Some(())
    }

    fn widen(&mut self, field: IntervalField) {
        let (first, last) = self.fields.unwrap_or((field, field));
        self.fields = Some((first.min(field), last.max(field)));
    }

    fn finish(self) -> Option<Expr> {
        let fields = self.fields?;
        Some(Expr::Interval { months: self.months, days: self.days, micros: self.micros, fields })
    }

    fn mixes(&self) -> bool {
        self.fields.is_some_and(|(first, last)| first.is_year_month() && !last.is_year_month())
    }
}

/// True if an interval literal starts here; a column may be called `interval`.
pub(crate) fn starts(p: &Parser<'_>) -> bool {
    let is_value = |ahead| matches!(p.peek_at(ahead).kind, Kind::Number | Kind::Text(_));
    let is_sign = p.symbol_at(1, "-") || p.symbol_at(1, "+");
    let signed_number = is_sign && is_value(2) && matches!(p.peek_at(3).kind, Kind::Word { .. });
    p.word_at(0, "INTERVAL") && (is_value(1) || signed_number)
}

/// Reads INTERVAL and what belongs to it.
pub(crate) fn interval(p: &mut Parser<'_>) -> Result<Expr> {
    let keyword = p.advance();
    if let Kind::Text(text) = &p.peek().kind {
        let text = text.clone();
        let unit_follows = matches!(p.peek_at(1).kind, Kind::Word { quoted: false, .. }) && is_unit(p, 1);
        if !unit_follows {
            p.advance();
            return spelled_out(&text, &keyword);
        }
        if p.word_at(2, "TO") {
            return range(p, &text, &keyword);
        }
    }
    let start = keyword.start;
    let mut sum = Sum::default();
    while matches!(p.peek().kind, Kind::Number | Kind::Text(_)) || (signed(p) && is_unit(p, 2)) {
        let negative = !matches!(p.peek().kind, Kind::Number | Kind::Text(_)) && p.symbol_at(0, "-");
        if signed(p) {
            p.advance();
        }
        let token = p.advance();
        let value = match &token.kind {
            Kind::Text(text) => text.clone(),
            _ => p.source(&token).to_owned(),
        };
        if !is_unit(p, 0) {
            return Err(p.unexpected("a unit such as DAYS, HOURS or MONTHS"));
        }
        let unit = p.advance();
        let value = if negative { negate(&value) } else { value };
        sum.add(&value, p.source(&unit))
            .ok_or_else(|| invalid_typed("INTERVAL", &p.text[start..unit.end], &keyword))?;
    }
    let source = p.text[start..p.previous().end].to_owned();
    finish(sum, &source, &keyword)
}

fn signed(p: &Parser<'_>) -> bool {
    (p.symbol_at(0, "-") || p.symbol_at(0, "+")) && matches!(p.peek_at(1).kind, Kind::Number | Kind::Text(_))
}

fn negate(value: &str) -> String {
    let value = value.trim();
    match value.strip_prefix('-') {
        Some(rest) => rest.to_owned(),
        None => format!("-{}", value.trim_start_matches('+')),
    }
}

fn is_unit(p: &Parser<'_>, ahead: usize) -> bool {
    const UNITS: [&str; 9] = ["year", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond"];
    UNITS.iter().any(|unit| p.word_at(ahead, unit) || p.word_at(ahead, &format!("{unit}s")))
}

fn finish(sum: Sum, source: &str, keyword: &Token) -> Result<Expr> {
    if sum.mixes() {
        return Err(error_at(
            keyword.place,
            "INVALID_INTERVAL_FORMAT",
            format!("Cannot mix year-month and day-time fields: {source}"),
        ));
    }
    sum.finish().ok_or_else(|| invalid_typed("INTERVAL", source, keyword))
}

/// `'1 day 2 hours'`.
fn spelled_out(text: &str, keyword: &Token) -> Result<Expr> {
    let invalid = || invalid_typed("INTERVAL", text, keyword);
    let mut sum = Sum::default();
    let mut words = text.split_whitespace();
    while let Some(value) = words.next() {
        sum.add(value, words.next().ok_or_else(invalid)?).ok_or_else(invalid)?;
    }
    finish(sum, &format!("INTERVAL '{text}'"), keyword)
}

/// `'1-2' YEAR TO MONTH`, `'1 02:03:04.5' DAY TO SECOND` and what lies between.
fn range(p: &mut Parser<'_>, text: &str, keyword: &Token) -> Result<Expr> {
    p.advance();
    let first = p.advance();
    p.expect_word("TO")?;
    let field = |source: &str| {
        use IntervalField::*;
        [Year, Month, Day, Hour, Minute, Second].into_iter().find(|f| f.keyword().eq_ignore_ascii_case(source))
    };
    let (first, last) = match (field(p.source(&first)), field(p.source(p.peek()))) {
        (Some(first), Some(last)) if first < last && first.is_year_month() == last.is_year_month() => (first, last),
        _ => return Err(p.unexpected("a smaller unit, as in DAY TO SECOND or YEAR TO MONTH")),
    };
    p.advance();
    let trimmed = text.trim();
    let (sign, body) = match trimmed.strip_prefix('-') {
        Some(body) => (-1, body),
        None => (1, trimmed.trim_start_matches('+')),
    };
    let parsed = if first.is_year_month() { year_to_month(body) } else { day_time(body, first, last) };
    let (months, days, micros) = parsed.ok_or_else(|| invalid_typed("INTERVAL", text, keyword))?;
    let (months, days) = (sign * months, sign * days);
    Ok(Expr::Interval { months, days, micros: i64::from(sign) * micros, fields: (first, last) })
}

fn year_to_month(body: &str) -> Option<(i32, i32, i64)> {
    let (years, months) = body.split_once('-')?;
    let months: i32 = plain(months).filter(|m| *m < 12)?.try_into().ok()?;
    let years: i32 = plain(years)?.try_into().ok()?;
    Some((years.checked_mul(12)?.checked_add(months)?, 0, 0))
}

/// Values of the fields from `first` to `last`; only the first may exceed its clock.
fn day_time(body: &str, first: IntervalField, last: IntervalField) -> Option<(i32, i32, i64)> {
    let (days, time) = match first {
        IntervalField::Day => body.split_once(' ').map(|(days, time)| (plain(days), time))?,
        _ => (Some(0), body),
    };
    let clock = [IntervalField::Hour, IntervalField::Minute, IntervalField::Second];
    let fields: Vec<IntervalField> = clock.into_iter().filter(|f| *f >= first && *f <= last).collect();
    let parts: Vec<&str> = time.trim().split(':').collect();
    if parts.len() != fields.len() {
        return None;
    }
    let mut micros = 0i64;
    for (field, part) in fields.iter().zip(parts) {
        let (amount, scale, limit) = match field {
            IntervalField::Hour => (plain(part)?, HOUR, 24),
            IntervalField::Minute => (plain(part)?, MINUTE, 60),
            _ => (decimal_micros(part).filter(|m| *m >= 0)?, 1, 60 * SECOND),
        };
        if *field != first && amount >= limit {
            return None;
        }
        micros = micros.checked_add(amount.checked_mul(scale)?)?;
    }
    Some((0, i32::try_from(days?).ok()?, micros))
}

fn plain(digits: &str) -> Option<i64> {
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Seconds with up to nine digits after the point, cut to microseconds.
fn decimal_micros(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, body) = match text.strip_prefix('-') {
        Some(body) => (-1, body),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = body.split_once('.').unwrap_or((body, ""));
    if fraction.len() > 9 || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { plain(whole)? };
    plain(if fraction.is_empty() { "0" } else { fraction })?;
    let fraction = plain(&format!("{:0<6}", &fraction[..fraction.len().min(6)]))?;
    Some(sign * whole.checked_mul(SECOND)?.checked_add(fraction)?)
}
