//! Black holes by size: which payloads of one direction passed and which never did, since some began to get lost.
//!
//! ```text
//!   until then        since then
//!   ■ ▪ ■ ■ ▪ ■   │   ✗ ▪ ✗ ✗ ✗      ■ as large as what is lost, ▪ smaller
//! ```
//!
//! What is lost is known by its repeats: a copy of the oldest segment that is sent again was in vain. If as large ones never
//! passed, those that did may be of any time. If they did until then, only what left since then tells: the path MTU has fallen.

use crate::connection::{Connection, Side};
use crate::flight::Acknowledged;
use crate::kinds::Kind;
use crate::silences::Episode;
use framegauge_packets::capture::Segment;

/// Ethernet carries so large packets everywhere, but for tunnels.
const USUAL_BYTES: u32 = 1500;
/// Where as large ones had passed, so many repeats in vain are no chance.
const ENOUGH_RESENDS: u32 = 3;

/// Payloads of one direction of which those up to a size passed, and larger ones never did, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) sender: Side,
    /// The largest that passed; 0: none with data. Where the path MTU fell, since then.
    pub(crate) passed: u32,
    /// One that was sent again and again.
    pub(crate) lost: u32,
    /// The largest that had passed until then, where that is no smaller: the path MTU has fallen.
    pub(crate) before: Option<u32>,
    pub(crate) grade: Grade,
    /// The other end was heard after some had been lost.
    pub(crate) lived: bool,
    /// As large ones passed again later.
    pub(crate) is_over: bool,
    /// Smaller ones passed while it was sent again and again: it is a matter of size also if as large ones pass later.
    pub(crate) is_witnessed: bool,
}

/// How sure it is that the size is the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Grade {
    /// Nothing shows that smaller ones would have passed.
    Possible,
    /// Smaller ones passed; but the other end may have died at that moment, or the way have been interrupted for a time.
    Likely,
    /// Smaller ones passed, and the other end lived.
    Certain,
}

impl Sizes {
    /// Whether they explain a finding of a kind: a timeout where they are possible at best.
    pub(crate) fn is_of(&self, kind: Kind) -> bool {
        kind == if self.grade > Grade::Possible { Kind::PmtuBlackHole } else { Kind::RtoStall }
    }

    /// Whether what is lost may have been in a jumbo frame.
    pub(crate) fn may_be_jumbo(&self) -> bool {
        self.lost > USUAL_BYTES
    }

    /// What passed and what did not, as a sentence; empty where there is nothing to say. `is_unfilled`: it is missing at the tap.
    pub(crate) fn in_words(&self, is_unfilled: bool) -> String {
        let Sizes { passed, lost, before, grade, lived, is_over, .. } = *self;
        if let Some(before) = before {
            return fallen_in_words(passed, before, grade, lived) + over_in_words(is_over);
        }
        if is_unfilled {
            let largest = match passed {
                0 => "nothing else with data came".to_owned(),
                bytes => format!("the largest that was has {bytes} bytes"),
            };
            return format!(
                " The missing segments may have up to {lost} bytes; {largest}: packets above some size may vanish on the way."
            );
        }
        let largest = match passed {
            0 => "no other with data was".to_owned(),
            bytes => format!("the largest that was has {bytes} bytes"),
        };
        let doubt = match grade {
            Grade::Certain => "",
            Grade::Likely if lived => {
                " Or the way was interrupted meanwhile, which this capture cannot tell."
            }
            Grade::Likely => " Or the other end died at that moment, which this capture cannot tell.",
            Grade::Possible => {
                " Packets above some size may vanish on the way, or the other end died: `framegauge check` tells."
            }
        };
        let ever = if is_over { "acknowledged then" } else { "ever acknowledged" };
        format!(" No segment of {lost} bytes was {ever}; {largest}.{doubt}") + over_in_words(is_over)
    }
}

fn over_in_words(is_over: bool) -> &'static str {
    if is_over { " Later such segments passed again." } else { "" }
}

/// That the path MTU has fallen, or may have.
fn fallen_in_words(passed: u32, before: u32, grade: Grade, lived: bool) -> String {
    let until = format!(" Until then segments of {before} bytes passed, from then on none");
    match (grade, lived) {
        (Grade::Certain, _) if passed == 0 => format!("{until} did: the path MTU has fallen."),
        (Grade::Certain, _) => format!("{until} above {passed} did: the path MTU has fallen."),
        (Grade::Likely, true) => format!(
            "{until} above {passed} did: the path MTU has fallen, or the way was interrupted meanwhile, which this capture cannot tell \
             for sure."
        ),
        (Grade::Likely, false) => format!(
            "{until} above {passed} did: the path MTU has fallen, or the way was interrupted, or the other end died, which this \
             capture cannot tell for sure."
        ),
        (Grade::Possible, _) => format!(
            "{until} did, and nothing smaller came through that would tell why: the path MTU may have fallen, the way be interrupted, \
             or an end have died. `framegauge check` tells."
        ),
    }
}

/// Payloads that were sent again in a silence.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tries {
    largest: u32,
    /// What their packets have besides, in bytes.
    header_bytes: u32,
    /// Of the oldest segment: the newest copy, and the smallest before that, all of which were in vain.
    newest: Option<u32>,
    smallest: Option<u32>,
    /// When the newest was sent.
    at: i64,
}

impl Tries {
    pub(crate) fn take(&mut self, segment: &Segment, is_oldest: bool, now: i64) {
        let bytes = segment.payload_bytes;
        self.largest = self.largest.max(bytes);
        self.header_bytes = segment.ip_bytes.saturating_sub(bytes);
        if is_oldest {
            self.smallest = self.smallest_of_all();
            (self.newest, self.at) = (Some(bytes), now);
        }
    }

    fn smallest_of_all(&self) -> Option<u32> {
        [self.smallest, self.newest].into_iter().flatten().min()
    }

    /// The smallest copy of the oldest segment that was in vain; 0: none. `is_open`: of the newest that is not known.
    fn smallest_lost(&self, is_open: bool) -> u32 {
        if is_open { self.smallest } else { self.smallest_of_all() }.unwrap_or(0)
    }
}

/// What is known of a sender that repeated something in vain.
#[derive(Debug, Clone, Copy, Default)]
struct Vain {
    /// The largest that had passed until then, and the largest of those that left since then and passed.
    before: u32,
    since: u32,
    /// What passed at last.
    ended: Option<u32>,
    /// The smallest of the oldest segment's copies in vain, and the largest that was sent again.
    smallest: u32,
    largest: u32,
    resends: u32,
    /// The other end was heard after something had been sent again.
    heard: bool,
    /// A router said of these bytes that their packets are too big.
    is_refused: bool,
}

impl Vain {
    /// Whether what was as large passed again at last, and had been lost by its size until then: a smaller one that had left later
    /// arrived, so that the way was not away from the beginning. The last copy was not in vain.
    fn is_over(&self) -> bool {
        let has_passed = self.ended.is_some_and(|bytes| bytes >= self.largest) && self.since < self.smallest;
        has_passed && self.since > 0 && self.resends > ENOUGH_RESENDS && self.largest > USUAL_BYTES
    }

    /// Whether the size explains it, and how surely; and whether the path MTU has fallen.
    fn judge(&self) -> Option<(Grade, bool)> {
        let passed = self.since.max(self.ended.unwrap_or(0));
        if passed >= self.largest {
            return self.is_over().then_some((Grade::Likely, self.before >= self.largest));
        }
        if self.before < self.largest {
            let is_sure = self.heard || self.is_refused || self.ended.is_some();
            let grade = match (is_sure, self.before.max(self.since)) {
                (true, _) => Grade::Certain,
                (false, 0) => Grade::Possible,
                (false, _) => Grade::Likely,
            };
            return Some((grade, false));
        }
        // Where something as small was lost as well, it is no matter of size.
        if passed >= self.smallest || self.smallest == 0 {
            return None;
        }
        let grade = match (self.since, self.ended) {
            _ if self.is_refused => Grade::Certain,
            (0, None) if self.largest <= USUAL_BYTES => return None,
            (0, None) => Grade::Possible,
            // What ended it may have passed because the way was whole again.
            (0, Some(_)) => Grade::Likely,
            _ if self.heard && self.resends >= ENOUGH_RESENDS => Grade::Certain,
            _ => Grade::Likely,
        };
        Some((grade, true))
    }
}

impl Connection {
    /// The payload that every path carries: that of a packet of 1,280 bytes of IPv6 (RFC 8200 section 5), of 576 of IPv4
    /// (RFC 791; fewer are allowed, and nobody has such a link).
    pub(crate) fn always_carried(&self) -> u32 {
        if self.ends.client.is_ipv6() { 1280 - 60 } else { 576 - 40 }
    }

    /// Whether sizes explain why what a silence repeated was not answered. `arrived`: what ended it.
    pub(crate) fn sizes_of(
        &self,
        episode: &Episode,
        sender: Side,
        arrived: Option<&Acknowledged>,
    ) -> Option<Sizes> {
        let other = self.half(sender.other());
        // Where the file has nothing of the other end, or what that sends is lost on its way here, it has no answers either.
        let largest = episode.tries.largest;
        // It was not in vain, or its answer was not due yet when the capture ended.
        let is_open =
            arrived.is_some() || self.last - episode.tries.at < self.half(sender).round_trip.timeout();
        let smallest = episode.tries.smallest_lost(is_open);
        let is_refused = {
            let bytes = if smallest > 0 { smallest } else { largest };
            let ip_bytes = bytes.min(self.mss(sender)) + episode.tries.header_bytes;
            self.notes.refuse(sender, (episode.una, episode.high), ip_bytes)
        };
        let may_answer =
            is_refused || episode.heard || (other.counts.segments() > 0 && !other.way.lacks_oldest());
        if episode.resends < 2 || !may_answer || largest <= self.always_carried() {
            return None;
        }
        let mss = self.mss(sender);
        let vain = Vain {
            // Aggregates are longer than what passes.
            before: episode.delivered.min(mss.max(largest)),
            since: self
                .half(sender)
                .way
                .flight()
                .largest_sacked()
                .max(self.half(sender).passed_behind(episode.una))
                .max(arrived.map_or(0, |all| all.largest_behind)),
            ended: arrived.map(|all| all.first_piece),
            smallest,
            largest,
            resends: episode.resends,
            heard: episode.heard,
            is_refused,
        };
        let (grade, has_fallen) = vain.judge()?;
        let is_over = vain.is_over();
        let since = if is_over { vain.since } else { vain.since.max(vain.ended.unwrap_or(0)) };
        let passed = if is_over || has_fallen { since } else { since.max(vain.before) };
        let lost = if vain.smallest > passed { vain.smallest } else { vain.largest };
        let before = has_fallen.then_some(vain.before);
        let lived = vain.heard || vain.ended.is_some();
        let is_witnessed = vain.since > 0 && grade > Grade::Possible && vain.resends >= ENOUGH_RESENDS;
        Some(Sizes { sender, passed, lost, before, grade, lived, is_over, is_witnessed })
    }

    /// The payload of a full segment: the MSS, or what passed where larger ones vanish.
    pub(crate) fn full_payload(&self, sender: Side) -> u32 {
        let passed = self.sizes.filter(|sizes| sizes.sender == sender && sizes.passed > 0 && !sizes.is_over);
        passed.map_or(self.mss(sender), |sizes| sizes.passed.min(self.mss(sender)))
    }

    /// Keeps what is the surest.
    pub(crate) fn keep_sizes(&mut self, sizes: Sizes) {
        if self.sizes.is_none_or(|old| old.grade < sizes.grade) {
            self.sizes = Some(sizes);
        }
    }

    /// As large ones may pass again: what was sure is over, and what was not was no matter of size.
    #[cold]
    pub(crate) fn doubt_sizes(&mut self, sender: Side, acked: &Acknowledged) {
        // Aggregates of smaller ones may be longer.
        let passes = |sizes: &&mut Sizes| sizes.sender == sender && acked.largest_piece() == sizes.lost;
        let Some(sizes) = self.sizes.as_mut().filter(passes) else { return };
        sizes.is_over = true;
        if sizes.grade < Grade::Certain && !sizes.is_witnessed {
            self.sizes = None;
            self.rename(Kind::PmtuBlackHole, Kind::RtoStall);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FALLEN: Vain = Vain {
        before: 8948,
        since: 500,
        ended: None,
        smallest: 8948,
        largest: 8948,
        resends: 3,
        heard: true,
        is_refused: false,
    };

    #[test]
    fn what_passed_before_and_since_tells_whether_the_path_mtu_fell_and_how_surely() {
        let sure = Some((Grade::Certain, true));
        let likely = Some((Grade::Likely, true));
        for (vain, judged) in [
            (FALLEN, sure),
            // It may be chance, or the other end have died.
            (Vain { resends: 2, ..FALLEN }, likely),
            (Vain { heard: false, ..FALLEN }, likely),
            // Smaller ones passed at last, and nothing before them.
            (Vain { since: 0, ended: Some(1012), ..FALLEN }, likely),
            (Vain { since: 0, ..FALLEN }, Some((Grade::Possible, true))),
            // Who carries no jumbo frames loses nothing by their size.
            (Vain { since: 0, before: 1448, smallest: 1448, largest: 1448, ..FALLEN }, None),
            // A router says so.
            (
                Vain {
                    since: 0,
                    heard: false,
                    before: 1448,
                    smallest: 1448,
                    largest: 1448,
                    is_refused: true,
                    ..FALLEN
                },
                sure,
            ),
            (Vain { smallest: 400, is_refused: true, ..FALLEN }, None),
            // As large ones passed, or as small ones did not.
            (Vain { since: 8948, ..FALLEN }, None),
            (Vain { ended: Some(8948), ..FALLEN }, None),
            // As large ones passed again at last, after many in vain, and a smaller one had passed meanwhile.
            (Vain { ended: Some(8948), resends: 5, heard: false, ..FALLEN }, likely),
            (Vain { ended: Some(8948), resends: 5, since: 0, ..FALLEN }, None),
            (Vain { ended: Some(8948), resends: 5, smallest: 400, ..FALLEN }, None),
            (Vain { smallest: 400, ..FALLEN }, None),
        ] {
            assert_eq!(vain.judge(), judged, "{vain:?}");
        }
    }

    #[test]
    fn where_nothing_as_large_ever_passed_whatever_passed_tells() {
        let never = Vain { before: 100, since: 0, ..FALLEN };
        for (vain, grade) in [
            (never, Grade::Certain),
            (Vain { heard: false, ended: Some(500), ..never }, Grade::Certain),
            (Vain { heard: false, ..never }, Grade::Likely),
            (Vain { heard: false, before: 0, ..never }, Grade::Possible),
        ] {
            assert_eq!(vain.judge(), Some((grade, false)), "{vain:?}");
        }
    }
}
