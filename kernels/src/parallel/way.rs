//! Ways on which GPUs of a node add up what each of them has.

use muster_tape::Bucket;

use super::direct::Direct;
use super::host::{self, Host};
use crate::driver::{Gpu, Trouble};
use crate::nccl::Nccl;

/// A part of memory that is summed in place: where it lies on each GPU, and how many elements of 16 bytes each GPU sums.
#[derive(Clone, Debug)]
pub struct Part {
    /// Addresses, one a GPU.
    pub places: Vec<u64>,
    /// Elements of 16 bytes.
    pub chunk: u64,
    /// Elements of 16 bytes that hold what is to be summed, however many GPUs there are.
    pub vectors: u64,
}

/// The part of `floats` floats at `places`. It reaches up to 4 floats for each GPU further, to where that divides evenly.
#[must_use]
pub fn part(places: Vec<u64>, floats: usize) -> Part {
    let vectors = floats.div_ceil(4);
    let chunk = vectors.div_ceil(places.len().max(1)) as u64;
    Part { places, chunk, vectors: vectors as u64 }
}

/// How parts are summed.
#[derive(Debug)]
pub enum Way<'a> {
    /// There is one GPU: its gradients are the sum.
    Alone,
    /// By own kernels, which read the others' memory.
    Direct(Vec<Direct>),
    /// By NCCL, whose ranks have met.
    Nccl(&'a Nccl),
    /// By NCCL over all GPUs of many nodes, whose ranks have met.
    Nodes(&'a Nccl),
    /// By copies through the host and own kernels.
    Host(Host),
}

impl Way<'_> {
    /// By own kernels. All GPUs have opened each other's memory.
    ///
    /// # Errors
    /// The driver's.
    pub fn direct(gpus: &[Gpu], parts: &[Part]) -> Result<Self, Trouble> {
        let one = |part: &Part| Direct::new(gpus, (&part.places, &part.places), part.chunk);
        Ok(Self::Direct(parts.iter().map(one).collect::<Result<_, _>>()?))
    }

    /// Through the host.
    ///
    /// # Errors
    /// The driver's.
    pub fn host(gpus: &[Gpu], parts: &[Part]) -> Result<Self, Trouble> {
        Host::new(gpus, longest(parts)).map(Self::Host)
    }

    /// Bytes that the way through the host takes on each of so many GPUs for these buckets.
    #[must_use]
    pub fn host_needs(gpus: usize, buckets: &[Bucket]) -> usize {
        let parts: Vec<Part> = buckets.iter().map(|bucket| part(vec![0; gpus], bucket.span.len)).collect();
        host::needs(gpus, longest(&parts))
    }

    /// Its name in the identity of metrics: that of the kernels, and what else has a part in it.
    #[must_use]
    pub fn engine(&self, own: &str) -> String {
        match self {
            Self::Alone | Self::Direct(_) => own.to_owned(),
            Self::Nccl(nccl) => format!("{own}+{}", nccl.engine()),
            Self::Nodes(nccl) => format!("{own}+{}-nodes", nccl.engine()),
            Self::Host(_) => format!("{own}-host"),
        }
    }

    /// Puts the sum of part number `number` of `parts` on the streams of `gpus`, which all begin and end together.
    ///
    /// # Errors
    /// When the driver or the library does not take it.
    pub fn start(&self, gpus: &[Gpu], parts: &[Part], number: usize) -> Result<(), Trouble> {
        let Part { places, chunk, vectors } = &parts[number];
        match self {
            Self::Alone => Ok(()),
            Self::Direct(sums) => sums[number].start(gpus),
            Self::Nccl(nccl) => nccl.sum(gpus, places, *chunk as usize * gpus.len() * 4),
            // Nodes may have different numbers of GPUs.
            Self::Nodes(nccl) => nccl.sum(gpus, places, *vectors as usize * 4),
            Self::Host(host) => host.start(gpus, places, *chunk),
        }
    }

    /// What went wrong since it was put on the streams and that they do not tell.
    ///
    /// # Errors
    /// In the library's words.
    pub fn settled(&self) -> Result<(), Trouble> {
        match self {
            Self::Nccl(nccl) | Self::Nodes(nccl) => nccl.settled(),
            Self::Alone | Self::Direct(_) | Self::Host(_) => Ok(()),
        }
    }
}

fn longest(parts: &[Part]) -> u64 {
    parts.iter().map(|part| part.chunk).max().unwrap_or(0)
}
