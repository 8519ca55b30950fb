//! Segments that are overtaken behind a rest: what comes late was not lost, and counts once, whoever tells of it.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind};
use framegauge_packets::capture::Segment;
use proptest::prelude::*;

const RTT: i64 = 30 * MS;

/// So many segments that arrive and are acknowledged.
fn go_on(scene: &mut Scene, count: usize) {
    for _ in 0..count {
        scene.data(CLIENT, MSS);
        scene.pass(20_000);
        scene.ack(SERVER);
        scene.pass(RTT);
    }
}

/// Bursts of three segments beside the receiver, after rests of so long. The first of each comes last, so much later, and the
/// receiver says by SACK that it lacks it. `marked`: with identifications and timestamps.
fn overtaken(bursts: usize, rest: i64, late: i64, marked: bool) -> Diagnosis {
    overtaken_scene(bursts, rest, late, marked).diagnosis()
}

fn overtaken_scene(bursts: usize, rest: i64, late: i64, marked: bool) -> Scene {
    let mut scene = Scene::new();
    if !marked {
        scene.syn.iter_mut().for_each(|syn| syn.timestamps = false);
    }
    scene.meet_at_server(RTT);
    go_on(&mut scene, 3);
    for _ in 0..bursts {
        scene.pass(rest);
        let (begin, number) = (scene.data(CLIENT, MSS), scene.segments.len() - 1);
        let mut first = scene.segments.remove(number);
        for _ in 0..2 {
            scene.data(CLIENT, MSS);
            scene.pass(20_000);
            scene.sack(SERVER, begin, &[(begin.wrapping_add(MSS), scene.next[CLIENT])]);
        }
        scene.pass(late);
        first.nanoseconds = scene.now;
        scene.segments.push(first);
        scene.pass(20_000);
        scene.ack(SERVER);
        scene.pass(RTT);
    }
    go_on(&mut scene, 2);
    for (place, segment) in scene.segments.iter_mut().enumerate() {
        segment.number = place as u64 + 1;
        if !marked {
            (segment.timestamps, segment.identification) = (None, None);
        }
    }
    scene
}

/// A segment that does not come, and others behind it, after which it is sent again. The first copy.
fn repaired(scene: &mut Scene) -> Segment {
    let (begin, number) = (scene.data(CLIENT, MSS), scene.segments.len() - 1);
    let first = scene.segments.remove(number);
    scene.pass(MS);
    for _ in 0..5 {
        scene.data(CLIENT, MSS);
        scene.pass(20_000);
        scene.sack(SERVER, begin, &[(begin.wrapping_add(MSS), scene.next[CLIENT])]);
    }
    scene.pass(RTT);
    scene.again(CLIENT, begin, MSS);
    scene.pass(20_000);
    scene.ack(SERVER);
    first
}

/// Beside the receiver: what was overtaken comes so much later than its own repeat, after so many other repairs, of what was lost;
/// the receiver says that it has it twice, or not. `marked`: with identifications and timestamps.
fn overtaken_by_its_repeat(late: i64, others: u64, is_said: bool, marked: bool) -> Diagnosis {
    let mut scene = Scene::new();
    scene.syn.iter_mut().for_each(|syn| syn.timestamps = marked);
    scene.meet_at_server(RTT);
    go_on(&mut scene, 6);
    let mut first = repaired(&mut scene);
    for _ in 0..others {
        scene.pass(RTT);
        repaired(&mut scene);
    }
    scene.pass(late);
    first.nanoseconds = scene.now;
    let begin = first.seq;
    scene.segments.push(first);
    scene.pass(20_000);
    if is_said {
        scene.sack(SERVER, scene.next[CLIENT], &[(begin, begin.wrapping_add(MSS))]);
    } else {
        scene.ack(SERVER);
    }
    scene.pass(RTT);
    go_on(&mut scene, 2);
    for (place, segment) in scene.segments.iter_mut().enumerate() {
        segment.number = place as u64 + 1;
        if !marked {
            (segment.timestamps, segment.identification) = (None, Some(0));
        }
    }
    scene.diagnosis()
}

proptest! {
    /// A repeat that fills a hole proves a loss only as long as the first copy does not come.
    #[test]
    fn what_comes_after_its_own_repeat_was_not_lost(
        late in MS / 10..200 * MS, others in 0u64..4, is_said: bool
    ) {
        let found = overtaken_by_its_repeat(late, others, is_said, true);
        prop_assert_eq!(one(&found, Kind::SpuriousRetransmit).count, 1);
        let repairs = found.findings.iter().find(|finding| finding.kind == Kind::FastRetransmit);
        prop_assert_eq!(repairs.map_or(0, |repairs| repairs.count), others);
        prop_assert!(!kinds(&found).contains(&Kind::DoubleLoss));
    }
}

proptest! {
    /// Where nothing marks packets, a copy behind a repeat that filled a hole may be what that repeats: only the receiver can tell.
    #[test]
    fn what_may_be_a_copy_or_the_first_is_told_by_the_receiver(late in MS / 10..200 * MS, is_said: bool) {
        let found = overtaken_by_its_repeat(late, 0, is_said, false);
        let expected = if is_said { Kind::SpuriousRetransmit } else { Kind::UnclearRepeats };
        prop_assert_eq!(one(&found, expected).count, 1);
        let told = kinds(&found);
        prop_assert!(!told.contains(&Kind::CaptureDuplicates), "{:?}", told);
        prop_assert_eq!(told.contains(&Kind::FastRetransmit), !is_said);
        prop_assert_eq!(told.contains(&Kind::UnclearRepeats), !is_said);
    }
}

#[test]
fn each_counts_once() {
    for marked in [true, false] {
        let found = overtaken(4, 2_000 * MS, 2 * MS, marked);
        assert_eq!(one(&found, Kind::Reordering).count, 4, "{marked}");
    }
}

proptest! {
    /// A receiver asks for what it lacks, also where that only comes late: asking is no evidence of loss while it may still come.
    #[test]
    fn none_was_lost(
        bursts in 1usize..6, rest in 40 * MS..5_000 * MS, late in MS / 10..14 * MS, marked: bool
    ) {
        let found = overtaken(bursts, rest, late, marked);
        prop_assert_eq!(kinds(&found), [Kind::Reordering]);
        prop_assert_eq!(one(&found, Kind::Reordering).count, bursts as u64);
    }
}

proptest! {
    /// Identifications that are drawn at random tell no order (RFC 6864 section 4.1), with timestamps and without.
    #[test]
    fn numbers_that_are_drawn_tell_no_order(
        bursts in 2usize..6, late in MS / 10..14 * MS, marked: bool, drawn in proptest::collection::vec(1u16.., 80)
    ) {
        let mut scene = overtaken_scene(bursts, 400 * MS, late, marked);
        for (segment, own) in scene.segments.iter_mut().zip(drawn.into_iter().cycle()) {
            segment.identification = Some(own);
        }
        let found = scene.diagnosis();
        prop_assert_eq!(kinds(&found), [Kind::Reordering], "{:#?}", found.findings);
        prop_assert_eq!(one(&found, Kind::Reordering).count, bursts as u64);
    }
}

/// Beside a receiver that sends nothing but acknowledgements, after a handshake whose SYN-ACK came twice, which tells nothing of
/// distances. Of a burst that left within a tick of the sender's clock the first comes late. `asked`: it echoes the SACK.
fn far_sender(asked: bool) -> Diagnosis {
    let mut scene = Scene::new();
    scene.meet_at_server(RTT);
    let again = scene.segments[1];
    scene.segments[..2].iter_mut().for_each(|segment| segment.nanoseconds -= 1_100 * MS);
    scene.segments.insert(2, again);
    let (mut echo, mut stamp) = (1_000, 5_000);
    let mut burst = |scene: &mut Scene, swap: bool| {
        let begin = scene.next[CLIENT];
        let from = scene.segments.len();
        (0..3).for_each(|_| _ = scene.data(CLIENT, MSS));
        let mut late = swap.then(|| scene.segments.remove(from));
        for segment in scene.segments[from..].iter_mut().chain(&mut late) {
            segment.timestamps = Some((stamp, echo));
        }
        scene.pass(20_000);
        if let Some(mut late) = late {
            let blocks = [(begin.wrapping_add(MSS), scene.next[CLIENT])];
            scene.sack(SERVER, begin, &blocks);
            scene.segments.last_mut().expect("just sent").timestamps = Some((echo + 2, stamp));
            scene.pass(RTT * 4 / 5);
            late.nanoseconds = scene.now;
            late.timestamps = Some(if asked { (stamp + 8, echo + 2) } else { (stamp, echo) });
            scene.segments.push(late);
            scene.pass(20_000);
        }
        scene.sack(SERVER, begin.wrapping_add(2 * MSS), &[]);
        scene.ack(SERVER);
        echo += 30;
        let answers = scene.segments.len() - 2;
        for (place, answer) in scene.segments[answers..].iter_mut().enumerate() {
            answer.timestamps = Some((echo + place as u32, stamp));
        }
        scene.pass(RTT);
        stamp += 30;
    };
    (0..20).for_each(|_| burst(&mut scene, false));
    burst(&mut scene, true);
    (0..3).for_each(|_| burst(&mut scene, false));
    for (place, segment) in scene.segments.iter_mut().enumerate() {
        (segment.number, segment.identification) = (place as u64 + 1, None);
    }
    scene.diagnosis()
}

#[test]
fn where_the_handshake_tells_no_distance_the_senders_echoes_do() {
    let kinds = |asked| {
        let mut kinds = kinds(&far_sender(asked));
        kinds.retain(|kind| *kind != Kind::SynLoss);
        kinds
    };
    assert_eq!(kinds(false), [Kind::Reordering], "{:#?}", far_sender(false).findings);
    assert!(!kinds(true).contains(&Kind::Reordering), "{:?}", kinds(true));
}

/// Beside the sender: a hole that SACK shows closes without a repeat in the file, which has all other packets or lacks one.
fn closed(lacks: bool) -> Vec<Kind> {
    let mut scene = Scene::met(RTT);
    scene.talk(4, RTT);
    let begin = scene.data(CLIENT, MSS);
    (0..4).for_each(|_| _ = scene.data(CLIENT, MSS));
    scene.pass(RTT);
    for count in 2..=5 {
        scene.sack(SERVER, begin, &[(begin.wrapping_add(MSS), begin.wrapping_add(MSS * count))]);
        scene.pass(10_000);
    }
    scene.pass(RTT);
    scene.ack(SERVER);
    for place in 0..4 {
        scene.data(CLIENT, MSS);
        if lacks && place == 1 {
            scene.segments.pop();
        }
        scene.pass(10_000);
    }
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.talk(2, RTT);
    (1..).zip(&mut scene.segments).for_each(|(number, segment)| segment.number = number);
    kinds(&scene.diagnosis())
}

#[test]
fn where_the_capture_lacks_packets_the_repeat_may_be_one_of_them() {
    assert_eq!(closed(false), [Kind::Reordering]);
    assert_eq!(closed(true), [Kind::CaptureLoss]);
}

/// In the receiver, from the middle on, nothing tells how long a repair takes, and nothing marks packets: what fills a hole may
/// have been overtaken, or sent again.
#[test]
fn where_nothing_tells_how_far_the_sender_is_no_order_is_told() {
    for late in [2 * MS, RTT, 150 * MS] {
        let mut scene = overtaken_scene(4, 400 * MS, late, false);
        scene.segments.drain(..3);
        let receiver = scene.ends[SERVER];
        for place in 1..scene.segments.len() {
            if scene.segments[place].source == receiver {
                scene.segments[place].nanoseconds = scene.segments[place - 1].nanoseconds;
            }
        }
        let found = scene.diagnosis();
        assert_eq!(kinds(&found), [], "{late}: {:#?}", found.findings);
    }
}
