//! Which node is the fleet's criterion: SuperBench's Algorithm 2 with its open ends closed.
//!
//! Centre and defects are found in turn until the centre stays. With one symmetric distance the truncated cost
//! `J(c) = sum of min(d(c,j), 1-alpha)` falls in every round, so at most N rounds pass; it is a local optimum,
//! so every other group of the fleet gets its own start, and of equal costs the better-performing centre wins.

use std::cmp::Ordering;

use muster_wire::Direction;

use crate::medoid::{better, medoid};
use crate::{Params, Sample, is_defect, repeatability, similarity};

/// A rival group needs this share of the nodes (and two of them) to start from or to be reported.
const GROUP_SHARE: f64 = 0.1;
/// Starts tried at most; groups of a tenth each cannot be more.
const STARTS: usize = 10;

/// Where the search ended.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Index of the criterion.
    pub(crate) centre: usize,
    /// Two-sided similarity of every node to it.
    pub(crate) similarity: Vec<f64>,
    /// Two groups that each agree within and hold nearly all nodes between them, the larger one first.
    pub(crate) groups: Option<[Vec<usize>; 2]>,
    /// Sets whose centre was sought on the way, and their mean similarity over all pairs.
    pub(crate) swept: Vec<Swept>,
}

/// A set of nodes and its mean similarity over all pairs.
pub(crate) type Swept = (Vec<usize>, Option<f64>);

/// Searches among valid samples; `None` when there are none.
pub(crate) fn search(samples: &[&Sample], dir: Direction, params: &Params) -> Option<Found> {
    let fleet = Fleet { samples, dir, params };
    let everyone: Vec<usize> = (0..samples.len()).collect();
    let (mut best, swept) = fleet.descend(&everyone)?;
    let first = best.clone();
    let mut left: Vec<usize> = fleet.outside(&everyone, &best);
    let mut groups = vec![fleet.inside(&everyone, &best)];
    for _ in 0..STARTS {
        if left.len() < fleet.least_group() {
            break;
        }
        let Some((rival, _)) = fleet.descend(&left) else { break };
        let members = fleet.inside(&left, &rival);
        let rest = fleet.outside(&left, &rival);
        if members.len() >= 2 && fleet.order(&rival, &best).is_lt() {
            best.clone_from(&rival);
        }
        groups.push(members);
        // A start that fell back into a group already seen takes nothing away.
        if rest.len() == left.len() || rival.centre == first.centre {
            break;
        }
        left = rest;
    }
    let groups = fleet.two_groups(groups);
    Some(Found { centre: best.centre, similarity: best.similarity, groups, swept })
}

#[derive(Clone)]
struct Centre {
    centre: usize,
    similarity: Vec<f64>,
    cost: f64,
}

struct Fleet<'a> {
    samples: &'a [&'a Sample],
    dir: Direction,
    params: &'a Params,
}

impl Fleet<'_> {
    fn least_group(&self) -> usize {
        ((self.samples.len() as f64 * GROUP_SHARE).ceil() as usize).max(2)
    }

    /// The printed loop from one start: medoid of the healthy, then the healthy anew among all.
    fn descend(&self, start: &[usize]) -> Option<(Centre, Vec<Swept>)> {
        let everyone: Vec<usize> = (0..self.samples.len()).collect();
        let mut healthy = start.to_vec();
        let mut swept = Vec::new();
        let mut best: Option<Centre> = None;
        let mut seen = Vec::new();
        for _ in 0..=self.samples.len() {
            let members: Vec<&Sample> = healthy.iter().map(|&i| self.samples[i]).collect();
            let Some(found) = medoid(&members, self.dir, self.params.tau) else { break };
            swept.push((healthy.clone(), found.mean_similarity));
            let centre = healthy[found.index];
            if seen.contains(&centre) {
                break;
            }
            seen.push(centre);
            let now = self.around(centre);
            let next = self.inside(&everyone, &now);
            if best.as_ref().is_none_or(|b| now.cost <= b.cost) {
                best = Some(now);
            }
            // The same nodes have the same medoid: the loop would find the same centre again.
            if next == healthy {
                break;
            }
            healthy = next;
        }
        best.map(|b| (b, swept))
    }

    fn around(&self, centre: usize) -> Centre {
        let reference = self.samples[centre];
        let similarity: Vec<f64> =
            self.samples.iter().map(|s| similarity(s, reference, self.dir, self.params.tau)).collect();
        let cost = similarity.iter().map(|s| (1.0 - s).min(1.0 - self.params.alpha)).sum();
        Centre { centre, similarity, cost }
    }

    fn inside(&self, among: &[usize], centre: &Centre) -> Vec<usize> {
        among.iter().copied().filter(|&i| !is_defect(centre.similarity[i], self.params.alpha)).collect()
    }

    fn outside(&self, among: &[usize], centre: &Centre) -> Vec<usize> {
        among.iter().copied().filter(|&i| is_defect(centre.similarity[i], self.params.alpha)).collect()
    }

    /// Smaller cost first; costs less than half a node apart are equal, and the better-performing centre wins.
    fn order(&self, a: &Centre, b: &Centre) -> Ordering {
        if (a.cost - b.cost).abs() >= 0.5 * (1.0 - self.params.alpha) {
            return a.cost.total_cmp(&b.cost);
        }
        better(self.samples[a.centre], self.samples[b.centre], self.dir)
    }

    /// The two largest groups, if they explain the fleet: at most a tenth of the nodes stand apart, and both agree within.
    fn two_groups(&self, mut groups: Vec<Vec<usize>>) -> Option<[Vec<usize>; 2]> {
        let n = self.samples.len();
        groups.sort_by_key(|g| std::cmp::Reverse(g.len()));
        groups.truncate(2);
        let found: [Vec<usize>; 2] = groups.try_into().ok()?;
        let enough = found[1].len() >= self.least_group();
        let nearly_all = (found[0].len() + found[1].len()) as f64 >= (1.0 - GROUP_SHARE) * n as f64;
        let agree = |group: &Vec<usize>| {
            let members: Vec<&Sample> = group.iter().map(|&i| self.samples[i]).collect();
            repeatability(&members, self.dir, self.params.tau).is_some_and(|r| r >= self.params.alpha)
        };
        (enough && nearly_all && found.iter().all(agree)).then_some(found)
    }
}
