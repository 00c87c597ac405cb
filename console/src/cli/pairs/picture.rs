//! How does a matrix look as a picture?

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, Result};
use muster_analysis::network::topology::Source;
use muster_analysis::network::{Localisation, Matrix, Topology};

use crate::views::pair_share;

/// Side of the picture that small matrices are enlarged to, pixels.
const SIDE: usize = 640;
const MISSING: [u8; 3] = [232, 232, 236];
const LEAF: [u8; 3] = [120, 120, 130];
/// Share of the usual and its colour: dark for nothing, light for usual, blue for far better; told apart by lightness
/// alone as well.
const COLOURS: [(f32, [u8; 3]); 5] =
    [(0.0, [60, 0, 20]), (0.3, [165, 30, 40]), (0.7, [253, 174, 97]), (1.0, [250, 246, 226]), (1.5, [116, 173, 209])];

/// Writes a PNG: one square a pair, senders down and receivers across, in the order of their leaves, which thin lines
/// separate.
pub(super) fn write(file: &Path, matrix: &Matrix, topology: &Topology, found: &Localisation) -> Result<()> {
    let order = order(matrix, topology);
    let n = order.len();
    let shares = shares(matrix, topology, found, &order);
    let scale = (SIDE / n.max(1)).max(1);
    let leaf = |at: usize| topology.endpoint(&matrix.endpoints()[order[at]]).map(|node| topology.leaf(node));
    let edge = |pixel: usize| {
        let at = pixel / scale;
        scale >= 4 && pixel.is_multiple_of(scale) && at > 0 && leaf(at) != leaf(at - 1)
    };
    let side = n * scale;
    let mut pixels = Vec::with_capacity(side * side * 3);
    for y in 0..side {
        for x in 0..side {
            let share = shares[y / scale * n + x / scale];
            pixels.extend(if edge(x) || edge(y) { LEAF } else { colour(share) });
        }
    }
    let out = BufWriter::new(File::create(file).with_context(|| file.display().to_string())?);
    let mut encoder = png::Encoder::new(out, side as u32, side as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels)).context(file.display().to_string())
}

/// Endpoints by leaf, then by name.
fn order(matrix: &Matrix, topology: &Topology) -> Vec<usize> {
    let mut order: Vec<usize> = (0..matrix.endpoints().len()).collect();
    order.sort_by_key(|&at| {
        let name = &matrix.endpoints()[at];
        (topology.endpoint(name).map(|node| topology.leaf(node)), name)
    });
    order
}

/// How good each pair is compared with what is usual at its distance; NaN where nothing was measured.
fn shares(matrix: &Matrix, topology: &Topology, found: &Localisation, order: &[usize]) -> Vec<f32> {
    let n = order.len();
    let mut place = vec![0; n];
    order.iter().enumerate().for_each(|(at, &endpoint)| place[endpoint] = at);
    // The one leaf of a flat topology stands for "unknown": localisation knows no distance there either.
    let known = topology.source() != Source::Flat;
    let of = |name: &String| topology.endpoint(name).filter(|_| known);
    let node: Vec<Option<u32>> = matrix.endpoints().iter().map(of).collect();
    let mut shares = vec![f32::NAN; n * n];
    for (at, cell) in matrix.cells().iter().enumerate() {
        let (src, dst) = (cell.src as usize, cell.dst as usize);
        let hops = node[src].zip(node[dst]).and_then(|(a, b)| topology.hops(a, b));
        let Some(tier) = found.tiers.iter().find(|tier| tier.hops == hops) else { continue };
        let mut values = matrix.values(at).to_vec();
        values.sort_unstable_by(f32::total_cmp);
        let value = values.get(values.len() / 2).map(|value| f64::from(*value));
        shares[place[src] * n + place[dst]] = pair_share(matrix, value, tier.centre);
    }
    shares
}

fn colour(share: f32) -> [u8; 3] {
    if share.is_nan() {
        return MISSING;
    }
    let share = share.clamp(0.0, 1.5);
    let above = COLOURS.iter().position(|(at, _)| share <= *at).unwrap_or(COLOURS.len() - 1).max(1);
    let ((low, from), (high, to)) = (COLOURS[above - 1], COLOURS[above]);
    let part = (share - low) / (high - low);
    std::array::from_fn(|i| (f32::from(from[i]) + part * (f32::from(to[i]) - f32::from(from[i]))) as u8)
}

#[cfg(test)]
mod tests {
    use muster_analysis::Params;
    use muster_analysis::network::{LOSS, localise};
    use muster_wire::Direction;

    use super::*;

    #[test]
    fn a_pair_that_loses_nothing_is_lighter_than_one_that_loses_much() {
        let mut losses = Matrix::new(LOSS, Direction::LowerIsBetter);
        for (src, dst) in (0..6).flat_map(|a| (0..6).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let lost = if (src, dst) == (1, 4) { 0.2 } else { 0.0 };
            losses.push_named(&format!("n{src}"), &format!("n{dst}"), &[lost], None);
        }
        let topology = Topology::flat(losses.endpoints());
        let found = localise(&losses, &topology, &Params::default());
        let shares = shares(&losses, &topology, &found, &order(&losses, &topology));
        let light = |share: f32| colour(share).iter().map(|c| u32::from(*c)).sum::<u32>();
        assert_eq!(shares[1], 1.0);
        assert!(light(shares[6 + 4]) < light(shares[1]), "{shares:?}");
    }

    #[test]
    fn darker_is_worse() {
        let light = |share: f32| colour(share).iter().map(|c| u32::from(*c)).sum::<u32>();
        assert!(light(0.0) < light(0.3) && light(0.3) < light(0.7) && light(0.7) < light(1.0));
        assert_eq!(colour(f32::NAN), MISSING);
        assert_eq!(colour(1.0), COLOURS[3].1);
    }
}
