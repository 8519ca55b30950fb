//! Commands of a rack agent: the emulated rack, its hosts and what it measures.

pub mod bare;
pub mod child;
pub mod measure;
pub mod members;
pub mod names;
mod outside;
pub mod params;
pub mod predict;
pub mod relay;
pub mod requirements;
pub mod set;
pub mod speed;
pub mod state;
pub mod up;
