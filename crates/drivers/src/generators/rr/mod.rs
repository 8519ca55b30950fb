//! Requests and responses over TCP.

pub mod client;
pub(crate) mod message;
pub(crate) mod opening;
pub mod sent;
pub mod server;
