//! One value of every node in order, with those that stand out.

use askama::Template;
use muster_wire::Unit;
use plotters::prelude::*;

use super::canvas::{BAD, Drawn, INK, LETTERS, RULE, USUAL, drawn, ends, label};
use crate::model::State;

const SIZE: (u32, u32) = (560, 230);

/// The medians of all nodes of one metric, ascending.
#[derive(Clone, Debug, PartialEq, Template)]
#[template(path = "values.html")]
pub struct Values {
    /// The metric.
    pub title: String,
    /// What is to be seen, for those who do not see it.
    pub said: String,
    /// Under the chart.
    pub caption: String,
    /// Unit of the values.
    pub unit: Unit,
    /// In the order of their values; of many nodes those that stand out and some of the others.
    pub of: Vec<ValuesOf>,
    /// How many nodes there are.
    pub count: usize,
}

/// The value of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct ValuesOf {
    /// The node.
    pub name: String,
    /// Its place among all nodes, from 1.
    pub place: usize,
    /// Its median.
    pub value: f64,
    /// What it came to.
    pub state: State,
}

impl Values {
    pub(crate) const fn width() -> u32 {
        SIZE.0
    }

    pub(crate) const fn height() -> u32 {
        SIZE.1
    }

    pub(crate) const fn is_thinned(&self) -> bool {
        self.count > self.of.len()
    }

    pub(crate) fn svg(&self) -> String {
        drawn(SIZE, |area| {
            let count = self.count.max(2) as f64;
            let mut chart = ChartBuilder::on(area)
                .margin(6)
                .margin_right(20)
                .x_label_area_size(22)
                .y_label_area_size(90)
                .build_cartesian_2d(0.0..count + 1.0, ends(self.of.iter().map(|of| of.value)))?;
            chart
                .configure_mesh()
                .x_labels(6)
                .y_labels(5)
                .x_label_formatter(&|at| {
                    if at.fract() == 0.0 && *at > 0.0 { format!("{at:.0}") } else { String::new() }
                })
                .y_label_formatter(&|value| label(Some(self.unit), *value))
                .label_style(("sans-serif", LETTERS).into_font().color(&INK))
                .bold_line_style(RULE)
                .light_line_style(TRANSPARENT)
                .axis_style(INK)
                .draw()?;
            for of in &self.of {
                let place = (of.place as f64, of.value);
                match of.state {
                    State::Fail | State::Warn => {
                        chart.draw_series([Cross::new(place, 5, BAD.stroke_width(2))])?;
                    }
                    _ => {
                        chart.draw_series([Circle::new(place, 2, USUAL.filled())])?;
                    }
                }
            }
            Drawn::Ok(())
        })
    }
}
