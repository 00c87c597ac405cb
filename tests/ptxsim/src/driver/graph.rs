//! Work that is recorded instead of done, and started again as a whole.

#![expect(unsafe_code, reason = "a C interface: pointers come from the caller, who promises what cuda.h says")]

use std::ffi::c_int;

use super::calls::{done, give};
use super::errors::{Code, INVALID_HANDLE, INVALID_VALUE, SUCCESS};
use super::queue::Work;
use super::state::{LATENCY, State, state};

impl State {
    /// Does the work of a graph. The device has its kernels at hand: all but the first start in a quarter of the time.
    pub(super) fn replay(&mut self, card: usize, graph: usize) {
        for (number, work) in self.graphs[graph].clone().into_iter().enumerate() {
            self.execute(card, work);
            if number > 0 {
                self.cards[card].now -= 0.75 * LATENCY;
            }
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamBeginCapture_v2(stream: usize, _mode: c_int) -> Code {
    let mut state = state();
    match stream.checked_sub(1).and_then(|at| state.streams.get_mut(at)) {
        Some(stream) if stream.recorded.is_none() => {
            stream.recorded = Some(Vec::new());
            SUCCESS
        }
        _ => INVALID_HANDLE,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamEndCapture(stream: usize, graph: *mut usize) -> Code {
    let mut state = state();
    let recorded = stream.checked_sub(1).and_then(|at| state.streams.get_mut(at)?.recorded.take());
    let Some(work) = recorded else { return INVALID_HANDLE };
    state.graphs.push(work);
    // SAFETY: passed on from the caller.
    unsafe { give(graph, state.graphs.len()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphInstantiateWithFlags(ready: *mut usize, graph: usize, _flags: u64) -> Code {
    let mut state = state();
    if graph == 0 || graph > state.graphs.len() {
        return INVALID_VALUE;
    }
    state.ready += 1;
    // SAFETY: passed on from the caller.
    unsafe { give(ready, graph) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphLaunch(ready: usize, stream: usize) -> Code {
    let mut state = state();
    let Some(graph) = ready.checked_sub(1).filter(|at| *at < state.graphs.len()) else { return INVALID_HANDLE };
    done(state.enqueue(stream, Work::Replay { graph }))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphDestroy(_graph: usize) -> Code {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphExecDestroy(_ready: usize) -> Code {
    let mut state = state();
    state.ready = state.ready.saturating_sub(1);
    SUCCESS
}
