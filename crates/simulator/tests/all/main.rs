//! All tests of the simulator in one program: it is linked once, and its tests run beside each other.

mod algorithms;
mod bbr;
mod bonds;
mod changes;
mod common;
mod continued;
mod exchanges;
mod known_answers;
mod laws;
mod lossless;
mod pacing;
mod path_mtus;
mod theory;
