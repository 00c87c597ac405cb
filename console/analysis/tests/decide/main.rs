//! What a node's state must hold, over generated fleets of many kinds of noise.

mod calibration;
mod families;
mod frozen;
mod oracle;
mod properties;
mod reasons;
mod regression;
mod run;
mod said;
