//! Every command of the tutorial, in its order, on nodes as it describes them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::fs;
use std::num::NonZero;
use std::path::Path;

use muster_tests::{Console, Fleet, Lacks, Options, Ran, Terminal, is_root, skip};

/// One command of the page.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    line: String,
    /// What stands behind it: `exit 2`, `screen`, `repaired`.
    notes: Vec<String>,
}

impl Step {
    fn code(&self) -> i32 {
        let code = self.notes.iter().find_map(|note| note.strip_prefix("exit "));
        code.map_or(0, |code| code.parse().unwrap())
    }

    fn has(&self, note: &str) -> bool {
        self.notes.iter().any(|own| own == note)
    }
}

/// Commands in the page's blocks of shell; what a here-document holds belongs to the command above.
fn steps(page: &str) -> Vec<Step> {
    let mut found = Vec::new();
    for block in page.split("```sh\n").skip(1) {
        let mut lines = block.split("```").next().unwrap().lines();
        while let Some(line) = lines.next() {
            let (line, notes) = line.split_once("    # ").unwrap_or((line, ""));
            let mut whole = line.to_owned();
            if line.ends_with("<<'END'") {
                let inner: Vec<&str> = lines.by_ref().take_while(|line| *line != "END").collect();
                whole += &format!("\n{}\nEND\n", inner.join("\n"));
            }
            let notes = notes.split(", ").filter(|note| !note.is_empty()).map(str::to_owned).collect();
            found.push(Step { line: whole, notes });
        }
    }
    found
}

#[test]
fn every_command_of_the_tutorial_does_what_it_says() {
    if !is_root() {
        return skip("every_command_of_the_tutorial_does_what_it_says", Lacks::Root, "for namespaces");
    }
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/TUTORIAL.md")).unwrap();
    let steps = steps(&page);
    assert!(steps.len() > 20, "{steps:#?}");
    let mut fleet = Fleet::up(Options { nodes: 6 }).unwrap();
    fleet.node("n004").sh("ip link set eth0 mtu 1400").unwrap();
    let (console, home) = (fleet.console(), tempfile::tempdir().unwrap());
    fs::create_dir(home.path().join(".ssh")).unwrap();
    fs::copy(fleet.path("id"), home.path().join(".ssh/fleet")).unwrap();
    for step in &steps {
        if step.has("repaired") {
            fleet.node("n004").sh("ip link set eth0 mtu 1500").unwrap();
        }
        if step.has("screen") {
            look(&console, home.path(), &step.line);
        } else {
            type_in(&console, home.path(), step);
        }
    }
    // What the page says of the files it makes.
    let read = |name: &str| fs::read_to_string(home.path().join(name)).unwrap();
    assert!(read("n004.md").contains("n004") && !read("ticket.json").contains("n004"));
    assert!(fleet.names().iter().all(|node| fleet.node(node).probes() == 0));
}

fn type_in(console: &Console, home: &Path, step: &Step) {
    let ran: Ran = console.shell(home, &step.line).output().unwrap().into();
    assert_eq!(ran.code, Some(step.code()), "{}\n{}\n{}", step.line, ran.out, ran.err);
    if step.line.contains("accept-new") {
        let finding = "n004: nic-mtu: eth0.mtu is 1400, 5 of 6 nodes have 1500";
        assert!(ran.out.contains(finding) || ran.err.contains(finding), "{}\n{}", ran.out, ran.err);
    }
}

/// Opens the screen, sees the list of nodes, and leaves it by `q`.
fn look(console: &Console, home: &Path, line: &str) {
    let size = (NonZero::new(40).unwrap(), NonZero::new(120).unwrap());
    let mut screen = Terminal::open(&console.shell(home, &format!("exec {line}")), size).unwrap();
    screen.shows("enter open").unwrap();
    screen.press("q").unwrap();
    assert_eq!(screen.ended().unwrap(), Some(0), "{screen}");
}

#[test]
fn a_step_is_a_line_with_its_notes_and_its_document() {
    let page = "```sh\na -b    # exit 2, repaired\ncat >x <<'END'\ny\nEND\nc\n```\n```text\nd\n```\n";
    let step =
        |line: &str, notes: &[&str]| Step { line: line.into(), notes: notes.iter().map(|&n| n.into()).collect() };
    assert_eq!(
        steps(page),
        [step("a -b", &["exit 2", "repaired"]), step("cat >x <<'END'\ny\nEND\n", &[]), step("c", &[])]
    );
    assert_eq!(steps(page)[0].code(), 2);
}
