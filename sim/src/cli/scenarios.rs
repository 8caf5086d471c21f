//! `stormlog scenarios`.

use serde::Serialize;
use toml::Table;

use super::args::{Format, ScenariosArgs};
use super::{Exit, Failure, Shell};
use crate::campaign::parameters;
use crate::campaign::target::Target;
use crate::scenario::Scenario;

#[derive(Serialize)]
struct Listed {
    scenario: &'static str,
    about: &'static str,
    parameters: Table,
}

/// Lists the scenarios, or prints one as a file.
pub fn scenarios(shell: &mut Shell, args: &ScenariosArgs) -> Result<Exit, Failure> {
    let found = match &args.name {
        Some(name) => vec![Target::find(shell.registry, name, None, &[])?.scenario],
        None => shell.registry.all().to_vec(),
    };
    for scenario in found {
        match args.format {
            Format::Json => shell.out.json(&Listed {
                scenario: scenario.name(),
                about: scenario.about(),
                parameters: parameters::defaults(scenario),
            })?,
            Format::Text if args.name.is_some() => shell.out.line(file(scenario).trim_end())?,
            Format::Text => {
                shell.out.line(scenario.name())?;
                shell.out.wrapped("    ", scenario.about(), 4)?;
            }
        }
    }
    Ok(Exit::Held)
}

/// A scenario as a file that `run` and `fuzz` take.
fn file(scenario: &dyn Scenario) -> String {
    let name = toml::Value::from(scenario.name());
    let own = scenario.default_parameters_text();
    let mut text = format!("# {}\nscenario = {name}\n\n{own}", scenario.about());
    if !scenario.default_parameters().contains_key("limits") {
        let limits = parameters::defaults(scenario).remove("limits").unwrap_or_else(|| Table::new().into());
        let limits = Table::from_iter([("limits".to_owned(), limits)]);
        text.push_str("\n# What one run may use before that alone is a finding.\n");
        text.push_str(&limits.to_string());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::Registry;
    use crate::scenarios::selftest::Selftest;

    #[test]
    fn what_is_printed_is_a_scenario_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("mine.toml");
        std::fs::write(&path, file(&Selftest::Faulty)).expect("written");
        let name = path.to_str().expect("UTF-8");
        let target = Target::find(Registry::Selftest, name, None, &[]).expect("it reads back");
        assert_eq!(target.parameters, parameters::defaults(&Selftest::Faulty));
    }
}
