//! All GPUs of this node as one rank of a training over many nodes: its process brings commands and the sums of all nodes, and
//! gets gradients.
//!
//! | command | answer |
//! |---|---|
//! | at the start | `gpus`, `engine`, `code` (what must be the same on all nodes), `words` of gradients and what lies between them |
//! | `begin FIRST` | GPU `i` trains on batch `FIRST + i`; `same`: a number of what batch 0 gives on every GPU here |
//! | `backward` | `loss`, summed over GPUs, `ms.I`: how long GPU `I` computed; the file holds the gradients, summed over GPUs |
//! | `update` | weights by what the file holds now; `weights`: a number of all of them, the same on every GPU; in every eighth step `same` |

use std::fs::File;
use std::io::BufRead;
use std::os::unix::fs::FileExt;

use muster_tape::Model;
use muster_wire::{Datum, Fact, Facts, Frame, Reading};

use crate::bench::usual;
use crate::driver::{Gpu, Pinned, Trouble};
use crate::nccl::Nccl;
use crate::parallel::suspects::{self, odd};
use crate::parallel::{MOST, Team, Way, open_all, wait};
use crate::train::{Plan, Precision};

/// The modules that a training uses.
const MODULES: [&str; 7] = ["tape", "norm", "image", "product", "attention", "wgmma", "peer"];

/// All GPUs are held to one batch after so many steps: a wrong gradient leaves everybody with the same wrong weights.
const EVERY: usize = 8;

/// The training of this rank, and how it is spoken to.
struct Member<'a> {
    gpus: &'a [Gpu],
    team: Team<'a>,
    way: Way<'a>,
    /// Words of the gradients.
    host: Pinned,
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
    path: &str,
    commands: &mut dyn BufRead,
    say: &mut dyn FnMut(Frame),
) -> Result<(), Trouble> {
    let words = |why: std::io::Error| Trouble::Failed(format!("{path}: {why}"));
    let file = File::options().read(true).write(true).open(path).map_err(words)?;
    let model = Model::ALL.into_iter().find(|model| model.name() == name);
    let model = model.ok_or_else(|| Trouble::NotRun(format!("there is no model '{name}'")))?;
    if gpus.len() > MOST {
        return Err(Trouble::NotRun(format!("{} GPUs, and sums are of up to {MOST}", gpus.len())));
    }
    let plan = Plan::new(model, usual(model), Precision::Bf16, 1);
    let direct = open_all(gpus)?;
    let nccl = if direct { None } else { library(gpus.len())? };
    let through_host = !direct && nccl.is_none();
    if let Some(why) = Team::lacks(gpus, &plan, through_host)? {
        return Err(Trouble::NotRun(format!("{name} {why}")));
    }
    let team = Team::new(gpus, &plan)?;
    let way = match &nccl {
        _ if gpus.len() == 1 => Way::Alone,
        _ if direct => Way::direct(team.sides(), team.parts())?,
        Some(nccl) => Way::Nccl(nccl),
        None => Way::host(team.sides(), team.parts())?,
    };
    let host = Pinned::new(team.replicas.first().map_or(0, |replica| replica.gradients().len))?;
    let mut member = Member { gpus, team, way, host, file, first: 0, steps: 0, say };
    member.introduce(&plan)?;
    for line in commands.lines() {
        member.obey(&line.map_err(words)?)?;
    }
    Ok(())
}

/// NCCL with all GPUs brought together, where it is on the node.
fn library(count: usize) -> Result<Option<Nccl>, Trouble> {
    match Nccl::load() {
        Ok(mut nccl) => nccl.meet(count).map(|()| Some(nccl)),
        Err(Trouble::Failed(why)) => Err(Trouble::Failed(why)),
        Err(Trouble::Absent(_) | Trouble::NotRun(_)) => Ok(None),
    }
}

impl Member<'_> {
    fn introduce(&mut self, plan: &Plan) -> Result<(), Trouble> {
        let Some(first) = self.gpus.first() else { return Err(Trouble::Absent("no GPU".to_owned())) };
        let codes = self.gpus.iter().map(|gpu| gpu.identity("tape", &MODULES)).collect::<Result<Vec<_>, _>>()?;
        if codes.iter().any(|code| *code != codes[0]) {
            return Err(Trouble::NotRun("GPUs of several kinds".to_owned()));
        }
        let (items, engine) = (plan.tape.items, self.way.engine(first.engine));
        let code = format!("{}, {items} items, bf16", codes[0]);
        let facts = vec![
            number("gpus", self.gpus.len() as f64),
            text("engine", engine),
            text("code", code),
            number("words", self.host.words().len() as f64),
        ];
        self.tell(facts);
        Ok(())
    }

    fn obey(&mut self, line: &str) -> Result<(), Trouble> {
        let facts = match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["begin", first] => self.begin(first.parse().map_err(|_| unknown(line))?)?,
            ["backward"] => self.backward()?,
            ["update"] => self.update()?,
            _ => return Err(unknown(line)),
        };
        self.tell(facts);
        Ok(())
    }

    /// Makes sure that all GPUs and ways are sound, and goes to before the first step.
    fn begin(&mut self, first: u64) -> Result<Vec<Fact>, Trouble> {
        sound(suspects::all(&self.team, &self.way)?)?;
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
        let ms = self.team.backward(&self.way)?;
        let replica = &self.team.replicas[0];
        let at = replica.at(replica.gradients());
        replica.gpu.get_at(self.host.words(), at)?;
        self.file.write_all_at(self.host.bytes(), 0).map_err(|why| Trouble::Failed(why.to_string()))?;
        let losses = self.team.replicas.iter().map(|replica| replica.loss()).collect::<Result<Vec<f32>, Trouble>>()?;
        let times = ms.into_iter().enumerate().map(|(gpu, ms)| number(&format!("ms.{gpu}"), ms));
        let loss = number("loss", losses.into_iter().map(f64::from).sum());
        Ok(std::iter::once(loss).chain(times).collect())
    }

    fn update(&mut self) -> Result<Vec<Fact>, Trouble> {
        self.file.read_exact_at(self.host.bytes(), 0).map_err(|why| Trouble::Failed(why.to_string()))?;
        self.steps += 1;
        for replica in &self.team.replicas {
            replica.gpu.put_at(replica.at(replica.gradients()), self.host.words())?;
            replica.update()?;
        }
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

    fn tell(&mut self, facts: Vec<Fact>) {
        (self.say)(Frame::Facts(Facts { collector: "train".to_owned(), facts }));
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
