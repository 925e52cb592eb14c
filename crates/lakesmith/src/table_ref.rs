//! Tables as people name them.

use lakesmith_core::{Error, Result};
use lakesmith_storage::Location;

/// A local path in which `..` follows a link leads elsewhere than its text says: the system decides.
pub(crate) fn location(text: &str) -> Result<Location> {
    let climbs = !Location::is_absolute(text) && text.split('/').any(|part| part == "..");
    match climbs.then(|| std::fs::canonicalize(text)) {
        Some(Ok(real)) => Location::parse(&real.to_string_lossy()),
        _ => Location::parse(text),
    }
}

/// A path, a URL or ``delta.`path` ``.
pub(crate) fn parse(text: &str) -> Result<Location> {
    let trimmed = text.trim();
    match trimmed.strip_prefix("delta.`").and_then(|rest| rest.strip_suffix('`')) {
        Some(path) => location(&path.replace("``", "`")),
        None if trimmed.starts_with("iceberg.`") => Err(Error::unsupported(
            "Iceberg tables are not supported in this version; name a Delta table by its path or delta.`path`",
        )),
        None => location(text),
    }
}
