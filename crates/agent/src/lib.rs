//! The parts of `framegauge-agent`, apart from its `main`: what reads foreign bytes here is given to fuzzers too.
#![allow(clippy::disallowed_methods)]

pub mod arguments;
mod check;
pub mod dispatch;
mod general;
mod generators;
mod host;
pub mod pipe;
pub mod rack;
pub mod tools;
