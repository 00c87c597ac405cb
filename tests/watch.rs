//! A watch of live nodes: what they tell, what is said when one goes away, and that nothing is left on them.

use std::time::{Duration, Instant};

use muster_tests::{Fleet, Lacks, Options, Ran, is_root, skip};

const NAMES: [&str; 4] = ["n001", "n002", "n003", "n004"];

/// Probes on all nodes.
fn probes(fleet: &mut Fleet) -> usize {
    NAMES.iter().map(|name| fleet.node(name).probes()).sum()
}

/// Waits until `count` probes are there.
fn wait_for(fleet: &mut Fleet, count: usize, longest: Duration) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < longest {
        if probes(fleet) == count {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}

#[test]
fn live_nodes_tell_what_they_do_and_nothing_is_left_on_them() {
    if !is_root() {
        return skip("live_nodes_tell_what_they_do_and_nothing_is_left_on_them", Lacks::Root, "for namespaces");
    }
    let mut fleet = Fleet::up(Options { nodes: 4 }).unwrap();
    let ran = fleet.console().run(&["watch", "--for", "8s", "--json"]).unwrap();
    let report = ran.json().unwrap();
    assert_eq!((ran.code, &report["nodes"], &report["alerts"]), (Some(3), &4.into(), &serde_json::json!([])));
    let told: Vec<&str> = report["metrics"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    for name in ["cpu_util_pct", "job_cpu_pct", "mem_used_pct", "net_tx_gbs", "tcp_retrans_pps"] {
        assert!(told.contains(&name), "{name}: {told:?}");
    }
    let span = report["to_s"].as_f64().unwrap() - report["from_s"].as_f64().unwrap();
    assert!((2.0..9.0).contains(&span), "{report}");
    let last = report["notes"].as_array().unwrap().last().unwrap().as_str().unwrap();
    assert!(last.starts_with("undecided: "), "{last}");
    assert!(ran.err.contains("all nodes answer"), "{}", ran.err);
    assert!(wait_for(&mut fleet, 0, Duration::from_secs(10)), "{} probes are left", probes(&mut fleet));
}

#[test]
fn what_a_killed_watch_recorded_can_be_gone_through_again() {
    if !is_root() {
        return skip("what_a_killed_watch_recorded_can_be_gone_through_again", Lacks::Root, "for namespaces");
    }
    let mut fleet = Fleet::up(Options { nodes: 4 }).unwrap();
    let console = fleet.console();
    let mut running = console.start(&["watch", "--record"]).unwrap();
    assert!(wait_for(&mut fleet, 4, Duration::from_secs(30)), "no probe");
    // The first chunk is written when a look comes half a minute after the beginning.
    std::thread::sleep(Duration::from_secs(33));
    running.kill().unwrap();
    let killed: Ran = running.wait_with_output().unwrap().into();
    let file = killed.err.lines().find_map(|line| line.strip_prefix("recording to ")).unwrap();
    let report = console.run(&["watch", "--from", file, "--json"]).unwrap().json().unwrap();
    let span = report["to_s"].as_f64().unwrap() - report["from_s"].as_f64().unwrap();
    assert!(report["nodes"] == 4 && (20.0..32.0).contains(&span), "{report}");

    let whole = console.run(&["watch", "--record", "--for", "8s"]).unwrap();
    let said = whole.err.lines().find(|line| line.starts_with("recorded ")).unwrap();
    let file = said.split('`').nth(1).unwrap().rsplit(' ').next().unwrap();
    let again = console.run(&["watch", "--from", file]).unwrap();
    assert_eq!(again.code, Some(3), "{}", again.err);
    assert!(again.out.starts_with("4 nodes, "), "{}", again.out);

    // The same by its id, and as what it was exported to.
    let listed = console.run(&["watch", "--list", "--json"]).unwrap().json().unwrap();
    let id = listed["recordings"][0]["id"].as_str().unwrap();
    assert!(listed["recordings"].as_array().unwrap().len() == 2 && file.ends_with(&format!("{id}.tel")), "{listed}");
    let dir = tempfile::tempdir().unwrap();
    let expected = console.run(&["watch", "--from", id, "--json"]).unwrap().out;
    for format in ["csv", "parquet"] {
        let path = dir.path().join(format);
        let path = path.to_str().unwrap();
        let exported = console.run(&["export", "--recording", id, "--format", format, "-o", path]).unwrap();
        assert_eq!(exported.code, Some(0), "{}", exported.err);
        assert_eq!(console.run(&["watch", "--from", path, "--json"]).unwrap().out, expected, "{format}");
    }
}

#[test]
fn a_console_that_is_killed_leaves_no_probe_behind() {
    if !is_root() {
        return skip("a_console_that_is_killed_leaves_no_probe_behind", Lacks::Root, "for namespaces");
    }
    let mut fleet = Fleet::up(Options { nodes: 4 }).unwrap();
    let mut running = fleet.console().start(&["watch"]).unwrap();
    assert!(wait_for(&mut fleet, 4, Duration::from_secs(30)), "no probe");
    // Told to watch, and not only started.
    std::thread::sleep(Duration::from_secs(2));
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(wait_for(&mut fleet, 0, Duration::from_secs(3)), "{} probes are left", probes(&mut fleet));
}

#[test]
fn a_node_that_goes_away_is_said_once_and_again_when_it_is_back() {
    if !is_root() {
        let test = "a_node_that_goes_away_is_said_once_and_again_when_it_is_back";
        return skip(test, Lacks::Root, "for namespaces");
    }
    let mut fleet = Fleet::up(Options { nodes: 4 }).unwrap();
    let running = fleet.console().start(&["watch", "--for", "60s"]).unwrap();
    assert!(wait_for(&mut fleet, 4, Duration::from_secs(30)), "no probe");
    // A node that never told anything is lost in another step.
    std::thread::sleep(Duration::from_secs(5));
    fleet.unplug("n002").unwrap();
    // Longer than a node may be silent, and than one more attempt to reach it.
    std::thread::sleep(Duration::from_secs(25));
    fleet.plug_in("n002").unwrap();
    let ran: Ran = running.wait_with_output().unwrap().into();
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert_eq!(ran.err.matches("n002: ").count(), 1, "{}", ran.err);
    assert!(ran.err.contains("n002 is back"), "{}", ran.err);
    assert_eq!(ran.out.trim().rsplit(": ").next(), Some("undecided"), "{}", ran.out);
    assert!(wait_for(&mut fleet, 0, Duration::from_secs(10)), "{} probes are left", probes(&mut fleet));
}

#[test]
fn a_metric_that_no_node_tells_is_listed_and_not_guessed() {
    let dir = tempfile::tempdir().unwrap();
    let inventory = dir.path().join("fleet.toml");
    std::fs::write(&inventory, "nodes = [\"a\", \"b\", \"c\", \"d\"]\n").unwrap();
    let output = std::process::Command::new(muster_tests::binary())
        .args(["-i", inventory.to_str().unwrap(), "watch", "--metrics", "cpu_heat"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(64), "{said}");
    assert!(said.contains("--metrics: not known: cpu_heat; nodes tell pfc_tx_pps, cpu_util_pct"), "{said}");
}
