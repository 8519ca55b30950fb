//! What a connection, or many of a kind, came to.

use super::{Owner, note};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// Sums of more kinds than these are not told apart by port: a client may use a port of its own for every connection.
const MOST_KINDS: usize = 4_000;

/// Which end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Something in the namespace listens, or has listened, on its port.
    Server,
    /// The other.
    Client,
}

/// What was seen of a connection, or of many that are alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The program; `None` where nobody was seen to hold it, and it is not known who listens.
    pub owner: Option<Owner>,
    /// Its own address; `None` of many.
    pub local: Option<SocketAddr>,
    /// The other end; `None` of many.
    pub remote: Option<SocketAddr>,
    /// Which end it is.
    pub role: Role,
    /// The server's port; `None` of many that differ.
    pub port: Option<u16>,
    /// Both ends are on this host.
    pub loopback: bool,
    /// How many it stands for.
    pub connections: u64,
    /// The congestion controls that were in force, in order.
    pub congestion_control: Vec<Arc<str>>,
    /// TCP_NODELAY as it was read, in order.
    pub nodelay: Vec<bool>,
    /// Payloads of full segments, in order.
    pub mss_bytes: Vec<u32>,
    /// Payload that was acknowledged.
    pub sent_bytes: u64,
    /// What was received.
    pub received_bytes: u64,
    /// When it was first seen.
    pub first_seconds: f64,
    /// When it was last seen, or told of.
    pub last_seconds: f64,
}

type Kind = (Option<Owner>, Role, Option<u16>, bool);

/// Sums of connections that are alike.
#[derive(Debug, Default)]
pub(super) struct Sums {
    kinds: BTreeMap<Kind, Summary>,
}

impl Sums {
    pub(super) fn add(&mut self, one: Summary) {
        let mut kind = (one.owner.clone(), one.role, one.port, one.loopback);
        if self.kinds.len() >= MOST_KINDS && !self.kinds.contains_key(&kind) {
            kind.2 = None;
        }
        let Some(sum) = self.kinds.get_mut(&kind) else {
            self.kinds.insert(kind.clone(), Summary { local: None, remote: None, port: kind.2, ..one });
            return;
        };
        sum.connections += one.connections;
        one.congestion_control.into_iter().for_each(|value| note(&mut sum.congestion_control, value));
        one.nodelay.into_iter().for_each(|value| note(&mut sum.nodelay, value));
        one.mss_bytes.into_iter().for_each(|value| note(&mut sum.mss_bytes, value));
        sum.sent_bytes = sum.sent_bytes.saturating_add(one.sent_bytes);
        sum.received_bytes = sum.received_bytes.saturating_add(one.received_bytes);
        sum.first_seconds = sum.first_seconds.min(one.first_seconds);
        sum.last_seconds = sum.last_seconds.max(one.last_seconds);
    }

    pub(super) fn connections(&self) -> u64 {
        self.kinds.values().map(|sum| sum.connections).sum()
    }

    pub(super) fn into_summaries(self) -> impl Iterator<Item = Summary> {
        self.kinds.into_values()
    }
}
