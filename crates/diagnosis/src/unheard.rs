//! Servers that send their SYN-ACK again although the client's ACK of it has passed here.
//!
//! ```text
//!   client             tap            server
//!      SYN ──────────────────────────────▶
//!      ◀────────────────────────── SYN ACK
//!      ACK ──────────────|───────▶ ?        lost behind the tap, or dropped by a server whose accept queue is full
//!      data ─────────────|───────▶ ?        not taken either, and sent again: that is no loss of its own
//!      ◀─────────────────|──────── SYN ACK  it repeats what it takes for unanswered
//! ```
//!
//! Linux drops the ACK, and what follows it, while the accept queue is full (`listen(2)`, `tcp_abort_on_overflow`). A SYN-ACK
//! that left before the ACK could arrive tells nothing.

use crate::connection::{Connection, Side};
use crate::findings::Tally;
use crate::kinds::Kind;
use crate::words::{duration, times};
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

/// The first timeout of a SYN-ACK (RFC 6298 section 2.1): where nobody knows how far the server is, one that left before
/// the ACK arrived cannot come later.
const FIRST_TIMEOUT: i64 = 1_000_000_000;
/// A tap this part of an RTT from the server is beside it.
const BESIDE: i64 = 8;

/// What the server should have heard.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unheard {
    /// When the client's ACK passed, and its packet.
    answered: Option<(i64, u64)>,
    /// When the newest SYN-ACK came that takes no notice of it.
    newest: Option<i64>,
    /// How many came.
    repeats: u64,
}

impl Connection {
    /// The client has acknowledged the SYN-ACK.
    pub(crate) fn remember_answer(&mut self, segment: &Segment, now: i64) {
        self.unheard.answered.get_or_insert((now, segment.number));
    }

    /// A SYN-ACK that repeats one which was acknowledged: whether the time before it has its cause.
    pub(crate) fn attribute_unheard(&mut self, segment: &Segment, from: Side, now: i64) -> bool {
        let Some((at, number)) = self.unheard.answered else { return false };
        let (client, server) = (self.half(Side::Client), self.half(Side::Server));
        let repeats = from == Side::Server
            && segment.flags.contains(TcpFlags::SYN.with(TcpFlags::ACK))
            && server.opening.answers() > 0
            && server.way.near(segment.seq) == server.opening.place()
            // It has sent nothing but SYN-ACKs, and did not open at the same time.
            && server.counts.segments() == u64::from(server.opening.count())
            && client.opening.answers() == 0;
        if !repeats || self.closed || now - at <= self.syn_answer.unwrap_or(FIRST_TIMEOUT) {
            return false;
        }
        let is_first = self.unheard.newest.replace(now).is_none();
        self.unheard.repeats += 1;
        let evidence = [if is_first { number } else { 0 }, segment.number];
        self.note(Kind::AckUnheard, self.last, now, now - self.last, &evidence);
        self.half_mut(Side::Client).silences.unhear();
        true
    }

    /// Whether what an end sends again now was sent to a server that had not heard of its connection.
    pub(crate) fn was_unheard(&self, sender: Side) -> bool {
        let oldest = self.half(sender).way.flight().front();
        sender == Side::Client
            && self.unheard.newest.is_some_and(|newest| oldest.is_some_and(|piece| piece.first <= newest))
    }

    /// What the client sent meanwhile, and sent again, is time of the same kind, but no SYN-ACK.
    pub(crate) fn count_unheard(&mut self) {
        let repeats = self.unheard.repeats;
        let unheard = self.tallies.iter_mut().find(|tally| tally.kind == Kind::AckUnheard);
        unheard.into_iter().for_each(|tally| tally.count = repeats);
    }

    /// What may be the reason, as sentences.
    pub(crate) fn unheard_in_words(&self, tally: &Tally) -> String {
        let mut text = format!(
            "The server sent its SYN-ACK again although the client's ACK had passed here ({}, {}): its accept queue was full, so \
             that it dropped the ACK, or the ACK was lost behind this place.",
            times(tally),
            duration(tally.lost),
        );
        let is_beside = self
            .syn_answer
            .zip(self.ack_answer)
            .is_some_and(|(server, client)| server <= server.saturating_add(client) / BESIDE);
        if is_beside {
            text += " The capture was made beside the server, where little gets lost: the queue is likelier.";
        }
        if self.half(Side::Client).counts.bytes() == 0 {
            text +=
                " A socket with TCP_DEFER_ACCEPT does the same: it waits for data, and the client sent none.";
        }
        text
    }
}
