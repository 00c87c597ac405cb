//! Distributions of one metric: where the peers lie, and the samples that convicted.

use askama::Template;
use muster_wire::Unit;
use plotters::prelude::*;

use super::canvas::{BAD, BAND, Drawn, INK, LETTERS, ON_BAD, RULE, USUAL, drawn, ends, label};
use crate::model::State;

const SIZE: (u32, u32) = (480, 270);
/// Convicted samples get their numbers this far apart, as a share of the vertical axis.
const APART: f64 = 0.15;

/// Empirical distributions of one metric in one chart.
#[derive(Clone, Debug, PartialEq, Template)]
#[template(path = "curves.html")]
pub struct Curves {
    /// The metric.
    pub title: String,
    /// What is to be seen, for those who do not see it.
    pub said: String,
    /// Under the chart.
    pub caption: String,
    /// Unit of the values.
    pub unit: Unit,
    /// The smallest and the largest value at equally spaced levels of the peers' distributions.
    pub band: Option<[Vec<f64>; 2]>,
    /// The criterion's sample as points of value and share of steps; empty where there is none.
    pub usual: Vec<(f64, f64)>,
    /// Whose sample that is, and its median.
    pub usual_is: String,
    /// What stands out, the worst first.
    pub convicted: Vec<Curve>,
}

/// The sample of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The node.
    pub name: String,
    /// What it came to.
    pub state: State,
    /// Median and the like in words.
    pub said: String,
    /// Value and share of steps, both ascending.
    pub points: Vec<(f64, f64)>,
}

impl Curves {
    pub(crate) const fn width() -> u32 {
        SIZE.0
    }

    pub(crate) const fn height() -> u32 {
        SIZE.1
    }

    pub(crate) fn svg(&self) -> String {
        drawn(SIZE, |area| {
            let own = self.convicted.iter().flat_map(|curve| &curve.points).chain(&self.usual).map(|(value, _)| *value);
            let all = own.chain(self.band.iter().flatten().flatten().copied());
            let mut chart = ChartBuilder::on(area)
                .margin(6)
                .margin_right(36)
                .x_label_area_size(22)
                .y_label_area_size(46)
                .build_cartesian_2d(ends(all), 0.0..1.0)?;
            chart
                .configure_mesh()
                .x_labels(4)
                .y_labels(5)
                .x_label_formatter(&|value| label(Some(self.unit), *value))
                .y_label_formatter(&|share| format!("{:.0} %", share * 100.0))
                .label_style(("sans-serif", LETTERS).into_font().color(&INK))
                .bold_line_style(RULE)
                .light_line_style(TRANSPARENT)
                .axis_style(INK)
                .draw()?;
            if let Some([low, high]) = &self.band {
                let level = |at: usize| (at + 1) as f64 / low.len() as f64;
                let left = low.iter().enumerate().map(|(at, value)| (*value, level(at)));
                let right = high.iter().enumerate().rev().map(|(at, value)| (*value, level(at)));
                chart.draw_series([Polygon::new(left.chain(right).collect::<Vec<_>>(), BAND.filled())])?;
            }
            chart.draw_series(LineSeries::new(steps(&self.usual), USUAL.stroke_width(2)))?;
            for curve in self.convicted.iter().rev() {
                chart.draw_series(LineSeries::new(steps(&curve.points), BAD.stroke_width(2)))?;
            }
            let centred = plotters::style::text_anchor::Pos::new(
                plotters::style::text_anchor::HPos::Center,
                plotters::style::text_anchor::VPos::Center,
            );
            for (at, curve) in self.convicted.iter().enumerate() {
                let place = self.mark(at, curve);
                chart.draw_series([Circle::new(place, 9, BAD.filled())])?;
                let number = ("sans-serif", LETTERS).into_font().color(&ON_BAD).pos(centred);
                chart.draw_series([Text::new((at + 1).to_string(), place, number)])?;
            }
            Drawn::Ok(())
        })
    }

    /// Where the number of the convicted sample stands: on its curve, at another level for each.
    fn mark(&self, at: usize, curve: &Curve) -> (f64, f64) {
        let middle = (self.convicted.len() - 1) as f64 / 2.0;
        let level = (0.5 + (middle - at as f64) * APART).clamp(0.08, 0.92);
        let above = curve.points.iter().find(|(_, share)| *share >= level).or(curve.points.last());
        (above.map_or(0.0, |(value, _)| *value), level)
    }
}

/// The corners of the steps through `points`, from zero.
fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut all = Vec::with_capacity(2 * points.len());
    let mut share = 0.0;
    for (value, next) in points {
        all.push((*value, share));
        all.push((*value, *next));
        share = *next;
    }
    all
}
