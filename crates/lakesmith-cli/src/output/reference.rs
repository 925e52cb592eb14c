//! What `config` prints: every setting with the value in force, and every variable, from where they are defined.

use std::collections::BTreeSet;

use lakesmith::Result;
use serde_json::{Value, json};

use super::Stdout;
use crate::args::{self, Shared, TuningArgs};
use crate::settings;

/// Settings and variables with their meanings.
pub(crate) struct Reference {
    settings: Vec<InForce>,
    variables: Vec<Variable>,
}

/// A setting, its value and where that comes from.
struct InForce {
    setting: lakesmith::Setting,
    value: String,
    from: String,
}

struct Variable {
    name: String,
    flag: String,
    meaning: String,
}

impl Reference {
    /// What holds for a command with these arguments; `from_variables` are the flags whose values are their variables'.
    pub(crate) fn new(shared: &Shared, tuning: &TuningArgs, from_variables: &BTreeSet<String>) -> Self {
        let mut variables: Vec<Variable> =
            args::variables().into_iter().map(|(name, (flag, meaning))| Variable { name, flag, meaning }).collect();
        variables.push(Variable {
            name: "LAKESMITH_LOG".to_owned(),
            flag: "--verbose".to_owned(),
            meaning: "Which logs go to stderr, for example info or lakesmith=debug".to_owned(),
        });
        variables.sort_by(|a, b| a.name.cmp(&b.name));
        let (fixed, set) = (settings::fixed(shared, Some(tuning)), settings::of_session(shared));
        let in_force = |setting: lakesmith::Setting| {
            let (value, from) = match (fixed.get(setting.key), set.get(setting.key)) {
                (Some(value), _) => (value, flag_or_variable(setting.key, from_variables, &variables)),
                (None, Some(value)) => (value, "--set".to_owned()),
                (None, None) => (&setting.default, "default".to_owned()),
            };
            InForce { value: lakesmith::readable_setting(setting.key, value), from, setting }
        };
        let settings = lakesmith::settings_reference().into_iter().map(in_force).collect();
        Self { settings, variables }
    }

    pub(crate) fn json(&self) -> Value {
        let setting = |s: &InForce| {
            let lakesmith::Setting { key, default, meaning, .. } = &s.setting;
            json!({"key": key, "value": s.value, "from": s.from, "default": default, "meaning": meaning})
        };
        let settings: Vec<Value> = self.settings.iter().map(setting).collect();
        let variables: Vec<Value> =
            self.variables.iter().map(|v| json!({"name": v.name, "flag": v.flag, "meaning": v.meaning})).collect();
        json!({"settings": settings, "variables": variables})
    }

    /// # Errors
    /// Unavailable when it cannot be written.
    pub(crate) fn write(&self, out: &mut Stdout) -> Result<()> {
        out.line("Settings (--set key=value, or SET key = value in SQL), with the values in force:\n")?;
        for InForce { setting, value, from } in &self.settings {
            let default = if from == "default" { String::new() } else { format!("; default {}", setting.default) };
            out.line(&format!("{} = {value} ({from}{default})\n    {}", setting.key, setting.meaning))?;
        }
        out.line(
            "\nVariables (a flag wins over its variable, a variable over a setting; an empty one counts as not set):\n",
        )?;
        for Variable { name, flag, meaning } in &self.variables {
            let stands_for = if flag.is_empty() { String::new() } else { format!(" ({flag})") };
            out.line(&format!("{name}{stands_for}\n    {meaning}"))?;
        }
        Ok(())
    }
}

fn flag_or_variable(key: &str, from_variables: &BTreeSet<String>, variables: &[Variable]) -> String {
    let id = settings::flag_of_key(key).unwrap_or_default();
    let flag = format!("--{}", id.replace('_', "-"));
    let variable = variables.iter().find(|v| v.flag == flag).filter(|_| from_variables.contains(id));
    variable.map_or(flag, |v| v.name.clone())
}
