//! By which way gradients of this node's GPUs come together, among themselves and with those of other nodes: what is there, and
//! what was agreed.

use muster_wire::{Fact, Frame};

use super::{MODULES, number, text, unknown, wait_for_others};
use crate::driver::{Gpu, Trouble};
use crate::nccl::{Id, Nccl};
use crate::parallel::{Team, Way, open_all};
use crate::train::Plan;

pub(super) struct Meeting<'a> {
    gpus: &'a [Gpu],
    /// Whether each GPU reaches each other one directly.
    direct: bool,
    /// NCCL, or why it is not used.
    nccl: Result<Nccl, String>,
    /// Number of this node's first GPU and how many there are on all nodes, once NCCL has brought them together.
    pub(super) nodes: Option<(usize, usize)>,
}

impl<'a> Meeting<'a> {
    /// Opens everybody's memory for everybody, and NCCL where it may be needed.
    pub(super) fn new(gpus: &'a [Gpu], asked: bool) -> Result<Self, Trouble> {
        let direct = open_all(gpus)?;
        let nccl = match Nccl::load() {
            _ if direct && !asked => Err(String::new()),
            Err(Trouble::Failed(why)) if !direct => return Err(Trouble::Failed(why)),
            other => other.map_err(|why| why.to_string()),
        };
        Ok(Self { gpus, direct, nccl, nodes: None })
    }

    /// Whether gradients of this node go through the host, where NCCL does not sum over all nodes.
    pub(super) const fn is_through_host(&self) -> bool {
        !self.direct && self.nccl.is_err()
    }

    /// The first answer.
    pub(super) fn introduce(&self, plan: &Plan, words: usize) -> Result<Vec<Fact>, Trouble> {
        let Some(first) = self.gpus.first() else { return Err(Trouble::Absent("no GPU".to_owned())) };
        let codes = self.gpus.iter().map(|gpu| gpu.identity("tape", &MODULES)).collect::<Result<Vec<_>, _>>()?;
        if codes.iter().any(|code| *code != codes[0]) {
            return Err(Trouble::NotRun("GPUs of several kinds".to_owned()));
        }
        let engine = match &self.nccl {
            _ if self.direct || self.gpus.len() == 1 => first.engine.to_owned(),
            Ok(nccl) => Way::Nccl(nccl).engine(first.engine),
            Err(_) => format!("{}-host", first.engine),
        };
        Ok(vec![
            number("gpus", self.gpus.len() as f64),
            text("engine", engine),
            text("code", format!("{}, {} items, bf16", codes[0], plan.tape.items)),
            number("words", words as f64),
            match &self.nccl {
                Ok(nccl) => number("nccl", f64::from(nccl.version)),
                Err(why) => text("nccl.lacks", why.clone()),
            },
        ])
    }

    /// The answer to a command that brings GPUs together; nothing to any other.
    pub(super) fn obey(&mut self, line: &str, say: &mut dyn FnMut(Frame)) -> Result<Option<Vec<Fact>>, Trouble> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !matches!(words[..], ["alone" | "id" | "join", ..]) {
            return Ok(None);
        }
        let nccl = self.nccl.as_mut().map_err(|why| Trouble::NotRun(why.clone()))?;
        match words[..] {
            ["alone"] => {
                let id = nccl.id()?;
                nccl.join(self.gpus, id, (0, self.gpus.len()))?;
                Ok(Some(Vec::new()))
            }
            ["id"] => Ok(Some(vec![text("id", nccl.id()?.to_string())])),
            ["join", id, first, world] => {
                let count = |text: &str| text.parse().map_err(|_| unknown(line));
                let (id, nodes) = (Id::parse(id).ok_or_else(|| unknown(line))?, (count(first)?, count(world)?));
                wait_for_others(say, "the start of NCCL over all nodes");
                nccl.join(self.gpus, id, nodes)?;
                self.nodes = Some(nodes);
                let engine = self.gpus.first().map_or("own", |gpu| gpu.engine);
                Ok(Some(vec![text("engine", Way::Nodes(nccl).engine(engine))]))
            }
            _ => Err(unknown(line)),
        }
    }

    /// How the GPUs of `team` add up.
    pub(super) fn way(&mut self, team: &Team<'_>) -> Result<Way<'_>, Trouble> {
        let among_themselves = self.nodes.is_none() && !self.direct && self.gpus.len() > 1;
        if let (true, Ok(nccl)) = (among_themselves, &mut self.nccl) {
            nccl.meet(self.gpus.len())?;
        }
        match &self.nccl {
            Ok(nccl) if self.nodes.is_some() => Ok(Way::Nodes(nccl)),
            _ if self.gpus.len() == 1 => Ok(Way::Alone),
            _ if self.direct => Way::direct(team.sides(), team.parts()),
            Ok(nccl) => Ok(Way::Nccl(nccl)),
            Err(_) => Way::host(team.sides(), team.parts()),
        }
    }
}
