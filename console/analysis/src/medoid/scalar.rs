//! One value per node: the similarity `min/max` summed over all others from prefix sums, O(N log N).

/// For every value the sum of `min(x,y)/max(x,y)` over all values `y`, itself included; two zeros are alike.
/// Values must be finite and not negative.
#[must_use]
pub fn similarity_sums(values: &[f64]) -> Vec<f64> {
    // Bits of non-negative floats order like the floats, and integers sort faster.
    let mut order: Vec<(u64, u32)> = values.iter().zip(0..).map(|(v, i)| ((v + 0.0).to_bits(), i)).collect();
    order.sort_unstable_by_key(|entry| entry.0);
    let mut sums = vec![0.0; values.len()];
    // Larger values contribute x/y: collect their reciprocals from the top.
    let mut reciprocals = 0.0;
    for &(bits, i) in order.iter().rev() {
        let x = f64::from_bits(bits);
        if x > 0.0 {
            sums[i as usize] = x * reciprocals;
            reciprocals += x.recip();
        }
    }
    let mut smaller = 0.0;
    let mut zeros = 0.0;
    for &(bits, i) in &order {
        let x = f64::from_bits(bits);
        if x > 0.0 {
            smaller += x;
            sums[i as usize] += smaller / x;
        } else {
            zeros += 1.0;
        }
    }
    for (sum, _) in sums.iter_mut().zip(values).filter(|(_, v)| **v <= 0.0) {
        *sum = zeros;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_equal_the_definition(values in proptest::collection::vec(
            prop_oneof![(0u8..5).prop_map(f64::from), 0.0f64..1e9, 1e-9f64..1e-3], 1..40,
        )) {
            let fast = similarity_sums(&values);
            for (i, x) in values.iter().enumerate() {
                let slow: f64 = values
                    .iter()
                    .map(|y| if x.max(*y) > 0.0 { x.min(*y) / x.max(*y) } else { 1.0 })
                    .sum();
                prop_assert!((fast[i] - slow).abs() <= 1e-9 * slow.max(1.0), "{} {slow}", fast[i]);
            }
        }
    }
}
