//! Fleets whose truth is known: five named ones of 144 nodes after the models of SuperBench's figure 9.
//!
//! Every node is its slowest GPU of eight; its steps are correlated noise around that level, some with a slow step
//! every so often. A few nodes are a few per cent slow and healthy all the same: that left-skewed margin of a real
//! fleet (Sinha et al., SC'22) is what tells the methods apart. On an exactly normal core they are equally good,
//! so an ordering of methods is claimed on these scenarios only.

use muster_wire::Direction;
use serde::{Deserialize, Serialize};

use super::{Fleet, NotComparable};
use crate::Chance;

/// Nodes of every scenario, as in the paper.
const NODES: usize = 144;
/// Steps of every series.
const STEPS: usize = 600;
/// GPUs of a node; the slowest sets the pace.
const GPUS: usize = 8;
/// Correlation of one step's noise with the next.
const CORRELATION: f64 = 0.3;

/// What is wrong with a planted defect.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// All steps slower by this share.
    Shift(f64),
    /// Slower by the first share at the start, by the second at the end: a cooler that gives up.
    Ramp(f64, f64),
    /// All steps slower by the first share, a quarter of them by the second on top.
    Burst(f64, f64),
}

impl Fault {
    /// Speed left at `step` of `steps`, 1 for a healthy one.
    fn factor(self, step: usize, steps: usize) -> f64 {
        match self {
            Self::Shift(loss) => 1.0 - loss,
            Self::Ramp(from, to) => 1.0 - (to - from).mul_add(step as f64 / steps as f64, from),
            Self::Burst(loss, more) if step / 25 % 4 == 1 => (1.0 - loss) * (1.0 - more),
            Self::Burst(loss, _) => 1.0 - loss,
        }
    }
}

/// A named scenario. All measure throughput: higher is better, in samples per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scenario {
    /// One defect close to a wide margin.
    Resnet,
    /// A margin set apart from the core, one defect.
    Densenet,
    /// Two defects farther off than the margin is wide.
    Vgg,
    /// A narrow margin and defects far off.
    Bert,
    /// A wide margin, one of the defects a thermal ramp.
    Gpt2,
}

/// What a scenario is made of.
struct Shape {
    level: f64,
    /// Relative spread of the GPUs.
    gpu: f64,
    /// Relative spread of the steps.
    step: f64,
    /// Every so many steps one is slower by this share.
    slow_step: Option<(usize, f64)>,
    /// How many healthy nodes are slow, and by which shares.
    margin: (usize, f64, f64),
    faults: &'static [Fault],
}

impl Scenario {
    /// All of them, in the paper's order.
    pub const ALL: [Self; 5] = [Self::Resnet, Self::Densenet, Self::Vgg, Self::Bert, Self::Gpt2];

    /// The word used on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resnet => "resnet",
            Self::Densenet => "densenet",
            Self::Vgg => "vgg",
            Self::Bert => "bert",
            Self::Gpt2 => "gpt2",
        }
    }

    const fn shape(self) -> Shape {
        match self {
            Self::Resnet => Shape {
                level: 2930.0,
                gpu: 0.0012,
                step: 0.0028,
                slow_step: None,
                margin: (8, 0.016, 0.034),
                faults: &[Fault::Shift(0.088)],
            },
            Self::Densenet => Shape {
                level: 1420.0,
                gpu: 0.001,
                step: 0.0036,
                slow_step: Some((50, 0.006)),
                margin: (9, 0.029, 0.033),
                faults: &[Fault::Shift(0.098)],
            },
            Self::Vgg => Shape {
                level: 2110.0,
                gpu: 0.0012,
                step: 0.003,
                slow_step: None,
                margin: (10, 0.02, 0.034),
                faults: &[Fault::Shift(0.105), Fault::Burst(0.11, 0.03)],
            },
            Self::Bert => Shape {
                level: 310.0,
                gpu: 0.0012,
                step: 0.003,
                slow_step: Some((100, 0.008)),
                margin: (5, 0.014, 0.03),
                faults: &[Fault::Shift(0.185), Fault::Shift(0.2), Fault::Burst(0.19, 0.05)],
            },
            Self::Gpt2 => Shape {
                level: 118.0,
                gpu: 0.001,
                step: 0.003,
                slow_step: None,
                margin: (9, 0.017, 0.033),
                faults: &[Fault::Ramp(0.06, 0.1)],
            },
        }
    }

    /// The scenario's fleet for `seed`: equal seeds give equal fleets on any machine.
    ///
    /// # Errors
    /// Never in practice: the values made here can be measured.
    pub fn fleet(self, seed: u64) -> Result<Synthetic, NotComparable> {
        let shape = self.shape();
        let mut chance = Chance::new(seed ^ (self as u64) << 32);
        let mut order: Vec<usize> = (0..NODES).collect();
        chance.shuffle(&mut order);
        let (faulty, rest) = order.split_at(shape.faults.len());
        let slow = &rest[..shape.margin.0];
        let steps = (0..NODES)
            .map(|node| {
                let fault = faulty.iter().position(|f| *f == node).map(|at| shape.faults[at]);
                let margin = if slow.contains(&node) { chance.between(shape.margin.1, shape.margin.2) } else { 0.0 };
                shape.series(margin, fault, &mut chance)
            })
            .collect();
        let mut defects = faulty.to_vec();
        defects.sort_unstable();
        let fleet = Fleet::new(steps, Direction::HigherIsBetter)?;
        Ok(Synthetic { scenario: self, fleet, defects })
    }
}

impl Shape {
    fn series(&self, margin: f64, fault: Option<Fault>, chance: &mut Chance) -> Vec<f64> {
        let slowest = (0..GPUS).map(|_| self.gpu.mul_add(chance.normal(), 1.0)).fold(f64::INFINITY, f64::min);
        let level = self.level * slowest * (1.0 - margin);
        let fresh = (1.0 - CORRELATION * CORRELATION).sqrt();
        let mut noise = chance.normal();
        (0..STEPS)
            .map(|i| {
                noise = CORRELATION.mul_add(noise, fresh * chance.normal());
                let slow = self.slow_step.filter(|(every, _)| i % every == every - 1).map_or(0.0, |(_, share)| share);
                let factor = fault.map_or(1.0, |f| f.factor(i, STEPS));
                level * factor * (1.0 - slow) * self.step.mul_add(noise, 1.0)
            })
            .collect()
    }
}

/// A made fleet and the truth about it.
#[derive(Clone, Debug)]
pub struct Synthetic {
    /// Which scenario.
    pub scenario: Scenario,
    /// Its series.
    pub fleet: Fleet,
    /// Indices of the planted defects, ascending.
    pub defects: Vec<usize>,
}
