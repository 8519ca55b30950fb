//! The emulated rack: addresses and interfaces, what joins hosts to each other, and what the machine must offer.

pub mod addresses;
pub mod bare;
pub mod cpus;
pub mod join;
pub mod kernel_switch;
pub mod nics;
pub mod requirements;
pub mod speed;
mod workshop;
