//! How is work on many rows spread over the cores? In runs of neighbours, joined in order: the same result on any machine.

/// `work` on parts of `items` of a multiple of `unit` each, at once, its results one after another.
pub(super) fn in_parallel<T: Sync, R: Send>(items: &[T], unit: usize, work: impl Fn(&[T]) -> Vec<R> + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = (items.len() / unit.max(1)).div_ceil(cores).max(1) * unit.max(1);
    if share >= items.len() {
        return work(items);
    }
    let work = &work;
    std::thread::scope(|scope| {
        let parts: Vec<_> = items.chunks(share).map(|part| scope.spawn(move || work(part))).collect();
        let joined = parts.into_iter().map(|part| part.join());
        joined.flat_map(|part| part.unwrap_or_else(|why| std::panic::resume_unwind(why))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::in_parallel;

    #[test]
    fn results_come_in_order_and_units_stay_together() {
        for rows in [0, 1, 2, 3, 1001] {
            let items: Vec<usize> = (0..rows * 3).collect();
            let sums =
                in_parallel(&items, 3, |part| part.chunks_exact(3).map(|row| row.iter().sum::<usize>()).collect());
            assert_eq!(sums, (0..rows).map(|row| 9 * row + 3).collect::<Vec<_>>());
        }
    }
}
