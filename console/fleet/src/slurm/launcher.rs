//! In which allocation is each node worked on, from its first work to half a minute after its last?

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;

use super::allocation::Allocation;
use super::{Listed, Options, Starting, Step, listed};
use crate::hostlist::fold;
use crate::link::{Failure, FailureKind, Phase};
use crate::script::Seed;

/// Nodes are given back when nobody has worked on them for this long.
const KEPT: Duration = Duration::from_secs(30);

/// Starts probes by Slurm. Shared by all work of a console, so that nodes are asked for once.
pub struct Launcher {
    options: Options,
    held: Mutex<Held>,
    users: AtomicUsize,
}

#[derive(Default)]
struct Held {
    allocations: Vec<(Allocation, Option<Seed>)>,
    /// Our job that others ended; none is asked for again.
    ended: Option<String>,
}

/// The step to start and where the probe lies for it, or why there is none.
type Seat = Result<(Step, Option<Seed>), (FailureKind, String)>;

/// What Slurm gave for some work; while it lives, nothing is given back.
#[derive(Default)]
pub(crate) struct Seats {
    by_node: HashMap<String, Seat>,
    user: Option<Arc<Launcher>>,
}

impl std::fmt::Debug for Launcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launcher").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Launcher {
    /// One that asks Slurm as `options` say, once there is work.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options, held: Mutex::default(), users: AtomicUsize::new(0) }
    }

    /// A place on each of `nodes`, or why there is none. Waits until Slurm gives the nodes that can be had at all.
    pub(crate) async fn seats(self: Arc<Self>, nodes: &[&str], work: Starting<'_>) -> Seats {
        self.users.fetch_add(1, Ordering::SeqCst);
        let mut seats = Seats { by_node: HashMap::new(), user: Some(self.clone()) };
        let mut held = self.held.lock().await;
        held.forget_ended();
        let wanted: Vec<String> = nodes.iter().filter(|node| !held.has(node)).map(|node| (*node).to_owned()).collect();
        if !wanted.is_empty() {
            seats.by_node = self.more(&wanted, &mut held, &work).await;
        }
        for node in nodes {
            let seat = held.allocations.iter().find(|(allocation, _)| allocation.nodes.contains(*node));
            if let Some((allocation, seed)) = seat {
                let step = Step { job: allocation.job.clone(), node: (*node).to_owned() };
                seats.by_node.insert((*node).to_owned(), Ok((step, seed.clone())));
            }
        }
        seats
    }

    /// Asks for `wanted`; gives the seats in a job that is not ours, and why others have none.
    async fn more(&self, wanted: &[String], held: &mut Held, work: &Starting<'_>) -> HashMap<String, Seat> {
        let each = |nodes: &[String], kind: FailureKind, why: &str| -> HashMap<String, Seat> {
            nodes.iter().map(|node| (node.clone(), Err((kind, why.to_owned())))).collect()
        };
        let shared = self.options.shared.as_deref();
        if let Some(job) = &self.options.job {
            let seed = work.seed((job, wanted), shared, std::future::ready(Ok(()))).await.unwrap_or_default();
            let seat = |node: &String| Ok((Step { job: job.clone(), node: node.clone() }, seed.clone()));
            return wanted.iter().map(|node| (node.clone(), seat(node))).collect();
        }
        if let Some(job) = &held.ended {
            return each(wanted, FailureKind::Cut, &format!("Slurm job {job} has ended, and muster starts no other"));
        }
        let known = tokio::task::spawn_blocking(listed).await.unwrap_or_else(|why| Err(why.to_string()));
        let known = match known {
            Ok(known) => known,
            Err(why) => return each(wanted, FailureKind::BadConfig, &why),
        };
        let known: HashMap<&str, &Listed> = known.iter().map(|node| (node.name.as_str(), node)).collect();
        let refused = |node: &String| self.refused(known.get(node.as_str()).copied());
        let mut none: HashMap<_, _> =
            wanted.iter().filter_map(|node| Some((node.clone(), Err(refused(node)?)))).collect();
        let wanted: Vec<String> = wanted.iter().filter(|node| !none.contains_key(*node)).cloned().collect();
        if wanted.is_empty() {
            return none;
        }
        work.tell.say(&format!("asking Slurm for {}", fold(wanted.iter().map(String::as_str))));
        match Allocation::of(&wanted, &self.options).await {
            Ok(allocation) => match work.seed((&allocation.job, &wanted), shared, allocation.ready()).await {
                Ok(seed) => {
                    work.tell.say(&format!("Slurm job {} has them", allocation.job));
                    held.allocations.push((allocation, seed));
                }
                Err(why) => none.extend(each(&wanted, FailureKind::NoSession, &why)),
            },
            Err(why) => none.extend(each(&wanted, FailureKind::NoSession, &why)),
        }
        none
    }

    /// Why a node cannot be had, if Slurm says so before it is asked.
    fn refused(&self, node: Option<&Listed>) -> Option<(FailureKind, String)> {
        let Some(node) = node else {
            return Some((FailureKind::BadConfig, "Slurm has no node of this name".to_owned()));
        };
        if let Some(partition) = self.options.partition.as_ref().filter(|one| !node.partitions.contains(one)) {
            return Some((FailureKind::BadConfig, format!("not in Slurm's partition {partition}")));
        }
        let why = if node.reason.is_empty() { String::new() } else { format!(" ({})", node.reason) };
        let unreachable = node.is("DOWN") || node.is("NOT_RESPONDING");
        let kind = if unreachable { FailureKind::Unreachable } else { FailureKind::NoSession };
        node.out().then(|| (kind, format!("Slurm gives it to no job: {}{why}", node.state())))
    }
}

impl Held {
    fn has(&self, node: &str) -> bool {
        self.allocations.iter().any(|(allocation, _)| allocation.nodes.contains(node))
    }

    fn forget_ended(&mut self) {
        if let Some(at) = self.allocations.iter().position(|(allocation, _)| allocation.over()) {
            self.ended = Some(self.allocations.remove(at).0.job);
            self.forget_ended();
        }
    }
}

impl Seats {
    /// The place on `node`.
    pub(crate) fn step(&self, node: &str) -> Result<(Step, Option<Seed>), Failure> {
        let none = || Err((FailureKind::NoSession, "Slurm was not asked for it".to_owned()));
        let seat = self.by_node.get(node).cloned().unwrap_or_else(none);
        seat.map_err(|(kind, what)| Failure::new(node, Phase::Connect, kind, what))
    }
}

impl Drop for Seats {
    fn drop(&mut self) {
        let Some(launcher) = self.user.take() else { return };
        let left = launcher.users.fetch_sub(1, Ordering::SeqCst) - 1;
        if let (0, Ok(runtime)) = (left, tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                tokio::time::sleep(KEPT).await;
                let mut held = launcher.held.lock().await;
                if launcher.users.load(Ordering::SeqCst) == 0 {
                    held.allocations.clear();
                }
            });
        }
    }
}
