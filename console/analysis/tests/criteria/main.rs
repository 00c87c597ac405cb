//! Criteria, rules and settings on made and on measured fleets: what is normal, who is not, and what the papers print of it.

mod edges;
mod figure9;
mod gpu_variability;
mod history;
mod noise;
mod rules;
mod scatter;
mod table5;
mod tune_refusals;
