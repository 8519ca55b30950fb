//! Streams: one long transfer per connection, each side logging what its kernel says about it.

pub mod client;
mod log;
pub mod server;
