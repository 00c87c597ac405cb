//! What the console shows and what its keys do.

mod keys;
mod picture;
mod replay;
mod screens;
mod synthetic;
mod triage;
mod watch;
