//! The workers of one benchmark: one per GPU, heard together, ended when they are silent or nobody wants them.

use std::process::Child;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use muster_wire::{Frame, Outcome, Progress};

use super::program::Program;
use super::worker::{self, News};
use crate::bench::Context;
use crate::steps::Halt;

/// The team is looked after this often.
const TICK: Duration = Duration::from_millis(50);

struct Member {
    gpu: usize,
    child: Option<Child>,
    /// When it last got on with its work; signs of life are no work.
    moved: Instant,
    /// How long it had been without a core then, once that was looked at.
    starved: Option<Duration>,
    /// What it was doing then, and how much was done.
    at: (String, f64),
    ended: Option<Outcome>,
}

pub(super) struct Team {
    members: Vec<Member>,
    news: Receiver<(usize, News)>,
}

impl Team {
    /// Starts one worker for each GPU with its arguments.
    pub(super) fn start(program: &Program, work: Vec<(usize, Vec<String>)>) -> Self {
        let (post, news) = channel();
        let member = |(gpu, arguments): (usize, Vec<String>)| {
            let (child, ended) = match program.start(&arguments) {
                Ok(mut child) => {
                    worker::hear(gpu, &mut child, post.clone());
                    (Some(child), None)
                }
                Err(why) => (None, Some(Outcome::Failed(format!("the GPU worker does not start: {why}")))),
            };
            Member { gpu, child, moved: Instant::now(), starved: None, at: ("starting".to_owned(), 0.0), ended }
        };
        Self { members: work.into_iter().map(member).collect(), news }
    }

    /// Hears all of them out, each for as long as it gets on with its work within `limit`; the GPUs that did not end well.
    pub(super) fn listen(mut self, limit: Duration, context: &mut Context<'_>) -> Result<Vec<(usize, Outcome)>, Halt> {
        while self.members.iter().any(|member| member.ended.is_none()) {
            match self.news.recv_timeout(TICK) {
                Ok((gpu, News::Said(frame))) => self.take(gpu, frame, context),
                Ok((gpu, News::Silent(why))) => {
                    if let Some(member) = self.members.iter_mut().find(|m| m.gpu == gpu && m.ended.is_none()) {
                        let at = member.at.0.clone();
                        member.ended = member.child.as_mut().map(|child| worker::post_mortem(child, why, &at));
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if context.stop.load(Ordering::Relaxed) {
                return Err(Halt::Stopped);
            }
            self.members.iter_mut().for_each(|member| member.give_up(limit));
        }
        let ended = self.members.iter_mut().filter_map(|m| Some((m.gpu, m.ended.take()?)));
        Ok(ended.filter(|(_, outcome)| *outcome != Outcome::Done).collect())
    }

    fn take(&mut self, gpu: usize, frame: Frame, context: &mut Context<'_>) {
        let Some(index) = self.members.iter().position(|m| m.gpu == gpu && m.ended.is_none()) else { return };
        if matches!(frame, Frame::Beat(_)) {
            return;
        }
        (self.members[index].moved, self.members[index].starved) = (Instant::now(), None);
        match frame {
            Frame::Finished(end) => self.members[index].ended = Some(end.outcome),
            Frame::Progress(progress) => {
                self.members[index].at = (progress.note.clone(), progress.done.clamp(0.0, 1.0));
                let done = self.members.iter().map(|m| if m.ended.is_some() { 1.0 } else { m.at.1 }).sum::<f64>();
                (context.emit)(Frame::Progress(Progress { done: done / self.members.len() as f64, ..progress }));
            }
            Frame::Series(_) | Frame::Facts(_) | Frame::Log(_) => (context.emit)(frame),
            _ => {}
        }
    }
}

impl Member {
    /// Ends it when it did not get on for `limit`, not counting the time for which others held its core.
    fn give_up(&mut self, limit: Duration) {
        if self.ended.is_some() {
            return;
        }
        let starved = self.child.as_ref().map(worker::starved).unwrap_or_default();
        let before = *self.starved.get_or_insert(starved);
        if self.moved.elapsed() < limit + starved.saturating_sub(before) {
            return;
        }
        let stuck = self.child.as_mut().and_then(worker::end).map(|why| format!("; {why}")).unwrap_or_default();
        let why = format!("hang: no progress for {} s after '{}'{stuck}", limit.as_secs(), self.at.0);
        self.ended = Some(Outcome::Failed(why));
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        for child in self.members.iter_mut().filter_map(|member| member.child.as_mut()) {
            worker::end(child);
        }
    }
}
