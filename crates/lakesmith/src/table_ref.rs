//! Tables as people name them.

use lakesmith_core::Result;
use lakesmith_storage::Location;

use crate::catalog::Target;
use crate::format::Format;

/// A local path in which `..` follows a link leads elsewhere than its text says: the system decides.
pub(crate) fn location(text: &str) -> Result<Location> {
    let climbs = !Location::is_absolute(text) && text.split('/').any(|part| part == "..");
    match climbs.then(|| std::fs::canonicalize(text)) {
        Some(Ok(real)) => Location::parse(&real.to_string_lossy()),
        _ => Location::parse(text),
    }
}

/// A path, a URL, ``delta.`path` `` or ``iceberg.`path` ``.
pub(crate) fn parse(text: &str) -> Result<Target> {
    for (prefix, format) in [("delta.`", Format::Delta), ("iceberg.`", Format::Iceberg)] {
        let quoted = text.trim().strip_prefix(prefix).and_then(|rest| rest.strip_suffix('`'));
        if let Some(path) = quoted {
            return Ok(Target::path(location(&path.replace("``", "`"))?).of(format));
        }
    }
    location(text).map(Target::path)
}
