//! A path with two taps whose losses are known: packets are cut and merged on the way, as TSO and GRO do, repeated, and
//! overtaken, and what is inferred is what was lost.

use framegauge_diagnosis::joined::{Hop, Joined, Joiner, Place};
use framegauge_packets::capture::{SackBlocks, Segment};
use framegauge_packets::{SynOptions, TcpFlags};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::net::SocketAddr;

const MSS: u32 = 1000;
const MS: i64 = 1_000_000;

fn ends() -> [SocketAddr; 2] {
    ["10.0.0.1:40000", "10.0.0.2:80"].map(|text| text.parse().expect("an end"))
}

/// A segment of an end, at a time; everything else is the same for all.
fn segment(from: usize, nanoseconds: i64, seq: u32, ack: u32, payload: u32, value: u32) -> Segment {
    let ends = ends();
    Segment {
        nanoseconds,
        number: 0,
        source: ends[from],
        destination: ends[1 - from],
        seq,
        ack,
        flags: TcpFlags::ACK,
        window: 500,
        payload_bytes: payload,
        ip_bytes: payload + 52,
        timestamps: (value > 0).then_some((value, 1)),
        sack: SackBlocks::default(),
        syn: None,
        multipath: false,
        fast_open: false,
        identification: None,
        hops: 64,
        ecn: 0,
        checksum_is_right: None,
        option_bytes: 12,
        options_are_cut: false,
        fragments: None,
    }
}

/// What each of two taps captured, with its clock's offset.
#[derive(Debug, Default)]
struct Taps {
    packets: [Vec<Segment>; 2],
}

impl Taps {
    fn joined(self, offset: i64) -> Joined {
        self.joined_while(offset, None)
    }

    /// `ran`: when the second tap's capture ran as well, by that tap's clock.
    fn joined_while(mut self, offset: i64, ran: Option<i64>) -> Joined {
        let mut joiner = Joiner::default();
        let taps = [0, 1].map(|file| joiner.tap(format!("h{}", file + 1), None, file, Place::Path));
        ran.into_iter().for_each(|at| joiner.ran(taps[1], at));
        self.packets[1].iter_mut().for_each(|packet| packet.nanoseconds += offset);
        for (tap, mut packets) in taps.into_iter().zip(self.packets) {
            packets.sort_by_key(|packet| packet.nanoseconds);
            for (place, packet) in packets.iter_mut().enumerate() {
                packet.number = place as u64 + 1;
                joiner.take(tap, packet);
            }
        }
        joiner.finish().expect("a connection at both taps")
    }

    /// A handshake at the first millisecond.
    fn met() -> Taps {
        let mut taps = Taps::default();
        for (from, flags, at, seq, ack) in [
            (0, TcpFlags::SYN, 0, 999, 0),
            (1, TcpFlags::SYN.with(TcpFlags::ACK), MS / 5, 4999, 1000),
            (0, TcpFlags::ACK, 2 * MS / 5, 1000, 5000),
        ] {
            let mss = Some(MSS as u16 + 12);
            let syn = SynOptions { mss, timestamps: true, window_scale: None, sack_permitted: true };
            let packet = Segment { flags, ..segment(from, at, seq, ack, 0, 1) };
            let syn = flags.contains(TcpFlags::SYN).then_some(syn);
            taps.pass(Segment { syn, ..packet }, from, MS / 10);
        }
        taps
    }

    /// Sees a packet at the tap of its sender, and a delay later at the other one.
    fn pass(&mut self, packet: Segment, from: usize, delay: i64) {
        self.packets[from].push(packet);
        self.packets[1 - from].push(Segment { nanoseconds: packet.nanoseconds + delay, ..packet });
    }
}

/// What is done with the packets of a transfer.
#[derive(Debug, Clone)]
struct Plan {
    /// Per burst: its packets, and how many are captured as one before they are cut, and after they are merged.
    bursts: Vec<(u32, u32, u32)>,
    /// Of all packets that are sent, in order: lost (of ten, the first), overtaken (the second).
    fates: Vec<u8>,
    with_timestamps: bool,
    /// The whole is captured near the wrap of sequence numbers.
    first: u32,
}

/// A sender that repeats what was lost until it arrives, ten milliseconds later: both taps, and the first byte of each packet
/// that was lost with the time of the burst it was in.
fn transfer(plan: &Plan) -> (Taps, BTreeSet<(i64, u32)>) {
    let mut taps = Taps::met();
    let (mut now, mut next, mut fate) = (10 * MS, plan.first, plan.fates.iter().cycle());
    let mut lost = BTreeSet::new();
    for (packets, together, merged) in &plan.bursts {
        let mut due: Vec<u32> = (0..*packets).map(|number| next.wrapping_add(number * MSS)).collect();
        next = next.wrapping_add(packets * MSS);
        while !due.is_empty() {
            let value = if plan.with_timestamps { (now / MS) as u32 } else { 0 };
            let mut arrived: Vec<(u32, bool)> = Vec::new();
            let mut again = Vec::new();
            for run in due.chunk_by(|one, two| one.wrapping_add(MSS) == *two) {
                for some in run.chunks(*together as usize) {
                    taps.packets[0].push(segment(0, now, some[0], 5000, some.len() as u32 * MSS, value));
                    for first in some {
                        match fate.next().copied().unwrap_or(9) {
                            0 => {
                                lost.insert((now, *first));
                                again.push(*first);
                            }
                            // Without timestamps, the order alone tells copies apart: then nothing may be overtaken.
                            other => arrived.push((*first, other == 1 && plan.with_timestamps)),
                        }
                    }
                }
            }
            let mut at = now + 5 * MS;
            let mergeable: Vec<u32> =
                arrived.iter().filter(|(_, late)| !late).map(|(first, _)| *first).collect();
            for run in mergeable.chunk_by(|one, two| one.wrapping_add(MSS) == *two) {
                for some in run.chunks(*merged as usize) {
                    taps.packets[1].push(segment(0, at, some[0], 5000, some.len() as u32 * MSS, value));
                    at += 1000;
                }
            }
            for (first, _) in arrived.iter().filter(|(_, late)| *late) {
                taps.packets[1].push(segment(0, at + MS, *first, 5000, MSS, value));
            }
            now += 10 * MS;
            due = again;
        }
        taps.pass(segment(1, now, 5000, next, 0, (now / MS) as u32), 1, MS / 10);
        now += MS;
    }
    // So near the end of a capture nothing is judged that both could not have seen.
    let last = now + 100 * MS;
    taps.pass(segment(0, last, next, 5000, 0, (last / MS) as u32), 0, MS / 10);
    (taps, lost)
}

fn plan() -> impl Strategy<Value = Plan> {
    let bursts = prop::collection::vec((1u32..60, 1u32..45, 1u32..17), 1..20);
    let fates = prop::collection::vec(0u8..20, 20..200);
    (bursts, fates, any::<bool>(), prop_oneof![Just(1000), any::<u32>()])
        .prop_filter("somebody gets through", |(_, fates, ..)| {
            fates.iter().filter(|fate| **fate > 0).count() > 10
        })
        .prop_map(|(bursts, mut fates, with_timestamps, first)| {
            if !with_timestamps {
                // Copies that are alike in everything and overtake each other: which of them came, nobody can tell.
                fates.iter_mut().for_each(|fate| *fate = if *fate == 1 { 2 } else { *fate });
            }
            Plan { bursts, fates, with_timestamps, first }
        })
}

/// The first byte of each packet that was said to be lost, with its time at the first tap.
fn inferred(joined: &Joined) -> BTreeSet<(i64, u32)> {
    let hop = &joined.connections[0].directions[0].hops[0];
    let first = |drop: &framegauge_diagnosis::joined::Drop| {
        let at = (drop.at_seconds * 1e9).round() as i64;
        let packets = drop.end.wrapping_sub(drop.begin) / MSS;
        (0..packets).map(move |number| (at / MS * MS, drop.begin_of(number))).collect::<Vec<_>>()
    };
    hop.drops.iter().flat_map(first).collect()
}

trait BeginOf {
    fn begin_of(&self, number: u32) -> u32;
}

impl BeginOf for framegauge_diagnosis::joined::Drop {
    fn begin_of(&self, number: u32) -> u32 {
        self.begin.wrapping_add(number * MSS)
    }
}

proptest! {
    #[test]
    fn what_is_inferred_is_what_was_lost(plan in plan(), offset in -10_000 * MS..10_000 * MS) {
        let (taps, lost) = transfer(&plan);
        let joined = taps.joined(offset);
        let direction = &joined.connections[0].directions[0];
        prop_assert_eq!(&direction.taps, &[1, 2]);
        let hop = &direction.hops[0];
        prop_assert_eq!(hop.missed_packets + hop.unseen_packets + hop.unjudged_packets, 0);
        prop_assert_eq!(hop.lost_packets, lost.len() as u64);
        prop_assert_eq!(inferred(&joined), lost);
        prop_assert_eq!(joined.connections[0].directions[1].hops[0].lost_packets, 0);
        let clock = joined.taps[1].clock.as_ref().expect("packets came both ways");
        let wrong = (clock.offset_seconds - offset as f64 / 1e9).abs();
        prop_assert!(wrong <= clock.uncertainty_seconds, "{wrong} {clock:?}");
    }

    /// Stamps may be anywhere between 1970 and 2100, and in any order: nothing overflows, and nobody answers before
    /// being asked.
    #[test]
    fn whatever_the_clocks_say_no_time_is_negative(plan in plan(), stamps in prop::collection::vec(stamp(), 1..50)) {
        let (mut taps, _) = transfer(&plan);
        let mut stamps = stamps.iter().cycle();
        let mut joiner = Joiner::default();
        for (file, packets) in taps.packets.iter_mut().enumerate() {
            let tap = joiner.tap(format!("h{file}"), None, file, Place::Path);
            for (place, packet) in packets.iter_mut().enumerate() {
                packet.number = place as u64 + 1;
                packet.nanoseconds = stamps.next().map_or(0, |stamp| stamp.unwrap_or(packet.nanoseconds));
                joiner.take(tap, packet);
            }
        }
        let joined = joiner.finish().expect("a connection at both taps");
        for direction in &joined.connections[0].directions {
            let wait = direction.wait.as_ref().expect("both taps saw both directions");
            prop_assert!(0.0 <= wait.held_seconds && wait.held_seconds <= wait.waited_seconds, "{wait:?}");
            let delays = direction.hops.iter().filter_map(|hop| hop.delay.as_ref());
            for delay in delays {
                prop_assert!(delay.least_seconds <= delay.median_seconds && delay.uncertainty_seconds >= 0.0);
            }
        }
    }
}

/// Any stamp of a segment, or `None` for the true one.
fn stamp() -> impl Strategy<Value = Option<i64>> {
    const LATEST: i64 = 4_102_444_800_000_000_000;
    prop_oneof![3 => Just(None), 1 => (0..=LATEST).prop_map(Some), 1 => Just(Some(LATEST)), 1 => Just(Some(0))]
}

#[test]
fn a_clock_that_is_a_century_wrong_is_found() {
    let offset = 3_100_000_000_000_000_000;
    let mut taps = Taps::met();
    for number in 0..50u32 {
        let at = (10 + i64::from(number)) * MS;
        taps.pass(segment(0, at, 1000 + number * MSS, 5000, MSS, 10 + number), 0, MS / 10);
        taps.pass(segment(1, at + MS / 5, 5000, 1000 + (number + 1) * MSS, 0, 10 + number), 1, MS / 10);
    }
    let joined = taps.joined(offset);
    assert_eq!(joined.connections[0].directions.each_ref().map(|each| each.hops[0].lost_packets), [0, 0]);
    let clock = joined.taps[1].clock.as_ref().expect("packets came both ways");
    assert!(
        (clock.offset_seconds - offset as f64 / 1e9).abs() <= clock.uncertainty_seconds + 1e-6,
        "{clock:?}"
    );
}

#[test]
fn parts_that_were_merged_are_copies_of_one_time() {
    // Of eight segments the last two are lost and sent again, and the receiver's GRO puts these two into one packet.
    let mut fates = vec![2; 8];
    fates[6..].fill(0);
    fates.extend([2; 20]);
    let plan = Plan { bursts: vec![(8, 1, 2)], fates, with_timestamps: false, first: 1000 };
    let (taps, lost) = transfer(&plan);
    assert_eq!(lost, [(10 * MS, 1000 + 6 * MSS), (10 * MS, 1000 + 7 * MSS)].into());
    assert_eq!(inferred(&taps.joined(0)), lost);
}

#[test]
fn what_the_receiver_acknowledged_although_its_tap_lacks_it_is_no_loss() {
    let mut taps = Taps::met();
    for number in 0..50 {
        let at = (10 + number) * MS;
        let data = segment(0, at, 1000 + number as u32 * MSS, 5000, MSS, 10 + number as u32);
        taps.pass(data, 0, MS / 10);
        taps.pass(segment(1, at + MS / 5, 5000, 1000 + (number as u32 + 1) * MSS, 0, 10), 1, MS / 10);
    }
    taps.packets[1].retain(|packet| packet.seq != 1000 + 20 * MSS);
    let joined = taps.joined(0);
    let hop = &joined.connections[0].directions[0].hops[0];
    assert_eq!((hop.lost_packets, hop.missed_packets, hop.arrived_packets), (0, 1, 51));
}

#[test]
fn what_left_after_the_other_capture_had_ended_is_not_judged() {
    let mut taps = Taps::met();
    for number in 0..50 {
        let at = (10 + number) * MS;
        taps.pass(segment(0, at, 1000 + number as u32 * MSS, 5000, MSS, 10 + number as u32), 0, MS / 10);
    }
    taps.packets[1].truncate(33);
    let joined = taps.joined(5000 * MS);
    let hop = &joined.connections[0].directions[0].hops[0];
    assert_eq!((hop.lost_packets, hop.missed_packets, hop.unjudged_packets), (0, 0, 20));
}

#[test]
fn what_left_while_the_other_capture_ran_was_lost_although_nothing_came_there_any_more() {
    for (ran, lost) in [(60, 10), (5000, 20)] {
        let mut taps = Taps::met();
        for number in 0..50 {
            let at = (10 + number) * MS;
            taps.pass(segment(0, at, 1000 + number as u32 * MSS, 5000, MSS, 10 + number as u32), 0, MS / 10);
        }
        taps.packets[1].truncate(33);
        // A capture that ends so soon may have missed what comes within the grace of 10 ms.
        let joined = taps.joined_while(700 * MS, Some((700 + ran) * MS));
        let hop = &joined.connections[0].directions[0].hops[0];
        assert_eq!((hop.lost_packets, hop.unjudged_packets), (lost, 20 - lost), "{ran}");
    }
}

#[test]
fn lost_acknowledgements_are_found_by_what_they_say() {
    let mut taps = Taps::met();
    for number in 0..50u32 {
        let at = (10 + i64::from(number)) * MS;
        taps.pass(segment(0, at, 1000 + number * MSS, 5000, MSS, 10 + number), 0, MS / 10);
        taps.pass(segment(1, at + MS / 5, 5000, 1000 + (number + 1) * MSS, 0, 10 + number), 1, MS / 10);
    }
    taps.packets[0].retain(|packet| packet.ack != 1000 + 31 * MSS);
    let joined = taps.joined(0);
    let [there, back] = &joined.connections[0].directions;
    assert_eq!((&there.taps[..], &back.taps[..]), (&[1, 2][..], &[2, 1][..]));
    assert_eq!((there.hops[0].lost_packets, back.hops[0].lost_packets), (0, 1));
    let [drop] = &back.hops[0].drops[..] else { panic!("{back:?}") };
    assert_eq!((drop.begin, drop.end, drop.packets), (5000, 5000, 1));
}

#[test]
fn a_host_that_holds_its_answers_back_is_told_from_a_slow_network() {
    let mut taps = Taps::met();
    let mut now = 10 * MS;
    let (mut asked, mut answered) = (1000, 5000);
    for number in 0..10 {
        taps.pass(segment(0, now, asked, answered, 100, 10 + number), 0, 3 * MS);
        asked += 100;
        // It came after 3 ms, and was answered after 70 more; the answer took 5.
        taps.pass(segment(1, now + 73 * MS, answered, asked, 500, 10 + number), 1, 5 * MS);
        answered += 500;
        now += 100 * MS;
    }
    let joined = taps.joined(-7777 * MS);
    let wait = joined.connections[0].directions[0].wait.as_ref().expect("both taps saw both directions");
    assert_eq!(wait.answers, 10);
    assert!((wait.waited_seconds - 0.78).abs() < 1e-9 && (wait.held_seconds - 0.7).abs() < 1e-9, "{wait:?}");
    assert_eq!(wait.acknowledgements.count, 10);
}

#[test]
fn who_lacks_a_part_of_a_request_does_not_hold_the_answer_back() {
    for (repeats, answers) in [(true, 1), (false, 0)] {
        let mut taps = Taps::met();
        let lost = segment(0, 10 * MS, 1000, 5000, MSS, 10);
        taps.packets[0].push(lost);
        taps.pass(segment(0, 10 * MS + 1, 1000 + MSS, 5000, 100, 10), 0, MS);
        if repeats {
            taps.pass(Segment { nanoseconds: 510 * MS, ..lost }, 0, MS);
        }
        // Its own application sends, 4 ms after the repeat came.
        taps.pass(segment(1, 515 * MS, 5000, 1000, 50, 500), 1, MS);
        let joined = taps.joined(0);
        let wait = joined.connections[0].directions[0].wait.as_ref().expect("both taps saw both directions");
        assert_eq!(wait.answers, answers);
        assert!((wait.held_seconds - 0.004 * answers as f64).abs() < 1e-9, "{wait:?}");
    }
}

/// Flights of four segments, of which those are lost between the taps that `drops` says: by how far each begins beyond what was
/// acknowledged, and by its place. What is lost is sent again, one after the other. The hop from client to server.
fn flights(scale: Option<u8>, drops: impl Fn(u32, u32) -> bool) -> Hop {
    let mut taps = Taps::met();
    for packet in taps.packets.iter_mut().flatten() {
        packet.syn = packet.syn.map(|syn| SynOptions { window_scale: scale, ..syn });
    }
    let (mut now, mut next, mut place) = (10 * MS, 1000u32, 0);
    for _ in 0..5 {
        let mut due = Vec::new();
        for offset in (0..4).map(|number| number * MSS) {
            let packet = segment(0, now, next.wrapping_add(offset), 5000, MSS, (now / MS) as u32);
            place += 1;
            if drops(offset, place) {
                taps.packets[0].push(packet);
                due.push(packet.seq);
            } else {
                taps.pass(packet, 0, MS / 10);
            }
        }
        let acknowledge = |taps: &mut Taps, now: &mut i64, place: u32| {
            *now += MS;
            taps.pass(segment(1, *now, 5000, place, 0, (*now / MS) as u32), 1, MS / 10);
        };
        for first in due {
            acknowledge(&mut taps, &mut now, first);
            now += 250 * MS;
            taps.pass(segment(0, now, first, 5000, MSS, (now / MS) as u32), 0, MS / 10);
        }
        next = next.wrapping_add(4 * MSS);
        acknowledge(&mut taps, &mut now, next);
        now += 10 * MS;
    }
    taps.joined(3 * MS).connections[0].directions[0].hops[0].clone()
}

#[test]
fn two_captures_show_whether_all_beyond_a_window_without_its_scale_is_lost() {
    // The window is written as 500: what does not begin where all was acknowledged lies beyond it.
    let counts =
        |hop: Hop| hop.unscaled.map(|of| (of.beyond_segments, of.lost_segments, of.others_lost_segments));
    assert_eq!(counts(flights(Some(7), |offset, _| offset > 0)), Some((15, 15, 0)));
    assert_eq!(counts(flights(Some(7), |_, _| false)), Some((15, 0, 0)));
    assert_eq!(counts(flights(Some(7), |_, place| place == 5 || place == 6)), Some((15, 1, 1)));
    assert_eq!(counts(flights(None, |offset, _| offset > 0)), None);
    assert_eq!(counts(flights(Some(0), |offset, _| offset > 0)), None);
}
