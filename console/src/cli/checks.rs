//! `muster checks`: which health and consistency checks there are.

use anyhow::anyhow;
use clap::Subcommand;
use muster_analysis::checks::{self, AREAS, EXPECTATIONS, LIMITS, Severity};
use muster_fleet::inventory::nearest;
use serde::Serialize;

use crate::exit::{Ended, PASS, Problem, USAGE};
use crate::out;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Every check: weight, what holds when it passes, where it comes from, what to do when it does not.
    #[command(after_help = LIST)]
    List {
        /// One JSON document with limits and expectations.
        #[arg(long)]
        json: bool,
        /// Only checks of these names or areas.
        names: Vec<String>,
    },
}

const LIST: &str = "\
Examples:
  muster checks list
  muster checks list nic memory
  muster checks list --json | jq '.checks[] | select(.severity == \"critical\") | .id'

A playbook asks for checks by id or by area:
  [[steps]]
  id = \"look\"
  check = [\"cpu\", \"nic-mtu\"]
  limits = { clock_fail_s = 5 }
  expect = { cpus = 192 }
  demand = [\"nic-mtu\"]        without an answer the node stays undecided, also where only the login may not look
Labels of the inventory named as an expectation come before the playbook: labels = { cpus = \"192\" }";

/// The `muster.checks` document.
#[derive(Serialize)]
struct Catalogue {
    schema: &'static str,
    version: u32,
    checks: Vec<Entry>,
    limits: Vec<Limit>,
    expectations: Vec<Expectation>,
}

#[derive(Serialize)]
struct Entry {
    id: &'static str,
    area: &'static str,
    title: &'static str,
    severity: Severity,
    source: &'static str,
    next: &'static str,
    needs: &'static [&'static str],
}

#[derive(Serialize)]
struct Limit {
    name: &'static str,
    default: f64,
    about: &'static str,
}

#[derive(Serialize)]
struct Expectation {
    name: &'static str,
    about: &'static str,
}

/// Does it.
pub fn run(action: &Action) -> Ended {
    let Action::List { json, names } = action;
    known(names)?;
    let wanted = |check: &checks::Check| names.is_empty() || names.iter().any(|n| n == check.id || n == check.area);
    let chosen: Vec<&checks::Check> = checks::checks().filter(|check| wanted(check)).collect();
    if *json {
        out::json(&catalogue(&chosen))?;
        return Ok(PASS);
    }
    let rows: Vec<Vec<String>> = chosen
        .iter()
        .map(|c| [c.id, c.severity.name(), c.area, c.title, c.source, c.next].map(str::to_owned).to_vec())
        .collect();
    out::line(&out::table(&["check", "severity", "area", "passes when", "source", "next step"], &rows))?;
    Ok(PASS)
}

/// Refuses a name that is neither a check nor an area.
fn known(names: &[String]) -> Result<(), Problem> {
    let Some(strange) = names.iter().find(|name| checks::named(name).is_empty()) else { return Ok(()) };
    let all = checks::checks().map(|check| check.id).chain(AREAS.iter().copied());
    let hint = match nearest(strange, all) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("the areas are {}", AREAS.join(", ")),
    };
    Err(Problem { code: USAGE, error: anyhow!("there is no check or area '{strange}'; {hint}") })
}

fn catalogue(chosen: &[&checks::Check]) -> Catalogue {
    let entry = |c: &&checks::Check| Entry {
        id: c.id,
        area: c.area,
        title: c.title,
        severity: c.severity,
        source: c.source,
        next: c.next,
        needs: c.needs,
    };
    Catalogue {
        schema: "muster.checks",
        version: 1,
        checks: chosen.iter().map(entry).collect(),
        limits: LIMITS.iter().map(|l| Limit { name: l.name, default: l.default, about: l.about }).collect(),
        expectations: EXPECTATIONS.iter().map(|(name, about)| Expectation { name, about }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_check_is_a_slip_and_what_was_meant_is_named() {
        let why = |name: &str| known(&["nic".to_owned(), name.to_owned()]).unwrap_err();
        assert_eq!(why("nic-mtv").error.to_string(), "there is no check or area 'nic-mtv'; did you mean nic-mtu?");
        let stranger = why("nosuchthing");
        assert!(stranger.error.to_string().contains("the areas are host, cpu"), "{}", stranger.error);
        assert_eq!(stranger.code, USAGE);
        assert!(known(&["cpu".to_owned(), "nic-mtu".to_owned()]).is_ok() && known(&[]).is_ok());
    }
}
