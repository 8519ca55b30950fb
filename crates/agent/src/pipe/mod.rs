//! The pipe: its messages, and one conversation on it.

pub mod fields;
pub mod message;
pub mod serve;
