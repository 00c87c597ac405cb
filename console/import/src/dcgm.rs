//! What `dcgmi diag -j` says: tests that passed or failed, by device, with DCGM's own words.

use std::io::BufRead;

use muster_analysis::State;
use muster_wire::Component;
use serde::{Deserialize, Serialize};

use crate::lines::whole;
use crate::{Bad, Limits};

/// One test on one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Node.
    pub node: String,
    /// `deployment/software`, `stress/targeted_power`: category and test.
    pub name: String,
    /// `gpu0`, `cpu1`; empty for the whole node.
    pub device: String,
    /// Pass, warn, fail; not run where DCGM skipped it; unknown for a word that is not DCGM's.
    pub state: State,
    /// DCGM's messages, made harmless, with their `DCGM_FR` number where there is one.
    pub reasons: Vec<String>,
}

impl Check {
    /// What was tested.
    #[must_use]
    pub fn component(&self) -> Component {
        let number = |start: &str| self.device.strip_prefix(start)?.parse().ok();
        match (number("gpu"), number("cpu")) {
            (Some(gpu), _) => Component::Gpu(gpu),
            (_, Some(_socket)) => Component::Cpu,
            _ => Component::Node,
        }
    }
}

/// DCGM 3 says `DCGM GPU Diagnostic`, DCGM 4 `DCGM Diagnostic`.
#[derive(Deserialize)]
struct File {
    #[serde(alias = "DCGM GPU Diagnostic", rename = "DCGM Diagnostic")]
    diagnostic: Diagnostic,
}

#[derive(Deserialize)]
struct Diagnostic {
    #[serde(default)]
    test_categories: Vec<Category>,
    runtime_error: Option<String>,
}

#[derive(Deserialize)]
struct Category {
    category: String,
    #[serde(default)]
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    name: String,
    #[serde(default)]
    results: Vec<Outcome>,
    test_summary: Option<Outcome>,
}

#[derive(Deserialize)]
struct Outcome {
    status: String,
    /// DCGM 3: `"0,1"`, or one number.
    gpu_ids: Option<serde_json::Value>,
    gpu_id: Option<serde_json::Value>,
    /// DCGM 4.
    entity_group: Option<String>,
    entity_id: Option<i64>,
    #[serde(default)]
    warnings: Option<Warnings>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Warnings {
    One(String),
    Many(Vec<Warning>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Warning {
    Text(String),
    Coded { warning: String, error_id: Option<i64> },
}

/// Reads the output on `node`; text around the JSON is passed over.
///
/// # Errors
/// With the line: when it is not DCGM's JSON, says that the diagnostic could not run, or exceeds `limits`.
pub fn read(input: impl BufRead, node: &str, limits: Limits) -> Result<Vec<Check>, Bad> {
    let text = whole(input, limits)?;
    let start = text.find('{').ok_or_else(|| Bad::format(1, "no JSON"))?;
    let line = 1 + text[..start].matches('\n').count();
    let mut documents = serde_json::Deserializer::from_str(&text[start..]).into_iter::<File>();
    let file = documents.next().ok_or_else(|| Bad::format(line, "no JSON"))?.map_err(|e| Bad::json(line, &e))?;
    if let Some(why) = file.diagnostic.runtime_error {
        return Err(Bad::format(line, format!("the diagnostic did not run: {}", muster_wire::clean(&why, 400))));
    }
    let mut checks = Vec::new();
    for category in file.diagnostic.test_categories {
        for test in category.tests {
            let name = format!("{}/{}", slug(&category.category), slug(&test.name));
            // The summary repeats the devices; it counts where there are none.
            let whole = test.test_summary.filter(|_| test.results.is_empty());
            for outcome in test.results.into_iter().chain(whole) {
                for device in outcome.devices() {
                    let (state, reasons) = (outcome.state(), outcome.reasons());
                    checks.push(Check { node: node.to_owned(), name: name.clone(), device, state, reasons });
                }
            }
        }
    }
    if checks.len() > limits.columns {
        return Err(Bad::TooMuch { line, limit: limits.columns, what: "checks" });
    }
    Ok(checks)
}

/// `Targeted Power` as `targeted_power`; without the marks that divide names of ours.
fn slug(name: &str) -> String {
    muster_wire::clean(name, 120).trim().to_ascii_lowercase().replace([' ', '/', '#', '@'], "_")
}

impl Outcome {
    fn devices(&self) -> Vec<String> {
        if let (Some(group), Some(id)) = (&self.entity_group, self.entity_id) {
            return vec![format!("{}{id}", slug(group))];
        }
        let ids = match self.gpu_ids.as_ref().or(self.gpu_id.as_ref()) {
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(serde_json::Value::Number(number)) => number.to_string(),
            _ => return vec![String::new()],
        };
        let gpus = ids.split(',').map(str::trim).filter(|id| !id.is_empty());
        let gpus: Vec<String> = gpus.map(|id| format!("gpu{}", muster_wire::clean(id, 20))).collect();
        if gpus.is_empty() { vec![String::new()] } else { gpus }
    }

    fn state(&self) -> State {
        match self.status.to_ascii_lowercase().as_str() {
            "pass" => State::Pass,
            "fail" => State::Fail,
            "warn" | "warning" => State::Warn,
            "skip" | "skipped" | "not run" | "notrun" => State::NotRun,
            _ => State::Unknown,
        }
    }

    fn reasons(&self) -> Vec<String> {
        let text = |text: &str| muster_wire::clean(text, 600);
        match &self.warnings {
            None => Vec::new(),
            Some(Warnings::One(warning)) => vec![text(warning)],
            Some(Warnings::Many(all)) => all
                .iter()
                .map(|warning| match warning {
                    Warning::Text(warning) | Warning::Coded { warning, error_id: None } => text(warning),
                    Warning::Coded { warning, error_id: Some(id) } => format!("DCGM_FR {id}: {}", text(warning)),
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const V4: &str = r#"{
      "DCGM Diagnostic": {"test_categories": [
        {"category": "Deployment", "tests": [{"name": "software", "results": [
           {"entity_group": "GPU", "entity_id": 0, "status": "Fail",
            "warnings": [{"error_category": 8, "error_id": 29, "error_severity": 5, "warning": "Persistence Mode: off"}]},
           {"entity_group": "GPU", "entity_id": 1, "status": "Pass"}],
          "test_summary": {"status": "Fail"}}]},
        {"category": "Stress", "tests": [{"name": "Targeted Power", "results": [], "test_summary": {"status": "Skip"}}]}]},
      "metadata": {"version": "4.2.3"}}"#;
    const V3: &str = r#"warning before
{"DCGM GPU Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [
   {"name": "GPU Memory", "results": [{"gpu_ids": "0,1", "status": "PASS", "info": "x"}, {"gpu_ids": "2", "status": "Warn", "warnings": "ECC"}]},
   {"name": "Denylist", "results": [{"status": "Odd"}]}]}]}, "version": "3.1.8"}"#;

    fn lines(text: &str) -> Vec<String> {
        let checks = read(text.as_bytes(), "n", Limits::default()).unwrap();
        checks.iter().map(|c| format!("{} {} {} {}", c.name, c.device, c.state.name(), c.reasons.join("; "))).collect()
    }

    #[test]
    fn both_generations_are_read() {
        assert_eq!(
            lines(V4),
            [
                "deployment/software gpu0 fail DCGM_FR 29: Persistence Mode: off",
                "deployment/software gpu1 pass ",
                "stress/targeted_power  not_run ",
            ]
        );
        assert_eq!(
            lines(V3),
            [
                "hardware/gpu_memory gpu0 pass ",
                "hardware/gpu_memory gpu1 pass ",
                "hardware/gpu_memory gpu2 warn ECC",
                "hardware/denylist  unknown ",
            ]
        );
    }

    #[test]
    fn a_diagnostic_that_did_not_run_is_no_pass() {
        let text = r#"{"DCGM Diagnostic": {"runtime_error": "host engine not reachable"}}"#;
        assert!(read(text.as_bytes(), "n", Limits::default()).unwrap_err().to_string().contains("not reachable"));
        assert!(read(&b"Error: unable to connect"[..], "n", Limits::default()).is_err());
        assert!(read(&b"{\"x\":\n1}"[..], "n", Limits::default()).is_err());
    }

    proptest! {
        #[test]
        fn no_output_is_too_strange(cut in 0usize..900, flip in 0usize..900, byte in any::<u8>()) {
            for text in [V3, V4] {
                let mut bytes = text.as_bytes()[..cut.min(text.len())].to_vec();
                if let Some(b) = bytes.get_mut(flip) {
                    *b = byte;
                }
                let _ = read(&bytes[..], "n", Limits::default());
            }
        }
    }
}
