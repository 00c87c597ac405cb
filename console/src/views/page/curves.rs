//! What is in the chart of one metric: where the peers lie, the criterion, the samples that convicted.

use muster_analysis::assess::Judged;
use muster_analysis::findings::change;
use muster_analysis::{Grain, Sample, cdf_points};
use muster_page::{Curve, Curves};
use muster_playbook::report::VerdictReport;
use muster_wire::{Direction, Unit};

use super::convicted::{CURVES, Convicted};
use super::head::shown;
use super::of_run::Ran;
use crate::out::counted;

/// Points of a curve: more cannot be told apart.
const POINTS: usize = 48;

/// The chart of `of`; `None` where neither criterion nor sample is at hand.
pub(super) fn curves(ran: &Ran<'_>, of: &Convicted<'_>) -> Option<Curves> {
    let first = of.nodes.first()?.0;
    let judged = judged(ran, (of.metric, of.engine), first)?;
    let of_node = |(node, verdict): &(&str, &VerdictReport)| {
        let sample = judged.chart.failed(node).cloned().or_else(|| (ran.sample)(node, &judged.criterion.metric))?;
        Some(curve(node, verdict, &sample, judged))
    };
    let convicted: Vec<Curve> = of.nodes.iter().take(CURVES).filter_map(of_node).collect();
    let mut chart = plain(judged);
    let left = of.nodes.len() - convicted.len();
    if left > 0 && !convicted.is_empty() {
        chart.caption += &format!(" {} outside it are not drawn.", counted(left, "further node", "further nodes"));
    }
    let said: Vec<String> = convicted.iter().map(|curve| format!("{}: {}", curve.name, curve.said)).collect();
    chart.said += &said.join("; ");
    let nothing = convicted.is_empty() && chart.usual.is_empty();
    chart.convicted = convicted;
    (!nothing).then_some(chart)
}

/// What a metric was judged by on `node`.
pub(super) fn judged<'r>(ran: &Ran<'r>, (metric, engine): (&str, &str), node: &str) -> Option<&'r Judged> {
    let own = |judged: &&Judged| judged.criterion.metric.path() == metric && judged.criterion.metric.engine == engine;
    let mut all = ran.judged.iter().filter(own);
    let first = all.next()?;
    std::iter::once(first).chain(all).find(|judged| judged.basis.nodes.contains(node)).or(Some(first))
}

/// The chart without anybody in it.
pub(super) fn plain(judged: &Judged) -> Curves {
    let criterion = &judged.criterion;
    let better = match criterion.direction {
        Direction::HigherIsBetter => "Higher is better.",
        Direction::LowerIsBetter => "Lower is better.",
    };
    let group = if judged.basis.group.is_empty() { String::new() } else { format!(" Nodes: {}.", judged.basis.group) };
    let grain = match criterion.grain {
        Grain::Steps => String::new(),
        grain => format!(" Compared by the {} step.", grain.name()),
    };
    let sample = criterion.sample.as_ref();
    let usual_is = sample.map_or_else(String::new, |sample| {
        let kind = if judged.basis.frozen { "frozen criterion" } else { "criterion" };
        format!(
            "{kind}: median {}, alpha {}, {} of {} healthy",
            criterion.unit.show(sample.median()),
            criterion.alpha,
            criterion.healthy,
            counted(criterion.n, "node", "nodes")
        )
    });
    Curves {
        title: criterion.metric.path(),
        said: format!("Distribution of the steps of each node. {better} {usual_is}. "),
        caption: format!("{better}{grain}{group}"),
        unit: criterion.unit,
        band: judged.chart.band.clone(),
        usual: sample.map(|sample| cdf_points(sample, POINTS)).unwrap_or_default(),
        usual_is,
        convicted: Vec::new(),
    }
}

fn curve(node: &str, verdict: &VerdictReport, sample: &Sample, judged: &Judged) -> Curve {
    Curve {
        name: node.to_owned(),
        state: shown(verdict.state),
        said: beside(sample.median(), verdict.similarity, (judged, judged.criterion.unit)),
        points: cdf_points(sample, POINTS),
    }
}

/// `median 20.1 GB/s, 50 % below; similarity 0.31`.
fn beside(median: f64, similarity: Option<f64>, (judged, unit): (&Judged, Unit)) -> String {
    let usual = judged.criterion.sample.as_ref().map(Sample::median);
    let apart = usual.map_or_else(String::new, |usual| format!(", {} the criterion", change(median, usual)));
    let similar = similarity.map_or_else(String::new, |similarity| format!("; similarity {similarity:.3}"));
    format!("median {}{apart}{similar}", unit.show(median))
}
