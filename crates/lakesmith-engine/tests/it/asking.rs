//! Asks a session and keeps what comes back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lakesmith::{Error, Session, SessionOptions};
use lakesmith_engine::Engine;
use serde_json::Value;

/// A session with an engine.
pub(crate) fn session() -> Session {
    let options = SessionOptions { engine: Some(Arc::new(Engine::new())), ..SessionOptions::default() };
    Session::new(options).unwrap()
}

/// Columns and rows of the last statement.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// Runs statements in one session.
pub(crate) fn ask_in(session: &mut Session, sql: &str) -> Result<Answer, Error> {
    let mut answer = Answer::default();
    session.sql(sql, &mut |part| {
        if !part.continues {
            answer = Answer { columns: part.columns, rows: Vec::new() };
        }
        answer.rows.extend(part.rows);
        Ok(())
    })?;
    Ok(answer)
}

/// Runs statements.
pub(crate) fn ask(sql: &str) -> Result<Answer, Error> {
    ask_in(&mut session(), sql)
}

/// The rows of one statement as text, one a line.
pub(crate) fn rows(sql: &str) -> Vec<String> {
    let answer = ask(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    answer.rows.iter().map(|row| row.iter().map(shown).collect::<Vec<_>>().join("|")).collect()
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The folder of golden tables.
pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/delta").canonicalize().unwrap()
}

/// A golden table as SQL names it.
pub(crate) fn golden(name: &str) -> String {
    format!("delta.`{}`", fixtures().join(name).display())
}
