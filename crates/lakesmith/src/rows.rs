//! Reports as the rows that Spark's SQL gives for the same statement: same columns, same order.

use lakesmith_core::op::{PropertiesReport, Report, VacuumReport};
use serde_json::Value;

use crate::ops::describe::spark_uri;
use crate::{Location, Result};

/// Columns and rows of a statement's result.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Rows {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
}

/// Projects a report. `extended` adds Lakesmith's own columns, last.
pub(crate) fn sql_rows(report: &Report, extended: bool) -> Result<Rows> {
    Ok(match report {
        Report::Optimize(r) => Rows {
            columns: vec!["path".into(), "metrics".into()],
            rows: vec![vec![spark_uri(&Location::from_canonical(&r.path)?).into(), value(&r.metrics)]],
        },
        Report::Detail(r) => {
            let own: &[&str] = if extended { &[] } else { &["numPartitions", "version"] };
            from_objects(vec![value(r.as_ref())], own)
        }
        Report::History(r) => from_objects(r.0.iter().map(value).collect(), &[]),
        Report::Files(r) => from_objects(r.iter().map(|file| value(&file)).collect(), &[]),
        Report::Properties(PropertiesReport(properties)) => Rows {
            columns: vec!["key".into(), "value".into()],
            rows: properties.iter().map(|(k, v)| vec![k.as_str().into(), v.as_str().into()]).collect(),
        },
        Report::Rows(r) => Rows {
            columns: r.columns.iter().map(|c| (*c).to_owned()).collect(),
            rows: r.rows.iter().map(|row| row.iter().map(value).collect()).collect(),
        },
        Report::Vacuum(r) => vacuum(r, extended)?,
        Report::Restore(r) => from_objects(vec![value(&r.metrics)], &[]),
        Report::Apply(_) | Report::Health(_) | Report::Checkpoint(_) | Report::Fsck(_) | Report::Done { .. } => {
            Rows::default()
        }
    })
}

/// A dry run answers with what would go, by full path; a run with the table's path.
fn vacuum(report: &VacuumReport, extended: bool) -> Result<Rows> {
    let root = Location::from_canonical(&report.path)?;
    let mut rows = Rows { columns: vec!["path".into()], rows: Vec::new() };
    if !report.dry_run {
        rows.rows.push(vec![spark_uri(&root).into()]);
        return Ok(rows);
    }
    if extended {
        rows.columns.extend(["size".into(), "ageMs".into(), "reason".into()]);
    }
    report.files.for_each(|file| {
        let mut row = vec![Value::from(spark_uri(&root.join(&file.path)))];
        if extended {
            row.extend([value(&file.size), value(&file.age_ms), value(&file.reason)]);
        }
        rows.rows.push(row);
        Ok(())
    })?;
    Ok(rows)
}

fn value<T: serde::Serialize + ?Sized>(of: &T) -> Value {
    serde_json::to_value(of).unwrap_or(Value::Null)
}

/// The first object's keys are the columns.
fn from_objects(objects: Vec<Value>, without: &[&str]) -> Rows {
    let mut rows = Rows::default();
    for object in objects {
        let Value::Object(map) = object else { continue };
        let kept: Vec<(String, Value)> = map.into_iter().filter(|(k, _)| !without.contains(&k.as_str())).collect();
        if rows.columns.is_empty() {
            rows.columns = kept.iter().map(|(k, _)| k.clone()).collect();
        }
        rows.rows.push(kept.into_iter().map(|(_, v)| v).collect());
    }
    rows
}
