//! Who sent a reset: the end in whose name it came, or something on the way.
//!
//! Who stands on the way sees the packets of an end, but not its state: it guesses, and its packets come from another place.
//!
//! ```text
//!   strong   TTL: from another place than all others of this end, by more than two hops
//!            the end goes on after it: it knows of no reset (Weaver, Sommer, Paxson, NDSS 2009)
//!   weak     TTL: by one or two hops, which a change of the route does, too
//!            identification: far from those of an end that counts them
//!            window: far from all that the end has announced
//!            sequence number: beyond all that the end has sent, where the receiver would take it all the same
//! ```
//!
//! One strong sign or two weak ones name an injected reset. One weak sign, or too few packets to compare with, is no
//! answer. A TTL that fits another usual first value (64, 128, 255) at the same distance is no sign: hosts send resets
//! without a socket, whose TTL may be set.

use crate::connection::{Connection, Side};
use crate::copies::LEAST_TIMEOUT;
use crate::findings::Tally;
use crate::half::Half;
use crate::kinds::Kind;
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

/// Packets of an end from which its place is known.
const ENOUGH: u32 = 3;
/// Routes change by so few hops.
const FEW_HOPS: u8 = 2;
/// With which TTL hosts and routers begin.
const FIRST_HOPS: [u8; 4] = [32, 64, 128, 255];
/// Packets of several queues of a NIC may be captured in another order by this much, in nanoseconds.
const ORDER_NANOSECONDS: i64 = 1_000_000;

/// Where the packets of an end come from, and the windows in them; those of resets apart.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Origin {
    count: u32,
    hops: u8,
    /// Not all have the same TTL.
    varies: bool,
    /// The least and the largest window but those of SYNs, as sent.
    windows: Option<(u16, u16)>,
    /// That of the SYN.
    opening: u16,
}

/// What is out of place about a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Far { hops: u8, others: u8, count: u32 },
    Near { hops: u8, others: u8, count: u32 },
    Identification,
    Window(u16),
    Beyond(u64),
    WentOn { number: u64 },
}

/// The reset that ended a connection.
#[derive(Debug, Clone)]
pub(crate) struct Cut {
    by: Side,
    at: i64,
    signs: Vec<Sign>,
    /// Enough packets of this end had passed to compare with.
    is_known: bool,
    /// A packet of the end to which it came, after the other had gone on: it did not heed it.
    unheeded: Option<u64>,
}

impl Origin {
    fn take(&mut self, segment: &Segment) {
        self.varies |= self.count > 0 && self.hops != segment.hops;
        self.hops = segment.hops;
        self.count = self.count.saturating_add(1);
        if segment.syn.is_some() {
            self.opening = segment.window;
        } else {
            let own = segment.window;
            let (least, most) = self.windows.unwrap_or((own, own));
            self.windows = Some((least.min(own), most.max(own)));
        }
    }

    /// The window of the SYN, as it is written; 0 without a SYN.
    pub(crate) fn opening(&self) -> u16 {
        self.opening
    }

    /// Whether a TTL is that of another place.
    fn sign_of_hops(&self, hops: u8) -> Option<Sign> {
        let (others, count) = (self.hops, self.count);
        let away = distance(hops).abs_diff(distance(others));
        match away {
            _ if self.varies || count < ENOUGH || away == 0 => None,
            _ if away <= FEW_HOPS => Some(Sign::Near { hops, others, count }),
            _ => Some(Sign::Far { hops, others, count }),
        }
    }

    /// Whether a window is neither 0, which a reset without a socket has, nor near those of the end.
    fn sign_of_window(&self, window: u16) -> Option<Sign> {
        let (least, most) = self.windows?;
        let is_near = u32::from(window) * 2 >= u32::from(least) && window / 2 <= most;
        (window != 0 && !is_near && self.count >= ENOUGH).then_some(Sign::Window(window))
    }
}

/// Hops from where a packet began, if that had a usual TTL.
fn distance(hops: u8) -> u8 {
    FIRST_HOPS.into_iter().find(|first| *first >= hops).unwrap_or(u8::MAX) - hops
}

/// Whether a TTL shows that routers have passed a packet on: no host begins with it.
pub(crate) fn has_passed_routers(hops: u8) -> bool {
    !FIRST_HOPS.contains(&hops)
}

impl Sign {
    fn weight(self) -> u32 {
        if matches!(self, Sign::Far { .. } | Sign::WentOn { .. }) { 2 } else { 1 }
    }

    fn words(self) -> String {
        match self {
            Sign::Far { hops, others, count } | Sign::Near { hops, others, count } => {
                format!("its TTL is {hops}, that of the {count} packets before it {others}")
            }
            Sign::Identification => "its identification is far from those of that end".to_owned(),
            Sign::Window(window) => format!("its window of {window} is far from those of that end"),
            Sign::Beyond(bytes) => {
                format!("its sequence number lies {bytes} bytes beyond all that this end has sent")
            }
            Sign::WentOn { number } => format!("that end went on after it (packet {number})"),
        }
    }
}

impl Cut {
    fn is_injected(&self) -> bool {
        self.signs.iter().map(|sign| sign.weight()).sum::<u32>() >= 2
    }
}

impl Connection {
    /// Remembers where packets come from, and compares resets with them. Before a segment is taken in.
    pub(crate) fn watch_origin(&mut self, segment: &Segment, from: Side, now: i64) {
        if segment.flags.contains(TcpFlags::RST) {
            if !self.closed {
                self.cut = Some(self.compare(segment, from, now));
            }
            return;
        }
        self.half_mut(from).origin.take(segment);
        let order = ORDER_NANOSECONDS.max(self.path_rtt());
        let Some(cut) = self.cut.as_mut().filter(|_| segment.syn.is_none()) else { return };
        if cut.by != from {
            if !self.closed {
                cut.unheeded.get_or_insert(segment.number);
            }
        } else if self.closed && now - cut.at > order {
            cut.signs.push(Sign::WentOn { number: segment.number });
            // Whoever it came to may have heeded it: what still comes belongs to the connection that the end knows of.
            self.closed = false;
            self.reset_by = None;
            self.rename(Kind::Reset, Kind::InjectedReset);
        }
    }

    fn compare(&self, segment: &Segment, from: Side, now: i64) -> Cut {
        let half = self.half(from);
        let place = half.way.near(segment.seq);
        let identification = segment.identification.is_some_and(|own| half.identities.is_far(own));
        let beyond = place.saturating_sub(half.way.high().max(1));
        let is_beyond = half.way.has_begun() && beyond > 0 && half.counts.unseen_bytes() == 0;
        let signs = [
            half.origin.sign_of_hops(segment.hops),
            half.origin.sign_of_window(segment.window),
            identification.then_some(Sign::Identification),
            is_beyond.then_some(Sign::Beyond(beyond)),
        ];
        let origin = half.origin;
        let is_known = origin.count >= ENOUGH && !origin.varies;
        Cut { by: from, at: now, signs: signs.into_iter().flatten().collect(), is_known, unheeded: None }
    }

    /// Whether who opened the connection ends it as soon as it is open, or could be, before anybody has sent anything: it only
    /// asks whether somebody listens, as balancers and scanners do, and nothing is cut off.
    pub(crate) fn only_asks(&self, from: Side, now: i64) -> bool {
        let server = self.half(Side::Server);
        let patience = self.path_rtt().saturating_mul(2).max(LEAST_TIMEOUT);
        let is_empty = |half: &Half| half.counts.data_segments() == 0 && half.counts.unseen_bytes() == 0;
        from == Side::Client
            && server.opening.answers() > 0
            && now - server.sent.at() < patience
            && self.halves.iter().all(is_empty)
    }

    /// Whether the client resets instead of finishing, when it has all that the server sent, with its FIN, and the server has all
    /// of the client: nothing is cut off.
    pub(crate) fn has_had_all(&mut self, from: Side, now: i64) -> bool {
        if from != Side::Client || !self.half(Side::Server).is_finished() {
            return false;
        }
        self.take_waiting(Side::Server, now);
        self.half(Side::Server).is_done() && self.half(Side::Client).way.is_idle()
    }

    /// Whether a reset has cut it off, as it was told.
    pub(crate) fn was_cut_off(&self) -> bool {
        self.tallies.iter().any(|tally| matches!(tally.kind, Kind::Reset | Kind::InjectedReset))
    }

    /// What a reset that cuts this connection off is called.
    pub(crate) fn kind_of_reset(&self) -> Kind {
        let is_injected = self.cut.as_ref().is_some_and(Cut::is_injected);
        if is_injected { Kind::InjectedReset } else { Kind::Reset }
    }

    /// Who cut it off, as a sentence.
    pub(crate) fn reset_in_words(&self, _: &Tally) -> String {
        let Some(cut) = &self.cut else { return "The connection was cut off by a reset.".to_owned() };
        let by = if cut.by == Side::Client { "client" } else { "server" };
        let signs: Vec<String> = cut.signs.iter().map(|sign| sign.words()).collect();
        let signs = signs.join(", and ");
        let begin = format!("The connection was cut off by a reset in the name of the {by}");
        if let Some(number) = cut.unheeded.filter(|_| cut.is_injected()) {
            return format!(
                "A reset in the name of the {by} came, which something else sent, a firewall, a balancer or an attacker on the \
                 way: {signs}. It cut nothing off: the other end did not heed it, and went on (packet {number}), as where its \
                 sequence number is not the next one (RFC 9293 section 3.10.7.4)."
            );
        }
        if cut.is_injected() {
            return format!(
                "{begin}, which something else sent, a firewall, a balancer or an attacker on the way: {signs}."
            );
        }
        match (signs.is_empty(), cut.is_known) {
            (true, true) => format!(
                "The connection was cut off by a reset of the {by}: nothing about it differs from the packets of that end before."
            ),
            (true, false) => format!(
                "{begin}. Whether that end sent it cannot be told: there are too few packets of that end to compare it with."
            ),
            (false, _) => {
                format!("{begin}. Whether that end sent it cannot be told: {signs}, which is too little.")
            }
        }
    }
}
