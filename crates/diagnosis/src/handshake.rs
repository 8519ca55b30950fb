//! The opening of a connection: what repeats it, and what belongs to no connection that is being opened.
//!
//! ```text
//!   SYN ──▶        ◀── ACK of something else     an older connection of these ports lives (RFC 5961 section 4)
//!   RST of that ──▶                              it ends that one, and not this one
//!   SYN ──▶        ◀── RST of something else     no answer to this SYN (RFC 9293 section 3.10.7.3): it is repeated
//!   SYN ──▶ ◀── SYN, SYN ACK ──▶ ◀── SYN ACK     both open at once (RFC 9293 figure 7): nothing is repeated
//! ```

use crate::cause::Cause;
use crate::connection::{Connection, Side};
use crate::findings::Tally;
use crate::gap::Gap;
use crate::kinds::Kind;
use crate::words::{duration, times};
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

/// A queue of connections that wait to be accepted holds those whose client has answered: this one has not.
const NO_ANSWER_REMEDY: &str = "The client answers no SYN-ACK: look for loss or a filter on the way back to it, or for SYNs with a forged address (a flood or a scan).";

/// What came while a connection was being opened, and was none of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Strangers {
    /// Acknowledgements of an older connection.
    challenges: u32,
    /// Resets that do not acknowledge the SYN.
    resets: u32,
}

impl Connection {
    /// Whose time a gap was before the handshake is done.
    pub(crate) fn cause_of_opening(&self, gap: &Gap) -> Cause {
        let (segment, half) = (gap.segment, self.half(gap.from));
        let is_syn = segment.flags.contains(TcpFlags::SYN);
        // That which answers a SYN of the other end has the number of the own one before it.
        let is_answer = segment.flags.contains(TcpFlags::ACK) && half.opening.answers() == 0;
        // With another number it repeats nothing.
        let again = is_syn
            && half.opening.count() > 0
            && half.way.near(segment.seq) == half.opening.place()
            && !is_answer;
        match (again, self.strangers.challenges > 0) {
            (true, true) => Cause::Shown(Kind::ChallengeAck),
            (true, false) => Cause::Shown(Kind::SynLoss),
            (false, _) => Cause::Opening,
        }
    }

    /// Whether a segment that came while this connection was being opened belongs to no such: nobody takes it in.
    pub(crate) fn is_of_another(&mut self, segment: &Segment, from: Side) -> bool {
        let (client, server) = (self.half(Side::Client), self.half(Side::Server));
        let is_opening = !self.established && client.opening.count() > 0 && server.opening.count() == 0;
        if !is_opening || segment.flags.contains(TcpFlags::SYN) {
            return false;
        }
        let answers = segment.flags.contains(TcpFlags::ACK)
            && client.way.near(segment.ack) > client.opening.place()
            && client.way.near(segment.ack) <= client.way.high().max(client.opening.place() + 1);
        match (from, segment.flags.contains(TcpFlags::RST)) {
            // It ends what the challenge was about.
            (Side::Client, is_reset) => is_reset && self.strangers.challenges > 0,
            (Side::Server, _) if answers => false,
            (Side::Server, true) => {
                self.strangers.resets += 1;
                true
            }
            (Side::Server, false) => {
                self.strangers.challenges += u32::from(segment.flags.contains(TcpFlags::ACK));
                true
            }
        }
    }

    /// A SYN is repeated. Its sender had waited since the one before it: an answer that passes here only shortly before the repeat
    /// came as late as one does of which the first copy was lost before.
    pub(crate) fn count_syn(&mut self, gap: &Gap, packets: &[u64]) {
        let is_late = self.handshake > gap.length && !gap.segment.flags.contains(TcpFlags::ACK);
        let waited = if is_late { std::mem::take(&mut self.handshake) } else { 0 };
        let end = self.last + gap.length;
        let lost = gap.length + waited;
        self.note(Kind::SynLoss, end - lost, end, lost, packets);
    }

    /// A SYN that was repeated, and whose first copy was answered, was not lost: a timer of a second is too short for such a way
    /// (RFC 6298 section 2.1).
    pub(crate) fn judge_syns(&mut self) {
        let (client, server) = (&self.half(Side::Client).opening, &self.half(Side::Server).opening);
        let answered = server.first();
        if !client.is_answered_late(server, self.path_rtt()) {
            return;
        }
        let is_of_syns = |tally: &Tally| tally.kind == Kind::SynLoss && tally.end <= answered;
        let Some(place) = self.tallies.iter().position(is_of_syns) else { return };
        self.handshake += self.tallies.swap_remove(place).lost;
        if let Some(picture) = &mut self.picture {
            picture.rename(Kind::SynLoss, Kind::ApplicationLimited);
        }
    }

    /// Each challenge counts, not each wait behind one.
    pub(crate) fn count_challenges(&mut self) {
        let challenges = u64::from(self.strangers.challenges);
        let entry = self.tallies.iter_mut().find(|tally| tally.kind == Kind::ChallengeAck);
        entry.into_iter().for_each(|tally| tally.count = challenges);
    }

    /// What came of a SYN that was answered for an older connection, as a sentence.
    pub(crate) fn challenge_in_words(&self, tally: &Tally) -> String {
        let (times, lost) = (times(tally), duration(tally.lost));
        let end = if self.half(Side::Server).opening.count() > 0 {
            format!("the handshake took {lost} longer")
        } else {
            format!("the handshake did not take place, though the client tried for {lost}")
        };
        format!(
            "The other end answered the SYN by an acknowledgement of an older connection of these ports (RFC 5961 section 4), {times}: {end}."
        )
    }

    /// What helps where the handshake was repeated.
    pub(crate) fn remedy_of_syns(&self) -> &'static str {
        let (client, server) = (&self.half(Side::Client).opening, &self.half(Side::Server).opening);
        let is_refused = self.tallies.iter().any(|tally| tally.kind == Kind::ConnectionRefused);
        match (is_refused, self.established || client.count() > 1 || server.answers() == 0) {
            (true, _) => Kind::ConnectionRefused.remedy(),
            (false, true) => Kind::SynLoss.remedy(),
            (false, false) => NO_ANSWER_REMEDY,
        }
    }

    /// Resets that came for the SYN and do not acknowledge it.
    pub(crate) fn unheeded_resets(&self) -> u32 {
        self.strangers.resets
    }

    /// Whether one SYN is all that there is of the opening.
    pub(crate) fn is_unanswered(&self) -> bool {
        !self.established
            && !self.refused
            && self.half(Side::Client).opening.count() == 1
            && self.half(Side::Server).opening.count() == 0
    }

    /// What else is known of SYNs that were repeated, as sentences.
    pub(crate) fn syns_in_words(&self) -> String {
        let mut text = String::new();
        if self.strangers.resets > 0 {
            text += " The resets that came do not acknowledge the SYN, so its sender did not heed them (RFC 9293 section 3.10.7.3).";
        }
        text + self.wrong_syns_in_words()
    }
}
