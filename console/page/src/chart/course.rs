//! A metric over time: one machine beside its peers.

use askama::Template;
use plotters::prelude::*;

use super::canvas::{ALERT, BAD, BAND, Drawn, INK, LETTERS, RULE, USUAL, drawn, ends, label};

const SIZE: (u32, u32) = (560, 240);

/// One metric of one machine over time.
#[derive(Clone, Debug, PartialEq, Template)]
#[template(path = "course.html")]
pub struct Course {
    /// Machine and metric.
    pub title: String,
    /// What is to be seen, for those who do not see it.
    pub said: String,
    /// Under the chart.
    pub caption: String,
    /// The machine.
    pub name: String,
    /// In order of time.
    pub moments: Vec<Moment>,
    /// Unit, as the recording has it; empty where there is none.
    pub unit: &'static str,
    /// When the machine became unlike its peers, minutes.
    pub from: f64,
    /// When it was like them again, minutes; the end of the chart where it was not.
    pub until: f64,
}

/// What one block of time showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Minutes since the first.
    pub at: f64,
    /// The machine's own value; `None` where it is missing.
    pub own: Option<f64>,
    /// Lower quartile, median and upper quartile of its peers; `None` without any.
    pub peers: Option<[f64; 3]>,
}

impl Course {
    pub(crate) const fn width() -> u32 {
        SIZE.0
    }

    pub(crate) const fn height() -> u32 {
        SIZE.1
    }

    pub(crate) fn svg(&self) -> String {
        drawn(SIZE, |area| {
            let values = self.moments.iter().flat_map(|m| m.own.into_iter().chain(m.peers.into_iter().flatten()));
            let last = self.moments.last().map_or(1.0, |moment| moment.at).max(1.0);
            let mut chart = ChartBuilder::on(area)
                .margin(6)
                .margin_right(24)
                .x_label_area_size(24)
                .y_label_area_size(64)
                .build_cartesian_2d(0.0..last, ends(values))?;
            let whole = chart.y_range();
            let span = [(self.from.clamp(0.0, last), whole.start), (self.until.clamp(0.0, last), whole.end)];
            chart.draw_series([Rectangle::new(span, ALERT.filled())])?;
            chart
                .configure_mesh()
                .x_labels(5)
                .y_labels(5)
                .x_label_formatter(&|minutes| format!("{minutes:.0} min"))
                .y_label_formatter(&|value| label(None, *value))
                .label_style(("sans-serif", LETTERS).into_font().color(&INK))
                .bold_line_style(RULE)
                .light_line_style(TRANSPARENT)
                .axis_style(INK)
                .draw()?;
            for run in self.runs(|moment| moment.peers.map(|peers| (moment.at, peers))) {
                let low = run.iter().map(|(at, [low, ..])| (*at, *low));
                let high = run.iter().rev().map(|(at, [.., high])| (*at, *high));
                chart.draw_series([Polygon::new(low.chain(high).collect::<Vec<_>>(), BAND.filled())])?;
                let middle = run.iter().map(|(at, [_, median, _])| (*at, *median));
                chart.draw_series(LineSeries::new(middle, USUAL.stroke_width(2)))?;
            }
            for run in self.runs(|moment| moment.own.map(|own| (moment.at, own))) {
                chart.draw_series(LineSeries::new(run, BAD.stroke_width(2)))?;
            }
            Drawn::Ok(())
        })
    }

    /// Stretches without a gap: a gap in a chart is a gap.
    fn runs<T>(&self, of: impl Fn(&Moment) -> Option<T>) -> Vec<Vec<T>> {
        let mut runs: Vec<Vec<T>> = vec![Vec::new()];
        for moment in &self.moments {
            match (of(moment), runs.last_mut()) {
                (Some(value), Some(run)) => run.push(value),
                _ => runs.push(Vec::new()),
            }
        }
        runs.retain(|run| run.len() > 1);
        runs
    }
}
