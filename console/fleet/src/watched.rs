//! What has the other side said so far? A byte stream that remembers the beginning, for error messages.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const KEPT: usize = 120;

/// The first bytes received, shared with whoever explains a failure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beginning(Arc<Mutex<Vec<u8>>>);

impl Beginning {
    /// Whether anything was received.
    pub(crate) fn silent(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Whether an SSH banner was received.
    pub(crate) fn banner(&self) -> bool {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.split(|b| *b == b'\n').any(|line| line.starts_with(b"SSH-"))
    }

    /// The first line, cleaned.
    pub(crate) fn line(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let line = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
        muster_wire::clean(&String::from_utf8_lossy(line), KEPT).trim().to_owned()
    }

    fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = KEPT.saturating_sub(kept.len());
        kept.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
    }
}

/// A stream and its [`Beginning`].
#[derive(Debug)]
pub(crate) struct Watched<S> {
    stream: S,
    beginning: Beginning,
    full: bool,
}

impl<S> Watched<S> {
    pub(crate) fn new(stream: S, beginning: Beginning) -> Self {
        Self { stream, beginning, full: false }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buf);
        if !self.full {
            let new = buf.filled().get(before..).unwrap_or_default();
            self.beginning.add(new);
            self.full = before + new.len() >= KEPT;
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
