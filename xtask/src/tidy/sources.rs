//! Rules for single source files: size, names, words that must not stay.

const CODE_LINES_MAX: usize = 600;
/// A room without a name fills up.
const NAMELESS: [&str; 8] = ["util", "utils", "helper", "helpers", "common", "misc", "manager", "managers"];
/// Written in halves so that this file does not find itself.
const BANNED: [(&str, &str); 6] = [
    (concat!("to", "do!("), "unfinished code"),
    (concat!("unimplement", "ed!("), "unfinished code"),
    (concat!("#[ig", "nore"), "a test that does not run"),
    (concat!("FIX", "ME"), "mend it now"),
    (concat!("pytest.mark.", "skip"), "a test that does not run"),
    (concat!("dbg", "!("), "a left-over"),
];
/// Words of one table format, in the rooms that know of none: where they begin, and what none of their files may say.
/// Classes of errors are Spark's, and some of them begin like the format.
const FOREIGN: [(&str, &[&str]); 2] = [
    ("crates/lakesmith-engine/src/", &["DELTA_", "_delta_log", "commitInfo", "ZCUBE_", "metadata.json"]),
    ("crates/lakesmith-exec/src/", &["_delta_log", "commitInfo", "ZCUBE_", "metadata.json"]),
];
/// Features are for the edges: correctness must not depend on them. Storage offers its conformance suite as one.
const MAY_HAVE_FEATURES: [&str; 2] = ["crates/lakesmith-cli/", "crates/lakesmith-storage/src/lib.rs"];

/// Whether the rules are about this file.
pub(crate) fn is_source(file: &str) -> bool {
    extension(file).is_some()
}

/// Findings in one file.
pub(crate) fn check(file: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let lines = code_lines(file, text);
    if lines > CODE_LINES_MAX {
        findings.push(format!("{file}: {lines} lines of code, {CODE_LINES_MAX} at most: it holds more than one thing"));
    }
    let parts = file.split('/').map(|part| part.split('.').next().unwrap_or(part));
    if let Some(part) = parts.flat_map(|part| part.split(['_', '-'])).find(|word| NAMELESS.contains(word)) {
        findings.push(format!("{file}: '{part}' says nothing about what is inside; name the thing"));
    }
    for (number, line) in text.lines().enumerate() {
        let at = number + 1;
        for (word, why) in BANNED {
            if line.contains(word) {
                findings.push(format!("{file}:{at}: '{word}': {why}"));
            }
        }
        let words = FOREIGN.iter().filter(|(room, _)| file.starts_with(room) && !file.ends_with("_tests.rs"));
        for word in words.flat_map(|(_, words)| words.iter()).filter(|word| line.contains(**word)) {
            findings.push(format!("{file}:{at}: '{word}': the format's own crate knows of it, this one does not"));
        }
        let feature = concat!("cfg(fea", "ture");
        if line.contains(feature) && !MAY_HAVE_FEATURES.iter().any(|prefix| file.starts_with(prefix)) {
            findings.push(format!("{file}:{at}: '{feature}' outside the edges"));
        }
    }
    findings
}

/// Lines that are neither blank nor only a comment.
fn code_lines(file: &str, text: &str) -> usize {
    let marker = if extension(file) == Some("rs") { "//" } else { "#" };
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(marker)).count()
}

fn extension(file: &str) -> Option<&str> {
    let (_, extension) = file.rsplit_once('.')?;
    ["rs", "py", "sh"].contains(&extension).then_some(extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_found_by_their_code_alone() {
        let code = "let a = 1;\n".repeat(CODE_LINES_MAX);
        assert_eq!(check("crates/x/src/a.rs", &format!("//! Doc.\n\n  // why\n{code}")), Vec::<String>::new());
        assert_eq!(check("crates/x/src/a.rs", &format!("{code}let b = 2;\n")).len(), 1);
        assert_eq!(check("oracle/a.py", &format!("# why\n{code}")), Vec::<String>::new());
    }

    #[test]
    fn words_of_a_format_are_found_where_none_is_known() {
        for (file, line, findings) in [
            ("crates/lakesmith-engine/src/query.rs", "error.class(\"DELTA_MISSING\")", 1),
            ("crates/lakesmith-engine/tests/it/views.rs", "error.class(\"DELTA_MISSING\")", 0),
            ("crates/lakesmith-exec/src/vector.rs", "error.class(\"DELTA_MISSING\")", 0),
            ("crates/lakesmith-exec/src/vector.rs", "join(\"_delta_log\")", 1),
            ("crates/lakesmith-exec/src/rewrite_tests.rs", "join(\"_delta_log\")", 0),
            ("crates/lakesmith-delta/src/lib.rs", "join(\"_delta_log\")", 0),
        ] {
            assert_eq!(check(file, line).len(), findings, "{file}: {line}");
        }
    }

    #[test]
    fn names_that_say_nothing_are_found() {
        for (file, findings) in [
            ("crates/x/src/utils.rs", 1),
            ("crates/x/src/string_utils.rs", 1),
            ("crates/x/tests/common/mod.rs", 1),
            ("oracle/helpers.py", 1),
            ("crates/x/src/commit.rs", 0),
            ("crates/x/src/uncommon.rs", 0),
        ] {
            assert_eq!(check(file, "").len(), findings, "{file}");
        }
    }

    #[test]
    fn banned_words_are_found_with_their_line() {
        for (word, _) in BANNED {
            let found = check("a.rs", &format!("fn a() {{}}\n{word}x)\n"));
            assert_eq!(found.len(), 1, "{word}");
            assert!(found[0].starts_with("a.rs:2:"), "{found:?}");
        }
    }

    #[test]
    fn features_stay_at_the_edges() {
        let text = concat!("#[cfg(fea", "ture = \"engine\")]\n");
        assert_eq!(check("crates/lakesmith-cli/src/main.rs", text).len(), 0);
        assert_eq!(check("crates/lakesmith-delta/src/lib.rs", text).len(), 1);
    }

    #[test]
    fn only_programs_are_looked_at() {
        for (file, expected) in
            [("a.rs", true), ("b/c.py", true), ("d.sh", true), ("README.md", false), ("LICENSE", false)]
        {
            assert_eq!(is_source(file), expected, "{file}");
        }
    }
}
