//! Which crate may depend on which. Arrows point down only.

use anyhow::{Context, Result};
use serde_json::Value;

/// Crate, and the crates of the workspace that it may use.
const ALLOWED: [(&str, &[&str]); 11] = [
    ("lakesmith-core", &[]),
    ("lakesmith-storage", &["lakesmith-core"]),
    ("lakesmith-delta", &["lakesmith-core", "lakesmith-storage"]),
    ("lakesmith-iceberg", &["lakesmith-core", "lakesmith-storage"]),
    ("lakesmith-exec", &["lakesmith-core", "lakesmith-storage"]),
    ("lakesmith-sql", &["lakesmith-core"]),
    (
        "lakesmith",
        &[
            "lakesmith-core",
            "lakesmith-storage",
            "lakesmith-delta",
            "lakesmith-iceberg",
            "lakesmith-exec",
            "lakesmith-sql",
        ],
    ),
    ("lakesmith-engine", &["lakesmith", "lakesmith-exec"]),
    ("lakesmith-cli", &["lakesmith", "lakesmith-engine"]),
    ("lakesmith-testkit", &["lakesmith-core", "lakesmith-storage"]),
    ("xtask", &[]),
];
/// Every crate may use these in its tests, and nowhere else.
const FOR_TESTS: [&str; 1] = ["lakesmith-testkit"];

/// Findings in the output of `cargo metadata --no-deps`.
///
/// # Errors
/// When it is not cargo's metadata.
pub(crate) fn check(metadata: &str) -> Result<Vec<String>> {
    let metadata: Value = serde_json::from_str(metadata).context("cargo metadata gave no JSON")?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let names: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut findings = Vec::new();
    for package in packages {
        let from = package["name"].as_str().context("a package has no name")?;
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == from) else {
            findings.push(format!("{from}: a crate that tidy does not know; give it its arrows in xtask/src/tidy"));
            continue;
        };
        for dependency in package["dependencies"].as_array().context("a package lists no dependencies")? {
            let to = dependency["name"].as_str().context("a dependency has no name")?;
            let in_tests = dependency["kind"].as_str() == Some("dev");
            let ours = names.contains(&to) || !dependency["path"].is_null();
            // A crate names itself to turn on, for its own tests, what it offers to others' tests.
            let for_tests = in_tests && (FOR_TESTS.contains(&to) || to == from);
            if ours && !allowed.contains(&to) && !for_tests {
                findings.push(format!("{from} must not depend on {to}: arrows between crates point down only"));
            }
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(from: &str, to: &str, kind: Option<&str>) -> String {
        let dependency = json!({"name": to, "kind": kind, "path": format!("/w/{to}")});
        let packages = json!([{"name": from, "dependencies": [dependency]}]);
        json!({"packages": packages}).to_string()
    }

    #[test]
    fn arrows_point_down_only() {
        for (from, to, kind, findings) in [
            ("lakesmith-cli", "lakesmith", None, 0),
            ("lakesmith-cli", "lakesmith-core", None, 1),
            ("lakesmith-core", "lakesmith-storage", None, 1),
            ("lakesmith-exec", "lakesmith-delta", None, 1),
            ("lakesmith-exec", "lakesmith-delta", Some("dev"), 1),
            ("lakesmith-delta", "lakesmith-testkit", Some("dev"), 0),
            ("lakesmith-storage", "lakesmith-storage", Some("dev"), 0),
            ("lakesmith-storage", "lakesmith-storage", None, 1),
            ("lakesmith-delta", "lakesmith-testkit", None, 1),
            ("lakesmith-delta", "lakesmith-testkit", Some("build"), 1),
        ] {
            let found = check(&metadata(from, to, kind)).unwrap();
            assert_eq!(found.len(), findings, "{from} -> {to} ({kind:?}): {found:?}");
        }
    }

    #[test]
    fn crates_from_outside_are_free_and_unknown_rooms_are_not() {
        let outside = json!({"name": "bytes", "kind": null, "path": null});
        let text = json!({"packages": [{"name": "lakesmith-core", "dependencies": [outside]}]}).to_string();
        assert_eq!(check(&text).unwrap(), Vec::<String>::new());
        let text = json!({"packages": [{"name": "lakesmith-attic", "dependencies": []}]}).to_string();
        assert_eq!(check(&text).unwrap().len(), 1);
    }

    #[test]
    fn no_room_of_the_table_leads_back_to_itself() {
        fn reaches(from: &str, to: &str) -> bool {
            let below = ALLOWED.iter().find(|(name, _)| *name == from).map_or(&[][..], |(_, below)| below);
            below.iter().any(|next| *next == to || reaches(next, to))
        }
        for (name, _) in ALLOWED {
            assert!(!reaches(name, name), "{name}");
        }
    }
}
