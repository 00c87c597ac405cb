//! The program as scripts start it: readers that go away, no terminal, and options that must not be ignored.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::pipe;
use std::process::{Command, Output};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

/// A database, a home and files of its own; no inventory.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.path().join(name), text).unwrap();
        self.path(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
        command.env("MUSTER_DB", self.path("db")).env("MUSTER_INVENTORY", self.path("none.toml"));
        command.env("HOME", self.0.path()).env("USER", "kim").env_remove("XDG_CONFIG_HOME").args(arguments);
        command
    }

    /// Exit code, standard output and standard error.
    fn muster(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let Output { status, stdout, stderr } = self.command(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (status.code(), text(&stdout), text(&stderr))
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let (code, out, err) = self.muster(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {err}");
        out
    }

    /// Exit code where nobody reads standard output, or standard error as well.
    fn unread(&self, arguments: &[&str], also_stderr: bool) -> Option<i32> {
        let closed = || {
            let (reader, writer) = pipe().unwrap();
            drop(reader);
            writer
        };
        let mut command = self.command(arguments);
        command.stdout(closed());
        if also_stderr {
            command.stderr(closed());
        }
        command.output().unwrap().status.code()
    }

    /// Twelve nodes of which n07 is slow.
    fn imported() -> Self {
        let place = Self::new();
        let mut rows = "node,metric,value\n".to_owned();
        for node in 1..=12 {
            for metric in ["copy", "triad", "scale"] {
                let value = if node == 7 { 60.0 } else { 100.0 + 0.01 * f64::from(node) };
                rows += &format!("n{node:02},{metric},{value}\n");
            }
        }
        place.ok(&["import", "--aggregated", &place.file("samples.csv", &rows)]);
        place
    }

    /// Twenty learned criteria.
    fn learned() -> Self {
        let place = Self::new();
        let mut rows = "node,metric,value\n".to_owned();
        for (metric, node, step) in
            (0..20).flat_map(|metric| (1..=12).flat_map(move |node| (0..4).map(move |step| (metric, node, step))))
        {
            rows += &format!("n{node:02},net/m{metric:02},{}\n", 100.0 + 0.01 * f64::from(node + step));
        }
        place.ok(&["import", &place.file("samples.csv", &rows)]);
        place.ok(&["criteria", "learn"]);
        place
    }

    fn frozen(&self) -> usize {
        self.ok(&["criteria", "list", "--json"]).matches("\"frozen\": true").count()
    }
}

#[test]
fn no_job_may_have_a_node_that_is_defective_in_repair_or_kept_as_a_spare() {
    let place = Place::imported();
    let refused = |node: &str, why: &str| {
        for more in [&[] as &[&str], &["--prolog"], &["--json"]] {
            let (code, out, err) = place.muster(&[&["gate", "-w", node, "--job-hours", "24"], more].concat());
            assert!(code == Some(2) && (out.clone() + &err).contains(why), "{more:?}: {code:?}: {out}{err}");
        }
    };
    assert_eq!(place.muster(&["results", "-w", "n07"]).0, Some(2));
    refused("n07", "n07 is defective: csv/copy");
    place.ok(&["swap", "repair", "-w", "n08", "--reason", "RMA 4711"]);
    refused("n[01,08]", "n08 is in repair, by kim: RMA 4711");
    place.ok(&["swap", "spare", "-w", "n09"]);
    refused("n09", "n09 is in the hot buffer, by kim");
    let (code, ..) = place.muster(&["gate", "-w", "n01", "--job-hours", "24"]);
    assert_eq!(code, Some(3), "of the others too little is known");
    let (code, out, err) = place.muster(&["select", "-w", "n[07-09]"]);
    assert!(code == Some(0) && err.contains("n08 is in repair, by kim: RMA 4711"), "{err}");
    assert!(["defective", "in repair", "hot buffer"].iter().all(|state| out.contains(state)), "{out}");
    let (code, _, err) = place.muster(&["run", "regular", "-w", "n[07-09]", "--dry-run"]);
    assert!(code == Some(0) && err.contains("n07 is defective"), "{err}");
}

#[test]
fn a_node_in_repair_names_who_took_its_place_until_it_is_back_and_the_history_keeps_it() {
    let place = Place::imported();
    let (code, out, _) = place.muster(&["swap", "replace", "-w", "n07"]);
    let said = "n07: not replaced: nobody replaces it: nobody knows what it is built of";
    assert!(code == Some(3) && out.contains(said), "{out}");
    let out = place.ok(&["swap", "replace", "-w", "n07", "--by", "n01", "--reason", "RMA 4711"]);
    assert_eq!(out, "n07: in repair, replaced by n01\n");
    let out = place.ok(&["swap"]);
    assert!(out.contains("n07 is in repair since 20") && out.contains(", replaced by n01 on 20"), "{out}");
    let states = place.ok(&["swap", "states"]);
    assert!(states.contains("replaced by n01 on 20") && states.contains("in place of n07 since 20"), "{states}");
    let (code, out, err) = place.muster(&["gate", "-w", "n07", "--job-hours", "24"]);
    let why = "n07 is in repair, by kim: RMA 4711 (replaced by n01 on 20";
    assert!(code == Some(2) && out.contains(why), "{out}{err}");
    let (code, out, _) = place.muster(&["swap", "replace", "-w", "n08", "--by", "n01"]);
    assert!(code == Some(3) && out.contains("n01 is in place of n07, which is in repair"), "{out}");
    let (code, _, err) = place.muster(&["swap", "replace", "-w", "n[08-09]", "--by", "n02"]);
    assert!(code == Some(64) && err.contains("--by puts one node in the place of one"), "{err}");
    let (code, ..) = place.muster(&["swap", "replace", "-w", "n08", "--read-only"]);
    assert_eq!(code, Some(64));

    let mut rows = "node,metric,value\n".to_owned();
    for node in 1..=12 {
        let value = 100.0 + 0.01 * f64::from(node);
        rows += &format!("n{node:02},copy,{value}\nn{node:02},triad,{value}\nn{node:02},scale,{value}\n");
    }
    place.ok(&["import", "--aggregated", &place.file("repaired.csv", &rows)]);
    let out = place.ok(&["swap", "return", "-w", "n07"]);
    assert!(out.starts_with("n07: in service; n01, which replaced it, stays in service"), "{out}");
    let states = place.ok(&["swap", "states"]);
    assert!(!states.contains("replaced by") && !states.contains("in place of"), "{states}");
    let history = place.ok(&["swap", "history"]);
    assert!(history.contains("replaced by n01") && history.contains("in place of n07"), "{history}");
}

#[test]
fn a_form_that_holds_names_holds_none_where_they_are_to_be_replaced() {
    let place = Place::imported();
    for format in ["samples", "superbench", "openmetrics", "csv"] {
        let text = place.ok(&["export", "--format", format, "--redact", "names"]);
        assert!(!text.contains("n07") && text.contains("node-007"), "{format}: {text}");
        assert!(place.ok(&["export", "--format", format]).contains("n07"), "{format}");
    }
    let names = |redact: &[&str]| {
        let file = place.path("samples.parquet");
        place.ok(&[&["export", "--format", "parquet", "-o", &file], redact].concat());
        let reader = SerializedFileReader::new(File::open(&file).unwrap()).unwrap();
        let node = |row: parquet::record::Row| match row.get_column_iter().nth(1).unwrap().1 {
            Field::Str(node) => node.clone(),
            other => panic!("{other}"),
        };
        reader.get_row_iter(None).unwrap().map(|row| node(row.unwrap())).collect::<BTreeSet<String>>()
    };
    assert_eq!(names(&[]), (1..=12).map(|n| format!("n{n:02}")).collect());
    assert_eq!(names(&["--redact", "names"]), (1..=12).map(|n| format!("node-{n:03}")).collect());
}

#[test]
fn a_change_is_finished_and_a_verdict_stands_where_nobody_reads_what_is_said() {
    let place = Place::learned();
    assert_eq!(place.unread(&["criteria", "freeze", "--all", "--force"], true), Some(0));
    assert_eq!(place.frozen(), 20);
    assert_eq!(place.unread(&["criteria", "thaw", "--all"], false), Some(0));
    assert_eq!(place.frozen(), 0);
    let place = Place::imported();
    for arguments in [&["results"][..], &["results", "--json"], &["gate", "-w", "n07"]] {
        assert_eq!(place.unread(arguments, false), Some(2), "{arguments:?}");
    }
    assert_eq!(place.unread(&["completions", "bash"], false), Some(0));
    assert_eq!(place.unread(&["--help"], true), Some(0));
    assert_eq!(place.unread(&["results", "nosuch"], true), Some(64));
    let bad = place.file("bad.csv", "node,start_h\nn1,soon\nn2,5\nn3,later\n");
    let _ = place.unread(&["incidents", "import", &bad, "--origin", "2026-01-01"], true);
    assert!(place.ok(&["incidents", "list"]).contains("n2"), "the good one is stored");
}

#[test]
fn a_console_without_a_terminal_says_that_it_needs_one_and_nothing_else() {
    let place = Place::imported();
    let matrix = place.file("m.csv", "src,dst,metric,value\na,b,throughput,1\n");
    let recording = place.file("w.csv", "time_s,node,metric,value\n1,a,gpu_power_w,1\n");
    let runs = place.ok(&["runs"]);
    let run = runs.lines().nth(1).and_then(|line| line.split(' ').next()).unwrap();
    for arguments in [
        &[] as &[&str],
        &["--run", run],
        &["pairs", "--from", &matrix, "--show"],
        &["watch", "--from", &recording, "--show"],
        &["triage", "--from", &matrix, "--show"],
        &["demo"],
    ] {
        let (code, out, err) = place.muster(arguments);
        assert!(code == Some(64) && out.is_empty(), "{arguments:?}: {code:?}: {out}");
        assert!(err.contains("needs a terminal") && !err.contains('\u{1b}'), "{arguments:?}: {err}");
    }
}

#[test]
fn pairs_of_a_file_are_those_of_the_nodes_that_are_meant() {
    let place = Place::new();
    let ends = ["a", "b", "c"];
    let pairs = ends.iter().flat_map(|src| ends.iter().filter(move |dst| *dst != src).map(move |dst| (src, dst)));
    let rows: String = pairs.map(|(src, dst)| format!("{src},{dst},throughput,1000\n")).collect();
    let matrix = place.file("m.csv", &format!("src,dst,metric,value\n{rows}"));
    let routes = place.file("routes.csv", "src,dst,up\na,b,l1-s1\n");
    let csv = |more: &[&str]| place.muster(&[&["pairs", "--from", &matrix, "--csv"], more].concat());
    assert_eq!(csv(&[]).1.lines().count(), 7);
    for more in [&["-w", "a,b"][..], &["-x", "c"]] {
        assert_eq!(csv(more).1, "src,dst,metric,value,up\na,b,throughput,1000,\nb,a,throughput,1000,\n", "{more:?}");
    }
    let (_, out, _) = csv(&["-w", "a,b", "--routes", &routes]);
    assert!(out.contains("a,b,throughput,1000,l1-s1\n") && out.contains("b,a,throughput,1000,\n"), "{out}");
    for (more, code, said) in [
        (&["-w", "nosuch"][..], 64, "nosuch"),
        (&["-w", "a"], 64, "no pair is left"),
        (&["-x", "a,b,c"], 64, "no node"),
        (&["--routes", &place.path("none.csv")], 74, "none.csv"),
    ] {
        let (ended, _, err) = csv(more);
        assert!(ended == Some(code) && err.contains(said), "{more:?}: {ended:?}: {err}");
    }
}

#[test]
fn an_option_that_cannot_be_followed_is_refused() {
    let place = Place::imported();
    let file = place.path("x");
    for arguments in [
        &["export", "--json", "--format", "parquet", "-o", &file][..],
        &["run", "cbd-light", "-w", "n01", "--dry-run", "--json"],
    ] {
        let (code, out, err) = place.muster(arguments);
        assert!(code == Some(64) && out.is_empty() && err.contains("--json"), "{arguments:?}: {code:?}: {out}{err}");
    }
    assert!(!std::path::Path::new(&file).exists());
}

#[test]
fn hosts_with_user_and_port_need_no_inventory() {
    let plan = Place::new().ok(&["run", "cbd-light", "-w", "root@10.0.0.[1-4]:2222", "--dry-run"]);
    assert!(!plan.is_empty());
}
