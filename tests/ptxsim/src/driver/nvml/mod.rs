//! NVIDIA's management library, for those who load this file by its name: sensors and counters by the settings' script.

mod answer;
mod device;
mod events;
mod fields;
mod gpm;
mod lists;
mod records;
