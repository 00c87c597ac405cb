//! Work side by side on one GPU: a second stream, and how long both take together.

use cudarc::driver::result;
use cudarc::driver::sys::CUresult;

use super::{Gpu, Trouble, event, failed};

#[expect(unsafe_code, reason = "driver calls")]
impl Gpu {
    /// The same GPU with a stream of its own.
    ///
    /// # Errors
    /// With the driver's words.
    pub fn beside(&self) -> Result<Self, Trouble> {
        self.enter()?;
        let stream =
            result::stream::create(result::stream::StreamKind::NonBlocking).map_err(failed("cuStreamCreate"))?;
        Ok(Self { stream, begin: event()?, end: event()?, mark: event()?, ..self.clone() })
    }

    /// Marks on the stream where a time begins that [`Gpu::clocked`] tells.
    ///
    /// # Errors
    /// With the driver's words.
    pub fn start_clock(&self) -> Result<(), Trouble> {
        self.enter()?;
        // SAFETY: stream and event are ours and live as long as the process.
        unsafe { result::event::record(self.begin, self.stream) }.map_err(failed("cuEventRecord"))
    }

    /// Marks where it ends.
    ///
    /// # Errors
    /// With the driver's words.
    pub fn stop_clock(&self) -> Result<(), Trouble> {
        self.enter()?;
        // SAFETY: as above.
        unsafe { result::event::record(self.end, self.stream) }.map_err(failed("cuEventRecord"))
    }

    /// Whether the stream has come to where the time ends.
    ///
    /// # Errors
    /// When something before it went wrong.
    pub fn clock_stopped(&self) -> Result<bool, Trouble> {
        self.enter()?;
        // SAFETY: the event is ours.
        match unsafe { result::event::query(self.end) } {
            Ok(()) => Ok(true),
            Err(error) if error.0 == CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            Err(error) => Err(failed("waiting for the GPU")(error)),
        }
    }

    /// Milliseconds between the two marks, once the stream was waited for.
    ///
    /// # Errors
    /// With the driver's words, and when the marks have not come yet.
    pub fn clocked(&self) -> Result<f64, Trouble> {
        self.enter()?;
        // SAFETY: both events are ours; one that has not happened is an error of the call.
        let ms = unsafe { result::event::elapsed(self.begin, self.end) }.map_err(failed("cuEventElapsedTime"))?;
        Ok(f64::from(ms))
    }

    /// Milliseconds from a common start until what `here` puts on this stream is done, and until what `there` puts on the
    /// other's is.
    ///
    /// # Errors
    /// Those of the work, and of the driver.
    pub fn together(
        &self,
        other: &Self,
        here: &mut dyn FnMut() -> Result<(), Trouble>,
        there: &mut dyn FnMut() -> Result<(), Trouble>,
    ) -> Result<(f64, f64), Trouble> {
        let ms = self.timed(&mut || {
            self.mark()?;
            other.follow(self)?;
            there()?;
            // SAFETY: stream and event are ours and live as long as the process.
            unsafe { result::event::record(other.end, other.stream) }.map_err(failed("cuEventRecord"))?;
            here()
        })?;
        other.wait()?;
        // SAFETY: both events were recorded in one context and have happened.
        let beside = unsafe { result::event::elapsed(self.begin, other.end) }.map_err(failed("timing"))?;
        Ok((ms, f64::from(beside)))
    }
}
