//! Which models are trained by all GPUs together.

use muster_tape::{Model, Size};
use muster_wire::Profile;

use super::super::train::{BERT, DENSENET, Family, GPT2, LSTM, RESNET, VGG};
use crate::train::{Plan, Precision};

/// A model, each GPU's batch of it, and how it is computed.
pub(super) struct Work {
    model: Model,
    size: Size,
    precision: Precision,
}

impl Work {
    pub(super) fn name(&self) -> String {
        format!("{}_{}", self.model.name(), self.precision.name())
    }

    /// For so many GPUs.
    pub(super) fn plan(&self, replicas: usize) -> Plan {
        Plan::new(self.model, self.size, self.precision, replicas)
    }
}

/// What a profile asks for. Sizes are those of the trainings on one GPU.
pub(super) fn of(profile: Profile) -> Vec<Work> {
    let bf16 = |(model, size): &(Model, Size)| Work { model: *model, size: *size, precision: Precision::Bf16 };
    let nano = |family: &Family, batch, seq| bf16(&(family.nano, Size { batch, seq }));
    let first =
        |families: &[&Family]| families.iter().filter_map(|family| family.published.first().map(bf16)).collect();
    match profile {
        // One with each optimiser.
        Profile::Smoke => [(&VGG, 2, 1), (&LSTM, 1, 2)].map(|(family, batch, seq)| nano(family, batch, seq)).into(),
        Profile::Quick => first(&[&GPT2]),
        Profile::Standard => first(&[&GPT2, &BERT, &LSTM, &RESNET]),
        Profile::Full => {
            let families = [&GPT2, &BERT, &LSTM, &RESNET, &DENSENET, &VGG];
            families.iter().flat_map(|family| family.published).map(bf16).collect()
        }
    }
}
