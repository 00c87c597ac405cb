//! Work that is recorded once and started again as a whole.

use cudarc::driver::{result, sys};

use super::{Gpu, Trouble, failed};

/// Recorded work, given back when dropped.
#[derive(Debug)]
pub struct Graph(sys::CUgraphExec);

#[expect(unsafe_code, reason = "driver calls")]
impl Gpu {
    /// Records what `work` puts on the stream instead of doing it.
    ///
    /// # Errors
    /// Those of `work`, and of the driver.
    pub fn record(&self, work: &mut dyn FnMut() -> Result<(), Trouble>) -> Result<Graph, Trouble> {
        let wrong = failed("recording a graph");
        self.enter()?;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is ours.
        unsafe { result::stream::begin_capture(self.stream, mode) }.map_err(&wrong)?;
        let put = work();
        // SAFETY: the capture was begun above; it ends whatever became of the work.
        let graph = unsafe { result::stream::end_capture(self.stream) };
        put?;
        let graph = graph.map_err(&wrong)?;
        // SAFETY: the graph was just recorded, and is no longer needed once it was instantiated.
        unsafe {
            let made = result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0)).map_err(&wrong);
            result::graph::destroy(graph).map_err(&wrong)?;
            made.map(Graph)
        }
    }

    /// Puts recorded work on the stream.
    ///
    /// # Errors
    /// When the driver does not take it.
    pub fn replay(&self, graph: &Graph) -> Result<(), Trouble> {
        self.enter()?;
        // SAFETY: graph and stream are ours.
        unsafe { result::graph::launch(graph.0, self.stream) }.map_err(failed("cuGraphLaunch"))
    }
}

#[expect(unsafe_code, reason = "a handle of the driver")]
impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made by `Gpu::record`, given back once; the driver keeps it while it runs.
        let _ = unsafe { result::graph::exec_destroy(self.0) };
    }
}
