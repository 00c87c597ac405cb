//! Where do the ticks of a watch come from: nodes, or a recording that is played?
//!
//! Both tell the same in the same way, so that whoever takes ticks need not know which it is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_fleet::{Node, Probe, Settings};
use muster_import::telemetry::Recording;
use muster_tui::Play;
use muster_wire::{CLOCK_ERROR, WatchOrder};
use tokio_util::sync::CancellationToken;

use super::lookout::{Lookout, Seen};
use super::playhead::Playhead;

/// Time from one look at a node to the next.
const PERIOD_MS: u32 = 1_000;
/// How often a recording goes on, and rows that it tells at once: a jump over hours gives way to others now and then.
const TURN: Duration = Duration::from_millis(50);
const ROWS: usize = 1 << 18;
/// How fast a recording is played where nobody says otherwise: half an hour in half a minute.
pub const FASTEST: f64 = 60.0;

/// A watched node, and what it shares with others by the inventory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Labels such as `leaf` and `leaf3`.
    pub labels: Vec<(String, String)>,
}

/// What will tell ticks.
#[derive(Debug)]
pub enum Source {
    /// A probe on each of these nodes.
    Nodes {
        /// Who is watched.
        nodes: Vec<Node>,
        /// Metrics that are compared; all where none is named.
        metrics: Vec<String>,
        /// Slurm job whose processes are meant; without it, those that use most CPU time stand for the job.
        job: Option<String>,
    },
    /// A recording.
    Recording(Box<Player>),
}

/// A recording that is played.
#[derive(Debug)]
pub struct Player {
    /// Its file.
    pub name: String,
    recording: Recording,
    /// Nodes that are watched, in the order of the recording; rows of others are left out.
    members: Vec<Member>,
    places: Vec<Option<usize>>,
    compared: Vec<bool>,
    /// Rows told.
    told: usize,
    /// Where it is.
    head: Playhead,
}

/// What happened.
#[derive(Debug, PartialEq, Eq)]
pub enum Happened {
    /// Ticks were told.
    Told,
    /// A node answers; the first time, or again.
    There(usize),
    /// A node was lost or never reached, for this reason.
    Lost(usize, String),
    /// Nothing more will come.
    Over,
}

/// Takes a tick: the node's place, the metric, epoch seconds, the value.
pub type Take<'a> = &'a mut (dyn FnMut(usize, &str, f64, f64) + Send);

/// Ticks as they come.
pub enum Ticks {
    /// From nodes.
    Live {
        /// Their probes.
        lookout: Box<Lookout>,
        /// Metrics that are compared; all where none is named.
        metrics: Vec<String>,
    },
    /// From a recording.
    Recorded(Box<Player>),
}

impl Source {
    /// Who is watched.
    #[must_use]
    pub fn members(&self) -> Vec<Member> {
        match self {
            Self::Nodes { nodes, .. } => nodes.iter().map(Member::from).collect(),
            Self::Recording(player) => player.members.clone(),
        }
    }

    /// Begins to tell.
    #[must_use]
    pub fn open(self, probe: Arc<Probe>, settings: Arc<Settings>, cancel: CancellationToken) -> Ticks {
        match self {
            Self::Nodes { nodes, metrics, job } => {
                let order = WatchOrder { period_ms: PERIOD_MS, fine_ms: 0, job };
                let lookout = Lookout::open(&nodes, order, probe, settings, cancel);
                Ticks::Live { lookout: Box::new(lookout), metrics }
            }
            Self::Recording(player) => Ticks::Recorded(player),
        }
    }
}

impl From<&Node> for Member {
    fn from(node: &Node) -> Self {
        let labels = node.labels.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        Self { name: node.name.clone(), labels }
    }
}

impl Player {
    /// A recording called `name` at `speed`, of which the `nodes` and `metrics` chosen are told; `known` is the inventory.
    #[must_use]
    pub fn new(
        (name, recording): (String, Recording),
        speed: f64,
        (nodes, metrics): (&[String], &[String]),
        known: &[Node],
    ) -> Self {
        let of = |name: &String| {
            let known = known.iter().find(|node| node.name == *name).map(Member::from);
            known.unwrap_or_else(|| Member { name: name.clone(), ..Member::default() })
        };
        let members = recording.nodes.iter().filter(|name| nodes.contains(name)).map(of).collect();
        let mut next = 0..;
        let places = recording.nodes.iter().map(|name| if nodes.contains(name) { next.next() } else { None }).collect();
        let compared = recording.metrics.iter().map(|name| metrics.contains(name) || name == CLOCK_ERROR).collect();
        let rows = recording.rows();
        let span = rows.first().zip(rows.last()).map_or((0.0, 0.0), |(first, last)| (first.time_s, last.time_s));
        Self { name, recording, members, places, compared, told: 0, head: Playhead::new(span, speed) }
    }

    /// The first and the last moment, epoch seconds.
    #[must_use]
    pub const fn span(&self) -> (f64, f64) {
        self.head.span()
    }

    /// The moment that is played.
    #[must_use]
    pub fn at_s(&self) -> f64 {
        self.head.at_s(Instant::now())
    }

    /// Where it is and how fast it goes on.
    #[must_use]
    pub const fn head(&self) -> &Playhead {
        &self.head
    }

    /// Does what a key asks for. Whether it went back: then it tells everything up to there once more, to a watch that knows nothing.
    pub fn obey(&mut self, play: Play) -> bool {
        let now = Instant::now();
        let before = self.head.at_s(now);
        self.head.obey(play, now);
        let back = self.head.at_s(now) < before;
        if back {
            self.told = 0;
        }
        back
    }

    /// Goes on at a later moment; what lies between is told at once.
    pub fn go_to(&mut self, at_s: f64) {
        let now = Instant::now();
        self.head.go_to(at_s.max(self.head.at_s(now)), now);
    }

    /// Tells the rows up to the moment that is played, a part of them where they are many; whether there are more in all.
    fn tell(&mut self, take: Take<'_>) -> bool {
        self.head.start(Instant::now());
        let now_s = self.at_s();
        let rows = &self.recording.rows()[self.told..];
        let due = rows.partition_point(|row| row.time_s <= now_s).min(ROWS);
        for row in &rows[..due] {
            let (node, metric) = self.recording.of(row);
            if let Some(place) = self.places[node].filter(|_| self.compared[metric]) {
                take(place, &self.recording.metrics[metric], row.time_s, f64::from(row.value));
            }
        }
        self.told += due;
        self.told < self.recording.rows().len()
    }
}

impl Ticks {
    /// The next thing that happens; ticks go to `take`.
    pub async fn next(&mut self, take: Take<'_>) -> Happened {
        match self {
            Self::Live { lookout, metrics } => match lookout.next(None).await {
                Seen::Values(node, at_s, values) => {
                    let meant = |name: &str| metrics.is_empty() || metrics.iter().any(|metric| metric == name);
                    let values = values.iter().filter(|(metric, _)| meant(metric));
                    values.for_each(|(metric, value)| take(node, metric, at_s, *value));
                    Happened::Told
                }
                // Finer looks are for recordings.
                Seen::Fine(..) => Happened::Told,
                Seen::Said(_, said) => {
                    log::warn!("{said}");
                    Happened::Told
                }
                Seen::There(node) => Happened::There(node),
                Seen::Lost(node, failure) => Happened::Lost(node, failure.message),
                Seen::Over => Happened::Over,
            },
            Self::Recorded(player) => {
                tokio::time::sleep(TURN).await;
                if tokio::task::block_in_place(|| player.tell(take)) { Happened::Told } else { Happened::Over }
            }
        }
    }

    /// By how many seconds the times of a node may be off; unknown in a recording, and before the node has answered.
    #[must_use]
    pub fn clock_error_s(&self, node: usize) -> Option<f64> {
        if let Self::Live { lookout, .. } = self { lookout.clock_error_s(node) } else { None }
    }

    /// Ends what was begun on nodes.
    pub async fn close(self) {
        if let Self::Live { lookout, .. } = self {
            lookout.close().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording() -> Recording {
        let mut recording = Recording::default();
        for (time, node, metric, value) in
            [(1.0, "b", "m", 1.0), (2.0, "a", "m", 2.0), (3.0, "b", "k", 3.0), (90.0, "b", "m", 4.0)]
        {
            recording.push(node, metric, time, value).unwrap();
        }
        recording.sort();
        recording
    }

    fn player(nodes: &[&str], metrics: &[&str]) -> Player {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Player::new(("r.csv".to_owned(), recording()), 1.0, (&own(nodes), &own(metrics)), &[])
    }

    #[test]
    fn a_recording_tells_the_chosen_rows_up_to_the_moment_it_is_at() {
        let mut told = Vec::new();
        let mut player = player(&["b"], &["m"]);
        assert_eq!((player.span(), player.members.len()), ((1.0, 90.0), 1));
        player.go_to(50.0);
        assert!(player.tell(&mut |node, metric, at_s, value| told.push((node, metric.to_owned(), at_s, value))));
        assert_eq!(told, [(0, "m".to_owned(), 1.0, 1.0)]);
        player.go_to(20.0);
        assert!(player.at_s() >= 50.0, "it never goes back");
        player.go_to(1e9);
        assert!(!player.tell(&mut |node, metric, at_s, value| told.push((node, metric.to_owned(), at_s, value))));
        assert_eq!(told[1], (0, "m".to_owned(), 90.0, 4.0));
        assert!(player.obey(Play::Start), "it goes back");
        player.tell(&mut |node, metric, at_s, value| told.push((node, metric.to_owned(), at_s, value)));
        assert_eq!((told.len(), &told[2]), (3, &told[0].clone()), "and tells once more");
    }
}
