//! What the console shows and what its keys do.

mod keys;
mod picture;
mod replay;
mod screens;
mod service;
mod synthetic;
mod triage;
mod watch;
