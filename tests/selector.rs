//! Incident history, models, selection and simulation from the command line, in the published forms.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::path::Path;
use std::process::Command;

use muster_tests::{Ran, binary};
use serde_json::Value;

/// A database of its own, without inventory and without a home.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn muster(&self, arguments: &[&str]) -> Ran {
        let mut command = Command::new(binary());
        command.args(["--db", &self.0.path().join("db").display().to_string()]).args(arguments);
        command.env("HOME", self.0.path()).env("USER", "ann").env_remove("XDG_CONFIG_HOME");
        command.output().unwrap().into()
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.muster(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.err);
        ran.out
    }
}

fn conforms(schema: &str, document: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/schemas").join(schema);
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(document).map(|e| e.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
}

fn listed(desk: &Desk, arguments: &[&str]) -> Vec<Value> {
    let mut all = vec!["incidents", "list", "--json"];
    all.extend(arguments);
    let document: Value = serde_json::from_str(&desk.ok(&all)).unwrap();
    conforms("muster.incidents.json", &document);
    document["incidents"].as_array().unwrap().clone()
}

#[test]
fn incidents_are_added_imported_ended_and_come_back_from_an_export() {
    let desk = Desk::new();
    desk.ok(&["incidents", "add", "-w", "n[1-2]", "--start", "2026-11-01T08:00", "--reason", "Xid 79 on GPU 3"]);
    let events = "NodeName|TimeStart|TimeEnd|State|Reason|User\n\
                  n3|2026-10-01T07:00:00|2026-10-01T19:30:00|DOWN*|Not responding|slurm(1)\n\
                  n4|yesterday|Unknown|DOWN|?|root(0)\n";
    let file = desk.write("events.txt", events);
    let said = desk.muster(&["incidents", "import", &file]);
    assert_eq!((said.code, said.out.trim()), (Some(0), "1 incidents read, 1 new or changed, 1 lines left out"));
    assert!(said.err.contains("line 3"), "{}", said.err);
    let relative = desk.write("log.csv", "node,start_h,end_h,category,found_by\nn5,10,12.5,disk,disk;cpu-gemm\n");
    desk.ok(&["incidents", "import", &relative, "--origin", "2026-01-01"]);
    let all = listed(&desk, &[]);
    assert_eq!(all.len(), 4);
    assert_eq!((all[0]["category"].as_str(), all[0]["who"].as_str()), (Some("pcie"), Some("ann")));
    assert_eq!(
        (all[3]["start"].as_str(), all[3]["found_by"][1].as_str()),
        (Some("2026-01-01T10:00:00Z"), Some("cpu-gemm"))
    );
    assert_eq!(listed(&desk, &["--open"]).len(), 2);
    desk.ok(&["incidents", "close", "-w", "n1", "--at", "2026-11-02"]);
    assert_eq!(listed(&desk, &["-w", "n1"])[0]["end"], "2026-11-02T00:00:00Z");
    assert_eq!(listed(&desk, &["--since", "2026-11-03"]).len(), 1);
    for format in ["csv", "json"] {
        let copy = desk.write(&format!("copy.{format}"), &desk.ok(&["incidents", "export", "--format", format]));
        assert!(desk.ok(&["incidents", "import", &copy]).contains("4 incidents read, 0 new"));
        let other = Desk::new();
        other.ok(&["incidents", "import", &copy]);
        assert_eq!(listed(&other, &[]), listed(&desk, &[]));
    }
}

#[test]
fn bad_incidents_are_refused_with_their_file_and_line() {
    let desk = Desk::new();
    let headless = desk.write("log.csv", "a,b\n1,2\n");
    let said = desk.muster(&["incidents", "import", &headless]);
    assert!(said.code == Some(78) && said.err.contains("log.csv") && said.err.contains("line 1"), "{}", said.err);
    let early = desk.write("early.csv", "node,start_h\nn1,-5\n");
    let said = desk.muster(&["incidents", "import", &early]);
    assert!(said.code == Some(78) && said.err.contains("--origin"), "{}", said.err);
    assert_eq!(desk.muster(&["incidents", "add", "-w", "n1", "--start", "soon"]).code, Some(64));
    let backwards = ["incidents", "add", "-w", "n1", "--start", "2026-11-02", "--end", "2026-11-01"];
    let said = desk.muster(&backwards);
    assert!(said.code == Some(64) && said.err.contains("n1") && said.err.contains("ends before"), "{}", said.err);
}
