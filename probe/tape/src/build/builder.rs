//! Records operations and how to go backward, then orders updates and places buffers.

use std::collections::{BTreeMap, BTreeSet};

use crate::op::{Kind, Op, Span};
use crate::plan::{Life, Request, line_up, place};
use crate::random::Fill;
use crate::tape::{State, Tape};

/// A part of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tensor {
    buffer: usize,
    offset: usize,
    pub(crate) len: usize,
}

impl Tensor {
    /// `len` elements from `offset` on.
    pub(crate) fn part(self, offset: usize, len: usize) -> Self {
        assert!(offset + len <= self.len, "{offset} + {len} of {}", self.len);
        Self { buffer: self.buffer, offset: self.offset + offset, len }
    }
}

/// How weights follow their gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Optimiser {
    pub(crate) rule: Rule,
    /// Updates come last and gradients stay until then, so that gradients can be changed before.
    pub(crate) apart: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rule {
    AdamW {
        rate: f64,
        decay: f64,
    },
    Nesterov {
        rate: f64,
        decay: f64,
    },
    /// Weights stay and gradients can be read after the step: for checking them.
    Keep,
}

impl Rule {
    /// Every weight is updated as soon as its gradient is there.
    pub(crate) const fn at_once(self) -> Optimiser {
        Optimiser { rule: self, apart: false }
    }

    /// Weights are updated after all gradients are there.
    pub(crate) const fn apart(self) -> Optimiser {
        Optimiser { rule: self, apart: true }
    }
}

struct Draft {
    kind: Kind,
    reads: Vec<Tensor>,
    writes: Vec<Tensor>,
}

struct Kept {
    name: String,
    tensor: Tensor,
    fill: Fill,
    trained: bool,
}

type Back = Box<dyn FnOnce(&mut Builder)>;

/// A tape that grows.
pub(crate) struct Builder {
    lengths: Vec<usize>,
    drafts: Vec<Draft>,
    kept: Vec<Kept>,
    gradients: BTreeMap<Tensor, Tensor>,
    backward: Vec<Back>,
    /// Number of samples or tokens of a step.
    items: usize,
    /// Whether convolutions gather their windows where that can be done, so that nobody writes these.
    pub(crate) implicit: bool,
}

impl Builder {
    pub(crate) fn new(items: usize) -> Self {
        Self {
            lengths: Vec::new(),
            drafts: Vec::new(),
            kept: Vec::new(),
            gradients: BTreeMap::new(),
            backward: Vec::new(),
            items,
            implicit: false,
        }
    }

    /// Whether convolutions gather their windows.
    pub(crate) fn implicit(self, implicit: bool) -> Self {
        Self { implicit, ..self }
    }

    /// A buffer that lives as long as it is needed within a step.
    pub(crate) fn buffer(&mut self, len: usize) -> Tensor {
        self.lengths.push(len);
        Tensor { buffer: self.lengths.len() - 1, offset: 0, len }
    }

    /// A buffer that is filled before the first step.
    pub(crate) fn data(&mut self, name: impl Into<String>, len: usize, fill: Fill) -> Tensor {
        let tensor = self.buffer(len);
        self.kept.push(Kept { name: name.into(), tensor, fill, trained: false });
        tensor
    }

    /// A buffer that the optimiser trains.
    pub(crate) fn weight(&mut self, name: impl Into<String>, len: usize, fill: Fill) -> Tensor {
        let tensor = self.buffer(len);
        self.kept.push(Kept { name: name.into(), tensor, fill, trained: true });
        tensor
    }

    pub(crate) fn op(&mut self, kind: Kind, reads: &[Tensor], writes: &[Tensor]) {
        self.drafts.push(Draft { kind, reads: reads.to_vec(), writes: writes.to_vec() });
    }

    /// `f` is called on the way back, last come first.
    pub(crate) fn on_the_way_back(&mut self, f: impl FnOnce(&mut Self) + 'static) {
        self.backward.push(Box::new(f));
    }

    /// The gradient that has gathered for `tensor`; a result that nobody used has none.
    pub(crate) fn gradient(&self, tensor: Tensor) -> Option<Tensor> {
        self.gradients.get(&tensor).copied()
    }

    /// Whether `tensor` is data, which needs no gradient.
    pub(crate) fn is_data(&self, tensor: Tensor) -> bool {
        self.kept.iter().any(|kept| kept.tensor.buffer == tensor.buffer && !kept.trained)
    }

    /// The gradient of `tensor` to be added to in place, zeros if there was none.
    pub(crate) fn gathered(&mut self, tensor: Tensor) -> Tensor {
        if let Some(gradient) = self.gradient(tensor) {
            let owners = self.gradients.values().filter(|g| g.buffer == gradient.buffer).count();
            assert_eq!(owners, 1, "a gradient that others use cannot be added to in place");
            return gradient;
        }
        let zeros = self.buffer(tensor.len);
        self.op(Kind::Zero, &[], &[zeros]);
        self.gradients.insert(tensor, zeros);
        zeros
    }

    /// Gives `tensor` one more gradient.
    pub(crate) fn give(&mut self, tensor: Tensor, gradient: Tensor) {
        assert_eq!(tensor.len, gradient.len);
        let total = match self.gradient(tensor) {
            None => gradient,
            Some(known) => {
                let sum = self.buffer(tensor.len);
                self.op(Kind::Add, &[known, gradient], &[sum]);
                sum
            }
        };
        self.gradients.insert(tensor, total);
    }

    /// Goes all the way back from the loss, adds the updates and places the buffers.
    pub(crate) fn finish(mut self, loss: Tensor, optimiser: Optimiser) -> Tape {
        while let Some(back) = self.backward.pop() {
            back(&mut self);
        }
        let gradients_stay = optimiser.apart || optimiser.rule == Rule::Keep;
        let backward = self.drafts.len();
        self.add_updates(optimiser);
        let mut lives = self.lives();
        let always = self.kept.iter().map(|kept| kept.tensor).chain([loss]);
        let gradients = self.kept.iter().filter_map(|kept| self.gradient(kept.tensor)).filter(|_| gradients_stay);
        for tensor in always.chain(gradients) {
            lives[tensor.buffer] = Some(Life::ALWAYS);
        }
        let line = if optimiser.apart { self.gradients_by_turn(backward) } else { Vec::new() };
        let (places, memory) = self.places(lives, &line);
        let span = |t: &Tensor| Span { offset: places[t.buffer].offset + t.offset, len: t.len };
        let state = |kept: &Kept| State {
            name: kept.name.clone(),
            span: span(&kept.tensor),
            fill: kept.fill,
            gradient: self.gradient(kept.tensor).filter(|_| gradients_stay && kept.trained).map(|g| span(&g)),
        };
        let op = |draft: &Draft| Op {
            kind: draft.kind,
            reads: draft.reads.iter().map(span).collect(),
            writes: draft.writes.iter().map(span).collect(),
        };
        Tape {
            ops: self.drafts.iter().map(op).collect(),
            memory,
            state: self.kept.iter().map(state).collect(),
            loss: span(&loss),
            parameters: self.kept.iter().filter(|kept| kept.trained).map(|kept| kept.tensor.len).sum(),
            items: self.items,
            updates: gradients_stay.then_some(backward),
        }
    }

    /// Buffers of gradients, in the order in which the operations before the updates are done with them.
    fn gradients_by_turn(&self, backward: usize) -> Vec<usize> {
        let buffers: BTreeSet<usize> = self
            .kept
            .iter()
            .filter(|kept| kept.trained)
            .filter_map(|kept| Some(self.gradient(kept.tensor)?.buffer))
            .collect();
        let last = |buffer: usize| {
            let touches = |draft: &Draft| draft.reads.iter().chain(&draft.writes).any(|t| t.buffer == buffer);
            self.drafts[..backward].iter().rposition(touches)
        };
        let mut turns: Vec<(Option<usize>, usize)> = buffers.into_iter().map(|buffer| (last(buffer), buffer)).collect();
        turns.sort_unstable();
        turns.into_iter().map(|(_, buffer)| buffer).collect()
    }

    /// Where each buffer lies, those of `line` one behind the other, and the size of the memory.
    fn places(&self, mut lives: Vec<Option<Life>>, line: &[usize]) -> (Vec<Span>, usize) {
        let (offsets, len) = line_up(line.iter().map(|buffer| self.lengths[*buffer]));
        line.iter().for_each(|buffer| lives[*buffer] = None);
        let whole = Request { len, life: (len > 0).then_some(Life::ALWAYS) };
        let buffers = self.lengths.iter().zip(lives).map(|(len, life)| Request { len: *len, life });
        let requests: Vec<Request> = buffers.chain([whole]).collect();
        let (mut places, memory) = place(&requests);
        let begin = places.pop().map_or(0, |whole| whole.offset);
        for (buffer, offset) in line.iter().zip(offsets) {
            places[*buffer] = Span { offset: begin + offset, len: self.lengths[*buffer] };
        }
        (places, memory)
    }

    /// Each weight is updated right after the last operation that touches it or its gradient, so that gradients do
    /// not wait in memory for the end of the step, unless updates are to come last.
    fn add_updates(&mut self, optimiser: Optimiser) {
        let mut updates: Vec<(usize, Draft)> = Vec::new();
        let trained: Vec<(Tensor, String)> =
            self.kept.iter().filter(|kept| kept.trained).map(|kept| (kept.tensor, kept.name.clone())).collect();
        for (weight, name) in trained {
            let Some(gradient) = self.gradient(weight) else { continue };
            let touches = |draft: &Draft| {
                draft.reads.iter().chain(&draft.writes).any(|t| [weight.buffer, gradient.buffer].contains(&t.buffer))
            };
            let last = self.drafts.len().saturating_sub(1);
            let after = if optimiser.apart { last } else { self.drafts.iter().rposition(touches).unwrap_or(0) };
            let mut moment = |what: &str| self.data(format!("{name}, {what}"), weight.len, Fill::Zero);
            let (kind, writes) = match optimiser.rule {
                Rule::AdamW { rate, decay } => {
                    let moments = [moment("first moment"), moment("second moment")];
                    (Kind::AdamW { rate, decay }, vec![weight, moments[0], moments[1]])
                }
                Rule::Nesterov { rate, decay } => (Kind::Nesterov { rate, decay }, vec![weight, moment("velocity")]),
                Rule::Keep => continue,
            };
            updates.push((after, Draft { kind, reads: vec![gradient], writes }));
        }
        // Last places first: the others stay where they are.
        updates.sort_by_key(|(after, _)| std::cmp::Reverse(*after));
        for (after, draft) in updates {
            self.drafts.insert(after + 1, draft);
        }
    }

    /// From the first to the last operation that touches a buffer.
    fn lives(&self) -> Vec<Option<Life>> {
        let mut lives: Vec<Option<Life>> = vec![None; self.lengths.len()];
        for (at, draft) in self.drafts.iter().enumerate() {
            for tensor in draft.reads.iter().chain(&draft.writes) {
                let life = lives[tensor.buffer].get_or_insert(Life { first: at, last: at });
                life.last = at;
            }
        }
        lives
    }
}
