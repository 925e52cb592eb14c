//! Commands that cure, ready to be pasted into a shell.

use crate::units::{GIB, MIB};

/// The table's name on a command line, and whether commands that write can work at all.
#[derive(Debug, Clone)]
pub(super) struct Cure {
    table: String,
    blocked: bool,
    target_bytes: u64,
}

impl Cure {
    /// For a canonical location.
    pub(super) fn new(location: &str, target_bytes: u64, blocked: bool) -> Self {
        let argument = match location.strip_prefix("file://") {
            Some(path) => path.to_owned(),
            // A URL on the command line is percent-decoded once.
            None => location.replace('%', "%25"),
        };
        Self { table: quoted(&argument), blocked, target_bytes }
    }

    pub(super) fn optimize(&self) -> Option<String> {
        self.write(&format!("optimize {} --target-size {}", self.table, exact_size(self.target_bytes)))
    }

    pub(super) fn optimize_force(&self) -> Option<String> {
        self.write(&format!("optimize {} --target-size {} --force", self.table, exact_size(self.target_bytes)))
    }

    pub(super) fn cluster_again(&self) -> Option<String> {
        self.write(&format!("optimize {} --target-size {} --full --force", self.table, exact_size(self.target_bytes)))
    }

    pub(super) fn purge(&self) -> Option<String> {
        self.write(&format!("reorg {} --purge", self.table))
    }

    pub(super) fn vacuum(&self) -> Option<String> {
        self.write(&format!("vacuum {}", self.table))
    }

    pub(super) fn checkpoint(&self) -> Option<String> {
        self.write(&format!("checkpoint {}", self.table))
    }

    pub(super) fn clean_log(&self) -> Option<String> {
        self.write(&format!("checkpoint {} --clean-log", self.table))
    }

    pub(super) fn fsck(&self) -> String {
        format!("lakesmith fsck {}", self.table)
    }

    pub(super) fn readable_versions(&self) -> String {
        format!("lakesmith history {} --readable", self.table)
    }

    fn write(&self, command: &str) -> Option<String> {
        (!self.blocked).then(|| format!("lakesmith {command}"))
    }
}

/// A word that the shell leaves as it is, or the text in single quotes.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=@,+".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A size in the largest unit that says it exactly.
fn exact_size(bytes: u64) -> String {
    match bytes {
        b if b > 0 && b.is_multiple_of(GIB) => format!("{}GiB", b / GIB),
        b if b > 0 && b.is_multiple_of(MIB) => format!("{}MiB", b / MIB),
        b => b.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_survive_the_shell_and_the_parser_of_locations() {
        let optimize = |location: &str, target| Cure::new(location, target, false).optimize().unwrap();
        assert_eq!(optimize("file:///lake/events", GIB), "lakesmith optimize /lake/events --target-size 1GiB");
        assert_eq!(optimize("s3://b/a%b", 96 * MIB), "lakesmith optimize 's3://b/a%25b' --target-size 96MiB");
        assert_eq!(optimize("file:///it's $x", 1000), "lakesmith optimize '/it'\\''s $x' --target-size 1000");
        assert_eq!(Cure::new("file:///t", GIB, true).checkpoint(), None);
    }
}
