//! The one memory of a tape, which many threads read and write at once, and who may touch which part when.

use std::ops::Range;

use crate::number::Number;
use crate::op::{Op, Span};

use super::Error;

/// Elements of a tape. Kept as a pointer: threads hold slices of it that never overlap.
#[derive(Debug)]
pub(super) struct Memory<T> {
    start: *mut T,
    len: usize,
    /// Owns the elements; never touched while slices are out.
    _elements: Vec<T>,
}

#[expect(unsafe_code, reason = "threads work on disjoint parts of one memory")]
// SAFETY: elements are plain numbers, and `Io` hands out slices by the rules written there.
unsafe impl<T: Send> Send for Memory<T> {}
#[expect(unsafe_code, reason = "threads work on disjoint parts of one memory")]
// SAFETY: as above.
unsafe impl<T: Send> Sync for Memory<T> {}

impl<T: Number> Memory<T> {
    pub(super) fn new(len: usize) -> Result<Self, Error> {
        let bytes = len.saturating_mul(size_of::<T>());
        let mut elements: Vec<T> = Vec::new();
        elements.try_reserve_exact(len).map_err(|_| Error::NoMemory { bytes })?;
        elements.resize(len, T::ZERO);
        Ok(Self { start: elements.as_mut_ptr(), len, _elements: elements })
    }

    /// # Safety
    /// Nobody writes the range while the slice lives.
    #[expect(unsafe_code, reason = "threads work on disjoint parts of one memory")]
    unsafe fn slice(&self, range: Range<usize>) -> &[T] {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {}", self.len);
        // SAFETY: in bounds by the assertion, alive as long as `self`, unwritten by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.start.add(range.start), range.len()) }
    }

    /// # Safety
    /// Nobody else reads or writes the range while the slice lives.
    #[expect(unsafe_code, reason = "threads work on disjoint parts of one memory")]
    #[expect(clippy::mut_from_ref, reason = "exclusive by the caller's promise")]
    unsafe fn slice_mut(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {}", self.len);
        // SAFETY: in bounds by the assertion, alive as long as `self`, exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }

    /// Writes every element of a span. Called while no operation runs.
    #[expect(unsafe_code, reason = "threads work on disjoint parts of one memory")]
    pub(super) fn set(&self, span: Span, element: impl Fn(usize) -> T) {
        // SAFETY: only the thread that starts operations calls this, between them: no other slice is out.
        let elements = unsafe { self.slice_mut(span.offset..span.end()) };
        elements.iter_mut().enumerate().for_each(|(at, x)| *x = element(at));
    }

    /// One element. Called while no operation runs.
    #[expect(unsafe_code, reason = "threads work on disjoint parts of one memory")]
    pub(super) fn get(&self, at: usize) -> T {
        // SAFETY: only the thread that starts operations calls this, between them: nobody writes.
        unsafe { self.slice(at..at + 1)[0] }
    }

    /// A span, for who alone has the memory.
    #[expect(unsafe_code, reason = "threads work on disjoint parts of one memory")]
    pub(super) fn own(&mut self, span: Span) -> &mut [T] {
        // SAFETY: `&mut self`: no other slice is out.
        unsafe { self.slice_mut(span.offset..span.end()) }
    }

    #[expect(unsafe_code, reason = "threads work on disjoint parts of one memory")]
    pub(super) fn all(&mut self) -> &mut [T] {
        // SAFETY: `&mut self`: no other slice is out.
        unsafe { self.slice_mut(0..self.len) }
    }
}

/// One operation's inputs and outputs, as one part of it sees them.
///
/// INVARIANT: an operation's outputs overlap neither its inputs nor each other ([`crate::Tape`] is checked for it when
/// it is built), two parts of an operation write disjoint ranges (a test runs every kind and looks), a part takes no
/// range for writing twice at the same time, and no operation starts before the one before it has ended.
pub(super) struct Io<'a, T> {
    pub(super) op: &'a Op,
    pub(super) memory: &'a Memory<T>,
    /// Steps done before this one.
    pub(super) step: u32,
    pub(super) threads: usize,
    /// Hears what is taken for writing.
    #[cfg(test)]
    pub(super) written: Option<&'a std::cell::RefCell<Vec<Range<usize>>>>,
}

impl<'a, T: Number> Io<'a, T> {
    /// All of input number `input`.
    #[expect(unsafe_code, reason = "threads work on disjoint parts of one memory")]
    pub(super) fn read(&self, input: usize) -> &'a [T] {
        let span = self.op.reads[input];
        // SAFETY: by the invariant nobody writes an input of the operation that runs.
        unsafe { self.memory.slice(span.offset..span.end()) }
    }

    /// A range of output number `output`, with what it holds.
    #[expect(unsafe_code, reason = "threads work on disjoint parts of one memory")]
    pub(super) fn write(&self, output: usize, range: Range<usize>) -> &'a mut [T] {
        let span = self.op.writes[output];
        assert!(range.end <= span.len, "{range:?} of output {output}, {span:?}");
        let range = span.offset + range.start..span.offset + range.end;
        #[cfg(test)]
        self.written.iter().for_each(|written| written.borrow_mut().push(range.clone()));
        // SAFETY: by the invariant nobody else touches this part's range of an output.
        unsafe { self.memory.slice_mut(range) }
    }
}
