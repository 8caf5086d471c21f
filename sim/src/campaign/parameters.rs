//! Parameters of a scenario: its defaults, overridden key by key.
//!
//! Model: a table of TOML values whose shape is that of the defaults. A key that the defaults lack is refused with the
//! nearest one that they have, a value of another type is refused; whether a value makes sense is the scenario's to
//! say. Every scenario has the table `limits` as well.

use toml::de::DeTable;
use toml::{Table, Value};

use crate::limits::Limits;
use crate::scenario::{ParameterError, Scenario};

/// Name of the table that every scenario has.
const LIMITS: &str = "limits";

/// All parameters of a scenario with their default values, `limits` included.
pub fn defaults(scenario: &dyn Scenario) -> Table {
    let mut table = scenario.default_parameters();
    let mut limits = Table::try_from(Limits::default()).expect("limits are plain integers");
    if let Some(Value::Table(own)) = table.remove(LIMITS) {
        limits.extend(own);
    }
    table.insert(LIMITS.to_owned(), Value::Table(limits));
    table
}

/// Parts `limits` from what is the scenario's own.
pub fn split(mut table: Table) -> Result<(Table, Limits), ParameterError> {
    let limits = table.remove(LIMITS).map_or_else(|| Ok(Limits::default()), Value::try_into);
    let limits = limits.map_err(|e| ParameterError { name: LIMITS.to_owned(), reason: e.message().to_owned() })?;
    Ok((table, limits))
}

/// Overrides `table` with `given`, key by key.
pub fn overlay(table: &mut Table, given: Table) -> Result<(), ParameterError> {
    overlay_below(table, given, "")
}

fn overlay_below(table: &mut Table, given: Table, prefix: &str) -> Result<(), ParameterError> {
    for (key, value) in given {
        let name = format!("{prefix}{key}");
        let refuse = |reason| Err(ParameterError { name: name.clone(), reason });
        let Some(slot) = table.get_mut(&key) else {
            return refuse(unknown(&key, table.keys().map(String::as_str)));
        };
        match (slot, value) {
            (Value::Table(below), Value::Table(given)) => overlay_below(below, given, &format!("{name}."))?,
            (slot @ Value::Float(_), Value::Integer(value)) => *slot = Value::Float(value as f64),
            (slot, value) if slot.same_type(&value) => *slot = value,
            (slot, value) => {
                return refuse(format!(
                    "want {}, as in {slot}, not {} {value}",
                    with_article(slot.type_str()),
                    value.type_str()
                ));
            }
        }
    }
    Ok(())
}

/// Says that `given` names nothing, and what is near it.
pub fn unknown<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let near = names.iter().map(|name| (strsim::damerau_levenshtein(given, name), name)).min();
    match near {
        Some((distance, name)) if distance <= 2.max(given.len() / 3) => {
            format!("there is none of that name; the nearest is {name}")
        }
        Some(_) => format!("there is none of that name, only {}", names.join(", ")),
        None => "there is none of that name".to_owned(),
    }
}

fn with_article(type_name: &str) -> String {
    let article = if type_name.starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {type_name}")
}

/// Reads `name=value`, as given on the command line, into a table of one value. `name` may be dotted; the value is
/// TOML, but a string may go without its quotes.
pub fn parse_assignment(text: &str, defaults: &Table) -> Result<Table, ParameterError> {
    let (name, value) = text.split_once('=').ok_or_else(|| ParameterError {
        name: text.to_owned(),
        reason: "want name=value, as in limits.events=1000".to_owned(),
    })?;
    let (name, value) = (name.trim(), value.trim());
    let path: Vec<&str> = name.split('.').collect();
    let wants_text = matches!(at(defaults, &path), Some(Value::String(_))) && !value.starts_with(['"', '\'']);
    // What is no value is a string: overlaying says whether one is wanted.
    let parsed = if wants_text { None } else { value.parse::<Value>().ok() };
    let value = parsed.unwrap_or_else(|| Value::String(value.to_owned()));
    let (last, above) = path.split_last().expect("split gives at least one part");
    let leaf = Table::from_iter([((*last).to_owned(), value)]);
    Ok(above.iter().rev().fold(leaf, |below, part| Table::from_iter([((*part).to_owned(), Value::Table(below))])))
}

fn at<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    match (table.get(*first)?, rest) {
        (value, []) => Some(value),
        (Value::Table(below), rest) => at(below, rest),
        _ => None,
    }
}

/// The line, from 1, of a parameter by its dotted name below the table `prefix` of a document; of the nearest enclosing
/// table where the document does not name it.
pub fn line_of(document: &str, prefix: &[&str], name: &str) -> Option<usize> {
    let root = DeTable::parse(document).ok()?;
    let mut table = root.get_ref();
    let mut offset = None;
    for part in prefix.iter().copied().chain(name.split('.')) {
        let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == part) else { break };
        offset = Some(key.span().start);
        let Some(below) = value.get_ref().as_table() else { break };
        table = below;
    }
    offset.map(|offset| line_at(document, offset))
}

/// The line, from 1, of a byte offset.
pub fn line_at(document: &str, offset: usize) -> usize {
    let before = &document.as_bytes()[..offset.min(document.len())];
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::selftest::Selftest;

    fn refused(given: &str) -> String {
        let mut table = defaults(&Selftest::Faulty);
        overlay(&mut table, given.parse().expect("a test's TOML")).expect_err(given).to_string()
    }

    #[test]
    fn overrides_key_by_key() {
        let mut table = defaults(&Selftest::Faulty);
        let given = "operations = 3\n[sync]\nfailing_percent = 9\n[limits]\nevents = 10".parse();
        overlay(&mut table, given.expect("TOML")).expect("known keys");
        assert_eq!((&table["operations"], &table["sync"]["failing_percent"]), (&Value::Integer(3), &Value::Integer(9)));
        let (own, limits) = split(table).expect("limits");
        assert_eq!(limits, Limits { events: 10, ..Limits::default() });
        assert!(own.contains_key("bug") && !own.contains_key(LIMITS));
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        let near = "parameter sync.failing_percents: there is none of that name; the nearest is failing_percent";
        assert_eq!(refused("[sync]\nfailing_percents = 1"), near);
        assert_eq!(refused("bug = 1"), "parameter bug: want a boolean, as in true, not integer 1");
        assert_eq!(refused("sync = 1").split(',').next(), Some("parameter sync: want a table"));
        let far = refused("zzzzzzzz = 1");
        assert!(far.ends_with("only bug, limits, misbehave, misbehave_every, operations, sync"), "{far}");
    }

    #[test]
    fn negative_limits_are_refused() {
        let mut table = defaults(&Selftest::Faulty);
        overlay(&mut table, "limits.events = -1".parse().expect("TOML")).expect("an integer");
        assert_eq!(split(table).expect_err("negative").name, "limits");
    }

    #[test]
    fn assignments() {
        let defaults = defaults(&Selftest::Faulty);
        let parse = |text| parse_assignment(text, &defaults);
        assert_eq!(parse("sync.failing_percent=7"), Ok("sync.failing_percent = 7".parse().expect("TOML")));
        assert_eq!(parse("misbehave=panic"), Ok("misbehave = 'panic'".parse().expect("TOML")));
        assert_eq!(parse("misbehave='panic'"), Ok("misbehave = 'panic'".parse().expect("TOML")));
        for bad in ["operations", "operations=", "operations=many", "=", ""] {
            let mut table = defaults.clone();
            assert!(parse(bad).and_then(|given| overlay(&mut table, given)).is_err(), "{bad}");
        }
    }

    #[test]
    fn finds_the_line() {
        let document = "scenario = 'selftest'\n\n[sync]\n\nfailing = 3\n";
        assert_eq!(line_of(document, &[], "sync.failing"), Some(5));
        assert_eq!(line_of(document, &[], "sync.other"), Some(3));
        assert_eq!(line_of(document, &[], "nothing"), None);
    }
}
