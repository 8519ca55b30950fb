//! Datagrams: one end sends them when `traffic` says so, the other writes down what came, and when.

pub mod receiver;
pub mod sender;
