//! Commands of the path MTU check.

pub mod echo;
pub mod facts;
pub mod state;
pub mod two_ended;
