//! The network's schedules and localisation on made fabrics with planted faults, and on nothing but noise.

mod bisect;
mod edges;
mod localise;
mod made;
mod quick;
mod sim;
mod stake;
