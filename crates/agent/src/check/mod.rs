//! Commands of the path MTU check.

pub mod echo;
pub mod facts;
pub mod two_ended;
