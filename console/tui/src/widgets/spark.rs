//! A series in one line of cells.

/// `values` in at most `room` cells, from zero to the largest; two values to a cell in braille, one in ASCII. Where
/// there are more values than room, each place shows the mean of its share of them.
pub(crate) fn spark(values: &[f64], room: usize, ascii: bool) -> String {
    let places = if ascii { room } else { room * 2 };
    let top = values.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    if values.is_empty() || top <= 0.0 || places == 0 {
        return String::new();
    }
    let places = places.min(values.len());
    let mean = |i: usize| {
        let part =
            &values[i * values.len() / places..((i + 1) * values.len() / places).max(i * values.len() / places + 1)];
        part.iter().sum::<f64>() / part.len() as f64
    };
    let levels: Vec<f64> = (0..places).map(|i| (mean(i) / top).clamp(0.0, 1.0)).collect();
    if ascii { levels.iter().map(|l| ascii_level(*l)).collect() } else { levels.chunks(2).map(braille).collect() }
}

fn ascii_level(level: f64) -> char {
    const LEVELS: [char; 5] = ['_', '.', '-', '=', '#'];
    LEVELS[(level * 4.0).round() as usize % LEVELS.len()]
}

fn braille(pair: &[f64]) -> char {
    const LEFT: [u32; 4] = [0x40, 0x04, 0x02, 0x01];
    const RIGHT: [u32; 4] = [0x80, 0x20, 0x10, 0x08];
    let dots = |level: f64, bits: [u32; 4]| -> u32 { bits[..((level * 4.0).ceil() as usize).clamp(1, 4)].iter().sum() };
    let right = pair.get(1).map_or(0, |l| dots(*l, RIGHT));
    char::from_u32(0x2800 + dots(pair[0], LEFT) + right).unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_grow_from_zero() {
        assert_eq!(spark(&[0.0, 1.0, 2.0, 4.0], 8, true), "_.-#");
        assert_eq!(spark(&[4.0, 4.0, 4.0, 1.0], 8, false), "⣿⣇");
    }

    #[test]
    fn many_values_are_averaged_into_the_room() {
        assert_eq!(spark(&[1.0; 1000], 7, true), "#######");
        assert_eq!(spark(&[], 7, false), "");
    }
}
