//! What did the pairs of a fleet deliver for one metric?

use std::collections::HashMap;

use muster_wire::Direction;

/// Marks a cell without a known uplink.
pub(super) const NO_UP: u32 = u32::MAX;

/// Measured pairs of one metric, at most one cell per visit of a pair; missing pairs have no cell. Endpoints are nodes,
/// or NICs written `node:nic`. About 20 bytes a single-valued cell; values keep seven digits.
#[derive(Clone, Debug)]
pub struct Matrix {
    metric: String,
    direction: Direction,
    names: Vec<String>,
    index: HashMap<String, u32>,
    ups: Vec<String>,
    up_index: HashMap<String, u32>,
    pub(super) cells: Vec<Cell>,
    values: Vec<f32>,
}

/// One visit of one pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Sending endpoint, by number.
    pub src: u32,
    /// Receiving endpoint, by number.
    pub dst: u32,
    /// Number of the uplink's name or [`NO_UP`].
    pub(super) up: u32,
    /// End of its values.
    end: u32,
}

impl Matrix {
    /// An empty matrix of `metric`.
    #[must_use]
    pub fn new(metric: impl Into<String>, direction: Direction) -> Self {
        Self {
            metric: metric.into(),
            direction,
            names: Vec::new(),
            index: HashMap::new(),
            ups: Vec::new(),
            up_index: HashMap::new(),
            cells: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Name of the metric.
    #[must_use]
    pub fn metric(&self) -> &str {
        &self.metric
    }

    /// Which way is better.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Names of the endpoints, by number.
    #[must_use]
    pub fn endpoints(&self) -> &[String] {
        &self.names
    }

    /// Names of the uplinks met, by number.
    pub(super) fn ups(&self) -> &[String] {
        &self.ups
    }

    /// Number of the endpoint called `name`, a new one if it was not there.
    pub fn endpoint(&mut self, name: &str) -> u32 {
        intern(&mut self.names, &mut self.index, name)
    }

    /// Adds a visit of a pair: its values in the metric's unit, and the uplink it crossed where that is known
    /// (`leaf3-spine2`, a whole path `leaf3-spine2-leaf1`, or the spine alone). Values that are no measurement (negative, NaN) are
    /// left out; a visit without any value failed, which counts as the worst there is.
    ///
    /// # Panics
    /// After four thousand million values.
    pub fn push(&mut self, src: u32, dst: u32, values: &[f64], up: Option<&str>) {
        let up = up.map_or(NO_UP, |name| intern(&mut self.ups, &mut self.up_index, name));
        self.values.extend(values.iter().filter(|v| v.is_finite() && **v >= 0.0).map(|v| *v as f32));
        assert!(self.values.len() <= u32::MAX as usize, "too many values for one matrix");
        self.cells.push(Cell { src, dst, up, end: self.values.len() as u32 });
    }

    /// Adds a visit by the names of its endpoints.
    pub fn push_named(&mut self, src: &str, dst: &str, values: &[f64], up: Option<&str>) {
        let (src, dst) = (self.endpoint(src), self.endpoint(dst));
        self.push(src, dst, values, up);
    }

    /// How many visits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether nothing was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// All visits, in the order added.
    #[must_use]
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Values of visit `at`, in the order measured; empty if it failed.
    ///
    /// # Panics
    /// If there is no such visit.
    #[must_use]
    pub fn values(&self, at: usize) -> &[f32] {
        let start = at.checked_sub(1).map_or(0, |before| self.cells[before].end);
        &self.values[start as usize..self.cells[at].end as usize]
    }

    /// The uplink that visit `at` crossed, where it is known.
    ///
    /// # Panics
    /// If there is no such visit.
    #[must_use]
    pub fn up(&self, at: usize) -> Option<&str> {
        self.ups.get(self.cells[at].up as usize).map(String::as_str)
    }

    /// Adds a value to the visit added last.
    pub(super) fn extend_last(&mut self, value: f64) {
        if let Some(last) = self.cells.last_mut() {
            if value.is_finite() && value >= 0.0 {
                self.values.push(value as f32);
            }
            last.end = self.values.len() as u32;
        }
    }
}

fn intern(names: &mut Vec<String>, index: &mut HashMap<String, u32>, name: &str) -> u32 {
    if let Some(&known) = index.get(name) {
        return known;
    }
    let next = names.len() as u32;
    names.push(name.to_owned());
    index.insert(name.to_owned(), next);
    next
}
