//! The pipe: its messages, and one conversation on it.

pub mod call;
pub mod fields;
pub mod lock;
pub mod message;
pub mod serve;
