//! The shape of a series in one line of cells.

/// Half of the range shown, as a share of the middle value, when the series itself varies less: a calm series looks
/// calm, whatever its noise.
const LEAST_RANGE: f64 = 0.05;

/// `values` around their middle in at most `room` cells; two values to a cell in braille, one in ASCII. Where there are
/// more values than room, each place shows the mean of its share of them. The scale is the series' own, at least 5 %
/// either way.
pub(crate) fn spark(values: &[f64], room: usize, ascii: bool) -> String {
    let places = (if ascii { room } else { room * 2 }).min(values.len());
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    if places == 0 || sorted.len() < values.len() {
        return String::new();
    }
    sorted.sort_by(f64::total_cmp);
    let middle = sorted[sorted.len() / 2];
    let means: Vec<f64> = (0..places).map(|i| mean_of_part(values, i, places)).collect();
    let range = means.iter().map(|m| (m - middle).abs()).fold(middle.abs() * LEAST_RANGE, f64::max);
    // Three levels, the middle one for all within half the range; a series of zeros stays on the ground.
    let level = |mean: &f64| if range > 0.0 { ((mean - middle) / range + 1.0).round() as usize } else { 0 };
    let levels: Vec<usize> = means.iter().map(level).collect();
    if ascii { levels.iter().map(|l| ASCII[*l]).collect() } else { levels.chunks(2).map(braille).collect() }
}

const ASCII: [char; 3] = ['_', '-', '^'];

fn mean_of_part(values: &[f64], i: usize, places: usize) -> f64 {
    let start = i * values.len() / places;
    let end = ((i + 1) * values.len() / places).max(start + 1);
    let part = &values[start..end];
    part.iter().sum::<f64>() / part.len() as f64
}

fn braille(pair: &[usize]) -> char {
    const LEFT: [u32; 3] = [0x40, 0x04, 0x01];
    const RIGHT: [u32; 3] = [0x80, 0x20, 0x08];
    let right = pair.get(1).map_or(0, |l| RIGHT[*l]);
    char::from_u32(0x2800 + LEFT[pair[0]] + right).unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calm_series_is_a_line_and_an_outlier_leaves_it() {
        assert_eq!(spark(&[100.0, 100.1, 99.9, 100.0], 8, true), "----");
        assert_eq!(spark(&[100.0, 100.0, 50.0, 100.0, 150.0], 8, true), "--_-^");
        assert_eq!(spark(&[100.0, 100.0, 50.0, 100.0], 8, false), "⠤⡠");
    }

    #[test]
    fn many_values_are_averaged_into_the_room() {
        assert_eq!(spark(&[1.0; 1000], 7, true), "-------");
        assert_eq!(spark(&[0.0; 3], 7, true), "___");
        assert_eq!(spark(&[], 7, false), "");
        assert_eq!(spark(&[1.0, f64::NAN], 7, false), "");
    }
}
