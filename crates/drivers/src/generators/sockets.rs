//! The TCP sockets of a host, as its kernel lists them.

pub use framegauge_linux::sock_diag::{ConnectedSocket, connected_sockets, listening_sockets};
