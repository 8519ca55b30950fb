//! Routers that ask for smaller packets (ICMP "fragmentation needed", RFC 1191; ICMPv6 "packet too big", RFC 8201), where
//! the capture does not have the packets that they quote.
//!
//! What belongs to a connection of the capture is evidence for its findings (`notes.rs`). The rest is all that the capture
//! has of a smaller link, and is told by itself: who said it, to whom, and which size fits.

use crate::findings::{Finding, MOST_PACKETS};
use crate::keys::Key;
use crate::kinds::Kind;
use framegauge_packets::capture::IcmpNote;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// More are not kept: somebody floods.
const MOST_NOTES: usize = 1 << 16;
/// A connection that begins within this, in nanoseconds, may be the one that was spoken of.
const SAME_CONNECTION: i64 = 60_000_000_000;

/// Messages that belong to no connection so far.
#[derive(Debug, Default)]
pub(crate) struct Unclaimed(Vec<(Option<Key>, IcmpNote)>);

impl Unclaimed {
    /// Keeps a message about a packet of the connection `key`, if it says of which.
    pub(crate) fn take(&mut self, key: Option<Key>, note: &IcmpNote) {
        if note.is_too_big() && self.0.len() < MOST_NOTES {
            self.0.push((key, *note));
        }
    }

    /// Gives away those about a connection that begins now.
    pub(crate) fn claim(&mut self, key: Key, now: i64) -> Vec<IcmpNote> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let is_of = |(of, note): &(Option<Key>, IcmpNote)| {
            *of == Some(key) && now.saturating_sub(note.nanoseconds) <= SAME_CONNECTION
        };
        let (own, rest) = std::mem::take(&mut self.0).into_iter().partition(is_of);
        self.0 = rest;
        let own: Vec<(Option<Key>, IcmpNote)> = own;
        own.into_iter().map(|(_, note)| note).collect()
    }

    /// Adds those of another share of the capture.
    pub(crate) fn add(&mut self, other: Unclaimed) {
        self.0.extend(other.0);
        self.0.sort_by_key(|(_, note)| note.number);
        self.0.truncate(MOST_NOTES);
    }

    /// One finding for each router, sender and size.
    pub(crate) fn findings(self, origin: Option<i64>) -> Vec<Finding> {
        let mut groups: BTreeMap<(IpAddr, IpAddr, Option<u32>), Vec<IcmpNote>> = BTreeMap::new();
        for (_, note) in self.0 {
            groups.entry((note.source, note.destination, note.mtu)).or_default().push(note);
        }
        groups.into_values().map(|all| finding(&all, origin)).collect()
    }
}

fn finding(all: &[IcmpNote], origin: Option<i64>) -> Finding {
    let first = all[0];
    // Without TCP the capture's time begins with the message, and a message before all TCP is at its beginning.
    let seconds = |at: i64| at.saturating_sub(origin.unwrap_or(first.nanoseconds)).max(0) as f64 / 1e9;
    let (begin, end) = all.iter().fold((i64::MAX, i64::MIN), |(begin, end), note| {
        (begin.min(note.nanoseconds), end.max(note.nanoseconds))
    });
    Finding {
        kind: Kind::PacketTooBig,
        connection: None,
        begin_seconds: seconds(begin),
        end_seconds: seconds(end),
        count: all.len() as u64,
        lost_seconds: 0.0,
        packets: all.iter().map(|note| note.number).take(MOST_PACKETS).collect(),
        text: text(&first),
        remedy: Kind::PacketTooBig.remedy(),
    }
}

fn text(note: &IcmpNote) -> String {
    let (by, to, number) = (note.source, note.destination, note.number);
    let about = match note.quoted {
        Some(quoted) => {
            format!("a packet of {} bytes from {} to {}", quoted.ip_bytes, quoted.source, quoted.destination)
        }
        None => "a packet".to_owned(),
    };
    let size = match note.mtu {
        Some(mtu) => format!("the next link carries at most {mtu} bytes"),
        None => "which size the next link carries it does not say".to_owned(),
    };
    format!(
        "{by} told {to} that {about} is too large for the next link: {size} (ICMP, packet {number}). The capture does not \
         have the packets that this is about, so it cannot tell whether their sender heeded it.",
    )
}
