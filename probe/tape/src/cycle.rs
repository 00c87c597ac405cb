//! Losses of steps that start again and again from one point, and must then be the same to the bit.

/// Losses of the first round, and where in a round one is.
#[derive(Clone, Debug)]
pub struct Cycle {
    steps: usize,
    losses: Vec<f32>,
    at: usize,
}

impl Cycle {
    /// Rounds of so many steps.
    #[must_use]
    pub const fn new(steps: usize) -> Self {
        Self { steps, losses: Vec::new(), at: 0 }
    }

    /// Whether the round is over, after which the training is to be started again.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.at == self.steps
    }

    /// The training was started again.
    pub const fn begin(&mut self) {
        self.at = 0;
    }

    /// Takes the loss of the next step.
    ///
    /// # Errors
    /// With a sentence when it is no number, or not that of the same step of the first round.
    pub fn take(&mut self, loss: f32) -> Result<(), String> {
        let step = self.at + 1;
        if !loss.is_finite() {
            return Err(format!("the loss of step {step} is {loss}"));
        }
        match self.losses.get(self.at) {
            Some(before) if before.to_bits() != loss.to_bits() => {
                return Err(format!(
                    "step {step} gave loss {before:?} at first and {loss:?} later, from the same start"
                ));
            }
            Some(_) => {}
            None => self.losses.push(loss),
        }
        self.at += 1;
        Ok(())
    }

    /// Losses of the first round, as far as it came.
    #[must_use]
    pub fn losses(&self) -> &[f32] {
        &self.losses
    }

    /// Whether every step of a round was done at least once.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.losses.len() >= self.steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_bit_in_a_later_round_is_told_with_its_step() {
        let mut cycle = Cycle::new(3);
        for round in 0..3 {
            for loss in [4.0_f32, 3.0, 2.0] {
                let loss = if round == 2 && loss == 3.0 { f32::from_bits(loss.to_bits() + 1) } else { loss };
                let taken = cycle.take(loss);
                assert_eq!(taken.is_err(), loss.fract() != 0.0);
                if let Err(why) = taken {
                    assert_eq!(why, "step 2 gave loss 3.0 at first and 3.0000002 later, from the same start");
                    return;
                }
            }
            assert!(cycle.is_over() && cycle.is_whole());
            cycle.begin();
        }
        panic!("nothing was seen");
    }

    #[test]
    fn a_loss_that_is_no_number_is_told() {
        assert_eq!(Cycle::new(2).take(f32::NAN), Err("the loss of step 1 is NaN".to_owned()));
    }
}
