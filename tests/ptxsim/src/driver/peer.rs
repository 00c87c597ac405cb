//! The calls about several devices.

#![expect(unsafe_code, reason = "a C interface: pointers come from the caller, who promises what cuda.h says")]

use std::ffi::{c_int, c_uint};

use super::calls::{done, give};
use super::errors::{ALREADY_OPEN, Code, INVALID_DEVICE, INVALID_VALUE, NO_PEER};
use super::queue::Work;
use super::state::state;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceCanAccessPeer(able: *mut c_int, device: c_int, peer: c_int) -> Code {
    let state = state();
    let link = usize::try_from(device).ok().and_then(|from| state.links.get(from)?.get(usize::try_from(peer).ok()?));
    match link {
        // SAFETY: passed on from the caller.
        Some(link) => unsafe { give(able, c_int::from(link.peers && device != peer)) },
        None => INVALID_DEVICE,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxEnablePeerAccess(context: usize, _flags: c_uint) -> Code {
    let mut state = state();
    let (here, Some(there)) = (state.current, context.checked_sub(1)) else { return INVALID_VALUE };
    match state.links[here].get(there) {
        Some(link) if link.peers && here != there => {}
        _ => return NO_PEER,
    }
    if state.opened.contains(&(here, there)) {
        return ALREADY_OPEN;
    }
    state.opened.push((here, there));
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyPeerAsync(
    to: u64,
    _to_context: usize,
    from: u64,
    _from_context: usize,
    size: usize,
    stream: usize,
) -> Code {
    done(state().enqueue(stream, Work::Copy { to, from, size }))
}
