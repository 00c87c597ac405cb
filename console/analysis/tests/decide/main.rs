//! What a node's state must hold, over generated fleets of many kinds of noise.

mod again;
mod calibration;
mod families;
mod faults;
mod frozen;
mod oracle;
mod properties;
mod reasons;
mod regression;
mod run;
mod said;
