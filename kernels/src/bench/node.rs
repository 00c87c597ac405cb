//! One benchmark over all GPUs of a node, in one process.

use muster_wire::{Frame, Profile};

use super::pages;
use super::run::Run;
use crate::driver::{Arg, Buffer, Gpu, Trouble};
use crate::health::Watch;
pub(super) use crate::parallel::{meet, wait, wide};

/// Most wrong things that are told one by one.
const TOLD: usize = 8;

pub(super) struct Node<'a> {
    pub(super) gpus: &'a [Gpu],
    pub(super) profile: Profile,
    name: &'static str,
    say: &'a mut dyn FnMut(Frame),
    /// What turned out wrong, and where.
    wrong: Vec<String>,
}

impl<'a> Node<'a> {
    pub(super) fn new(name: &'static str, gpus: &'a [Gpu], profile: Profile, say: &'a mut dyn FnMut(Frame)) -> Self {
        Self { gpus, profile, name, say, wrong: Vec::new() }
    }

    /// The same benchmark, for what concerns GPU number `index`.
    pub(super) fn of(&mut self, index: usize) -> Run<'_> {
        Run::new(self.name, &self.gpus[index], self.profile, self.say)
    }

    /// The same, for what all of them do together.
    pub(super) fn all(&mut self) -> Run<'_> {
        let mut run = self.of(0);
        run.whom = "all GPUs".to_owned();
        run
    }

    /// Introduces all, watches all, does `body`, and fails with all that was wrong.
    pub(super) fn run(mut self, body: fn(&mut Self) -> Result<(), Trouble>) -> Result<(), Trouble> {
        let watches: Vec<Option<Watch>> = self.gpus.iter().map(|gpu| Watch::start(&gpu.uuid)).collect();
        (0..self.gpus.len()).for_each(|index| self.of(index).introduce());
        let done = body(&mut self);
        let watches = watches.into_iter().enumerate().filter_map(|(index, watch)| Some((index, watch?)));
        let watched: Vec<_> = watches.map(|(index, watch)| super::watched(&mut self.of(index), watch)).collect();
        done?;
        watched.into_iter().collect::<Result<(), Trouble>>()?;
        if self.wrong.is_empty() {
            return Ok(());
        }
        let more = self.wrong.len().saturating_sub(TOLD);
        self.wrong.truncate(TOLD);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        Err(Trouble::Failed(self.wrong.join("; ") + &more))
    }

    /// Notes what was wrong.
    pub(super) fn blame(&mut self, what: String) {
        self.wrong.push(what);
    }

    /// Whether something was.
    pub(super) const fn is_blamed(&self) -> bool {
        !self.wrong.is_empty()
    }

    /// Notes it when `buffer` of GPU number `index` is not the pattern `seed`; `what` says how it came there.
    pub(super) fn expect(&mut self, index: usize, (buffer, seed): (&Buffer, u32), what: &str) -> Result<(), Trouble> {
        let found = pages::look(&self.gpus[index], buffer, seed).map_err(|trouble| trouble.about(what))?;
        let count: u32 = found.iter().map(|page| page[0]).sum();
        let bits = found.iter().fold(0, |bits, page| bits | page[1]);
        if let Some((page, first)) = found.iter().enumerate().find(|(_, page)| page[0] > 0) {
            let words = buffer.bytes.min(1 << pages::SHIFT) / 4;
            let first = page * words + first[2] as usize;
            let all = buffer.bytes / 4;
            self.wrong
                .push(format!("{what}: {count} of {all} words are wrong, the first is {first}, bits {bits:#010x}"));
        }
        Ok(())
    }
}

/// Fills a buffer with the pattern `seed`.
pub(crate) fn fill(gpu: &Gpu, buffer: &Buffer, seed: u32) -> Result<(), Trouble> {
    let vectors = Arg::U64(buffer.bytes as u64 / 16);
    gpu.launch(gpu.function("fill", 0)?, wide(gpu), &[Arg::At(buffer), vectors, Arg::U32(seed)])
}
