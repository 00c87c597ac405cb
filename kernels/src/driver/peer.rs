//! Several GPUs of one node: whose memory a GPU opens, what is copied between them, and who waits for whom.

use std::ffi::{c_int, c_void};

use cudarc::driver::result;
use cudarc::driver::sys;

use super::{Buffer, Gpu, Trouble, failed};

#[expect(unsafe_code, reason = "driver calls")]
impl Gpu {
    /// Lets this GPU read and write the memory of `peer` directly; false where the machine has no such way.
    ///
    /// # Errors
    /// With the driver's words.
    pub fn open_peer(&self, peer: &Self) -> Result<bool, Trouble> {
        self.enter()?;
        let mut able: c_int = 0;
        // SAFETY: both devices came from the driver; the pointer is to a local that outlives the call.
        unsafe { sys::cuDeviceCanAccessPeer(&raw mut able, self.device, peer.device) }
            .result()
            .map_err(failed("cuDeviceCanAccessPeer"))?;
        if able == 0 {
            return Ok(false);
        }
        // SAFETY: the context of the other GPU is retained for the life of the process.
        match unsafe { sys::cuCtxEnablePeerAccess(peer.context, 0) } {
            sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(true),
            code => code.result().map(|()| true).map_err(failed("cuCtxEnablePeerAccess")),
        }
    }

    /// Copies a buffer of this GPU to one of another with the copy engine: directly where peer access was opened, else
    /// through the host, as the driver chooses.
    ///
    /// # Errors
    /// When the driver does not take it.
    pub fn send(&self, from: &Buffer, (to, peer): (&Buffer, &Self)) -> Result<(), Trouble> {
        self.send_bytes(from.address(), (to.address(), peer), from.bytes.min(to.bytes))
    }

    /// The same of `bytes` bytes from an address of this GPU to one of another.
    ///
    /// # Errors
    /// When the driver does not take it.
    pub fn send_bytes(&self, from: u64, (to, peer): (u64, &Self), bytes: usize) -> Result<(), Trouble> {
        self.enter()?;
        // SAFETY: both contexts are retained for the life of the process; an address outside of what was allocated is an error
        // that the driver tells.
        unsafe { result::memcpy_peer_async(peer.context, to, self.context, from, bytes, self.stream) }
            .map_err(failed("copy to another GPU"))
    }

    /// Its stream, for libraries that put work on it.
    #[must_use]
    pub const fn stream(&self) -> *mut c_void {
        self.stream.cast()
    }

    /// Marks what was put on this GPU's stream up to now, for those who [`follow`](Self::follow).
    ///
    /// # Errors
    /// With the driver's words.
    pub fn mark(&self) -> Result<(), Trouble> {
        self.enter()?;
        // SAFETY: event and stream are ours and of one context.
        unsafe { result::event::record(self.mark, self.stream) }.map_err(failed("cuEventRecord"))
    }

    /// What is put on this GPU's stream from now on begins after the last mark of `other`.
    ///
    /// # Errors
    /// With the driver's words.
    pub fn follow(&self, other: &Self) -> Result<(), Trouble> {
        self.enter()?;
        let plain = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: stream and event live as long as their GPUs are open.
        unsafe { result::stream::wait_event(self.stream, other.mark, plain) }.map_err(failed("cuStreamWaitEvent"))
    }
}
