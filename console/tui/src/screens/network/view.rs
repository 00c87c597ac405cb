//! The part of the matrix that is shown, in the map's own resolution: blocks of pairs where there are more pairs than
//! places, several places a pair where there are fewer.

use std::sync::Arc;

use crate::snapshot::Grid;

/// How good a place of the map is, worst first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// No value: the pair failed.
    Failed,
    /// Below a quarter of what is usual.
    Quarter,
    /// Below half.
    Half,
    /// Below three quarters.
    ThreeQuarters,
    /// Below nine tenths.
    NineTenths,
    /// Below 95 %.
    Slow,
    /// As usual or better.
    Usual,
    /// Not measured.
    #[default]
    None,
}

impl Step {
    /// Those with a colour of their own, worst first, with the share that they stay below.
    pub(crate) const ALL: [(Self, f32); 7] = [
        (Self::Failed, f32::MIN_POSITIVE),
        (Self::Quarter, 0.25),
        (Self::Half, 0.5),
        (Self::ThreeQuarters, 0.75),
        (Self::NineTenths, 0.9),
        (Self::Slow, 0.95),
        (Self::Usual, f32::INFINITY),
    ];

    /// The step of a share of the usual; NaN is not measured.
    pub(crate) fn of(share: f32) -> Self {
        // Infinity is as usual as can be.
        if share.is_nan() {
            return Self::None;
        }
        Self::ALL.into_iter().find(|(_, below)| share < *below).map_or(Self::Usual, |(step, _)| step)
    }
}

/// What stands for a block of pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Gather {
    /// The worst of them: no fault is overlooked.
    #[default]
    Worst,
    /// The middle one: single pairs vanish, what is slow as a whole stays.
    Median,
}

impl Gather {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Worst => "worst",
            Self::Median => "median",
        }
    }

    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Worst => Self::Median,
            Self::Median => Self::Worst,
        }
    }

    /// One share for many; NaN where none was measured. Of an even number the worse of the two middle ones.
    fn of(self, shares: impl Iterator<Item = f32>, room: &mut Vec<f32>) -> f32 {
        if self == Self::Worst {
            let worst = shares.fold(f32::INFINITY, f32::min);
            return if worst == f32::INFINITY { f32::NAN } else { worst };
        }
        room.clear();
        room.extend(shares.filter(|s| !s.is_nan()));
        let Some(middle) = room.len().checked_sub(1).map(|last| last / 2) else { return f32::NAN };
        *room.select_nth_unstable_by(middle, f32::total_cmp).1
    }
}

/// One direction of the map: which endpoints, and how many cells or blocks they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Axis {
    /// First endpoint shown.
    pub(crate) first: usize,
    /// Endpoints in one block, at least 1.
    pub(crate) block: usize,
    /// Places that one endpoint takes, at least 1; more than 1 only with blocks of 1.
    pub(crate) scale: usize,
    /// Blocks shown.
    pub(crate) count: usize,
}

impl Axis {
    /// `len` endpoints in `room` places, magnified `zoom` times by two, moved as little as keeps `at` in view.
    pub(crate) fn fit(self, len: usize, room: usize, zoom: u32, at: usize) -> Self {
        let room = room.max(1);
        let all = len.div_ceil(room).max(1);
        let block = (all >> zoom.min(31)).max(1);
        let halvings = all.ilog2();
        let scale = if block > 1 { 1 } else { (room / len.max(1)).max(1) << zoom.saturating_sub(halvings).min(4) };
        let scale = scale.min(room);
        let view = (room / scale) * block;
        let lowest = (at + 1).saturating_sub(view);
        let first = self.first.clamp(lowest, at.max(lowest)).min(len.saturating_sub(view.min(len)));
        let first = first / block * block;
        let first = if at >= first + view { first + block } else { first };
        Self { first, block, scale, count: (len - first.min(len)).div_ceil(block).min(room / scale) }
    }

    /// The block in which `at` lies, where it is in view.
    pub(crate) fn place(&self, at: usize) -> Option<usize> {
        at.checked_sub(self.first).map(|off| off / self.block).filter(|p| *p < self.count)
    }

    /// Endpoints of a block.
    pub(crate) fn endpoints(&self, place: usize, len: usize) -> std::ops::Range<usize> {
        let start = (self.first + place * self.block).min(len);
        start..(start + self.block).min(len)
    }

    /// Whether everything is shown.
    pub(crate) const fn is_whole(&self, len: usize) -> bool {
        self.count * self.block >= len
    }
}

/// What is shown, made anew when any of what it depends on changes.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) rows: Axis,
    pub(crate) columns: Axis,
    /// One share per block, row-major.
    shares: Vec<f32>,
    /// What the cursor's row sends to each block of columns.
    pub(crate) sends: Vec<f32>,
    /// What the cursor's column receives from each block of rows.
    pub(crate) receives: Vec<f32>,
    /// The middle of what the cursor's row sends to everyone, and of what its column receives.
    pub(crate) middles: [Option<f32>; 2],
    made_from: Option<(Arc<Grid>, Axis, Axis, Gather)>,
    profiled: Option<(Arc<Grid>, usize, usize)>,
}

impl View {
    /// The share that stands for a block.
    pub(crate) fn share(&self, row: usize, column: usize) -> f32 {
        self.shares.get(row * self.columns.count + column).copied().unwrap_or(f32::NAN)
    }

    /// Makes the blocks anew where something changed. Linear in the pairs shown.
    pub(crate) fn make(&mut self, grid: &Arc<Grid>, (rows, columns): (Axis, Axis), gather: Gather) {
        let same = |(g, r, c, how): &(Arc<Grid>, Axis, Axis, Gather)| {
            Arc::ptr_eq(g, grid) && (*r, *c, *how) == (rows, columns, gather)
        };
        if self.made_from.as_ref().is_some_and(same) {
            return;
        }
        (self.rows, self.columns) = (rows, columns);
        self.shares = match gather {
            Gather::Worst => worst(grid, rows, columns),
            Gather::Median => medians(grid, rows, columns),
        };
        self.made_from = Some((grid.clone(), rows, columns, gather));
        self.profiled = None;
    }

    /// Takes the profiles of the cursor's row and column. Linear in the endpoints.
    pub(crate) fn profile(&mut self, grid: &Arc<Grid>, (src, dst): (usize, usize), gather: Gather) {
        let same = |(g, s, d): &(Arc<Grid>, usize, usize)| Arc::ptr_eq(g, grid) && (*s, *d) == (src, dst);
        if self.profiled.as_ref().is_some_and(same) {
            return;
        }
        let n = grid.len();
        let row = grid.row(src);
        let column: Vec<f32> = (0..n).map(|from| grid.get(from, dst).unwrap_or(f32::NAN)).collect();
        let mut room = Vec::new();
        let mut along = |axis: Axis, shares: &[f32]| -> Vec<f32> {
            (0..axis.count).map(|p| gather.of(shares[axis.endpoints(p, n)].iter().copied(), &mut room)).collect()
        };
        (self.sends, self.receives) = (along(self.columns, row), along(self.rows, &column));
        let mut middle =
            |shares: &[f32]| Some(Gather::Median.of(shares.iter().copied(), &mut room)).filter(|m| !m.is_nan());
        self.middles = [middle(row), middle(&column)];
        self.profiled = Some((grid.clone(), src, dst));
    }
}

fn worst(grid: &Grid, rows: Axis, columns: Axis) -> Vec<f32> {
    let n = grid.len();
    let mut shares = vec![f32::INFINITY; rows.count * columns.count];
    for (place, line) in shares.chunks_exact_mut(columns.count.max(1)).enumerate() {
        for row in rows.endpoints(place, n) {
            let shown = grid.row(row).get(columns.first..).unwrap_or_default();
            for (worst, block) in line.iter_mut().zip(shown.chunks(columns.block)) {
                // NaN is no minimum.
                *worst = block.iter().copied().fold(*worst, f32::min);
            }
        }
    }
    shares.iter_mut().filter(|s| s.is_infinite()).for_each(|s| *s = f32::NAN);
    shares
}

fn medians(grid: &Grid, rows: Axis, columns: Axis) -> Vec<f32> {
    let n = grid.len();
    let mut room = Vec::new();
    let mut shares = Vec::with_capacity(rows.count * columns.count);
    for place in 0..rows.count {
        for column in 0..columns.count {
            let across = columns.endpoints(column, n);
            let block = rows.endpoints(place, n).flat_map(|row| &grid.row(row)[across.clone()]).copied();
            shares.push(Gather::Median.of(block, &mut room));
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use muster_wire::Direction;

    use super::*;
    use crate::usual::steps;

    #[test]
    fn the_legend_has_a_word_for_every_step() {
        for direction in [Direction::HigherIsBetter, Direction::LowerIsBetter] {
            assert_eq!(steps(direction).len(), Step::ALL.len());
        }
        for (word, (_, below)) in steps(Direction::LowerIsBetter)[1..6].iter().zip(&Step::ALL[1..6]) {
            assert_eq!(*word, format!(">{:.0}", 100.0 / below));
        }
    }

    fn grid(n: usize, share: impl Fn(usize, usize) -> f32) -> Arc<Grid> {
        let mut grid = Grid::new(n);
        (0..n).for_each(|s| (0..n).filter(|d| *d != s).for_each(|d| grid.set(s, d, share(s, d))));
        Arc::new(grid)
    }

    fn view(grid: &Arc<Grid>, room: usize, zoom: u32, at: usize, gather: Gather) -> View {
        let axis = Axis::default().fit(grid.len(), room, zoom, at);
        let mut view = View::default();
        view.make(grid, (axis, axis), gather);
        view
    }

    #[test]
    fn three_thousand_fit_a_screen_and_eight_fill_one() {
        let many = Axis::default().fit(3_000, 100, 0, 0);
        assert_eq!((many.block, many.scale, many.count), (30, 1, 100));
        let few = Axis::default().fit(8, 50, 0, 0);
        assert_eq!((few.block, few.scale, few.count), (1, 6, 8));
    }

    #[test]
    fn zooming_halves_blocks_until_there_is_one_pair_a_place_and_then_magnifies() {
        let sizes: Vec<(usize, usize)> =
            (0..8).map(|z| Axis::default().fit(3_000, 100, z, 0)).map(|a| (a.block, a.scale)).collect();
        assert_eq!(sizes, [(30, 1), (15, 1), (7, 1), (3, 1), (1, 1), (1, 2), (1, 4), (1, 8)]);
    }

    #[test]
    fn what_the_cursor_is_on_stays_in_view_at_every_zoom() {
        for (len, room) in [(1, 40), (2, 7), (41, 40), (997, 33), (3_000, 100)] {
            for zoom in 0..9 {
                let mut axis = Axis::default();
                for at in [0, len / 3, len - 1, len / 2, 0] {
                    axis = axis.fit(len, room, zoom, at);
                    assert!(axis.place(at).is_some(), "{at} of {len} in {room}, zoom {zoom}: {axis:?}");
                    assert!(axis.count * axis.scale <= room, "{axis:?} in {room}");
                }
            }
        }
    }

    #[test]
    fn a_block_shows_its_worst_pair_or_its_middle_one() {
        let one_bad = grid(10, |s, d| if (s, d) == (0, 3) { 0.3 } else { 1.0 });
        assert_eq!(view(&one_bad, 2, 0, 0, Gather::Worst).share(0, 0), 0.3);
        assert_eq!(view(&one_bad, 2, 0, 0, Gather::Median).share(0, 0), 1.0);
        assert_eq!(view(&one_bad, 2, 0, 0, Gather::Worst).share(1, 1), 1.0);
    }

    #[test]
    fn a_block_of_pairs_not_measured_is_empty_and_one_of_failed_pairs_is_not() {
        let mut half = Grid::new(4);
        half.set(0, 1, 0.0);
        let half = Arc::new(half);
        for gather in [Gather::Worst, Gather::Median] {
            let view = view(&half, 2, 0, 0, gather);
            assert_eq!([Step::of(view.share(0, 0)), Step::of(view.share(1, 1))], [Step::Failed, Step::None]);
        }
    }

    #[test]
    fn steps_are_told_apart_at_their_limits() {
        let shares = [0.0, 0.01, 0.25, 0.5, 0.75, 0.9, 0.95, 1.4, f32::NAN];
        let steps = shares.map(Step::of);
        assert!(steps.windows(2).all(|w| w[0] <= w[1]), "{steps:?}");
        assert_eq!(steps[..2], [Step::Failed, Step::Quarter]);
        assert_eq!(steps[6..], [Step::Usual, Step::Usual, Step::None]);
    }
}
