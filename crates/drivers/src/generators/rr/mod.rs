//! Requests and responses over TCP.

pub mod client;
mod message;
pub mod server;
