//! What routers and hosts said of a connection's packets: ICMP errors (RFC 792, RFC 1191, RFC 4443).

use crate::connection::{Connection, Side};
use crate::kinds::Kind;
use framegauge_packets::capture::IcmpNote;
use std::fmt::Write;
use std::net::IpAddr;

/// The type of "destination unreachable" in ICMP and ICMPv6.
const UNREACHABLE: [u8; 2] = [3, 1];
/// Silences that a message may explain.
const SILENCES: [Kind; 4] = [Kind::PmtuBlackHole, Kind::RtoStall, Kind::TailLoss, Kind::DoubleLoss];

/// The first message of each sort about one connection, and how many there were.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes {
    too_big: Option<TooBig>,
    unreachable: Option<Unreachable>,
}

/// Of several sizes the smallest.
#[derive(Debug, Clone, Copy)]
struct TooBig {
    number: u64,
    by: IpAddr,
    mtu: Option<u32>,
    /// The newest packet that somebody spoke of: who had sent it, and its place.
    sender: Side,
    place: u64,
}

#[derive(Debug, Clone, Copy)]
struct Unreachable {
    first: i64,
    last: i64,
    count: u64,
    number: u64,
    by: IpAddr,
    code: u8,
}

impl Connection {
    /// Takes a message about a segment of this connection.
    pub(crate) fn take_note(&mut self, note: &IcmpNote) {
        if note.is_too_big() {
            self.take_too_big(note);
        } else if note.kind == UNREACHABLE[usize::from(note.source.is_ipv6())] {
            let at = note.nanoseconds.max(self.last);
            let (number, by, code) = (note.number, note.source, note.code);
            let first = Unreachable { first: at, last: at, count: 0, number, by, code };
            let all = self.notes.unreachable.get_or_insert(first);
            all.last = all.last.max(at);
            all.count += 1;
        }
    }

    fn take_too_big(&mut self, note: &IcmpNote) {
        let Some(quoted) = note.quoted else { return };
        let sender = if quoted.source == self.ends.client { Side::Client } else { Side::Server };
        let place = self.half(sender).way.near(quoted.seq);
        let (number, by, mtu) = (note.number, note.source, note.mtu);
        let message = self.notes.too_big.get_or_insert(TooBig { number, by, mtu, sender, place });
        if mtu.is_some_and(|new| message.mtu.is_none_or(|old| new < old)) {
            (message.number, message.by, message.mtu) = (number, by, mtu);
        }
        (message.sender, message.place) = (sender, place);
    }

    /// At the end: a message that answered the SYN refused the connection; a later one is evidence for silences.
    pub(crate) fn judge_notes(&mut self) {
        if let Some(number) = self.notes.too_big.map(|message| message.number)
            && let Some(hole) = self.tallies.iter_mut().find(|tally| tally.kind == Kind::PmtuBlackHole)
        {
            hole.add_packet(number);
        }
        let Some(message) = self.notes.unreachable else { return };
        let answered = self.established || self.half(Side::Server).counts.segments() > 0;
        if !answered {
            self.note(Kind::ConnectionRefused, message.first, message.last, 0, &[message.number]);
            let last = self.tallies.last_mut().expect("just noted");
            last.count = last.count.max(message.count);
        }
        for tally in &mut self.tallies {
            if SILENCES.contains(&tally.kind) {
                tally.add_packet(message.number);
            }
        }
    }
}

impl Notes {
    /// A sentence that follows the text of a finding of this kind; empty if nothing was said about it.
    pub(crate) fn sentence(&self, kind: Kind) -> String {
        let mut text = String::new();
        if let (Kind::PmtuBlackHole, Some(message)) = (kind, self.too_big) {
            let size = message.mtu.map_or("a smaller size".to_owned(), |mtu| format!("at most {mtu} bytes"));
            let _ = write!(
                text,
                " {} asked for packets of {size} (ICMP, packet {}): that did not reach the sender, or it was not heeded.",
                message.by, message.number
            );
        }
        if let Some(message) = self.unreachable
            && SILENCES.contains(&kind)
        {
            let _ = write!(
                text,
                " {} said: {} (ICMP, packet {}).",
                message.by,
                message.meaning(),
                message.number
            );
        }
        text
    }

    /// Whether somebody spoke of what a sender had at places of this range, and packets of so many bytes are too big by that.
    pub(crate) fn refuse(&self, of: Side, (begin, end): (u64, u64), ip_bytes: u32) -> bool {
        let is_refused = |message: &TooBig| {
            message.sender == of
                && (begin..end).contains(&message.place)
                && message.mtu.is_none_or(|mtu| ip_bytes > mtu)
        };
        self.too_big.as_ref().is_some_and(is_refused)
    }

    /// Whether packets were too big for the path: their sender sends all of them again for each error, at once.
    pub(crate) fn tell_too_big(&self) -> bool {
        self.too_big.is_some()
    }

    /// What refused a connection, if it was no reset: "10.0.0.1 said: port unreachable (ICMP, packet 2)".
    pub(crate) fn refusal(&self) -> Option<String> {
        let message = self.unreachable?;
        Some(format!("{} said: {} (ICMP, packet {})", message.by, message.meaning(), message.number))
    }
}

impl Unreachable {
    /// The meaning of its code (RFC 792, RFC 1122 section 3.2.2.1, RFC 1812 section 5.2.7.1; RFC 4443 section 3.1).
    fn meaning(&self) -> &'static str {
        match (self.by.is_ipv4(), self.code) {
            (true, 0 | 6 | 11) | (false, 0) => "network unreachable",
            (true, 1 | 7 | 12) | (false, 3) => "host unreachable",
            (true, 2) => "protocol unreachable",
            (true, 3) | (false, 4) => "port unreachable",
            (true, 9 | 10 | 13) | (false, 1 | 5) => "forbidden by a filter",
            _ => "unreachable",
        }
    }
}
