//! Triage of bundles: made, misleading, recorded and real ones, and what is said of them word for word.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

mod dev;
mod made;
mod misled;
mod pytorch_gloo;
mod ras_dialects;
mod words;
