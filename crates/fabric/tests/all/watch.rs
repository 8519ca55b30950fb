//! What is seen at ports that are watched.
//!
//! At 1 Gb/s a full frame of MTU 1500 has 1538 bytes on the wire and takes T = 12,304 ns.

use std::collections::{HashMap, HashSet};

use crate::common::{Log, aggregate, any_queue, nanoseconds, rack, rack_config};
use framegauge_fabric::PortEventKind::{Arrived, Departed, Dropped, Marked};
use framegauge_fabric::{
    Aggregate, BackgroundConfig, Ecn, Fabric, HostIndex, Impairments, PortChange, PortEvent, PortIndex,
    Process, QueueConfig, Reason, SharedBufferConfig, Sink,
};
use framegauge_frames::{BitRate, Picoseconds};
use proptest::prelude::*;

const T: u64 = 12_304;

#[test]
fn every_step_of_a_queue_is_seen_at_its_time() {
    // h1 and h2 each send two full frames to h3 at time 0, the port has room for two. Both come at T and at 2 T; at 2 T
    // one has left before, so that the second of h1 fits and that of h2 does not.
    let mut fabric = rack(3, 0, 2 * 1518, 9216);
    let mut log = Log::default();
    fabric.watch(PortIndex(5), true);
    fabric.transmit(nanoseconds(0), HostIndex(0), aggregate(0, 2, 1514, 2));
    fabric.transmit(nanoseconds(0), HostIndex(1), aggregate(1, 2, 1514, 2));
    fabric.advance(nanoseconds(2 * T), &mut log);
    // What has left is told although it has only just left.
    let full = Some(Reason::Taildrop);
    let mut expected = vec![
        (1, Arrived, 0, 0, 1, None),
        (1, Arrived, 1, 0, 2, None),
        (2, Departed, 0, 0, 1, None),
        (2, Arrived, 0, 1, 2, None),
        (2, Arrived, 1, 1, 2, None),
        (2, Dropped, 1, 1, 2, full),
    ];
    let seen = |log: &Log| -> Vec<_> {
        let of = |event: &PortEvent| {
            assert_eq!(
                (event.port, event.queue_bytes % 1518, event.frame.frame_bytes),
                (PortIndex(5), 0, 1518)
            );
            let times = event.time.as_nanoseconds() / T;
            assert_eq!(event.time, nanoseconds(times * T));
            (
                times,
                event.kind,
                event.frame.aggregate,
                event.frame.index,
                event.queue_bytes / 1518,
                event.reason,
            )
        };
        log.seen.iter().map(of).collect()
    };
    assert_eq!(seen(&log), expected);
    fabric.advance(nanoseconds(9 * T), &mut log);
    expected.extend([(3, Departed, 1, 0, 1, None), (4, Departed, 0, 1, 0, None)]);
    assert_eq!(seen(&log), expected);

    fabric.watch(PortIndex(5), false);
    fabric.transmit(nanoseconds(20 * T), HostIndex(0), aggregate(2, 2, 1514, 2));
    fabric.advance(nanoseconds(30 * T), &mut log);
    assert_eq!((log.seen.len(), log.delivered.len()), (expected.len(), 5));
}

#[test]
fn a_mark_follows_the_arrival() {
    let mut config = rack_config(2, 0, 1 << 20, 9216);
    config.ports[3].queue = QueueConfig::Step { limit_bytes: 1 << 20, threshold_bytes: 0 };
    let mut fabric = Fabric::new(&config).unwrap();
    let mut log = Log::default();
    fabric.watch(PortIndex(3), true);
    let capable = Aggregate { ecn: Ecn::CAPABLE, ..aggregate(0, 1, 1514, 1) };
    fabric.transmit(nanoseconds(0), HostIndex(0), capable);
    fabric.advance(nanoseconds(9 * T), &mut log);
    let seen: Vec<_> =
        log.seen.iter().map(|event| (event.kind, event.frame.ecn, event.queue_bytes, event.reason)).collect();
    let expected = [
        (Arrived, Ecn::CAPABLE, 1518, None),
        (Marked, Ecn::MARKED, 1518, Some(Reason::Step)),
        (Departed, Ecn::MARKED, 0, None),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_host_s_nic_is_seen_with_what_was_handed_to_it_and_with_what_its_link_loses() {
    let mut config = rack_config(2, 1_000, 1 << 20, 9216);
    config.ports[0].impairments = Impairments { loss: 1.0, ..Impairments::default() };
    let mut fabric = Fabric::new(&config).unwrap();
    let mut log = Log::default();
    fabric.watch(PortIndex(0), true);
    fabric.transmit(nanoseconds(5), HostIndex(0), aggregate(0, 1, 1514, 1));
    assert!(log.seen.is_empty());
    fabric.advance(nanoseconds(9 * T), &mut log);
    let seen: Vec<_> = log
        .seen
        .iter()
        .map(|event| (event.kind, event.time.as_nanoseconds(), event.queue_bytes, event.reason))
        .collect();
    let expected = [
        (Arrived, 5, 1518, None),
        (Departed, 5 + T, 0, None),
        (Dropped, 5 + T + 1_000, 0, Some(Reason::Loss)),
    ];
    assert_eq!(seen, expected);
}

/// Follows each port by what is seen there, and every frame until its end.
#[derive(Default)]
struct Follower {
    /// By port: what is inside, how often.
    inside: Vec<HashMap<(u32, u64), u32>>,
    /// By port: its bytes.
    held_bytes: Vec<u64>,
    /// By port: events of each kind; those that came are told apart from those that were taken in by what the buffer holds.
    counts: Vec<[u64; 4]>,
    latest: Vec<Picoseconds>,
    ended: HashSet<(u32, u16)>,
}

impl Sink for Follower {
    fn deliver(&mut self, _host: HostIndex, frames: &[(u32, u16)], _due: Picoseconds) {
        self.ended.extend(frames);
    }

    fn discard(&mut self, aggregate: u32, frame: u16) {
        self.ended.insert((aggregate, frame));
    }

    fn seen(&mut self, event: &PortEvent) {
        let port = usize::from(event.port.0);
        let (inside, held) = (&mut self.inside[port], &mut self.held_bytes[port]);
        let bytes = u64::from(event.frame.frame_bytes);
        // A background's frames have no numbers of their own: two that come at the same time are the same.
        let id = match event.frame.background() {
            Some(number) => (u32::MAX - number as u32, event.frame.since.as_picoseconds()),
            None => (event.frame.aggregate, event.frame.index.into()),
        };
        assert!(!self.ended.contains(&(event.frame.aggregate, event.frame.index)), "{event:?} after its end");
        match event.kind {
            Arrived if event.queue_bytes == *held + bytes => {
                *inside.entry(id).or_default() += 1;
                *held += bytes;
            }
            Departed | Dropped if event.queue_bytes + bytes == *held => {
                let count = inside.get_mut(&id).filter(|count| **count > 0);
                *count.unwrap_or_else(|| panic!("{event:?} of nothing")) -= 1;
                *held -= bytes;
            }
            Departed => panic!("{event:?} and the buffer is as it was"),
            Arrived | Dropped | Marked => {}
        }
        assert_eq!(*held, event.queue_bytes, "{event:?}");
        assert_eq!(event.reason.is_some(), matches!(event.kind, Dropped | Marked));
        assert!(event.time >= self.latest[port], "{event:?}");
        self.latest[port] = event.time;
        self.counts[port][event.kind as usize] += 1;
    }
}

fn any_change() -> impl Strategy<Value = (u16, PortChange)> {
    (0u16..6, prop::option::of(any_queue()), prop::option::of(any::<bool>()), prop::option::of(0u64..50_000))
        .prop_map(|(port, queue, up, delay)| {
            let queue = queue.filter(|_| port % 2 == 1);
            (port, PortChange { queue, up, delay: delay.map(nanoseconds), ..PortChange::default() })
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// What is seen accounts for every byte in every buffer and for every count, is told in the order of time, and
    /// before the frame meets its end.
    #[test]
    fn what_is_seen_accounts_for_all_there_is(
        queues in prop::collection::vec(any_queue(), 3),
        acts in prop::collection::vec(
            (0u64..60_000, 0u16..3, 1u16..8, 60u32..2_000, 0u16..3, prop::option::weighted(0.2, any_change())), 1..40),
        shared in prop::option::of(4_000u64..20_000),
        (loss, jitter) in (prop_oneof![Just(0.0), 0.0f64..0.5], prop_oneof![Just(0u64), 1u64..50_000]),
        load in any::<bool>(),
    ) {
        let mut config = rack_config(3, 10_000, 9_000, 1_500);
        for (port, queue) in [1, 3, 5].into_iter().zip(queues) {
            config.ports[port].queue = queue;
            config.ports[port].impairments = Impairments { loss, jitter: nanoseconds(jitter), ..Impairments::default() };
        }
        config.shared_buffer = shared.map(|bytes| SharedBufferConfig { bytes, alpha: 1.0, lossless: None });
        config.background.extend(load.then_some(BackgroundConfig {
            from: HostIndex(0),
            to: HostIndex(2),
            rate: BitRate::new(300_000_000).unwrap(),
            frame_bytes: 700,
            process: Process::Poisson,
            seed: 3,
        }));
        let mut fabric = Fabric::new(&config).unwrap();
        let mut follower = Follower {
            inside: vec![HashMap::new(); 6],
            held_bytes: vec![0; 6],
            counts: vec![[0; 4]; 6],
            latest: vec![Picoseconds::ZERO; 6],
            ended: HashSet::new(),
        };
        (0..6).for_each(|port| fabric.watch(PortIndex(port), true));
        let mut now = Picoseconds::ZERO;
        for (id, (wait, source, frames, captured, to, change)) in acts.into_iter().enumerate() {
            now += nanoseconds(wait);
            fabric.advance(now, &mut follower);
            let sending = aggregate(id as u32, frames, captured, to);
            fabric.transmit(now, HostIndex(source), Aggregate { ecn: Ecn::CAPABLE, ..sending });
            if let Some((port, change)) = change {
                fabric.change(now, PortIndex(port), change, &mut follower).unwrap();
            }
        }
        for step in 1..=3 {
            fabric.advance(now + nanoseconds(step * 100_000), &mut follower);
            for (port, counted) in fabric.counters().ports.iter().enumerate() {
                let [arrived, dropped, marked, departed] = follower.counts[port];
                prop_assert_eq!((arrived, departed, marked), (counted.received_frames, counted.sent_frames, counted.marked_frames));
                prop_assert_eq!(dropped, counted.dropped_frames + counted.lost_frames);
                prop_assert_eq!(follower.held_bytes[port], counted.queued_bytes);
            }
        }
    }

    /// To watch changes nothing.
    #[test]
    fn who_watches_changes_nothing(
        queue in any_queue(),
        sends in prop::collection::vec((0u64..60_000, 0u16..3, 1u16..8, 60u32..2_000, 0u16..3), 1..40),
    ) {
        let mut config = rack_config(3, 10_000, 9_000, 1_500);
        config.ports[5].queue = queue;
        let run = |watched: bool| {
            let mut fabric = Fabric::new(&config).unwrap();
            (0..6).for_each(|port| fabric.watch(PortIndex(port), watched));
            let (mut log, mut now) = (Log::default(), Picoseconds::ZERO);
            for (id, &(wait, source, frames, captured, to)) in sends.iter().enumerate() {
                now += nanoseconds(wait);
                fabric.transmit(now, HostIndex(source), aggregate(id as u32, frames, captured, to));
                fabric.advance(now, &mut log);
            }
            fabric.advance(now + nanoseconds(10_000_000), &mut log);
            let drops = fabric.take_drops();
            (log, drops, fabric.counters())
        };
        let ((mut log, drops, counters), (other, other_drops, other_counters)) = (run(true), run(false));
        prop_assert!(!log.seen.is_empty() && other.seen.is_empty());
        log.seen.clear();
        prop_assert_eq!((log, drops, counters), (other, other_drops, other_counters));
    }
}
