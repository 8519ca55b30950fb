//! A clock of the capture that was set forward: it says that much time went by, and those of both ends do not (timestamps, RFC
//! 7323). What came late may stand in a queue meanwhile; so each end has to stamp an answer to what passed after the gap.
//!
//! ```text
//!   capture   0.050  0.051  │  5.062  5.072  5.082       5 s ahead
//!   client    1050          │  1062          1082 echoes 2072: it left after the gap
//!   server           2051   │         2072 echoes 1062: it did as well
//! ```

use super::{Detector, Seen};
use crate::Thresholds;
use crate::account::Account;
use crate::connection::{Connection, SIDES, Side};
use crate::findings::Tally;
use crate::kinds::Kind;
use crate::steps::{Says, Witness};

/// Linux ticks once a millisecond.
const TICK: i64 = 1_000_000;
/// A clock is known to tick so often after so long.
const LEAST_KNOWN: i64 = 20 * TICK;
/// Less is no step, but a pause.
const LEAST_JUMP: i64 = 500 * TICK;

/// What its time was taken for, where nothing was under way, and else.
static RESTS: [Kind; 3] = [Kind::ApplicationLimited, Kind::Unexplained, Kind::NetworkLimited];
static WAITS: [Kind; 7] = [
    Kind::Unexplained,
    Kind::NetworkLimited,
    Kind::Bufferbloat,
    Kind::SenderStall,
    Kind::ReceiverLimited,
    Kind::ZeroWindow,
    Kind::ApplicationLimited,
];

#[derive(Debug, Clone, Default)]
pub(crate) struct ClockJump {
    /// By sender.
    clocks: [Option<Clock>; 2],
    open: Option<Box<Jump>>,
    /// Those that are certain if both clocks tick as known ones do.
    told: Vec<Jump>,
}

/// A timestamp and when it passed.
#[derive(Debug, Clone, Copy)]
struct Stamp {
    value: u32,
    at: i64,
}

/// The oldest and the newest of one end.
#[derive(Debug, Clone, Copy)]
struct Clock {
    first: Stamp,
    newest: Stamp,
}

/// A gap that may be one of the capture's clock.
#[derive(Debug, Clone)]
struct Jump {
    tally: Tally,
    sender: Side,
    former: &'static [Kind],
    before: [Stamp; 2],
    /// An answer to this left after the gap.
    first: [Option<u32>; 2],
    stood: [bool; 2],
    /// How both clocks tick was known before it; else what follows tells.
    is_known: bool,
}

fn ticks(from: u32, to: u32) -> i64 {
    i64::from(to.wrapping_sub(from) as i32)
}

impl Stamp {
    /// How much less went by until another one than the capture says.
    fn behind(&self, later: &Stamp) -> i64 {
        later.at - self.at - ticks(self.value, later.value) * TICK
    }
}

impl Clock {
    /// Whether it ticks once a millisecond, as far as it was seen.
    fn is_fine(&self) -> bool {
        let known = self.newest.at - self.first.at;
        known >= LEAST_KNOWN && self.first.behind(&self.newest).abs() * 2 <= known
    }
}

impl Jump {
    /// Whether the end that sent this is known to have stood still: `None` if that is not known yet.
    fn take(&mut self, from: Side, stamp: Stamp, echo: u32) -> Option<bool> {
        let (own, other) = (from as usize, from.other() as usize);
        let is_answer = self.first[other].is_some_and(|first| ticks(first, echo) >= 0);
        let begins = self.first[other].is_none();
        if (is_answer || begins) && ticks(self.before[own].value, stamp.value) > 0 {
            self.first[own].get_or_insert(stamp.value);
        }
        is_answer.then(|| self.before[own].behind(&stamp) * 4 >= self.tally.lost * 3)
    }
}

impl Jump {
    /// What it says of the capture's clock.
    fn witness(&self, says: Says) -> Witness {
        Witness { begin: self.tally.begin, end: self.tally.end, rtt: 0, says, host: None }
    }
}

impl ClockJump {
    /// Begins with the packet that ends a long gap.
    fn open(&mut self, of: &Connection, packet: &Seen) {
        let [Some(client), Some(server)] = self.clocks else { return };
        let last = client.newest.at.max(server.newest.at);
        let length = packet.now - last;
        if length < LEAST_JUMP {
            return;
        }
        let tally = Tally::new(Kind::ClockJump, last, packet.now, &[packet.segment.number]);
        let is_rest = SIDES.iter().all(|side| of.half(*side).way.is_idle());
        self.open = Some(Box::new(Jump {
            tally: tally.costing(length),
            sender: packet.from,
            former: if is_rest { &RESTS } else { &WAITS },
            before: [client.newest, server.newest],
            first: [None; 2],
            stood: [false; 2],
            is_known: client.is_fine() && server.is_fine(),
        }));
    }
}

impl Detector for ClockJump {
    fn segment(&mut self, of: &Connection, packet: &Seen, account: &mut Account) {
        let Some((value, echo)) = packet.segment.timestamps else { return };
        let (from, stamp) = (packet.from as usize, Stamp { value, at: packet.now });
        self.open(of, packet);
        if let Some(jump) = &mut self.open
            && let Some(stood) = jump.take(packet.from, stamp, echo)
        {
            jump.stood[from] = stood;
            let is_certain = jump.stood == [true; 2];
            match self.open.take_if(|_| is_certain || !stood) {
                Some(jump) if is_certain => {
                    self.told.push(*jump);
                    self.clocks = [None; 2];
                }
                Some(jump) if jump.is_known => account.witness(jump.witness(Says::Against)),
                _ => {}
            }
        }
        let clock = self.clocks[from].get_or_insert(Clock { first: stamp, newest: stamp });
        if ticks(clock.newest.value, value) >= 0 {
            clock.newest = stamp;
        }
    }

    fn end(&mut self, of: &Connection, _: &Thresholds, account: &mut Account) {
        let is_known = self.clocks.iter().all(|clock| clock.is_some_and(|clock| clock.is_fine()));
        for mut jump in self.told.drain(..).filter(|jump| jump.is_known || is_known) {
            account.witness(jump.witness(Says::Proof));
            // Parts of it may have had other names.
            let most = jump.former.iter().map(|kind| of.lost(*kind)).max().unwrap_or(0);
            jump.tally.lost = jump.tally.lost.min(most);
            account.correct(jump.former, jump.tally, jump.sender);
        }
    }
}
