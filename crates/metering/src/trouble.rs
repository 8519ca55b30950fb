//! Signs that TCP is in trouble, in the kernel's counters and in what it knows of connections (`TCP_INFO`).
//!
//! A sign counts what came within the last second, so that how often somebody looks does not matter. Time is an
//! argument.

use crate::Counters;
use std::collections::{BTreeMap, VecDeque};

/// A second, in nanoseconds.
pub const WINDOW_NANOSECONDS: u64 = 1_000_000_000;
/// A limit counts that held for this share of the time in which a connection had something to do.
pub const LIMITED_SHARE: f64 = 0.5;
/// Of less time nothing can be said.
const LEAST_BUSY_SECONDS: f64 = 0.5;

/// A sign of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sign {
    /// Its name.
    pub name: &'static str,
    /// The counters that tell of it, named as `nstat` names them; none where `TCP_INFO` does.
    pub counters: &'static [&'static str],
    /// Whether it is looked for unless others are asked for.
    pub usual: bool,
}

/// Every sign, with the counters of Linux (`include/uapi/linux/snmp.h`) that tell of it.
pub const SIGNS: [Sign; 14] = [
    sign("timeouts", &["TcpExtTCPTimeouts"]),
    sign("loss_probes", &["TcpExtTCPLossProbes"]),
    sign("retransmits", &["TcpRetransSegs"]),
    sign("syn_retransmits", &["TcpExtTCPSynRetrans"]),
    sign("zero_window", &["TcpExtTCPToZeroWindowAdv", "TcpExtTCPWantZeroWindowAdv", "TcpExtTCPWinProbe"]),
    sign("path_mtu", &["TcpExtTCPMTUPFail", "IcmpInDestUnreachs", "Icmp6InPktTooBigs", "IpFragFails"]),
    sign("listen_overflows", &["TcpExtListenOverflows", "TcpExtListenDrops", "TcpExtTCPReqQFullDrop"]),
    sign("memory", &["TcpExtPruneCalled", "TcpExtRcvPruned", "TcpExtTCPRcvQDrop", "TcpExtTCPBacklogDrop"]),
    sign("aborts", &["TcpExtTCPAbortOnTimeout", "TcpExtTCPAbortOnMemory"]),
    sign("checksums", &["TcpInCsumErrors"]),
    sign(RECEIVER_LIMITED, &[]),
    sign(BUFFER_LIMITED, &[]),
    unusual("spurious", &["TcpExtTCPDSACKRecv", "TcpExtTCPSpuriousRTOs"]),
    unusual("reordering", &["TcpExtTCPSACKReorder", "TcpExtTCPTSReorder"]),
];

/// The receiver's window was the limit of a connection.
pub const RECEIVER_LIMITED: &str = "receiver_limited";
/// The send buffer was.
pub const BUFFER_LIMITED: &str = "buffer_limited";

const fn sign(name: &'static str, counters: &'static [&'static str]) -> Sign {
    Sign { name, counters, usual: true }
}

const fn unusual(name: &'static str, counters: &'static [&'static str]) -> Sign {
    Sign { name, counters, usual: false }
}

/// The sign of that name.
pub fn named(name: &str) -> Option<Sign> {
    SIGNS.into_iter().find(|sign| sign.name == name)
}

/// A sign that has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its name.
    pub sign: &'static str,
    /// The counters that told of it, with what they counted within the last second; connections are counted as
    /// `connections`.
    pub counted: BTreeMap<String, i64>,
}

/// Looks for signs.
#[derive(Debug)]
pub struct Watch {
    asked: Vec<(Sign, i64)>,
    /// Of the last second, and the last one before it: when, and each counter that matters.
    looks: VecDeque<(u64, BTreeMap<&'static str, i64>)>,
}

impl Watch {
    /// For these signs, each once its counters together have counted so much within a second.
    pub fn new(signs: Vec<(Sign, i64)>) -> Self {
        Self { asked: signs, looks: VecDeque::new() }
    }

    /// Whether one of its signs is of counters.
    pub fn wants_counters(&self) -> bool {
        self.asked.iter().any(|(sign, _)| !sign.counters.is_empty())
    }

    /// Whether one of its signs is of connections.
    pub fn wants_connections(&self) -> bool {
        self.asked.iter().any(|(sign, _)| sign.counters.is_empty())
    }

    /// Takes a reading of the counters; the signs that have come. The first reading is where counting begins.
    pub fn look(&mut self, now_nanoseconds: u64, counters: &Counters) -> Vec<Seen> {
        let names = self.asked.iter().flat_map(|(sign, _)| sign.counters);
        let mut look = BTreeMap::new();
        for name in names {
            look.insert(*name, counters.get(*name).copied().unwrap_or(0));
        }
        self.looks.push_back((now_nanoseconds, look));
        // The oldest one stays that is a second old or more.
        while self.looks.len() > 2 && self.looks[1].0 + WINDOW_NANOSECONDS <= now_nanoseconds {
            self.looks.pop_front();
        }
        let (Some((_, first)), Some((_, last))) = (self.looks.front(), self.looks.back()) else {
            return Vec::new();
        };
        let troubles = self.asked.iter().filter_map(|(sign, least)| {
            let difference = |name: &&'static str| last.get(name)?.checked_sub(*first.get(name)?);
            let moved: BTreeMap<String, i64> = sign
                .counters
                .iter()
                .filter_map(|name| Some((name.to_string(), difference(name).filter(|count| *count > 0)?)))
                .collect();
            (!moved.is_empty() && moved.values().sum::<i64>() >= *least)
                .then_some(Seen { sign: sign.name, counted: moved })
        });
        troubles.collect()
    }

    /// Takes for each connection the times by which it was busy and limited since the last call, some second ago.
    pub fn look_at_limits(&self, moved: impl Iterator<Item = Limits>) -> Vec<Seen> {
        let (mut by_receiver, mut by_buffer) = (0, 0);
        for limits in moved.filter(|limits| limits.busy_seconds >= LEAST_BUSY_SECONDS) {
            let most = LIMITED_SHARE * limits.busy_seconds;
            by_receiver += i64::from(limits.receiver_seconds >= most);
            by_buffer += i64::from(limits.buffer_seconds >= most);
        }
        let count_of = |name: &str| match name {
            RECEIVER_LIMITED => by_receiver,
            BUFFER_LIMITED => by_buffer,
            _ => 0,
        };
        let troubles = self.asked.iter().filter_map(|(sign, least)| {
            let count = count_of(sign.name);
            (count > 0 && count >= *least).then(|| Seen {
                sign: sign.name,
                counted: BTreeMap::from([("connections".to_string(), count)]),
            })
        });
        troubles.collect()
    }
}

/// For how long a connection was busy, and limited by what.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Limits {
    /// It had data to send or unacknowledged.
    pub busy_seconds: f64,
    /// Its receiver's window was the limit.
    pub receiver_seconds: f64,
    /// Its send buffer was the limit.
    pub buffer_seconds: f64,
}

impl Limits {
    /// What was added since an earlier reading.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            busy_seconds: self.busy_seconds - earlier.busy_seconds,
            receiver_seconds: self.receiver_seconds - earlier.receiver_seconds,
            buffer_seconds: self.buffer_seconds - earlier.buffer_seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENTH: u64 = WINDOW_NANOSECONDS / 10;

    fn counters(timeouts: i64, resends: i64) -> Counters {
        Counters::from([("TcpExtTCPTimeouts".to_string(), timeouts), ("TcpRetransSegs".to_string(), resends)])
    }

    fn watch(signs: &[(&str, i64)]) -> Watch {
        Watch::new(signs.iter().map(|(name, least)| (named(name).expect("a sign"), *least)).collect())
    }

    fn names(troubles: &[Seen]) -> Vec<&str> {
        troubles.iter().map(|trouble| trouble.sign).collect()
    }

    #[test]
    fn what_was_counted_before_is_no_trouble() {
        let mut watch = watch(&[("timeouts", 1), ("retransmits", 1)]);
        assert!(watch.look(0, &counters(500, 900)).is_empty());
        assert!(watch.look(TENTH, &counters(500, 900)).is_empty());
        let troubles = watch.look(2 * TENTH, &counters(501, 900));
        assert_eq!(names(&troubles), ["timeouts"]);
        assert_eq!(troubles[0].counted, BTreeMap::from([("TcpExtTCPTimeouts".to_string(), 1)]));
    }

    #[test]
    fn a_sign_counts_what_came_within_a_second() {
        for tenths in [1, 2, 5, 10] {
            let mut watch = watch(&[("retransmits", 10)]);
            watch.look(0, &counters(0, 0));
            // 9 a second are too few, however often one looks.
            let mut troubles = Vec::new();
            for look in 1..=100 / tenths {
                let resends = (9 * look * tenths / 10) as i64;
                troubles.extend(watch.look(look * tenths * TENTH, &counters(0, resends)));
            }
            assert!(troubles.is_empty(), "{tenths}: {troubles:?}");
            troubles.extend(watch.look((100 / tenths + 1) * tenths * TENTH, &counters(0, 110)));
            assert_eq!(names(&troubles), ["retransmits"]);
        }
    }

    #[test]
    fn a_limit_must_hold_for_half_of_the_busy_time() {
        let watch = watch(&[(RECEIVER_LIMITED, 1), (BUFFER_LIMITED, 2)]);
        let limits = |busy_seconds, receiver_seconds, buffer_seconds| Limits {
            busy_seconds,
            receiver_seconds,
            buffer_seconds,
        };
        let look = |all: &[Limits]| watch.look_at_limits(all.iter().copied());
        assert!(look(&[limits(1.0, 0.4, 0.9), limits(0.1, 0.1, 0.1)]).is_empty());
        assert_eq!(names(&look(&[limits(1.0, 0.6, 0.0)])), [RECEIVER_LIMITED]);
        let both = [limits(1.0, 0.0, 0.5), limits(0.8, 0.0, 0.8)];
        assert_eq!(names(&look(&both)), [BUFFER_LIMITED]);
        assert!(watch.wants_connections() && !watch.wants_counters());
    }

    #[test]
    fn names_are_known_and_no_counter_is_of_two_signs() {
        let mut all: Vec<&str> = SIGNS.iter().flat_map(|sign| sign.counters).copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert_eq!(named("nothing"), None);
    }
}
