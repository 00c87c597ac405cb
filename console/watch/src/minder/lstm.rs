//! One step of a long short-term memory with four cells (Hochreiter and Schmidhuber 1997, with forget gates), and its gradient.

use super::activation::tanh;

/// Cells.
pub(super) const HIDDEN: usize = 4;
/// Gates of all cells: input, forget, candidate, output.
pub(super) const GATES: usize = 4 * HIDDEN;
/// Weights from the state before to the gates.
pub(super) const RECURRENT: usize = GATES * HIDDEN;

/// What is handed from one step to the next; also the gradient by it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    pub(super) hidden: [f64; HIDDEN],
    pub(super) cell: [f64; HIDDEN],
}

/// A step with what its gradient needs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    gates: [f64; GATES],
    squashed: [f64; HIDDEN],
    pub(super) state: State,
}

/// Factor and offset that make each gate's curve of the tangent.
const CURVES: [(f64, f64); GATES] = {
    let mut curves = [(0.5, 0.5); GATES];
    let mut at = 2 * HIDDEN;
    while at < 3 * HIDDEN {
        curves[at] = (1.0, 0.0);
        at += 1;
    }
    curves
};

/// The step after `before`; `inputs` is what the input and the biases give to each gate.
pub(super) fn step(inputs: &[f64; GATES], recurrent: &[f64], before: &State) -> Step {
    let mut gates = *inputs;
    for (gate, row) in gates.iter_mut().zip(recurrent.chunks_exact(HIDDEN)) {
        *gate += row.iter().zip(&before.hidden).map(|(w, h)| w * h).sum::<f64>();
    }
    // The logistic function is half of one plus the tangent at half the place: one curve for all gates, which a compiler takes several at a time.
    for (gate, (factor, _)) in gates.iter_mut().zip(CURVES) {
        *gate = tanh(*gate * factor);
    }
    for (gate, (factor, offset)) in gates.iter_mut().zip(CURVES) {
        *gate = *gate * factor + offset;
    }
    let mut now = Step { gates, ..Step::default() };
    for at in 0..HIDDEN {
        now.state.cell[at] = gates[HIDDEN + at] * before.cell[at] + gates[at] * gates[2 * HIDDEN + at];
    }
    now.squashed = now.state.cell.map(tanh);
    for at in 0..HIDDEN {
        now.state.hidden[at] = gates[3 * HIDDEN + at] * now.squashed[at];
    }
    now
}

/// Takes the gradient by a step's state in `by` and leaves there that by the state before; adds that by the recurrent weights to `weights`. That by the inputs of
/// the gates.
pub(super) fn back(recurrent: &[f64], before: &State, now: &Step, by: &mut State, weights: &mut [f64]) -> [f64; GATES] {
    let mut gates = [0.0; GATES];
    let mut cell_before = [0.0; HIDDEN];
    for at in 0..HIDDEN {
        let [input, forget, candidate, output] = [0, 1, 2, 3].map(|gate| now.gates[gate * HIDDEN + at]);
        let squashed = now.squashed[at];
        let cell = by.cell[at] + by.hidden[at] * output * (1.0 - squashed * squashed);
        gates[at] = cell * candidate * input * (1.0 - input);
        gates[HIDDEN + at] = cell * before.cell[at] * forget * (1.0 - forget);
        gates[2 * HIDDEN + at] = cell * input * (1.0 - candidate * candidate);
        gates[3 * HIDDEN + at] = by.hidden[at] * squashed * output * (1.0 - output);
        cell_before[at] = cell * forget;
    }
    let mut hidden_before = [0.0; HIDDEN];
    let rows = recurrent.chunks_exact(HIDDEN).zip(weights.chunks_exact_mut(HIDDEN));
    for (gate, (row, gradient)) in gates.iter().zip(rows) {
        for at in 0..HIDDEN {
            hidden_before[at] += gate * row[at];
            gradient[at] += gate * before.hidden[at];
        }
    }
    *by = State { hidden: hidden_before, cell: cell_before };
    gates
}

#[cfg(test)]
mod tests {
    use muster_analysis::Chance;

    use super::*;

    /// The step as it is printed, cell by cell.
    fn printed(inputs: &[f64; GATES], recurrent: &[f64], before: &State) -> State {
        let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
        let mut now = State::default();
        for cell in 0..HIDDEN {
            let gate = |kind: usize| {
                let at = kind * HIDDEN + cell;
                inputs[at] + (0..HIDDEN).map(|from| recurrent[at * HIDDEN + from] * before.hidden[from]).sum::<f64>()
            };
            let (input, forget, candidate, output) =
                (logistic(gate(0)), logistic(gate(1)), gate(2).tanh(), logistic(gate(3)));
            now.cell[cell] = forget * before.cell[cell] + input * candidate;
            now.hidden[cell] = output * now.cell[cell].tanh();
        }
        now
    }

    #[test]
    fn a_step_is_that_of_the_printed_equations() {
        let mut chance = Chance::new(11);
        for _ in 0..50 {
            let inputs = std::array::from_fn(|_| chance.normal());
            let recurrent: Vec<f64> = (0..RECURRENT).map(|_| chance.normal()).collect();
            let before = State {
                hidden: std::array::from_fn(|_| chance.normal()),
                cell: std::array::from_fn(|_| chance.normal()),
            };
            let (found, expected) = (step(&inputs, &recurrent, &before).state, printed(&inputs, &recurrent, &before));
            for cell in 0..HIDDEN {
                assert!((found.cell[cell] - expected.cell[cell]).abs() < 1e-3);
                assert!((found.hidden[cell] - expected.hidden[cell]).abs() < 1e-3);
            }
        }
    }
}
