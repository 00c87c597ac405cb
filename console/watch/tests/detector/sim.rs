//! A made job with a known culprit, after Minder's published tables: what is not tuned to it may be measured by it.
//!
//! A common iteration wave with a drift, pipeline stages with phases of their own, gains of machines, noise of each metric, pauses
//! counted by a Poisson law, short jitters of healthy machines, lost samples, a few clocks that are off; one kind of fault. Amplitudes
//! are invented, kinds and time scales are the paper's.

use muster_analysis::Chance;

/// When a recording begins, epoch seconds.
pub const START: f64 = 1_760_000_000.0;

/// Metrics, the level of a healthy machine, how strongly the wave shows, and noise of a second.
pub const METRICS: [(&str, f64, f64, f64); 9] = [
    ("pfc_tx_pps", 15.0, 0.2, 0.0),
    ("cpu_util_pct", 40.0, 0.2, 0.05),
    ("gpu_util_pct", 88.0, 0.06, 0.03),
    ("gpu_power_w", 480.0, 0.15, 0.05),
    ("tensor_active", 0.45, 0.25, 0.08),
    ("nvlink_gbs", 110.0, 0.25, 0.10),
    ("net_tx_gbs", 40.0, 0.25, 0.10),
    ("mem_used_pct", 55.0, 0.0, 0.01),
    ("disk_busy_pct", 13.0, 0.05, 0.15),
];
/// Those that tell how fast the job goes.
const PACE: std::ops::RangeInclusive<usize> = 2..=6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Healthy,
    /// Many short jitters.
    Jitter,
    SlowGpu,
    Cpu,
    Nic,
    Disk,
    /// One machine slows, and a while later drags all others.
    Drag,
    /// All slow together, nobody first.
    AllSlow,
    /// All stand still and go on.
    Stall,
    /// All stand still, and one machine is busy in it.
    Hang,
    /// Half of the machines, a leaf, lose their network together.
    Leaf,
    /// The same, and it shows a little in the GPUs of some of them.
    LeafTraces,
    TwoFaults,
    /// Another model since the start.
    Offset,
    /// An exporter is silent while the job goes on.
    Outage,
}

impl Kind {
    pub const ALL: [Self; 15] = [
        Self::Healthy,
        Self::Jitter,
        Self::SlowGpu,
        Self::Cpu,
        Self::Nic,
        Self::Disk,
        Self::Drag,
        Self::AllSlow,
        Self::Stall,
        Self::Hang,
        Self::Leaf,
        Self::LeafTraces,
        Self::TwoFaults,
        Self::Offset,
        Self::Outage,
    ];
}

/// A machine that should be named.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub node: usize,
    pub onset_s: f64,
    pub end_s: f64,
    /// Seconds until the others slowed, where they did.
    pub lag_s: Option<f64>,
    effect: [f64; METRICS.len()],
}

/// A recording.
pub struct Made {
    pub kind: Kind,
    pub nodes: usize,
    pub seconds: usize,
    pub faults: Vec<Fault>,
    /// Seconds, node, metric, value, in order of time.
    pub ticks: Vec<(f64, usize, usize, f64)>,
}

/// A machine as it is while healthy.
struct Machine {
    gains: [f64; METRICS.len()],
    phase: f64,
    clock_s: f64,
    /// Until when a jitter lasts, and what it does.
    jitter: (f64, [f64; METRICS.len()]),
}

const SAME: [f64; METRICS.len()] = [1.0; METRICS.len()];

/// What a fault of that kind multiplies each metric by.
fn effect(kind: Kind, chance: &mut Chance) -> [f64; METRICS.len()] {
    let mut effect = SAME;
    match kind {
        Kind::Cpu => effect[1] = chance.between(1.4, 1.9),
        Kind::Nic => {
            (effect[0], effect[6]) = (chance.between(4.0, 12.0), chance.between(0.3, 0.7));
            effect[5] = chance.between(0.7, 1.0);
        }
        Kind::Disk => effect[8] = chance.between(2.5, 6.0),
        _ => {
            effect[3] = chance.between(0.55, 0.8);
            effect[4] = chance.between(0.5, 0.85);
            effect[2] = chance.between(0.8, 1.0);
        }
    }
    effect
}

fn fault(kind: Kind, node: usize, seconds: usize, chance: &mut Chance) -> Fault {
    let onset_s = chance.between(0.3, 0.45) * seconds as f64;
    let lasts = chance.between(400.0, 900.0);
    let drags = kind == Kind::Drag;
    let lag_s = drags.then(|| (60.0 * (0.4 * chance.normal()).exp()).clamp(25.0, 150.0));
    let end_s = if drags { seconds as f64 } else { (onset_s + lasts).min(seconds as f64) };
    Fault { node, onset_s, end_s, lag_s, effect: effect(kind, chance) }
}

fn machines(nodes: usize, kind: Kind, chance: &mut Chance) -> Vec<Machine> {
    let stages = [1, 2, 4][chance.below(3)];
    let shift = chance.between(0.0, 0.5);
    let machine = |node: usize| {
        let mut gains = SAME.map(|_| 1.0 + 0.03 * chance.normal());
        if kind == Kind::Offset && node == 1 {
            gains.iter_mut().take(6).for_each(|gain| *gain *= 0.75);
        }
        let stage = node * stages / nodes;
        let clock_s = if chance.unit() < 0.06 { chance.between(-12.0, 12.0) } else { 0.0 };
        Machine { gains, phase: shift * stage as f64, clock_s, jitter: (0.0, SAME) }
    };
    (0..nodes).map(machine).collect()
}

/// What the whole job does to a metric at a second: faults of everybody.
fn of_all(kind: Kind, second: f64, metric: usize, at: f64, lag: Option<f64>) -> f64 {
    let pace = PACE.contains(&metric);
    match kind {
        Kind::Stall if pace && (at..at + 120.0).contains(&second) => 0.03,
        Kind::Hang if pace && second >= at => 0.02,
        Kind::AllSlow if pace && second >= at => 0.7,
        Kind::Drag if pace && lag.is_some_and(|lag| second >= at + lag) => 0.65,
        _ => 1.0,
    }
}

/// What a leaf does to the first half of the machines.
fn of_leaf(kind: Kind, second: f64, (node, nodes): (usize, usize), metric: usize, at: f64) -> f64 {
    let in_it = matches!(kind, Kind::Leaf | Kind::LeafTraces) && node < nodes / 2 && second >= at;
    match metric {
        6 if in_it => 0.45,
        3 | 4 if in_it && kind == Kind::LeafTraces && node % 3 == 0 => 0.85,
        _ => 1.0,
    }
}

/// A recording of that kind; the same for the same seed.
pub fn made(kind: Kind, seed: u64) -> Made {
    let mut chance = Chance::branch(seed, kind as u64);
    let nodes =
        [4, 8, 12, 16, 24][chance.below(5)].max(if matches!(kind, Kind::Leaf | Kind::LeafTraces) { 12 } else { 4 });
    let seconds = [1_200, 1_500, 1_800][chance.below(3)];
    let healthy = [
        Kind::Healthy,
        Kind::Jitter,
        Kind::AllSlow,
        Kind::Stall,
        Kind::Leaf,
        Kind::LeafTraces,
        Kind::Offset,
        Kind::Outage,
    ];
    let mut faults = Vec::new();
    let culprits = if healthy.contains(&kind) { 0 } else { 1 + usize::from(kind == Kind::TwoFaults && nodes > 4) };
    let first = chance.below(nodes);
    for culprit in 0..culprits {
        faults.push(fault(kind, (first + culprit * nodes / 2) % nodes, seconds, &mut chance));
    }
    let at = faults.first().map_or(0.4 * seconds as f64, |fault| fault.onset_s);
    let mut all = machines(nodes, kind, &mut chance);
    let mut made = Made { kind, nodes, seconds, faults, ticks: Vec::new() };
    let (period, mut drift) = (chance.between(60.0, 320.0), 0.0_f64);
    for second in 0..seconds {
        drift = 0.999 * drift + 0.002 * chance.normal();
        for (node, machine) in all.iter_mut().enumerate() {
            let outage = kind == Kind::Outage && node == 2 && (500..700).contains(&second);
            jitter(machine, kind, second as f64, &mut chance);
            let clock = (second as f64, period, drift);
            let values = values(&made, (node, machine), clock, at, &mut chance);
            for (metric, value) in values.into_iter().enumerate().filter(|_| !outage) {
                if chance.unit() >= 0.01 {
                    let time = START + second as f64 + machine.clock_s + 0.01 * node as f64;
                    made.ticks.push((time, node, metric, value));
                }
            }
        }
    }
    made.ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
    made
}

/// Healthy machines are unlike their peers for some seconds now and then.
fn jitter(machine: &mut Machine, kind: Kind, second: f64, chance: &mut Chance) {
    let rate = if kind == Kind::Jitter { 8.0 } else { 1.5 };
    if second >= machine.jitter.0 {
        machine.jitter.1 = SAME;
        if chance.unit() < rate / 3_600.0 {
            let (metric, up) = (chance.below(METRICS.len()), chance.unit() < 0.5);
            let factor = if up { chance.between(1.5, 4.0) } else { chance.between(0.3, 0.7) };
            let many = chance.unit() < 0.3;
            machine
                .jitter
                .1
                .iter_mut()
                .enumerate()
                .filter(|(at, _)| *at == metric || many)
                .for_each(|(_, f)| *f = factor);
            machine.jitter.0 = second + 15.0 * chance.exponential();
        }
    }
}

/// All metrics of a machine at a second.
fn values(made: &Made, of: (usize, &Machine), clock: (f64, f64, f64), at: f64, chance: &mut Chance) -> Vec<f64> {
    let ((node, machine), (second, period, drift)) = (of, clock);
    let wave = (std::f64::consts::TAU * (second / period) + machine.phase).sin();
    let lag = made.faults.first().and_then(|fault| fault.lag_s);
    let faults = made.faults.iter().filter(|f| f.node == node && (f.onset_s..f.end_s).contains(&second));
    let own = faults.fold(SAME, |all, fault| std::array::from_fn(|metric| all[metric] * fault.effect[metric]));
    let hangs = made.kind == Kind::Hang && made.faults.first().is_some_and(|f| f.node == node && second >= f.onset_s);
    let one = |(metric, (name, level, swing, noise)): (usize, &(&str, f64, f64, f64))| {
        let all = if hangs && (2..=3).contains(&metric) { 1.0 } else { of_all(made.kind, second, metric, at, lag) };
        let own = if hangs { 1.0 } else { own[metric] };
        let common =
            (1.0 + swing * wave + swing * drift) * all * of_leaf(made.kind, second, (node, made.nodes), metric, at);
        let expected = level * machine.gains[metric] * common * own * machine.jitter.1[metric];
        let value = if metric == 0 {
            chance.poisson(expected.max(0.0)) as f64
        } else {
            expected * (1.0 + noise * chance.normal())
        };
        let top = if name.ends_with("_pct") {
            100.0
        } else if name.ends_with("_active") {
            1.0
        } else {
            f64::INFINITY
        };
        value.clamp(0.0, top)
    };
    METRICS.iter().enumerate().map(one).collect()
}
