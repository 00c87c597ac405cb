//! Empirical CDFs and survival curves in cells: braille where Unicode may be drawn, letters otherwise.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::snapshot::Band;
use crate::theme::{Role, Theme};
use crate::widgets::{put, put_right};

/// Cells left of the plot for the labels of the share.
const LABELS: u16 = 5;

/// One step function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// Steps, x ascending.
    pub(crate) points: &'a [(f64, f64)],
    pub(crate) style: Style,
    /// Stands on the line at half its height and in the legend, so that no line is told by colour alone.
    pub(crate) tag: char,
}

/// What to plot.
pub(crate) struct Plot<'a> {
    pub(crate) theme: &'a Theme,
    /// How x is written.
    pub(crate) show: &'a dyn Fn(f64) -> String,
    /// Share before the first step: 0 for a CDF, 1 for survival.
    pub(crate) start: f64,
    pub(crate) band: Option<&'a Band>,
    /// Later lines are drawn over earlier ones.
    pub(crate) lines: Vec<Line<'a>>,
}

impl Plot<'_> {
    /// Draws into `area`; its last row labels x.
    pub(crate) fn draw(&self, buffer: &mut Buffer, area: Rect) {
        let Some((low, high)) = self.extent().filter(|_| area.width > LABELS + 10 && area.height > 3) else { return };
        let inside = Rect { x: area.x + LABELS, y: area.y, width: area.width - LABELS, height: area.height - 1 };
        self.axes(buffer, area, inside, (low, high));
        let scale = Scale { low, high, inside };
        if let Some(band) = self.band {
            self.fill(buffer, &scale, band);
        }
        for line in &self.lines {
            self.trace(buffer, &scale, line);
        }
        for line in &self.lines {
            scale.tag(buffer, line, self.start);
        }
    }

    /// The range of x over everything shown, a little wider than the data.
    fn extent(&self) -> Option<(f64, f64)> {
        let band = self.band.into_iter().flat_map(|b| b.lower.iter().chain(b.upper.iter()));
        let xs = self.lines.iter().flat_map(|l| l.points).chain(band).map(|(x, _)| *x).filter(|x| x.is_finite());
        let (low, high) = xs.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
        if low > high {
            return None;
        }
        let margin = if high > low { (high - low) * 0.04 } else { high.abs().max(1.0) * 0.05 };
        let floor = if low >= 0.0 { 0.0 } else { f64::NEG_INFINITY };
        Some(((low - margin).max(floor), high + margin))
    }

    fn axes(&self, buffer: &mut Buffer, area: Rect, inside: Rect, (low, high): (f64, f64)) {
        let dim = self.theme.style(Role::Dim);
        let labels = [(inside.y, "1.0"), (inside.y + (inside.height - 1) / 2, "0.5"), (inside.bottom() - 1, "0.0")];
        for (y, text) in labels {
            put(buffer, (area.x, y), LABELS - 1, text, dim);
        }
        for y in inside.top()..inside.bottom() {
            put(buffer, (inside.x - 1, y), 1, self.theme.pick("│", "|"), dim);
        }
        let y = area.bottom() - 1;
        let third = inside.width / 3;
        put(buffer, (inside.x, y), third, &(self.show)(low), dim);
        let middle = (self.show)(f64::midpoint(low, high));
        let start = inside.x + (inside.width - u16::try_from(middle.len()).unwrap_or(0).min(inside.width)) / 2;
        put(buffer, (start, y), third, &middle, dim);
        put_right(buffer, (inside.right() - third, y), third, &(self.show)(high), dim);
    }

    fn fill(&self, buffer: &mut Buffer, scale: &Scale, band: &Band) {
        let style = self.theme.style(Role::Peers);
        for column in 0..scale.inside.width {
            let (from, to) = (scale.x_of(column), scale.x_of(column + 1));
            let (lowest, highest) = (share_at(&band.lower, from), share_at(&band.upper, to));
            for row in 0..scale.inside.height {
                let height = f64::from(scale.inside.height);
                let top = 1.0 - f64::from(row) / height;
                let bottom = top - 1.0 / height;
                let flat = highest <= 0.0 || lowest >= 1.0;
                if !flat && highest > bottom && lowest < top {
                    let at = (scale.inside.x + column, scale.inside.y + row);
                    put(buffer, at, 1, self.theme.pick("░", ":"), style);
                }
            }
        }
    }

    fn trace(&self, buffer: &mut Buffer, scale: &Scale, line: &Line<'_>) {
        let mut before = self.start;
        for (i, (x, share)) in line.points.iter().enumerate() {
            let (column, bottom, top) = (scale.column(*x), scale.row(before), scale.row(*share));
            for row in top.min(bottom)..=top.max(bottom) {
                self.dot(buffer, scale, (column, row), line);
            }
            if let Some((next, _)) = line.points.get(i + 1) {
                for c in column..=scale.column(*next) {
                    self.dot(buffer, scale, (c, top), line);
                }
            }
            before = *share;
        }
    }

    /// Sets one dot of a 2x4 grid per cell. Dots of an earlier line in the same cell stay and take the later style.
    fn dot(&self, buffer: &mut Buffer, scale: &Scale, (column, row): (u16, u16), line: &Line<'_>) {
        const BITS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
        let at = (scale.inside.x + column / 2, scale.inside.y + row / 4);
        let Some(cell) = buffer.cell_mut(at) else { return };
        if self.theme.is_ascii() {
            cell.set_char(line.tag).set_style(line.style);
            return;
        }
        let old = cell.symbol().chars().next().map_or(0, u32::from);
        let old = if (0x2800..=0x28ff).contains(&old) { old } else { 0x2800 };
        let new = old | BITS[usize::from(column % 2)][usize::from(row % 4)];
        cell.reset();
        cell.set_char(char::from_u32(new).unwrap_or(line.tag)).set_style(line.style);
    }
}

/// Where values lie in cells.
struct Scale {
    low: f64,
    high: f64,
    inside: Rect,
}

impl Scale {
    fn x_of(&self, column: u16) -> f64 {
        self.low + (self.high - self.low) * f64::from(column) / f64::from(self.inside.width)
    }

    /// Dot column of `x`, two per cell.
    fn column(&self, x: f64) -> u16 {
        let last = f64::from(self.inside.width * 2 - 1);
        // Clamped to the plot, so the cast loses nothing but the fraction.
        ((x - self.low) / (self.high - self.low) * last).round().clamp(0.0, last) as u16
    }

    /// Dot row of `share`, four per cell, from the top.
    fn row(&self, share: f64) -> u16 {
        let last = f64::from(self.inside.height * 4 - 1);
        ((1.0 - share) * last).round().clamp(0.0, last) as u16
    }

    /// The line's letter where it passes one half, else at its end.
    fn tag(&self, buffer: &mut Buffer, line: &Line<'_>, start: f64) {
        let passed = line.points.iter().find(|(_, share)| (*share >= 0.5) != (start >= 0.5));
        let Some((x, share)) = passed.map(|(x, _)| (*x, 0.5)).or_else(|| line.points.last().copied()) else { return };
        let at = (self.inside.x + self.column(x) / 2, self.inside.y + self.row(share) / 4);
        put(buffer, at, 1, line.tag.encode_utf8(&mut [0; 4]), line.style);
    }
}

/// Share that the step function has reached at `x`.
fn share_at(curve: &[(f64, f64)], x: f64) -> f64 {
    let reached = curve.partition_point(|(at, _)| *at <= x);
    if reached == 0 { 0.0 } else { curve[reached - 1].1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(theme: &Theme, points: &[(f64, f64)]) -> Vec<String> {
        let area = Rect::new(0, 0, 25, 5);
        let mut buffer = Buffer::empty(area);
        let line = Line { points, style: Style::new(), tag: 'C' };
        let show = |x: f64| x.to_string();
        Plot { theme, show: &show, start: 0.0, band: None, lines: vec![line] }.draw(&mut buffer, area);
        (0..5).map(|y| (0..25).map(|x| buffer[(x, y)].symbol()).collect()).collect()
    }

    #[test]
    fn a_single_value_is_one_vertical_step() {
        let lines = drawn(&Theme::new(false, true), &[(7.0, 1.0)]);
        let at = lines[0].find('C').unwrap();
        assert!(lines[..4].iter().all(|l| l.matches('C').count() == 1 && l.find('C') == Some(at)), "{lines:?}");
    }

    #[test]
    fn nothing_is_drawn_without_points_or_room() {
        let lines = drawn(&Theme::new(false, true), &[]);
        assert!(lines.iter().all(|l| l.trim().is_empty()));
    }

    #[test]
    fn steps_are_reached_at_their_value_and_not_before() {
        let curve = [(1.0, 0.5), (2.0, 1.0)];
        assert_eq!([0.9, 1.0, 1.9, 2.0].map(|x| share_at(&curve, x)), [0.0, 0.5, 0.5, 1.0]);
    }
}
