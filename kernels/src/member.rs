//! All GPUs of this node as one rank of a training over many nodes: its process brings commands and the sums of all nodes, and
//! gets gradients. Where NCCL sums over all nodes, neither sums nor gradients come here.
//!
//! | command | answer |
//! |---|---|
//! | at the start | `gpus`, `engine`, `code` (what must be the same on all nodes), `words` of gradients and what lies between them; where NCCL was asked for, its version as `nccl`, or why there is none as `nccl.lacks` |
//! | `alone` | once NCCL has brought together the GPUs of this node |
//! | `id` | `id`: by what the ranks of NCCL find each other |
//! | `join ID FIRST WORLD` | `engine`, once NCCL has brought together `WORLD` GPUs of all nodes, those of this one from `FIRST` on |
//! | `known FIRST COUNT` | GPUs from `FIRST` on bring known numbers, `COUNT` of all; `wrong`: what is wrong with the sums, if anything |
//! | `begin FIRST` | GPU `i` trains on batch `FIRST + i`; `same`: a number of what batch 0 gives on every GPU here |
//! | `backward` | `loss`, summed over GPUs, `ms.I`: how long GPU `I` computed; the file holds the gradients, summed over GPUs |
//! | `update` | weights by what the file holds now; `weights`: a number of all of them, the same on every GPU; in every eighth step `same` |
//!
//! A progress frame comes before everything that other nodes may hold up.

mod meeting;

use std::fs::File;
use std::io::BufRead;
use std::os::unix::fs::FileExt;

use muster_tape::Model;
use muster_wire::{Datum, Fact, Facts, Frame, Progress, Reading};

use crate::bench::usual;
use crate::driver::{Gpu, Pinned, Trouble};
use crate::parallel::suspects::{self, odd};
use crate::parallel::{MOST, Team, Way, wait};
use crate::train::{Plan, Precision};
use meeting::Meeting;

/// The modules that a training uses.
const MODULES: [&str; 8] = ["tape", "norm", "image", "product", "convolve", "attention", "wgmma", "peer"];

/// All GPUs are held to one batch after so many steps: a wrong gradient leaves everybody with the same wrong weights.
const EVERY: usize = 8;

/// Where sums are exchanged, and whether NCCL may sum over all nodes instead.
pub(crate) struct Place {
    pub(crate) file: String,
    pub(crate) nccl: bool,
}

/// The training of this rank, and how it is spoken to.
struct Member<'a> {
    gpus: &'a [Gpu],
    team: Team<'a>,
    way: Way<'a>,
    /// Number of the first GPU among those of all nodes, where NCCL sums over all of them.
    among: Option<usize>,
    /// Words of the gradients.
    host: Option<Pinned>,
    file: File,
    /// Batch of the first GPU, and updates so far.
    first: u64,
    steps: usize,
    say: &'a mut dyn FnMut(Frame),
}

/// Trains `model` as `commands` say, until there are no more.
///
/// # Errors
/// The driver's, and when a GPU of this node turns out to be wrong.
pub(crate) fn run(
    (gpus, name): (&[Gpu], &str),
    place: &Place,
    commands: &mut dyn BufRead,
    say: &mut dyn FnMut(Frame),
) -> Result<(), Trouble> {
    let words = |why: std::io::Error| Trouble::Failed(format!("{}: {why}", place.file));
    let file = File::options().read(true).write(true).open(&place.file).map_err(words)?;
    let model = Model::ALL.into_iter().find(|model| model.name() == name);
    let model = model.ok_or_else(|| Trouble::NotRun(format!("there is no model '{name}'")))?;
    if gpus.len() > MOST {
        return Err(Trouble::NotRun(format!("{} GPUs, and sums are of up to {MOST}", gpus.len())));
    }
    let of = |replicas| Plan::new(model, usual(model), Precision::Bf16, replicas);
    let mut meeting = Meeting::new(gpus, place.nccl)?;
    let plan = of(1);
    if let Some(why) = Team::lacks(gpus, &plan, meeting.is_through_host())? {
        return Err(Trouble::NotRun(format!("{name} {why}")));
    }
    let mut lines = commands.lines();
    let team = Team::new(gpus, &plan)?;
    tell(say, meeting.introduce(&plan, gradients(&team))?);
    let first = loop {
        let Some(line) = lines.next().transpose().map_err(words)? else { return Ok(()) };
        match meeting.obey(&line, say)? {
            Some(facts) => tell(say, facts),
            None => break line,
        }
    };
    let whole;
    let team = match meeting.nodes {
        None => team,
        Some((_, world)) => {
            drop(team);
            whole = of(world);
            Team::new(gpus, &whole)?
        }
    };
    let host = if meeting.nodes.is_some() { None } else { Some(Pinned::new(gradients(&team))?) };
    let among = meeting.nodes.map(|(first, _)| first);
    let way = meeting.way(&team)?;
    let mut member = Member { gpus, team, way, among, host, file, first: 0, steps: 0, say };
    for line in std::iter::once(Ok(first)).chain(lines) {
        member.obey(&line.map_err(words)?)?;
    }
    Ok(())
}

/// Words of all gradients and what lies between them.
fn gradients(team: &Team<'_>) -> usize {
    team.replicas.first().map_or(0, |replica| replica.gradients().len)
}

/// Said before everything that other nodes may hold up.
fn wait_for_others(say: &mut dyn FnMut(Frame), note: &str) {
    say(Frame::Progress(Progress { benchmark: "train".to_owned(), done: 0.0, note: note.to_owned() }));
}

fn tell(say: &mut dyn FnMut(Frame), facts: Vec<Fact>) {
    say(Frame::Facts(Facts { collector: "train".to_owned(), facts }));
}

impl Member<'_> {
    fn obey(&mut self, line: &str) -> Result<(), Trouble> {
        let number = |text: &str| text.parse().map_err(|_| unknown(line));
        let facts = match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["known", first, count] => self.known(number(first)?, number(count)?)?,
            ["begin", first] => self.begin(number(first)? as u64)?,
            ["backward"] => self.backward()?,
            ["update"] => self.update()?,
            _ => return Err(unknown(line)),
        };
        tell(self.say, facts);
        Ok(())
    }

    /// Sums known numbers of some GPUs over all nodes.
    fn known(&mut self, first: usize, count: usize) -> Result<Vec<Fact>, Trouble> {
        let Some(own) = self.among else { return Err(unknown("known")) };
        wait_for_others(self.say, "a sum of known numbers by NCCL over all nodes");
        let wrong = suspects::over_nodes(&self.team, &self.way, (first, count), own)?;
        Ok(wrong.map(|wrong| text("wrong", wrong)).into_iter().collect())
    }

    /// Makes sure that all GPUs and ways are sound, and goes to before the first step.
    fn begin(&mut self, first: u64) -> Result<Vec<Fact>, Trouble> {
        let wrong = match self.among {
            // Sums over all nodes are for all of them to look at.
            Some(_) => suspects::of_batch(&self.team)?,
            None => suspects::all(&self.team, &self.way)?,
        };
        sound(wrong)?;
        let same = self.same()?;
        self.team.restart()?;
        self.first = first;
        self.load()?;
        Ok(vec![same])
    }

    /// Gives each GPU its own batch.
    fn load(&self) -> Result<(), Trouble> {
        (self.first..).zip(&self.team.replicas).try_for_each(|(batch, replica)| replica.load(batch))
    }

    /// What one batch gives on the first GPU, and so on every other.
    fn same(&self) -> Result<Fact, Trouble> {
        let (loss, digest) = self.team.same_batch()?.first().copied().unwrap_or_default();
        Ok(text("same", format!("{digest:016x}{:08x}", loss.to_bits())))
    }

    fn backward(&mut self) -> Result<Vec<Fact>, Trouble> {
        let ms = match &mut self.host {
            None => {
                let say = &mut *self.say;
                let computed = &mut || wait_for_others(say, "the all-reduce by NCCL over all nodes");
                self.team.backward_over_nodes(&self.way, computed)?
            }
            Some(host) => {
                let ms = self.team.backward(&self.way)?;
                let replica = &self.team.replicas[0];
                replica.gpu.get_at(host.words(), replica.at(replica.gradients()))?;
                self.file.write_all_at(host.bytes(), 0).map_err(|why| Trouble::Failed(why.to_string()))?;
                ms
            }
        };
        let losses = self.team.replicas.iter().map(|replica| replica.loss()).collect::<Result<Vec<f32>, Trouble>>()?;
        let times = ms.into_iter().enumerate().map(|(gpu, ms)| number(&format!("ms.{gpu}"), ms));
        let loss = number("loss", losses.into_iter().map(f64::from).sum());
        Ok(std::iter::once(loss).chain(times).collect())
    }

    fn update(&mut self) -> Result<Vec<Fact>, Trouble> {
        self.steps += 1;
        if let Some(host) = &mut self.host {
            self.file.read_exact_at(host.bytes(), 0).map_err(|why| Trouble::Failed(why.to_string()))?;
            for replica in &self.team.replicas {
                replica.gpu.put_at(replica.at(replica.gradients()), host.words())?;
            }
        }
        self.team.replicas.iter().try_for_each(|replica| replica.update())?;
        wait(self.gpus)?;
        let weights =
            self.team.replicas.iter().map(|replica| replica.fingerprint()).collect::<Result<Vec<u64>, _>>()?;
        let steps = self.steps;
        sound(odd(&weights, "weights", |gpu, others| {
            format!(
                "GPU {gpu}: its weights after step {steps} are not those of {others} other GPUs: this GPU computes wrongly"
            )
        }))?;
        let weights = text("weights", format!("{:016x}", weights.first().copied().unwrap_or_default()));
        if !self.steps.is_multiple_of(EVERY) {
            return Ok(vec![weights]);
        }
        sound(suspects::after(&self.team, steps)?)?;
        let same = self.same()?;
        self.load()?;
        Ok(vec![weights, same])
    }
}

fn sound(wrong: Vec<String>) -> Result<(), Trouble> {
    if wrong.is_empty() { Ok(()) } else { Err(Trouble::Failed(wrong.join("; "))) }
}

fn unknown(line: &str) -> Trouble {
    Trouble::Failed(format!("the training has no command '{line}'"))
}

fn number(key: &str, value: f64) -> Fact {
    Fact { key: key.to_owned(), reading: Reading::Value(Datum::Number(value)), unit: None }
}

fn text(key: &str, value: String) -> Fact {
    Fact { key: key.to_owned(), reading: Reading::Value(Datum::Text(value)), unit: None }
}
