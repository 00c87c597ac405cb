//! Sorting of long rows by a whole number, digit by digit: several times faster than by comparing them.

/// Shorter rows are sorted by comparing.
const SHORT: usize = 256;
/// Two digits of so many bits are sorted by; rows that differ in lower bits only are few.
const BITS: u32 = 11;

/// Sorts `rows` ascending by `key`; those with equal keys in any order.
pub(super) fn sort<T: Copy>(rows: &mut [T], key: impl Fn(&T) -> u64) {
    if rows.len() < SHORT {
        rows.sort_unstable_by_key(key);
        return;
    }
    let (mut least, mut most) = (u64::MAX, 0);
    for row in rows.iter() {
        let key = key(row);
        (least, most) = (least.min(key), most.max(key));
    }
    let shift = (u64::BITS - (most - least).leading_zeros()).saturating_sub(2 * BITS);
    let leading = |row: &T| (key(row) - least) >> shift;
    let mut other = rows.to_vec();
    place(rows, &mut other, |row| leading(row) as usize);
    place(&other, rows, |row| (leading(row) >> BITS) as usize);
    if shift > 0 {
        for alike in rows.chunk_by_mut(|a, b| leading(a) == leading(b)).filter(|alike| alike.len() > 1) {
            alike.sort_unstable_by_key(&key);
        }
    }
}

/// Copies `from` to `to` in the order of the lowest digit of `number`; equal digits stay in their order.
fn place<T: Copy>(from: &[T], to: &mut [T], number: impl Fn(&T) -> usize) {
    let digit = |row: &T| number(row) % (1 << BITS);
    let mut next = [0_u32; 1 << BITS];
    from.iter().for_each(|row| next[digit(row)] += 1);
    let mut sum = 0;
    for next in &mut next {
        sum += std::mem::replace(next, sum);
    }
    for row in from {
        let next = &mut next[digit(row)];
        to[*next as usize] = *row;
        *next += 1;
    }
}

/// A whole number that is ordered as `value` is by `total_cmp`.
pub(super) fn ordered(value: f64) -> u64 {
    let bits = value.to_bits();
    if value.is_sign_negative() { !bits } else { bits | 1 << 63 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chance;

    #[test]
    fn rows_are_in_the_order_that_comparing_gives() {
        let mut chance = Chance::new(3);
        let normal: Vec<f64> = (0..3000).map(|_| 100.0 + chance.normal()).collect();
        let wide: Vec<f64> = normal.iter().map(|value| (value - 100.0).powi(9) * 1e30).collect();
        let mut outlier: Vec<f64> = normal.iter().map(|value| 1.0 + value * 1e-9).collect();
        outlier[7] = 1e-100;
        let ties: Vec<f64> = normal.iter().map(|value| value.round()).collect();
        for values in [normal, wide, outlier, ties, vec![0.0; 300], vec![2.0, 1.0]] {
            let (mut found, mut wanted) = (values.clone(), values);
            sort(&mut found, |value| ordered(*value));
            wanted.sort_by(f64::total_cmp);
            assert_eq!(found, wanted);
        }
    }
}
