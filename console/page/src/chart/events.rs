//! What nodes told over time: a row a node, a mark an event.

use askama::Template;
use plotters::prelude::*;

use super::canvas::{BAD, Drawn, INK, LETTERS, RULE, USUAL, brief, drawn};

const WIDTH: u32 = 560;
/// Of a row, and of what lies around them.
const ROW: u32 = 22;
const AROUND: u32 = 44;

/// Events of several nodes on one clock.
#[derive(Clone, Debug, PartialEq, Template)]
#[template(path = "events.html")]
pub struct Events {
    /// What they are of.
    pub title: String,
    /// What is to be seen, for those who do not see it.
    pub said: String,
    /// Under the chart.
    pub caption: String,
    /// Nodes, from the top.
    pub rows: Vec<String>,
    /// The events.
    pub marks: Vec<Mark>,
    /// When the job made its last step, seconds on the clock of the marks.
    pub last_step: Option<f64>,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// Index of its node.
    pub row: usize,
    /// When, seconds; what zero is, the caption says.
    pub at: f64,
    /// Whether it can be the cause.
    pub cause: bool,
}

impl Events {
    pub(crate) const fn width() -> u32 {
        WIDTH
    }

    pub(crate) fn height(&self) -> u32 {
        ROW * u32::try_from(self.rows.len()).unwrap_or(u32::MAX / ROW) + AROUND
    }

    pub(crate) fn has_others(&self) -> bool {
        self.marks.iter().any(|mark| !mark.cause)
    }

    pub(crate) fn has_causes(&self) -> bool {
        self.marks.iter().any(|mark| mark.cause)
    }

    pub(crate) fn svg(&self) -> String {
        drawn((Self::width(), self.height()), |area| {
            let times = self.marks.iter().map(|mark| mark.at).chain(self.last_step);
            let (low, high) = times.fold((0.0_f64, 0.0_f64), |(low, high), at| (low.min(at), high.max(at)));
            let room = ((high - low) * 0.03).max(0.05);
            let rows = self.rows.len().max(1);
            let (seconds, unit) = scale(high - low);
            let mut chart = ChartBuilder::on(area)
                .margin(6)
                .margin_right(28)
                .x_label_area_size(24)
                .y_label_area_size(116)
                .build_cartesian_2d((low - room) / seconds..(high + room) / seconds, rows as f64..0.0)?;
            chart
                .configure_mesh()
                .x_labels(5)
                .disable_y_mesh()
                .y_labels(0)
                .x_label_formatter(&|at| format!("{} {unit}", short(*at)))
                .label_style(("sans-serif", LETTERS).into_font().color(&INK))
                .bold_line_style(RULE)
                .light_line_style(TRANSPARENT)
                .axis_style(INK)
                .draw()?;
            if let Some(at) = self.last_step.map(|at| at / seconds) {
                chart.draw_series([PathElement::new([(at, 0.0), (at, rows as f64)], INK)])?;
            }
            // Those that can be a cause lie above the others.
            for cause in [false, true] {
                for mark in self.marks.iter().filter(|mark| mark.cause == cause) {
                    let place = (mark.at / seconds, mark.row as f64 + 0.5);
                    if cause {
                        chart.draw_series([Cross::new(place, 5, BAD.stroke_width(2))])?;
                    } else {
                        chart.draw_series([Circle::new(place, 3, USUAL.filled())])?;
                    }
                }
            }
            let left = chart.plotting_area().get_pixel_range().0.start;
            for (row, name) in self.rows.iter().enumerate() {
                let middle = chart.plotting_area().map_coordinate(&(0.0, row as f64 + 0.5)).1;
                let font = ("sans-serif", LETTERS - 2).into_font().color(&INK);
                area.draw(&Text::new(brief(name), (left - 6, middle), font.pos(RIGHT)))?;
            }
            Drawn::Ok(())
        })
    }
}

const RIGHT: plotters::style::text_anchor::Pos = plotters::style::text_anchor::Pos {
    h_pos: plotters::style::text_anchor::HPos::Right,
    v_pos: plotters::style::text_anchor::VPos::Center,
};

/// Seconds in the unit that an axis of `span` seconds is labelled in, and its name.
fn scale(span: f64) -> (f64, &'static str) {
    match span {
        span if span < 180.0 => (1.0, "s"),
        span if span < 3.0 * 3600.0 => (60.0, "min"),
        _ => (3600.0, "h"),
    }
}

fn short(value: f64) -> String {
    format!("{value:.1}").trim_end_matches('0').trim_end_matches('.').replace("-0", "0")
}
