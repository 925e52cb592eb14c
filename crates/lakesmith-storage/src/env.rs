//! Every environment variable of the program's own, in one list that the reference page is made from.

/// An environment variable and what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it sets, as one sentence for the reference page.
    pub meaning: &'static str,
}

/// Memory limit of a command.
pub const MEMORY: &str = "LAKESMITH_MEMORY";
/// Threads that rewrite data.
pub const THREADS: &str = "LAKESMITH_THREADS";
/// Size that rewritten files aim at.
pub const TARGET_SIZE: &str = "LAKESMITH_TARGET_SIZE";
/// What is logged to stderr.
pub const LOG: &str = "LAKESMITH_LOG";
/// Text recorded in every commit.
pub const USER_METADATA: &str = "LAKESMITH_USER_METADATA";
/// How long a finished rewrite keeps trying to commit.
pub const COMMIT_TIMEOUT: &str = "LAKESMITH_COMMIT_TIMEOUT";

/// All variables, sorted by name.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: COMMIT_TIMEOUT,
        meaning: "How long a finished rewrite keeps trying to commit against other writers, for example 30min.",
    },
    Variable { name: LOG, meaning: "What is logged to stderr, as a tracing filter such as info or lakesmith=debug." },
    Variable { name: MEMORY, meaning: "Memory limit of a command, for example 2GiB; what does not fit is spilled." },
    Variable { name: TARGET_SIZE, meaning: "Size that rewritten files aim at, for example 256MiB." },
    Variable { name: THREADS, meaning: "Number of threads that rewrite data; all processors if unset." },
    Variable { name: USER_METADATA, meaning: "Text recorded as userMetadata in every commit." },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_unique_and_documented() {
        assert!(VARIABLES.is_sorted_by(|a, b| a.name < b.name));
        assert!(VARIABLES.iter().all(|v| v.name.starts_with("LAKESMITH_") && v.meaning.ends_with('.')));
    }
}
