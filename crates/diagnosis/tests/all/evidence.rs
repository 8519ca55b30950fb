//! No loss without evidence of loss: whatever of a clean conversation a file lacks, has twice, or has in another order.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, diagnosis, kinds, listing, one};
use framegauge_diagnosis::Kind;
use framegauge_packets::TcpFlags;
use proptest::prelude::*;

const LOSSES: [Kind; 7] = [
    Kind::RtoStall,
    Kind::TailLoss,
    Kind::FastRetransmit,
    Kind::DoubleLoss,
    Kind::RetransmitStorm,
    Kind::PmtuBlackHole,
    Kind::Incast,
];

/// So long Linux delays an acknowledgement at first (`TCP_DELACK_MIN`).
const DELAYED: i64 = 40 * MS;

/// What a file may do to packets that were all delivered.
#[derive(Debug, Clone, Copy)]
struct Filter {
    /// Data is missing here and there.
    skips: u8,
    /// What only acknowledges is missing: of sixteen so many, or all by a display filter.
    drops_acks: u8,
    /// Every packet is there twice, so much later.
    copies_after: Option<i64>,
    /// The host counts the packets of other connections, too.
    shares_counter: bool,
    /// Neighbours are swapped.
    swaps: u8,
    /// The tap lies in the middle of the path.
    is_far: bool,
    /// Whether packets have numbers, and timestamps.
    marks: (bool, bool),
    /// So many packets are missing at both ends of the file.
    begins_late: usize,
    ends_early: usize,
}

fn filter() -> impl Strategy<Value = Filter> {
    let copies = proptest::option::of(prop_oneof![
        Just(20_000i64),
        Just(5 * MS),
        Just(40 * MS),
        Just(900 * MS),
        Just(20_000 * MS)
    ]);
    let marks =
        prop_oneof![Just((true, true)), Just((true, false)), Just((false, true)), Just((false, false))];
    let drops_acks = prop_oneof![Just(0u8), 1u8..16, Just(16u8)];
    (0u8..4, drops_acks, copies, any::<bool>(), 0u8..4, any::<bool>(), marks, 0usize..40, 0usize..40)
        .prop_map(
            |(
                skips,
                drops_acks,
                copies_after,
                shares_counter,
                swaps,
                is_far,
                marks,
                begins_late,
                ends_early,
            )| Filter {
                skips,
                drops_acks,
                // Without marks, or with too few packets to trust them, what comes later may be a timer's.
                copies_after: copies_after.filter(|after| {
                    let is_whole = begins_late == 0 && ends_early == 0 && skips == 0;
                    *after < 200 * MS || (is_whole && marks != (false, false))
                }),
                shares_counter,
                swaps,
                is_far,
                marks,
                begins_late,
                ends_early,
            },
        )
}

/// Requests and answers of some segments, with rests between them, and a FIN after a rest. A server that thinks for longer than
/// acknowledgements are delayed acknowledges the request by itself.
fn conversation(turns: &[(u32, i64, i64)], filter: Filter) -> Scene {
    let mut scene = Scene::new();
    if filter.shares_counter {
        scene.hops = 128;
    }
    if filter.is_far {
        scene.meet_at_server(20 * MS)
    } else {
        scene.meet(20 * MS)
    }
    for (segments, rest, thought) in turns {
        scene.pass(*rest);
        if filter.shares_counter {
            scene.identification.iter_mut().for_each(|own| *own = own.wrapping_add(*rest as u16 % 97));
        }
        scene.data(CLIENT, 100);
        scene.pass(20 * MS);
        scene.got[SERVER] = scene.next[CLIENT];
        if *thought > DELAYED {
            scene.pass(DELAYED);
            scene.ack(SERVER);
            scene.pass(thought - DELAYED);
        }
        for _ in 0..*segments {
            scene.data(SERVER, MSS);
            scene.pass(20_000);
        }
        scene.pass(10 * MS);
        scene.ack(CLIENT);
    }
    scene.pass(5_000 * MS);
    scene.send(SERVER, 0, TcpFlags::ACK.with(TcpFlags::FIN));
    scene
}

/// The packets that the file has, in its order; the last of each end stays.
fn filed(scene: &Scene, filter: Filter, draws: &[u8]) -> Vec<framegauge_packets::capture::Segment> {
    let last = scene.segments.len().saturating_sub(2);
    let draw = |place: usize| draws[place % draws.len()];
    let mut kept = Vec::new();
    for (place, segment) in scene.segments.iter().enumerate() {
        let is_data = segment.payload_bytes > 0;
        let is_middle = place > 2 && place < last;
        if is_middle && is_data && filter.skips > 0 && draw(place) % 16 < filter.skips {
            continue;
        }
        let is_dropped = draw(place) % 16 < filter.drops_acks;
        if is_dropped && !is_data && segment.flags == TcpFlags::ACK && place < last {
            continue;
        }
        kept.push(*segment);
    }
    for place in 4..kept.len().saturating_sub(1) {
        let (one, other) = (kept[place - 1], kept[place]);
        let near = other.nanoseconds - one.nanoseconds < MS && one.source == other.source;
        if near && filter.swaps > 0 && draw(place) % 16 < filter.swaps {
            kept.swap(place - 1, place);
            (kept[place - 1].nanoseconds, kept[place].nanoseconds) = (one.nanoseconds, other.nanoseconds);
        }
    }
    if let Some(after) = filter.copies_after {
        let copies: Vec<_> = kept.iter().filter(|segment| segment.payload_bytes > 0).copied().collect();
        kept.extend(copies.into_iter().map(|mut copy| {
            copy.nanoseconds += after;
            copy
        }));
        kept.sort_by_key(|segment| segment.nanoseconds);
    }
    let end = kept.len().saturating_sub(filter.ends_early);
    let mut kept = kept[filter.begins_late.min(end)..end].to_vec();
    for (place, segment) in kept.iter_mut().enumerate() {
        segment.number = place as u64 + 1;
        segment.identification = segment.identification.filter(|_| filter.marks.0).or(Some(0));
        segment.timestamps = segment.timestamps.filter(|_| filter.marks.1);
    }
    kept
}

/// Segments of an answer, the rest before its request, and how long the server thinks.
fn turn() -> impl Strategy<Value = (u32, i64, i64)> {
    let rest = prop_oneof![Just(MS), Just(300 * MS), Just(10_000 * MS)];
    let thought = prop_oneof![Just(0i64), Just(60 * MS), Just(210 * MS), Just(1_100 * MS)];
    (1u32..7, rest, thought)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn of_what_was_delivered_nothing_is_said_to_be_lost(
        turns in proptest::collection::vec(turn(), 2..12),
        filter in filter(),
        draws in proptest::collection::vec(any::<u8>(), 16..64),
    ) {
        let segments = filed(&conversation(&turns, filter), filter, &draws);
        let found = diagnosis(&segments);
        for finding in &found.findings {
            let packets = || listing(&segments, &finding.packets);
            prop_assert!(!LOSSES.contains(&finding.kind), "{filter:?}: {finding:?}\n{}", packets());
        }
    }
}

#[test]
fn a_hole_behind_a_rest_is_a_loss_if_it_is_sent_again() {
    let mut scene = Scene::new();
    scene.meet_at_server(20 * MS);
    scene.talk(3, MS);
    scene.pass(1_000 * MS);
    let lost = scene.next[CLIENT];
    scene.next[CLIENT] = lost.wrapping_add(MSS);
    scene.identification[CLIENT] += 1;
    scene.data(CLIENT, MSS);
    scene.pass(MS);
    scene.sack(SERVER, lost, &[(lost.wrapping_add(MSS), lost.wrapping_add(2 * MSS))]);
    scene.pass(20 * MS);
    scene.again(CLIENT, lost, MSS);
    scene.pass(MS);
    scene.ack(SERVER);
    let found = scene.diagnosis();
    assert!(kinds(&found).iter().any(|kind| LOSSES.contains(kind)), "{found:#?}");
}

#[test]
fn a_hole_behind_a_rest_that_is_acknowledged_is_a_loss_of_the_capture() {
    let mut scene = Scene::new();
    scene.meet_at_server(20 * MS);
    scene.talk(3, MS);
    scene.pass(1_000 * MS);
    scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(MSS);
    scene.data(CLIENT, MSS);
    scene.pass(MS);
    scene.ack(SERVER);
    assert_eq!(kinds(&scene.diagnosis()), [Kind::CaptureLoss]);
}

#[test]
fn so_many_missing_copies_cost_so_many_timeouts_and_no_more() {
    let of_one_missing = |rest: i64| {
        let mut scene = Scene::new();
        scene.meet_at_server(20 * MS);
        scene.talk(8, MS);
        scene.pass(rest);
        scene.identification[CLIENT] += 1;
        scene.data(CLIENT, 100);
        scene.pass(MS);
        scene.ack(SERVER);
        scene.diagnosis()
    };
    assert_eq!(one(&of_one_missing(240 * MS), Kind::TailLoss).count, 1);
    assert_eq!(kinds(&of_one_missing(60_000 * MS)), []);
}

/// A capture that dropped packets, or a filter: every second acknowledgement of a request that the server then thinks about. The
/// number that is missing before its answer is that of the acknowledgement, for nobody has sent the request again.
#[test]
fn a_number_that_an_acknowledgement_may_have_had_is_no_loss() {
    let mut scene = Scene::met(20 * MS);
    let mut dropped = Vec::new();
    for turn in 0..12 {
        scene.pass(380 * MS);
        scene.data(CLIENT, 300);
        scene.pass(20 * MS);
        if turn % 2 == 1 {
            dropped.push(scene.segments.len());
        }
        scene.ack(SERVER);
        scene.pass(190 * MS);
        scene.data(SERVER, 800);
        scene.pass(MS);
        scene.ack(CLIENT);
    }
    let places = 0..scene.segments.len();
    let kept: Vec<_> =
        places.filter(|place| !dropped.contains(place)).map(|place| scene.segments[place]).collect();
    let found = diagnosis(&kept);
    assert!(!kinds(&found).iter().any(|kind| LOSSES.contains(kind)), "{found:#?}");
}
