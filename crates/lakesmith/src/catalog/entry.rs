//! What a warehouse writes down beside the tables: which name belongs to which place, and what a database is called.
//!
//! Both are private formats of ours, in the folder for notes, where nobody looks for data. An entry of a later version is
//! left untouched.

use lakesmith_core::{Error, Result};
use lakesmith_storage::{Location, NOTES_FOLDER};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version that we write.
const FORMAT: u64 = 1;

/// An entry's kind, and the key that holds its version.
const TABLE: &str = "lakesmithTable";
const DATABASE: &str = "lakesmithDatabase";

/// The name of a table and its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TableEntry {
    /// As it was written in CREATE TABLE.
    pub name: String,
    /// Canonical location; none: the folder of the name in the database's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}

/// A database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DatabaseEntry {
    /// As it was written in CREATE DATABASE.
    pub name: String,
    /// COMMENT
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Of the statement that made it: whose entry it is if two wrote one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// The folder of the tables' entries.
pub(super) fn tables_folder(database: &Location) -> Location {
    database.join(NOTES_FOLDER).join("tables")
}

/// Where the entry of a table is.
pub(super) fn table_place(database: &Location, name: &str) -> Location {
    tables_folder(database).join(&format!("{}.json", name.to_lowercase()))
}

/// Where the entry of a database is.
pub(super) fn database_place(database: &Location) -> Location {
    database.join(NOTES_FOLDER).join("database.json")
}

pub(super) fn write_table(entry: &TableEntry) -> Result<Vec<u8>> {
    write(TABLE, entry)
}

pub(super) fn write_database(entry: &DatabaseEntry) -> Result<Vec<u8>> {
    write(DATABASE, entry)
}

pub(super) fn read_table(bytes: &[u8], place: &Location) -> Result<TableEntry> {
    read(TABLE, bytes, place)
}

pub(super) fn read_database(bytes: &[u8], place: &Location) -> Result<DatabaseEntry> {
    read(DATABASE, bytes, place)
}

fn write<T: Serialize>(kind: &str, entry: &T) -> Result<Vec<u8>> {
    let failed = |e| Error::internal("an entry of the warehouse could not be written as JSON").caused_by(e);
    let mut value = serde_json::to_value(entry).map_err(failed)?;
    if let Some(object) = value.as_object_mut() {
        object.shift_insert(0, kind.to_owned(), FORMAT.into());
    }
    let mut text = serde_json::to_vec(&value).map_err(failed)?;
    text.push(b'\n');
    Ok(text)
}

fn read<T: DeserializeOwned>(kind: &str, bytes: &[u8], place: &Location) -> Result<T> {
    let malformed =
        || Error::corrupt("an entry of the warehouse can't be read; restore or remove it").with("path", place);
    let value: Value = serde_json::from_slice(bytes).map_err(|e| malformed().caused_by(e))?;
    match value.get(kind).and_then(Value::as_u64) {
        Some(FORMAT) => serde_json::from_value(value).map_err(|e| malformed().caused_by(e)),
        Some(version) => Err(Error::unsupported(format!(
            "an entry of the warehouse has format {version}, which this version of Lakesmith does not know (it knows \
             {FORMAT}); it was left as it is. Use a newer version"
        ))
        .with("path", place)),
        None => Err(malformed()),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop")]
mod tests {
    use lakesmith_core::ErrorKind;

    use super::*;

    #[test]
    fn entries_are_read_back() {
        let place = Location::parse("memory://w/x").unwrap();
        let entry = TableEntry { name: "Events".into(), location: Some("s3://b/e".into()) };
        let text = write_table(&entry).unwrap();
        assert_eq!(
            String::from_utf8(text.clone()).unwrap(),
            "{\"lakesmithTable\":1,\"name\":\"Events\",\"location\":\"s3://b/e\"}\n"
        );
        assert_eq!(read_table(&text, &place).unwrap(), entry);
        let entry = DatabaseEntry { name: "Db".into(), comment: None, id: Some("7".into()) };
        assert_eq!(read_database(&write_database(&entry).unwrap(), &place).unwrap(), entry);
    }

    #[test]
    fn what_is_not_known_is_named() {
        let place = Location::parse("memory://w/x").unwrap();
        let kind = |text: &str| read_table(text.as_bytes(), &place).unwrap_err().kind();
        assert_eq!(kind(r#"{"lakesmithTable":2,"name":"e"}"#), ErrorKind::Unsupported);
        for text in ["", "{}", r#"{"lakesmithTable":1}"#, r#"{"lakesmithDatabase":1,"name":"e"}"#, "[1]"] {
            assert_eq!(kind(text), ErrorKind::Corrupt, "{text}");
        }
    }
}
