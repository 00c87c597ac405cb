//! Which few elements explain the slow pairs best?
//!
//! A pair is as slow as the worst element it crosses, so every bad element must show in (nearly) all of its pairs, and a
//! pair explained by one element says nothing about the others on its way. Explanations are compared by log-likelihood
//! ratio: usual pairs are normal around their centre, pairs of a bad element around its effect with room for sharing,
//! both with a share of outliers. The search adds the best element, masks its pairs, and repeats; then each element
//! is taken out again and the best other explanation of its pairs is put beside it. If that one is nearly as good,
//! the two are not told apart, and that is the answer.

use super::element::Element;
use super::places::NONE;

/// Share of visits that say nothing, whatever they crossed.
const OUTLIERS: f32 = 0.01;
/// Density of outliers over the range of residuals.
const OUTLIER_DENSITY: f32 = 1.0 / 14.0;
/// Relative spread of an effect over the pairs of one element: flows share a slow link unevenly.
const UNEVEN: f32 = 0.25;
/// `-0.5 ln 2 pi`.
const NORMAL: f32 = -0.918_938_5;
/// A visit that speaks against an element by this much contradicts it.
const AGAINST: f32 = -2.0;
/// Share of visits that may contradict.
const CONTRADICTIONS: f64 = 0.1;
/// Standard errors between an effect and the least that is a fault.
const SURE: f32 = 3.0;
/// Spreads beyond an element's effect from which on a visit must be slow for another reason.
const FAR: f32 = 3.0;
/// Passes of taking out and putting back.
const PASSES: usize = 3;
/// Most faults looked for.
const MOST: usize = 512;

/// Visits of suspicious elements.
#[derive(Default)]
pub(super) struct Visits {
    pub(super) worse: Vec<f32>,
    pub(super) spread: Vec<f32>,
    /// Label of the element that explains it, or [`NONE`].
    pub(super) owner: Vec<u32>,
    /// Log-density of it as usual, and of an outlier.
    usual: Vec<(f32, f32)>,
}

impl Visits {
    pub(super) fn push(&mut self, worse: f32, spread: f32, values: usize) {
        let values = values.clamp(1, 5) as f32;
        let floor = (OUTLIERS * OUTLIER_DENSITY / (values * values)).ln();
        // Better than usual is never evidence for a fault.
        let usual = normal(worse.max(0.0), spread, spread.ln()).max(floor);
        self.worse.push(worse);
        self.spread.push(spread);
        self.owner.push(NONE);
        self.usual.push((usual, floor));
    }

    /// How much more likely a visit is under `effect` than as usual; `wide` is the spread there and its logarithm.
    fn ratio(&self, visit: u32, effect: f32, wide: (f32, f32)) -> f32 {
        let at = visit as usize;
        let (usual, floor) = self.usual[at];
        normal(self.worse[at] - effect, wide.0, wide.1).max(floor) - usual
    }
}

/// Logarithm of a normal density.
fn normal(from_centre: f32, spread: f32, log_spread: f32) -> f32 {
    let z = from_centre / spread;
    NORMAL - log_spread - 0.5 * z * z
}

/// What speaks for one element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weight {
    /// Log-likelihood ratio less the element's penalty.
    pub(super) gain: f64,
    /// Median residual.
    effect: f32,
}

/// An element chosen, with the visits it explains.
#[derive(Clone, Debug)]
pub(super) struct Pick {
    pub(super) element: usize,
    pub(super) gain: f64,
    effect: f32,
    /// Gain over the best other explanation.
    pub(super) lead: f64,
    /// That explanation; empty where it is chance.
    pub(super) rivals: Vec<usize>,
}

pub(super) struct Search<'a> {
    pub(super) elements: &'a [Element],
    /// Visits of each element.
    pub(super) cells: &'a [Vec<u32>],
    pub(super) visits: Visits,
    pub(super) picks: Vec<Pick>,
}

impl Search<'_> {
    pub(super) fn run(&mut self) {
        let everyone: Vec<usize> = (0..self.elements.len()).collect();
        self.picks = self.fill(&everyone, NONE);
        self.settle();
        // Two picks that explain the same visits leave nothing to each other: the weaker one goes, the other stays.
        let most = 2 * self.picks.len() + 4;
        for _ in 0..most {
            let Some(weakest) = self.weakest() else { break };
            let pick = self.picks.swap_remove(weakest);
            self.release(self.elements[pick.element].label);
            self.settle();
        }
    }

    fn settle(&mut self) {
        for _ in 0..PASSES {
            // Explanations may replace each other in circles.
            if !self.improve(2 * self.picks.len() + 4) {
                return;
            }
        }
        // Leads found before the last replacement are stale.
        self.improve(0);
    }

    /// The pick with the least to say, if that is nothing.
    fn weakest(&self) -> Option<usize> {
        let least = (0..self.picks.len()).min_by(|&a, &b| self.picks[a].gain.total_cmp(&self.picks[b].gain))?;
        (self.picks[least].gain <= 0.0).then_some(least)
    }

    /// Takes every pick out once, and puts what fits better in its place `budget` times at most; `true` if it did.
    fn improve(&mut self, mut budget: usize) -> bool {
        let mut changed = false;
        let mut at = 0;
        while at < self.picks.len() {
            let label = self.elements[self.picks[at].element].label;
            let own = self.release(label);
            self.absorb(at);
            let (out, weight) = self.best_view(self.picks[at].element);
            let gain = weight.map_or(0.0, |w| w.gain);
            let near = self.near(&own, label);
            let others = self.fill(&near, label);
            let rival: f64 = others.iter().map(|o| o.gain).sum();
            if rival > gain + 1e-6 && budget > 0 {
                budget -= 1;
                self.picks.swap_remove(at);
                self.picks.extend(others);
                changed = true;
                continue;
            }
            for other in &others {
                self.release(self.elements[other.element].label);
            }
            self.take(out);
            let rivals = others.iter().map(|o| o.element).collect();
            let effect = weight.map_or(self.picks[at].effect, |w| w.effect);
            self.picks[at] = Pick { element: out, gain, effect, lead: gain - rival, rivals };
            at += 1;
        }
        changed
    }

    /// The view of an element's label that fits the free visits best.
    fn best_view(&self, element: usize) -> (usize, Option<Weight>) {
        let label = self.elements[element].label;
        let views = (0..self.elements.len()).filter(|&e| self.elements[e].label == label);
        let weighed = views.filter_map(|e| self.weigh(e).map(|w| (e, w)));
        weighed.max_by(|a, b| a.1.gain.total_cmp(&b.1.gain)).map_or((element, None), |(e, w)| (e, Some(w)))
    }

    /// Lets all picks but one explain the free visits that cross them, unless these are far worse than they are: a visit
    /// over two bad elements must not decide for either.
    fn absorb(&mut self, except: usize) {
        for (_, pick) in self.picks.iter().enumerate().filter(|(at, _)| *at != except) {
            let label = self.elements[pick.element].label;
            for &visit in &self.cells[pick.element] {
                let visit = visit as usize;
                let spread = self.visits.spread[visit];
                let most = pick.effect + FAR * (spread * spread + UNEVEN * UNEVEN * pick.effect * pick.effect).sqrt();
                if self.visits.owner[visit] == NONE && self.visits.worse[visit] <= most {
                    self.visits.owner[visit] = label;
                }
            }
        }
    }

    /// Adds elements while they gain, best first. None of label `banned`.
    fn fill(&mut self, among: &[usize], banned: u32) -> Vec<Pick> {
        let mut open: Vec<(usize, f64)> = among
            .iter()
            .filter(|&&e| self.elements[e].label != banned)
            .filter_map(|&e| self.weigh(e).map(|w| (e, w.gain)))
            .filter(|(_, gain)| *gain > 0.0)
            .collect();
        let mut picks = Vec::new();
        while picks.len() < MOST {
            let Some(best) = (0..open.len()).max_by(|&a, &b| open[a].1.total_cmp(&open[b].1)) else { break };
            let (element, before) = open[best];
            // Gains only fall as visits are masked, so a gain that holds is the best one.
            let (gain, effect) = self.weigh(element).map_or((0.0, 0.0), |w| (w.gain, w.effect));
            if gain < before - 1e-9 {
                if gain > 0.0 {
                    open[best].1 = gain;
                } else {
                    open.swap_remove(best);
                }
                continue;
            }
            self.take(element);
            let label = self.elements[element].label;
            open.retain(|(e, _)| self.elements[*e].label != label);
            picks.push(Pick { element, gain, effect, lead: gain, rivals: Vec::new() });
        }
        picks
    }

    /// Median effect over the visits that nobody explains yet.
    pub(super) fn effect(&self, element: usize) -> Option<(f32, Vec<u32>)> {
        let free: Vec<u32> =
            self.cells[element].iter().copied().filter(|&v| self.visits.owner[v as usize] == NONE).collect();
        let mut worse: Vec<f32> = free.iter().map(|&v| self.visits.worse[v as usize]).collect();
        let middle = worse.len().checked_sub(1)? / 2;
        let effect = *worse.select_nth_unstable_by(middle, f32::total_cmp).1;
        Some((effect, free))
    }

    /// `None` if it is not bad or too many of its pairs are good.
    pub(super) fn weigh(&self, element: usize) -> Option<Weight> {
        let (effect, free) = self.effect(element)?;
        let n = free.len() as f32;
        let spread = free.iter().map(|&v| self.visits.spread[v as usize]).sum::<f32>() / n;
        // Surely more than the least effect, not just more: the standard error of a median is 1.25 spreads.
        if effect < self.elements[element].gate + SURE * 1.25 * spread / n.sqrt() {
            return None;
        }
        let (mut sum, mut against) = (0.0, 0_usize);
        let wide = (spread * spread + UNEVEN * UNEVEN * effect * effect).sqrt();
        let wide = (wide, wide.ln());
        for &visit in &free {
            let ratio = self.visits.ratio(visit, effect, wide);
            sum += f64::from(ratio);
            against += usize::from(ratio < AGAINST);
        }
        let allowed = CONTRADICTIONS * free.len() as f64;
        (against as f64 <= allowed).then_some(Weight { gain: sum - self.elements[element].penalty, effect })
    }

    fn take(&mut self, element: usize) {
        let label = self.elements[element].label;
        for &visit in &self.cells[element] {
            let owner = &mut self.visits.owner[visit as usize];
            if *owner == NONE {
                *owner = label;
            }
        }
    }

    /// Frees the visits that `label` explains, and returns them.
    fn release(&mut self, label: u32) -> Vec<u32> {
        let mut own = Vec::new();
        for element in (0..self.elements.len()).filter(|&e| self.elements[e].label == label) {
            for &visit in &self.cells[element] {
                let owner = &mut self.visits.owner[visit as usize];
                if *owner == label {
                    *owner = NONE;
                    own.push(visit);
                }
            }
        }
        own
    }

    /// Elements that share many visits with `own`, as parts or as wholes.
    fn near(&self, own: &[u32], label: u32) -> Vec<usize> {
        let mut inside = vec![false; self.visits.owner.len()];
        own.iter().for_each(|&v| inside[v as usize] = true);
        let overlaps = |cells: &Vec<u32>| {
            let step = cells.len().div_ceil(64).max(1);
            let (hit, of) = cells
                .iter()
                .step_by(step)
                .filter(|&&v| self.visits.owner[v as usize] == NONE)
                .fold((0, 0), |(hit, of), &v| (hit + usize::from(inside[v as usize]), of + 1));
            // Parts of it, or wholes of which it is a tenth.
            hit * 10 >= of && hit > 0
        };
        let picked: Vec<u32> = self.picks.iter().map(|p| self.elements[p.element].label).collect();
        let other = |e: &usize| self.elements[*e].label != label && !picked.contains(&self.elements[*e].label);
        (0..self.elements.len()).filter(|e| other(e) && overlaps(&self.cells[*e])).collect()
    }

    /// Other views of a pick's element whose visits fit nearly as well, the widest first, with their gain; the pick's
    /// own visits are free while asked.
    pub(super) fn views(&mut self, pick: &Pick) -> Vec<(usize, f64)> {
        let label = self.elements[pick.element].label;
        self.release(label);
        if let Some(at) = self.picks.iter().position(|p| p.element == pick.element) {
            self.absorb(at);
        }
        let views = (0..self.elements.len())
            .filter(|&e| self.elements[e].label == label)
            .filter_map(|e| self.weigh(e).map(|w| (e, w.gain)))
            .collect();
        self.take(pick.element);
        views
    }
}
