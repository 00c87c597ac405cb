//! What pairs of nodes deliver, as a map: senders down, receivers across.

use askama::Template;
use muster_wire::Direction;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::canvas::{Drawn, INK, LETTERS, brief, drawn};

const SIDE: i32 = 480;
const NAMES: i32 = 92;
/// Names that have room beside the map.
const LABELS: usize = 28;
/// Endpoints past which several share a cell.
const CELLS: usize = 96;

/// Shares of the usual up to which a colour is meant, the colour (the style sheet knows it by its value), and its words where
/// more of the metric is better and where less is.
const RAMP: [(f32, RGBColor, [&str; 2]); 6] = [
    (0.25, RGBColor(0x6E, 0x06, 0x1B), ["below 25 %", "above 4x, or failed"]),
    (0.5, RGBColor(0xB7, 0x1D, 0x26), ["25 to 50 %", "2x to 4x"]),
    (0.75, RGBColor(0xE0, 0x6B, 0x3C), ["50 to 75 %", "133 to 200 %"]),
    (0.9, RGBColor(0xF6, 0xB8, 0x6B), ["75 to 90 %", "111 to 133 %"]),
    (1.15, RGBColor(0xE3, 0xEC, 0xF4), ["usual", "usual"]),
    (f32::INFINITY, RGBColor(0x6F, 0xA8, 0xD6), ["115 % and more", "87 % and less"]),
];
const MISSING: RGBColor = RGBColor(0xC3, 0xC4, 0xC9);

/// Pairs of one metric.
#[derive(Clone, Debug, PartialEq, Template)]
#[template(path = "heat.html")]
pub struct Heat {
    /// The metric.
    pub title: String,
    /// What is to be seen, for those who do not see it.
    pub said: String,
    /// Under the map.
    pub caption: String,
    /// Name of each row and column; of the first of its block.
    pub names: Vec<String>,
    /// Which way the metric is better.
    pub direction: Direction,
    /// Row by row, the worst share of the usual in each block: the inverse where less of the metric is better, 0 where it failed;
    /// `None` where nothing was measured.
    pub shares: Vec<Option<f32>>,
    /// Endpoints that share a row.
    pub block: usize,
    /// Rows at which another leaf switch begins.
    pub edges: Vec<usize>,
}

impl Heat {
    /// Of `names` in order and `share(src, dst)`; several endpoints share a row where there are too many to be seen.
    #[must_use]
    pub fn of(names: &[String], edges: &[usize], share: impl Fn(usize, usize) -> Option<f32>) -> Self {
        let block = names.len().div_ceil(CELLS).max(1);
        let rows = names.len().div_ceil(block);
        let within = |at: usize| at * block..((at + 1) * block).min(names.len());
        let cell = |row: usize, column: usize| {
            let all = within(row).flat_map(|src| within(column).map(move |dst| (src, dst)));
            all.filter_map(|(src, dst)| share(src, dst)).reduce(f32::min)
        };
        let mut rows_of: Vec<usize> = edges.iter().map(|edge| edge / block).filter(|row| *row > 0).collect();
        rows_of.dedup();
        Self {
            title: String::new(),
            said: String::new(),
            caption: String::new(),
            names: names.iter().step_by(block).cloned().collect(),
            direction: Direction::HigherIsBetter,
            shares: (0..rows)
                .flat_map(|row| (0..rows).map(move |column| (row, column)))
                .map(|(r, c)| cell(r, c))
                .collect(),
            block,
            // Lines between all rows would hide the map.
            edges: if rows_of.len() * 3 > rows { Vec::new() } else { rows_of },
        }
    }

    pub(crate) const fn side() -> i32 {
        SIDE + NAMES
    }

    /// Colours and their words, the worst first.
    pub(crate) fn legend(&self) -> Vec<(String, &'static str)> {
        let hex = |RGBColor(r, g, b): RGBColor| format!("#{r:02X}{g:02X}{b:02X}");
        let used = |at: usize| self.shares.iter().flatten().any(|share| rank(*share) == at);
        let words = usize::from(self.direction == Direction::LowerIsBetter);
        let mut legend: Vec<_> =
            (0..RAMP.len()).filter(|at| used(*at)).map(|at| (hex(RAMP[at].1), RAMP[at].2[words])).collect();
        if self.shares.iter().any(Option::is_none) {
            legend.push((hex(MISSING), "not measured"));
        }
        legend
    }

    pub(crate) fn svg(&self) -> String {
        let n = self.names.len().max(1);
        let place = move |at: usize| NAMES + (at as i32 * SIDE) / n as i32;
        drawn((Self::side() as u32, Self::side() as u32), |area| {
            for row in 0..self.names.len() {
                let mut from = 0;
                while from < n {
                    // Neighbours of one colour are one rectangle.
                    let colour = self.colour(row, from);
                    let until = (from..n).find(|at| self.colour(row, *at) != colour).unwrap_or(n);
                    let corners = [(place(from), place(row)), (place(until), place(row + 1))];
                    area.draw(&Rectangle::new(corners, colour.filled()))?;
                    from = until;
                }
            }
            for edge in &self.edges {
                let at = place(*edge);
                area.draw(&PathElement::new([(NAMES, at), (NAMES + SIDE, at)], INK))?;
                area.draw(&PathElement::new([(at, NAMES), (at, NAMES + SIDE)], INK))?;
            }
            let every = self.names.len().div_ceil(LABELS).max(1);
            for (at, name) in self.names.iter().enumerate().step_by(every) {
                let middle = i32::midpoint(place(at), place(at + 1));
                let font = || ("sans-serif", LETTERS - 2).into_font().color(&INK);
                let row = font().pos(Pos::new(HPos::Right, VPos::Center));
                area.draw(&Text::new(brief(name), (NAMES - 4, middle), row))?;
                let turned = ("sans-serif", LETTERS - 2).into_font().transform(FontTransform::Rotate270);
                let column = turned.color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
                area.draw(&Text::new(brief(name), (middle, NAMES - 4), column))?;
            }
            Drawn::Ok(())
        })
    }

    fn colour(&self, row: usize, column: usize) -> RGBColor {
        let share = self.shares.get(row * self.names.len() + column).copied().flatten();
        share.map_or(MISSING, |share| RAMP[rank(share)].1)
    }
}

fn rank(share: f32) -> usize {
    RAMP.iter().position(|(below, ..)| share < *below).unwrap_or(RAMP.len() - 1)
}
