//! Alerts in the words of people: what was seen, against what, for how long, then what to do.

use muster_wire::{ComponentKind, Telemetry};

use muster_run::is_host;

/// Relative disagreement between the plain comparison and the one by history past which a sentence tells the second.
const DISAGREE: f64 = 0.25;
/// Times the peers past which a factor says nothing: they show next to nothing.
const LOUD: f64 = 100.0;
/// Names listed before the rest is counted.
const LISTED: usize = 3;

/// What a sentence tells of a metric.
pub(super) struct Seen<'a> {
    pub(super) metric: &'a str,
    pub(super) about: &'a Telemetry,
    pub(super) value: f64,
    pub(super) peers: usize,
    pub(super) peer_median: f64,
    /// What the node would usually show beside these peers, and the deviation from it, where its history is known.
    pub(super) usual: Option<(f64, f64)>,
    /// Seconds for which it has lasted.
    pub(super) lasts_s: f64,
}

/// What a sentence tells of a machine that moved first.
pub(super) struct Order<'a> {
    pub(super) metric: &'a str,
    /// What its metric is beside its peers, as a share of what it was.
    pub(super) ratio: f64,
    /// Fewest and most seconds until the job slowed.
    pub(super) lead: (f64, f64),
    pub(super) job: &'a str,
    pub(super) job_ratio: f64,
    pub(super) of: ComponentKind,
}

/// Why a machine is named that moved before the job slowed.
pub(super) fn first(node: &str, order: &Order<'_>) -> String {
    let (least, most) = (order.lead.0.max(1.0), order.lead.1.max(order.lead.0.max(1.0)));
    format!(
        "{node}: it moved first. Its {} {} beside its peers, and {least:.0} to {most:.0} s later {} of the whole job fell by \
         {:.0} %. Drain it, {}, then {}.",
        order.metric,
        fell_or_rose(order.ratio),
        order.job,
        100.0 * (1.0 - order.job_ratio),
        measure(node),
        next_step(order.of)
    )
}

/// How a node is measured by itself. A recording may call it anything: what a shell would take apart is in no command.
pub(super) fn measure(node: &str) -> String {
    if is_host(node) {
        format!("run `muster run cbd-light -w {node}`")
    } else {
        "measure it with `muster run cbd-light`".to_owned()
    }
}

/// `fell by 31 %`, `rose by 40 %`, and past a factor of two `rose to 5.1x`.
fn fell_or_rose(ratio: f64) -> String {
    match () {
        () if ratio > 2.0 => format!("rose to {ratio:.1}x"),
        () if ratio < 1.0 => format!("fell by {:.0} %", 100.0 * (1.0 - ratio)),
        () => format!("rose by {:.0} %", 100.0 * (ratio - 1.0)),
    }
}

/// Why one machine is named.
pub(super) fn odd(node: &str, seen: &Seen<'_>, also: &[&str]) -> String {
    let beside = if also.is_empty() { String::new() } else { format!("; also {}", some(also)) };
    let (what, against) = (shown(seen), against(seen));
    let next = next_step(seen.about.of);
    format!(
        "{node}: {what}, {against} for {}{beside}. Drain it, {}, then {next}.",
        lasting(seen.lasts_s),
        measure(node)
    )
}

/// Why a group is named, of whose `all` nodes `nodes` differ.
pub(super) fn group(label: &str, nodes: &[&str], all: usize, seen: &Seen<'_>) -> String {
    let (what, against) = (shown(seen), against(seen));
    format!(
        "{label}: {} of its {all} nodes ({}) differ together: {what}, {against} for {}. Check what they share before any of them.",
        nodes.len(),
        some(nodes),
        lasting(seen.lasts_s)
    )
}

/// Why a silent machine is named.
pub(super) fn silent(node: &str, peers: usize, lasts_s: f64) -> String {
    format!(
        "{node}: no telemetry for {} while the job stands still and {peers} peers still report. Check whether it answers \
         and is powered; drain it.",
        lasting(lasts_s)
    )
}

/// A node that writes while the others wait, for which nobody is named before so long.
pub(super) fn writes(node: &str, seen: &Seen<'_>, at_s: f64) -> String {
    format!(
        "{node}: {} from {at_s:.0} s after the start, while the job stands still and {} peers show {}: it is probably \
         writing a checkpoint that they wait for; alert if that lasts {}",
        shown(seen),
        seen.peers,
        seen.about.show(seen.peer_median),
        lasting(seen.lasts_s)
    )
}

/// A group that no label names.
pub(super) fn together(nodes: usize, of: usize, metric: &str, at_s: f64) -> String {
    format!(
        "at least {nodes} of {of} nodes left the others together in {metric}, {at_s:.0} s after the start; no label of the \
         inventory (leaf, rack, rail) says what they share, so no machine is named for it"
    )
}

/// `GPU power 210 W`; the recorded name where the field has none.
fn shown(seen: &Seen<'_>) -> String {
    let title = if seen.about.title.is_empty() { seen.metric } else { seen.about.title };
    format!("{title} {}", seen.about.show(seen.value))
}

/// `31 % below 63 peers (median 3.05 TB/s)`, or the same against its own usual level where a machine usually differs.
fn against(seen: &Seen<'_>) -> String {
    let plain = seen.value / seen.peer_median - 1.0;
    let disagrees = |deviation: f64| plain.is_nan() || (plain - deviation).abs() > DISAGREE * deviation.abs();
    if let Some((usual, _)) = seen.usual.filter(|(usual, deviation)| *usual > 0.0 && disagrees(*deviation)) {
        let (level, peers) = (seen.about.show(usual), seen.peers);
        return format!("{} its usual level beside {peers} peers ({level})", changed(seen.value, usual));
    }
    let (median, peers) = (seen.about.show(seen.peer_median), seen.peers);
    let small = !plain.is_finite() || plain > LOUD;
    if small {
        return format!("while {peers} peers show {median},");
    }
    format!("{} {peers} peers (median {median})", changed(seen.value, seen.peer_median))
}

/// `31 % below`, `82 % above`, and past a factor of two `5.1x`.
fn changed(value: f64, usual: f64) -> String {
    let ratio = value / usual;
    match () {
        () if ratio > 2.0 => format!("{ratio:.1}x"),
        () if ratio < 1.0 => format!("{:.0} % below", 100.0 * (1.0 - ratio)),
        () => format!("{:.0} % above", 100.0 * (ratio - 1.0)),
    }
}

/// `90 s`, `4 min 10 s`, `2 h 5 min`.
fn lasting(seconds: f64) -> String {
    let seconds = seconds.max(0.0).round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, _, _) if seconds < 120 => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, rest) => format!("{minutes} min {rest} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// What to look at, by the component that the metric speaks of.
const fn next_step(of: ComponentKind) -> &'static str {
    match of {
        ComponentKind::Cpu | ComponentKind::Core => "look for other processes and a lowered CPU clock",
        ComponentKind::Memory => "look for other processes and memory errors",
        ComponentKind::Disk => "check the health of its disks and who writes to them",
        ComponentKind::Nic | ComponentKind::IbPort => "check its NIC, cable and switch port",
        ComponentKind::GpuLink => "check its NVLink errors and the kernel log",
        ComponentKind::Gpu | ComponentKind::Gpus => "check GPU clocks, temperature and the kernel log",
        ComponentKind::Application => "look at the processes of the job on it",
        ComponentKind::Node => "check its kernel log",
    }
}

/// The first names and how many more there are.
fn some(names: &[&str]) -> String {
    let listed = names.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
    if names.len() > LISTED { format!("{listed} and {} more", names.len() - LISTED) } else { listed }
}

#[cfg(test)]
mod tests {
    use muster_wire::telemetry;

    use super::*;

    fn seen(value: f64, peer_median: f64, usual: Option<(f64, f64)>) -> Seen<'static> {
        let about = telemetry("gpu_power_w").unwrap();
        Seen { metric: "gpu_power_w", about, value, peers: 63, peer_median, usual, lasts_s: 130.0 }
    }

    #[test]
    fn a_sentence_says_what_was_seen_against_what_for_how_long_and_what_to_do() {
        let said = odd("n07", &seen(210.0, 500.0, None), &["tensor_active"]);
        assert_eq!(
            said,
            "n07: GPU power 210 W, 58 % below 63 peers (median 500 W) for 2 min 10 s; also tensor_active. Drain it, run \
             `muster run cbd-light -w n07`, then check GPU clocks, temperature and the kernel log."
        );
    }

    #[test]
    fn a_machine_that_usually_differs_is_told_against_its_own_usual_level() {
        let said = odd("n07", &seen(500.0, 480.0, Some((600.0, -0.17))), &[]);
        assert!(said.contains("GPU power 500 W, 17 % below its usual level beside 63 peers (600 W)"), "{said}");
        let agrees = odd("n07", &seen(300.0, 500.0, Some((505.0, -0.41))), &[]);
        assert!(agrees.contains("40 % below 63 peers"), "{agrees}");
        let busy = odd("n07", &seen(210.0, 0.0, None), &[]);
        assert!(busy.contains("GPU power 210 W, while 63 peers show 0 W, for 2 min 10 s."), "{busy}");
    }

    #[test]
    fn a_node_that_writes_is_noted_with_what_it_writes_and_how_long_that_may_take() {
        let about = telemetry("net_tx_gbs").unwrap();
        let (value, peer_median) = (11.2, 0.0);
        let seen = Seen { metric: "net_tx_gbs", about, value, peers: 7, peer_median, usual: None, lasts_s: 600.0 };
        assert_eq!(
            writes("n0", &seen, 900.0),
            "n0: network throughput sent 11.2 GB/s from 900 s after the start, while the job stands still and 7 peers show 0.00 \
             B/s: it is probably writing a checkpoint that they wait for; alert if that lasts 10 min"
        );
    }

    #[test]
    fn who_moved_first_is_told_with_the_seconds_between_and_what_followed() {
        let order = Order {
            metric: "GPU power",
            ratio: 0.69,
            lead: (24.2, 44.8),
            job: "GPU utilisation",
            job_ratio: 0.73,
            of: ComponentKind::Gpus,
        };
        assert_eq!(
            first("n07", &order),
            "n07: it moved first. Its GPU power fell by 31 % beside its peers, and 24 to 45 s later GPU utilisation of the \
             whole job fell by 27 %. Drain it, run `muster run cbd-light -w n07`, then check GPU clocks, temperature and the \
             kernel log."
        );
        assert_eq!((fell_or_rose(5.14), fell_or_rose(1.4)), ("rose to 5.1x".into(), "rose by 40 %".into()));
    }

    #[test]
    fn differences_are_one_number_and_past_two_a_factor() {
        assert_eq!(changed(2_550.0, 500.0), "5.1x");
        assert_eq!(changed(750.0, 500.0), "50 % above");
        assert_eq!(changed(0.0, 500.0), "100 % below");
        assert_eq!(
            (lasting(90.0), lasting(240.0), lasting(7_500.0)),
            ("90 s".into(), "4 min".into(), "2 h 5 min".into())
        );
        assert_eq!(some(&["a", "b", "c", "d"]), "a, b, c and 1 more");
    }

    #[test]
    fn every_component_has_a_next_step_of_its_own_kind() {
        use ComponentKind::{Application, Core, Cpu, Disk, Gpu, GpuLink, Gpus, IbPort, Memory, Nic, Node};
        for (kinds, said) in [
            (&[Cpu, Core][..], "look for other processes and a lowered CPU clock"),
            (&[Memory], "look for other processes and memory errors"),
            (&[Disk], "check the health of its disks and who writes to them"),
            (&[Nic, IbPort], "check its NIC, cable and switch port"),
            (&[GpuLink], "check its NVLink errors and the kernel log"),
            (&[Gpu, Gpus], "check GPU clocks, temperature and the kernel log"),
            (&[Application], "look at the processes of the job on it"),
            (&[Node], "check its kernel log"),
        ] {
            assert!(kinds.iter().all(|kind| next_step(*kind) == said), "{said}");
        }
    }

    #[test]
    fn a_node_that_a_shell_would_take_apart_stands_in_no_command() {
        assert_eq!(measure("n07"), "run `muster run cbd-light -w n07`");
        assert_eq!(measure("n07; reboot"), "measure it with `muster run cbd-light`");
    }

    #[test]
    fn times_are_said_in_the_units_of_people() {
        let said = [-5.0, 0.4, 119.4, 119.6, 125.0, 3_599.0, 3_600.0, 7_260.0].map(lasting);
        assert_eq!(said, ["0 s", "0 s", "119 s", "2 min", "2 min 5 s", "59 min 59 s", "1 h 0 min", "2 h 1 min"]);
    }

    #[test]
    fn a_factor_is_said_past_two_and_per_cents_up_to_it() {
        assert_eq!(
            [2.0, 2.01, 1.0, 0.999, 0.3].map(fell_or_rose),
            ["rose by 100 %", "rose to 2.0x", "rose by 0 %", "fell by 0 %", "fell by 70 %"]
        );
        assert_eq!(
            [200.0, 201.0, 100.0, 30.0].map(|value| changed(value, 100.0)),
            ["100 % above", "2.0x", "0 % above", "70 % below"]
        );
    }

    #[test]
    fn the_comparison_that_is_told_is_the_plain_one_unless_history_disagrees_by_a_quarter() {
        let told = |value: f64, median: f64, usual: Option<(f64, f64)>| against(&seen(value, median, usual));
        // 40 % below the others; the deviation from what is usual is 32 % or 50 %, which are 25 % off 40 and 20 % off 40.
        assert_eq!(told(300.0, 500.0, Some((600.0, -0.50))), "40 % below 63 peers (median 500 W)");
        assert_eq!(told(300.0, 500.0, Some((450.0, -0.33))), "40 % below 63 peers (median 500 W)");
        assert_eq!(told(300.0, 500.0, Some((440.0, -0.31))), "32 % below its usual level beside 63 peers (440 W)");
        assert_eq!(told(300.0, 500.0, Some((0.0, -0.31))), "40 % below 63 peers (median 500 W)", "nothing is no level");
        assert_eq!(told(300.0, f64::NAN, Some((440.0, -0.31))), "32 % below its usual level beside 63 peers (440 W)");
        assert_eq!(told(500.0, 5.0, None), "100.0x 63 peers (median 5 W)");
        assert_eq!(told(506.0, 5.0, None), "while 63 peers show 5 W,", "a hundred times as much says nothing");
    }

    #[test]
    fn three_names_are_listed_and_the_group_and_the_silent_are_told_with_what_to_check() {
        assert_eq!(some(&["a", "b", "c"]), "a, b, c");
        assert_eq!(some(&["a"]), "a");
        assert_eq!(
            group("leaf3", &["a", "b"], 8, &seen(300.0, 500.0, None)),
            "leaf3: 2 of its 8 nodes (a, b) differ together: GPU power 300 W, 40 % below 63 peers (median 500 W) for 2 min 10 s. \
             Check what they share before any of them."
        );
        assert_eq!(
            silent("n07", 6, 50.0),
            "n07: no telemetry for 50 s while the job stands still and 6 peers still report. Check whether it answers and is \
             powered; drain it."
        );
        assert_eq!(
            together(3, 12, "GPU power", 725.4),
            "at least 3 of 12 nodes left the others together in GPU power, 725 s after the start; no label of the inventory \
             (leaf, rack, rail) says what they share, so no machine is named for it"
        );
    }

    #[test]
    fn who_moved_first_did_so_a_second_before_at_least() {
        let said = |lead: (f64, f64)| {
            let order = Order { metric: "m", ratio: 0.5, lead, job: "j", job_ratio: 0.5, of: ComponentKind::Node };
            first("n1", &order)
        };
        assert!(said((0.2, 0.4)).contains(", and 1 to 1 s later j of"), "{}", said((0.2, 0.4)));
        assert!(said((3.0, 2.0)).contains(", and 3 to 3 s later j of"));
    }

    #[test]
    fn a_metric_that_the_field_has_no_name_for_is_called_as_it_was_recorded() {
        let about = muster_wire::Telemetry::unknown();
        let seen = Seen {
            metric: "requests",
            about: &about,
            value: 3.0,
            peers: 5,
            peer_median: 4.0,
            usual: None,
            lasts_s: 60.0,
        };
        assert!(odd("n1", &seen, &["a", "b", "c", "d"]).starts_with(
            "n1: requests 3.00, 25 % below 5 peers (median 4.00) for 60 s; also a, b, c and 1 more. Drain it"
        ));
    }
}
