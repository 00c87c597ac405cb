//! Convolutions of images N x C x H x W with filters out x in x size x size, one pixel apart, with as many zeros around an image
//! that its edge stays; as networks use them, without turning the filter.

use super::launch::{Cut, Launch, Place, Program, Word};
use super::{Exact, Precision};

/// What of a convolution is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Images that come out, of filter (A) and images that go in (B).
    Forward,
    /// Gradient of what went in, of filter (A) and gradient of what came out (B).
    BackwardData,
    /// Gradient of the filter, of gradient of what came out (A) and images that went in (B).
    BackwardFilter,
}

/// A convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// What of it.
    pub way: Way,
    /// Of images and filter.
    pub precision: Precision,
    /// Images.
    pub images: u32,
    /// Rows and columns of an image.
    pub edge: u32,
    /// Rows and columns of a window, an odd number.
    pub size: u32,
    /// Channels that go in.
    pub inputs: u32,
    /// Channels that come out.
    pub outputs: u32,
    /// The algorithm that SuperBench asks cuDNN for, as `cudnn.h` numbers those of each way.
    pub algorithm: u32,
}

impl Convolution {
    /// Zeros on each side of an image.
    #[must_use]
    pub const fn pad(self) -> u32 {
        self.size / 2
    }

    const fn area(self) -> u64 {
        self.edge as u64 * self.edge as u64
    }

    const fn taps(self) -> u64 {
        self.size as u64 * self.size as u64
    }

    pub(super) const fn lengths(self) -> [u64; 3] {
        let plane = self.images as u64 * self.area();
        let (input, output) = (plane * self.inputs as u64, plane * self.outputs as u64);
        let filter = self.outputs as u64 * self.inputs as u64 * self.taps();
        match self.way {
            Way::Forward => [filter, input, output],
            Way::BackwardData => [filter, output, input],
            Way::BackwardFilter => [output, input, filter],
        }
    }

    /// The pixel that a window's element falls on; `None` outside of the image.
    fn beside(self, (y, x): (u64, u64), tap: u64, back: bool) -> Option<u64> {
        let (size, edge, pad) = (i64::from(self.size), i64::from(self.edge), i64::from(self.pad()));
        let (down, right) = (tap as i64 / size - pad, tap as i64 % size - pad);
        let sign = if back { -1 } else { 1 };
        let (y, x) = (y as i64 + sign * down, x as i64 + sign * right);
        ((0..edge).contains(&y) && (0..edge).contains(&x)).then_some((y * edge + x) as u64)
    }

    pub(super) fn exact(self, at: u64, a: &dyn Fn(u64) -> f64, b: &dyn Fn(u64) -> f64) -> Exact {
        let (area, taps, edge) = (self.area(), self.taps(), u64::from(self.edge));
        let (inputs, outputs) = (u64::from(self.inputs), u64::from(self.outputs));
        let mut exact = Exact::default();
        if self.way == Way::BackwardFilter {
            let (output, input, tap) = (at / taps / inputs, at / taps % inputs, at % taps);
            for (image, place) in
                (0..u64::from(self.images)).flat_map(|image| (0..area).map(move |place| (image, place)))
            {
                let Some(beside) = self.beside((place / edge, place % edge), tap, false) else { continue };
                let gradient = a((image * outputs + output) * area + place);
                exact.add(gradient * b((image * inputs + input) * area + beside));
            }
            return exact;
        }
        let back = self.way == Way::BackwardData;
        // Channels of the result, and those that are summed over.
        let (own, summed) = if back { (inputs, outputs) } else { (outputs, inputs) };
        let (image, channel, place) = (at / area / own, at / area % own, at % area);
        for (other, tap) in (0..summed).flat_map(|other| (0..taps).map(move |tap| (other, tap))) {
            let Some(beside) = self.beside((place / edge, place % edge), tap, back) else { continue };
            let filter = if back { other * inputs + channel } else { channel * inputs + other };
            exact.add(a(filter * taps + tap) * b((image * summed + other) * area + beside));
        }
        exact
    }

    pub(super) fn program(self) -> Program {
        let (taps, plane) = (self.size * self.size, self.images * self.edge * self.edge);
        let ((rows, columns), deep) = match self.way {
            Way::Forward => ((self.outputs, plane), self.inputs * taps),
            Way::BackwardData => ((self.inputs, plane), self.outputs * taps),
            Way::BackwardFilter => ((self.outputs, self.inputs * taps), plane),
        };
        let half = self.precision == Precision::Fp16;
        let kernel = match self.way {
            Way::Forward => ["convolve_f32", "convolve_half"],
            Way::BackwardData => ["convolve_data_f32", "convolve_data_half"],
            Way::BackwardFilter => ["convolve_filter_f32", "convolve_filter_half"],
        }[usize::from(half)];
        let cut = Cut::of(self.precision, (rows, columns), deep, 1);
        let ends = [Word::At(Place::C), cut.parts(), Word::At(Place::A), Word::At(Place::B)];
        let sizes = [self.images, self.edge, self.size, self.inputs, self.outputs, cut.down, cut.per].map(Word::U32);
        let args = ends.into_iter().chain(sizes).collect();
        let launch = Launch { kernel, grid: (cut.across, cut.down * cut.shares), args };
        cut.program(self.precision, launch, self.lengths()[2], [Word::F32(1.0), Word::F32(0.0)])
    }
}
