//! The detector on made jobs: who is named, when, in which words, and who never is.

mod sim;
mod simulated;
mod small;
mod stories;
