//! What `config` prints: every setting and every variable, from where they are defined.

use lakesmith::Result;
use serde_json::{Value, json};

use super::{Stdout, tables};
use crate::args;

/// Settings and variables with their meanings.
pub(crate) struct Reference {
    settings: Vec<lakesmith::Setting>,
    variables: Vec<Variable>,
}

struct Variable {
    name: String,
    flag: String,
    meaning: String,
}

impl Reference {
    pub(crate) fn new() -> Self {
        let mut variables: Vec<Variable> =
            args::variables().into_iter().map(|(name, (flag, meaning))| Variable { name, flag, meaning }).collect();
        variables.push(Variable {
            name: "LAKESMITH_LOG".to_owned(),
            flag: "--verbose".to_owned(),
            meaning: "Which logs go to stderr, for example info or lakesmith=debug".to_owned(),
        });
        variables.sort_by(|a, b| a.name.cmp(&b.name));
        Self { settings: lakesmith::settings_reference(), variables }
    }

    pub(crate) fn json(&self) -> Value {
        let settings: Vec<Value> =
            self.settings.iter().map(|s| json!({"key": s.key, "default": s.default, "meaning": s.meaning})).collect();
        let variables: Vec<Value> =
            self.variables.iter().map(|v| json!({"name": v.name, "flag": v.flag, "meaning": v.meaning})).collect();
        json!({"settings": settings, "variables": variables})
    }

    /// # Errors
    /// Unavailable when it cannot be written.
    pub(crate) fn write(&self, out: &mut Stdout) -> Result<()> {
        out.line("Settings (--set key=value, or SET key = value in SQL)\n")?;
        let rows = self.settings.iter().map(|s| vec![s.key.to_string(), s.default.to_string(), s.meaning.to_string()]);
        tables::grid(out, &["setting", "default", "meaning"], &[], rows)?;
        out.line("\nVariables (a flag wins over its variable, a variable over a setting)\n")?;
        let rows = self.variables.iter().map(|v| vec![v.name.clone(), v.flag.clone(), v.meaning.clone()]);
        tables::grid(out, &["variable", "flag", "meaning"], &[], rows)
    }
}
