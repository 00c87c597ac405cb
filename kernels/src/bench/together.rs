//! On which way what all GPUs of a node have comes together: by NCCL where it is, by own kernels elsewhere. Results have a place
//! of their own, other than gradients, which [`crate::parallel::Way`] adds up where they are.

use super::links;
use super::node::Node;
use crate::driver::{Gpu, Trouble};
use crate::nccl::{Nccl, Operation};
use crate::parallel::Direct;

/// The way.
pub(super) enum Way {
    /// Own kernels, which read the memory of the others.
    Own,
    /// NCCL, whose ranks have met.
    Nccl(Nccl),
}

impl Way {
    /// That of this node.
    pub(super) fn find(node: &mut Node<'_>) -> Result<Self, Trouble> {
        let missing = match Nccl::load() {
            Ok(mut nccl) => {
                node.of(0).fact("nccl", format!("version={} path={}", nccl.version, nccl.path()));
                node.all().progress(0.0, "NCCL brings them together");
                nccl.meet(node.gpus.len())?;
                return Ok(Self::Nccl(nccl));
            }
            Err(Trouble::Absent(why)) => why,
            Err(other) => return Err(other),
        };
        let reach = links::open(node)?;
        if let Some(index) = reach.iter().position(|open| open.len() + 1 < node.gpus.len()) {
            return Err(Trouble::Absent(format!("{missing}, and GPU {index} has no direct way to all others")));
        }
        node.of(0).fact("nccl", format!("not used: {missing}"));
        Ok(Self::Own)
    }

    /// Its name in the identity of metrics, where `own` is that of the kernels.
    pub(super) fn engine(&self, own: &str) -> String {
        match self {
            Self::Own => own.to_owned(),
            Self::Nccl(nccl) => format!("{own}+{}", nccl.engine()),
        }
    }

    /// What went wrong since it was put on the streams and that they do not tell.
    pub(super) fn settled(&self) -> Result<(), Trouble> {
        match self {
            Self::Own => Ok(()),
            Self::Nccl(nccl) => nccl.settled(),
        }
    }
}

/// Something that all GPUs do together, and that can be started again and again.
pub(super) struct Joint<'a> {
    way: &'a Way,
    what: Operation,
    /// What each GPU brings and where its result goes, by address.
    ends: Vec<(u64, u64)>,
    /// Words of all that is summed, or of what one GPU brings.
    words: usize,
    own: Option<Direct>,
}

impl<'a> Joint<'a> {
    /// Everybody gets the sum of `bytes` bytes of floats that each brings: a multiple of 16 for each GPU.
    pub(super) fn sum(way: &'a Way, gpus: &[Gpu], ends: Vec<(u64, u64)>, bytes: usize) -> Result<Self, Trouble> {
        Self::new(way, gpus, (Operation::Sum, ends), (bytes, bytes / 16 / gpus.len()))
    }

    /// Everybody gets what each brings, `bytes` bytes, a multiple of 16. Each has its own in its place of its result already.
    pub(super) fn gather(way: &'a Way, gpus: &[Gpu], results: &[u64], bytes: usize) -> Result<Self, Trouble> {
        let ends = results.iter().enumerate().map(|(rank, result)| (result + (rank * bytes) as u64, *result));
        Self::new(way, gpus, (Operation::Gather, ends.collect()), (bytes, bytes / 16))
    }

    fn new(
        way: &'a Way,
        gpus: &[Gpu],
        (what, ends): (Operation, Vec<(u64, u64)>),
        (bytes, chunk): (usize, usize),
    ) -> Result<Self, Trouble> {
        let own = match way {
            Way::Nccl(_) => None,
            Way::Own => {
                let (inputs, outputs): (Vec<u64>, Vec<u64>) = ends.iter().copied().unzip();
                Some(Direct::new(gpus, (&inputs, &outputs), chunk as u64)?)
            }
        };
        Ok(Self { way, what, ends, words: bytes / 4, own })
    }

    /// Puts it on the streams of `gpus`. No GPU begins before what was put on its own stream is done.
    pub(super) fn start(&self, gpus: &[Gpu]) -> Result<(), Trouble> {
        match (&self.own, self.way) {
            (Some(direct), _) if self.what == Operation::Sum => direct.start(gpus),
            (Some(direct), _) => direct.gather(gpus),
            (None, Way::Nccl(nccl)) => nccl.group(self.what, gpus, &self.ends, self.words),
            (None, Way::Own) => Err(Trouble::Failed("own kernels were not prepared".to_owned())),
        }
    }
}
