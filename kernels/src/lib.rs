//! GPU kernels as they are shipped, what each must compute, and the worker that runs them.

pub mod code;
pub mod twin;
