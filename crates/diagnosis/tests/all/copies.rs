//! Packets that a file has twice, far apart, and what nobody can tell from them.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, diagnosis, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind, Table, Thresholds};
use framegauge_packets::capture::{IcmpNote, Quoted, Segment};
use proptest::prelude::*;

const RTT: i64 = 20 * MS;

/// What of a packet tells it from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marks {
    /// A number of its own.
    Number,
    /// The time when it was sent.
    Stamp,
    Nothing,
}

/// A burst of many segments in the middle of a connection, and rests; `tap` is beside the client.
fn burst(count: u32, marks: Marks) -> Vec<Segment> {
    let mut scene = Scene::met(RTT);
    scene.window = [16_384; 2];
    scene.talk(4, RTT);
    scene.data(CLIENT, 100);
    scene.pass(RTT);
    scene.got[SERVER] = scene.next[CLIENT];
    let begin = scene.next[SERVER];
    for place in 1..=count {
        scene.data(SERVER, MSS);
        scene.pass(10_000);
        if place % 2 == 0 {
            scene.got[CLIENT] = begin.wrapping_add(place * MSS);
            scene.send(CLIENT, 0, framegauge_packets::TcpFlags::ACK);
        }
    }
    scene.pass(MS);
    scene.talk(2, RTT);
    for segment in &mut scene.segments {
        if marks != Marks::Number {
            segment.identification = Some(0);
        }
        if marks == Marks::Nothing {
            segment.timestamps = None;
        }
    }
    // The handshake was captured once.
    scene.segments
}

/// All packets but those of the handshake twice, so much later.
fn twice(all: &[Segment], apart: i64) -> Diagnosis {
    let later = |segment: &Segment| Segment { nanoseconds: segment.nanoseconds + apart, ..*segment };
    let mut both: Vec<Segment> = all.iter().copied().chain(all[3..].iter().map(later)).collect();
    both.sort_by_key(|segment| segment.nanoseconds);
    (1..).zip(&mut both).for_each(|(number, segment)| segment.number = number);
    diagnosis(&both)
}

#[test]
fn a_number_that_comes_again_is_a_copy_however_far_behind() {
    for (count, apart) in [(40, 5 * MS), (400, 5 * MS), (400, 90 * MS), (4000, 700 * MS), (400, 5_000 * MS)] {
        let all = burst(count, Marks::Number);
        let found = twice(&all, apart);
        assert_eq!(kinds(&found), [Kind::CaptureDuplicates], "{count} {apart}: {found:#?}");
        assert_eq!(one(&found, Kind::CaptureDuplicates).count as usize, all.len() - 3);
        assert_eq!(found.connections[0].resent_segments, [0, 0]);
    }
}

#[test]
fn copies_that_nothing_marks_are_no_loss_and_nobody_repeated_them() {
    for marks in [Marks::Stamp, Marks::Nothing] {
        for (count, apart) in [(40, 5 * MS), (400, 5 * MS), (2000, 18 * MS)] {
            let found = twice(&burst(count, marks), apart);
            let quality = [Kind::CaptureDuplicates, Kind::UnclearRepeats];
            assert!(
                kinds(&found).iter().all(|kind| quality.contains(kind)),
                "{marks:?} {count} {apart} {found:#?}"
            );
            assert_eq!(found.connections[0].resent_segments, [0, 0]);
        }
    }
}

/// With neither a number nor a stamp the RTT tells: within half of it nobody can have heard of a loss, later nobody can tell.
#[test]
fn what_comes_again_sooner_than_any_answer_is_a_copy() {
    for (count, apart, kind) in [
        (40, 5 * MS, Kind::CaptureDuplicates),
        (400, 9 * MS, Kind::CaptureDuplicates),
        (400, 15 * MS, Kind::UnclearRepeats),
    ] {
        let all = burst(count, Marks::Nothing);
        let found = twice(&all, apart);
        assert_eq!(kinds(&found), [kind], "{apart}: {found:#?}");
        let data = all.iter().filter(|segment| segment.payload_bytes > 0).count();
        let copies = one(&found, kind).count as usize;
        assert!(copies >= data, "{copies} of {data}");
        assert_eq!(found.connections[0].resent_segments, [0, 0]);
    }
}

/// A loss that is repaired, in a file that has all packets twice.
#[test]
fn a_repair_that_the_file_has_twice_was_sent_once() {
    for marks in [Marks::Number, Marks::Stamp, Marks::Nothing] {
        let mut scene = Scene::met(RTT);
        scene.talk(5, RTT);
        let begins: Vec<u32> = (0..8).map(|_| scene.data(CLIENT, MSS)).collect();
        scene.pass(RTT);
        for behind in 2..=8u32 {
            scene.sack(SERVER, begins[0], &[(begins[1], begins[0].wrapping_add(behind * MSS))]);
            scene.pass(10_000);
        }
        scene.again(CLIENT, begins[0], MSS);
        scene.pass(RTT);
        scene.ack(SERVER);
        scene.talk(5, RTT);
        for segment in &mut scene.segments {
            segment.identification = segment.identification.filter(|_| marks == Marks::Number).or(Some(0));
            segment.timestamps = segment.timestamps.filter(|_| marks != Marks::Nothing);
        }
        let found = twice(&scene.segments, 5 * MS);
        assert_eq!(kinds(&found), [Kind::FastRetransmit, Kind::CaptureDuplicates], "{marks:?} {found:#?}");
        assert_eq!(one(&found, Kind::FastRetransmit).count, 1);
        assert_eq!(found.connections[0].resent_segments, [1, 0]);
    }
}

#[test]
fn what_was_stamped_long_ago_ends_no_pause() {
    let found = twice(&burst(400, Marks::Stamp), 2_000 * MS);
    assert_eq!(kinds(&found), [Kind::UnclearRepeats], "{found:#?}");
    assert!(one(&found, Kind::UnclearRepeats).text.contains("their sender repeated them"));
}

/// The only segment of a burst is lost, and its sender repeats it.
#[test]
fn what_a_timer_repeats_is_a_loss_whatever_marks_it() {
    for marks in [Marks::Number, Marks::Stamp, Marks::Nothing] {
        let mut all = burst(40, Marks::Number);
        let last = all.len() - 1;
        let mut scene = Scene::met(RTT);
        scene.segments.clear();
        scene.now = all[last].nanoseconds + MS;
        (scene.next, scene.got) = ([all[last].seq, all[last].ack], [all[last].ack, all[last].seq]);
        scene.identification = [5_000, 9_000];
        let begin = scene.data(CLIENT, MSS);
        scene.pass(240 * MS);
        scene.again(CLIENT, begin, MSS);
        scene.pass(RTT);
        scene.ack(SERVER);
        all.extend(scene.segments);
        for (place, segment) in (1..).zip(&mut all) {
            segment.number = place;
            segment.identification = segment.identification.filter(|_| marks == Marks::Number).or(Some(0));
            segment.timestamps = segment.timestamps.filter(|_| marks != Marks::Nothing);
        }
        let found = diagnosis(&all);
        assert_eq!(kinds(&found), [Kind::TailLoss], "{marks:?} {found:#?}");
        assert_eq!(found.connections[0].resent_segments, [1, 0]);
    }
}

/// Three duplicate acknowledgements ask for what was lost; with numbers they all differ.
#[test]
fn what_is_asked_for_is_sent_again_whatever_marks_it() {
    for is_numbered in [true, false] {
        let mut scene = Scene::met(RTT);
        scene.talk(5, RTT);
        let begins: Vec<u32> = (0..6).map(|_| scene.data(CLIENT, MSS)).collect();
        scene.pass(RTT);
        for behind in 2..=6u32 {
            let (begin, end) = (begins[1], begins[0].wrapping_add(behind * MSS));
            scene.sack(SERVER, begins[0], &[(begin, end)]);
            scene.pass(10_000);
        }
        scene.again(CLIENT, begins[0], MSS);
        scene.pass(RTT);
        scene.ack(SERVER);
        if !is_numbered {
            scene.segments.iter_mut().for_each(|segment| segment.identification = Some(0));
        }
        assert_eq!(kinds(&scene.diagnosis()), [Kind::FastRetransmit], "{is_numbered}");
    }
}

/// After a timeout the sender repeats what follows two at a time, as answers come: the second has the stamp of the first, but not
/// that of what it repeats.
#[test]
fn what_is_stamped_otherwise_than_what_it_repeats_was_sent_again() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    let first = (scene.now / MS) as u32;
    let begins: Vec<u32> = (0..5).map(|_| scene.data(CLIENT, MSS)).collect();
    scene.pass(230 * MS);
    scene.again(CLIENT, begins[0], MSS);
    for pair in [1, 3] {
        scene.pass(RTT);
        scene.sack(SERVER, begins[pair], &[]);
        // It echoes what came before the loss (RFC 7323 section 4.3).
        let ack = scene.segments.last_mut().expect("just sent");
        ack.timestamps = ack.timestamps.map(|(value, _)| (value, first));
        scene.again(CLIENT, begins[pair], MSS);
        scene.again(CLIENT, begins[pair + 1], MSS);
    }
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.talk(5, RTT);
    scene.segments.iter_mut().for_each(|segment| segment.identification = None);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::SpuriousRetransmit], "{found:#?}");
    assert_eq!(found.connections[0].resent_segments, [5, 0]);
}

/// A router says that all of them are too big: the sender repeats them at once.
#[test]
fn what_a_router_asks_for_is_sent_again_at_once() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    let begins: Vec<u32> = (0..4).map(|_| scene.data(CLIENT, MSS)).collect();
    scene.pass(MS / 10);
    let at = scene.segments.len();
    let quoted = scene.segments[at - 1];
    for begin in &begins {
        scene.again(CLIENT, *begin, 1000);
    }
    scene.pass(RTT);
    scene.ack(SERVER);
    let mut table = Table::new(Thresholds::default());
    for (place, segment) in scene.segments.iter_mut().enumerate() {
        segment.identification = None;
        if place == at {
            table.take_note(&IcmpNote {
                nanoseconds: quoted.nanoseconds + MS / 10,
                number: 0,
                source: "10.0.9.9".parse().expect("an address"),
                destination: quoted.source.ip(),
                kind: 3,
                code: 4,
                mtu: Some(1400),
                quoted: Some(Quoted {
                    source: quoted.source,
                    destination: quoted.destination,
                    seq: quoted.seq,
                    ip_bytes: quoted.ip_bytes,
                }),
            });
        }
        table.take(segment);
    }
    let found = table.finish();
    assert!(!kinds(&found).contains(&Kind::UnclearRepeats), "{found:#?}");
    assert_eq!(found.connections[0].resent_segments, [4, 0]);
}

/// What the other end has acknowledged had passed by then: what is stamped later is not that, and was sent again, also where two
/// leave within a tick.
#[test]
fn what_is_stamped_after_its_answer_was_sent_again() {
    for (is_later, unclear) in [(true, 0), (false, 2)] {
        let mut scene = Scene::met(RTT);
        scene.talk(5, RTT);
        let begins: Vec<u32> = (0..3).map(|_| scene.data(CLIENT, MSS)).collect();
        let first = scene.segments.len();
        scene.pass(RTT);
        scene.ack(SERVER);
        scene.pass(RTT / 2);
        for begin in &begins[1..] {
            scene.again(CLIENT, *begin, MSS);
        }
        scene.pass(RTT);
        scene.ack(SERVER);
        scene.talk(5, RTT);
        if !is_later {
            let stamps = scene.segments[first - 1].timestamps;
            let repeats = scene.segments.iter_mut().filter(|segment| begins[1..].contains(&segment.seq));
            repeats.for_each(|segment| segment.timestamps = stamps);
        }
        // The capture may have them twice, or hours later.
        scene.segments.iter_mut().for_each(|segment| segment.identification = None);
        let found = scene.diagnosis();
        let count = |kind| found.findings.iter().find(|each| each.kind == kind).map_or(0, |each| each.count);
        assert_eq!(
            count(Kind::UnclearRepeats) + count(Kind::CaptureDuplicates),
            unclear,
            "{is_later} {found:#?}"
        );
        assert_eq!(found.connections[0].resent_segments[0], 2 - unclear);
    }
}

/// A file has what came to a host and what its kernel has merged of that.
#[test]
fn what_a_kernel_has_merged_is_a_copy() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    let begin = scene.data(SERVER, MSS);
    scene.data(SERVER, MSS);
    scene.pass(20_000);
    scene.again(SERVER, begin, 2 * MSS);
    scene.ack(CLIENT);
    scene.pass(RTT);
    scene.talk(5, RTT);
    scene.segments.iter_mut().for_each(|segment| segment.identification = None);
    let found = scene.diagnosis();
    assert!(kinds(&found).contains(&Kind::CaptureDuplicates), "{found:#?}");
    assert_eq!(found.connections[0].resent_segments, [0, 0], "{found:#?}");
}

/// A router between the sender and the tap has asked for smaller packets, which the file does not have: the sender repeats all of
/// it at once, with the same timestamps, and cut anew. Aggregates may be cut by a NIC, whose frames the file has as well.
#[test]
fn what_is_cut_anew_is_no_copy() {
    for (mss, resent) in [(8948, true), (1448, false)] {
        let mut scene = Scene::new();
        scene.syn.iter_mut().for_each(|syn| syn.mss = Some(mss + 12));
        scene.meet(RTT);
        scene.talk(5, RTT);
        let begin = scene.data(CLIENT, 8948);
        for piece in 0..4 {
            scene.pass(10_000);
            scene.again(CLIENT, begin.wrapping_add(piece * 1448), 1448);
        }
        scene.pass(RTT);
        scene.ack(SERVER);
        scene.talk(5, RTT);
        scene.segments.iter_mut().for_each(|segment| segment.identification = None);
        let found = scene.diagnosis();
        assert_eq!(found.connections[0].resent_segments, [if resent { 4 } else { 0 }, 0], "{found:#?}");
        assert_eq!(kinds(&found).contains(&Kind::CaptureDuplicates), !resent, "{found:#?}");
    }
}

/// Beside the receiver: segments of which some come once more, so much later, and are the same; the receiver says that it has
/// these twice, or not.
fn doubled(apart: i64, which: &[bool], is_said: bool) -> Diagnosis {
    let mut scene = Scene::new();
    scene.meet_at_server(RTT);
    scene.talk(4, RTT);
    for is_doubled in which {
        let begin = scene.data(CLIENT, MSS);
        let copy = *scene.segments.last().expect("just sent");
        scene.pass(10_000);
        scene.ack(SERVER);
        if *is_doubled {
            scene.pass(apart);
            scene.segments.push(Segment { nanoseconds: scene.now, ..copy });
            scene.pass(10_000);
            if is_said {
                scene.sack(SERVER, scene.next[CLIENT], &[(begin, begin.wrapping_add(MSS))]);
            }
        }
        scene.pass(RTT);
    }
    (1..).zip(&mut scene.segments).for_each(|(number, segment)| segment.number = number);
    scene.diagnosis()
}

proptest! {
    /// What the receiver has twice (D-SACK), and nobody has sent again, came twice to the capture as well: that is no copy of its own.
    #[test]
    fn what_the_receiver_has_twice_is_no_copy_of_the_capture(
        apart in 10_000..15 * MS, which in proptest::collection::vec(any::<bool>(), 1..40)
    ) {
        prop_assert_eq!(kinds(&doubled(apart, &which, true)), []);
        let count = which.iter().filter(|is_doubled| **is_doubled).count() as u64;
        let found = doubled(apart, &which, false);
        let told = found.findings.iter().find(|finding| finding.kind == Kind::CaptureDuplicates);
        prop_assert_eq!(told.map_or(0, |told| told.count), count);
        prop_assert_eq!(told.is_some_and(|told| told.text.contains("has 1 packet twice.")), count == 1);
    }
}

/// Two taps in one file, beside the client and beside the server, whose clock is behind by so much. Between them one packet is lost,
/// and repaired.
fn taps_apart(behind: i64, is_numbered: bool) -> Vec<Kind> {
    let mut scene = Scene::met(RTT);
    scene.talk(10, RTT);
    let begins: Vec<u32> = (0..8).map(|_| scene.data(CLIENT, MSS)).collect();
    let lost = scene.segments.len() - 8;
    scene.pass(RTT);
    for last in &begins[1..] {
        scene.sack(SERVER, begins[0], &[(begins[1], last.wrapping_add(MSS))]);
        scene.pass(20_000);
    }
    scene.again(CLIENT, begins[0], MSS);
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.talk(10, RTT);
    let client = scene.ends[CLIENT];
    let near = scene.segments.iter().copied();
    let far = near.clone().enumerate().filter(|(place, _)| *place != lost).map(|(_, mut segment)| {
        let is_sent = segment.source == client;
        segment.nanoseconds += if is_sent { RTT / 2 } else { -RTT / 2 } - behind;
        segment.hops = if is_sent { segment.hops - 2 } else { segment.hops + 2 };
        segment
    });
    let mut all: Vec<Segment> = near.clone().chain(far).collect();
    all.sort_by_key(|segment| segment.nanoseconds);
    for (place, segment) in all.iter_mut().enumerate() {
        segment.number = place as u64 + 1;
        segment.identification = segment.identification.filter(|_| is_numbered);
    }
    kinds(&diagnosis(&all))
}

proptest! {
    /// What one tap has, and was lost before the other, did not arrive late, however far apart their clocks are.
    #[test]
    fn a_loss_between_taps_of_one_file_is_one(behind in 100 * MS..900 * MS) {
        let found = taps_apart(behind, true);
        prop_assert!(found.contains(&Kind::FastRetransmit) && !found.contains(&Kind::SpuriousRetransmit), "{found:?}");
        // Of packets without numbers a repeat of the SYN would have another timestamp.
        let found = taps_apart(behind, false);
        prop_assert!(!found.contains(&Kind::SynLoss) && !found.contains(&Kind::SpuriousRetransmit), "{found:?}");
    }
}

/// A kernel counts an aggregate once, of which a NIC makes several packets: the next numbers are those of later ones, as their
/// timestamps tell.
#[test]
fn what_is_stamped_after_all_else_is_no_copy_whatever_its_number() {
    let mut scene = Scene::met(RTT);
    scene.window = [16_384; 2];
    scene.talk(8, RTT);
    let begin = scene.data(CLIENT, 9 * MSS);
    for wait in [220, 440, 880, 1760] {
        scene.pass(wait * MS);
        scene.again(CLIENT, begin, MSS);
    }
    let found = scene.diagnosis();
    assert_eq!(found.connections[0].resent_segments, [4, 0]);
    assert!(
        found
            .findings
            .iter()
            .all(|finding| { ![Kind::CaptureDuplicates, Kind::UnclearRepeats].contains(&finding.kind) })
    );
}

/// The same of a FIN behind an aggregate, at the same tick.
#[test]
fn a_new_fin_is_no_copy_whatever_its_number() {
    let mut scene = Scene::met(RTT);
    scene.window = [16_384; 2];
    scene.talk(8, RTT);
    scene.data(CLIENT, 9 * MSS);
    scene.send(CLIENT, 0, framegauge_packets::TcpFlags::FIN.with(framegauge_packets::TcpFlags::ACK));
    scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(1);
    scene.pass(RTT);
    scene.ack(SERVER);
    assert_eq!(kinds(&scene.diagnosis()), [Kind::Aggregates]);
}

/// A way that stood still for longer than a timer waits lets a packet and its repeat go together: where nothing marks them, nobody
/// can tell that from a copy.
#[test]
fn what_comes_with_its_first_copy_behind_a_long_pause_may_be_its_repeat() {
    for (pause, expected) in [(900, Kind::UnclearRepeats), (100, Kind::CaptureDuplicates)] {
        let mut scene = Scene::met(RTT);
        scene.talk(4, RTT);
        scene.data(CLIENT, 100);
        scene.pass(pause * MS);
        scene.got[SERVER] = scene.next[CLIENT];
        let begin = scene.data(SERVER, 1000);
        scene.pass(MS);
        scene.again(SERVER, begin, 1000);
        scene.ack(CLIENT);
        scene.talk(2, RTT);
        for segment in &mut scene.segments {
            (segment.timestamps, segment.identification) = (None, Some(0));
        }
        let found = kinds(&scene.diagnosis());
        assert!(found.contains(&expected), "{pause}: {found:?}");
    }
}

/// Beside the receiver, without any mark: the last segment comes again so much later, and the receiver says that it had it, or not.
fn again_beside_the_receiver(later: i64, is_said: bool) -> Diagnosis {
    let mut scene = Scene::new();
    scene.meet_at_server(RTT);
    for _ in 0..10 {
        (0..4).for_each(|_| _ = scene.data(CLIENT, MSS));
        scene.pass(20_000);
        scene.ack(SERVER);
        scene.pass(RTT);
    }
    let begin = scene.data(CLIENT, MSS);
    scene.pass(20_000);
    scene.ack(SERVER);
    scene.pass(later);
    scene.again(CLIENT, begin, MSS);
    scene.pass(20_000);
    let all = (begin, begin.wrapping_add(MSS));
    let said: &[(u32, u32)] = if is_said { &[all] } else { &[] };
    scene.sack(SERVER, all.1, said);
    scene.pass(RTT);
    scene.talk(3, RTT);
    for segment in &mut scene.segments {
        (segment.timestamps, segment.identification) = (None, None);
    }
    scene.diagnosis()
}

proptest! {
    /// What came twice to the receiver is no copy of the capture's, and after an RTT its sender may have repeated it.
    #[test]
    fn a_receiver_says_of_what_nothing_marks_whether_it_was_sent_again(more in 1i64..150) {
        let later = RTT + more * MS;
        let found = again_beside_the_receiver(later, true);
        prop_assert_eq!(kinds(&found), [Kind::SpuriousRetransmit], "{:#?}", found.findings);
        prop_assert_eq!(found.connections[0].resent_segments, [1, 0]);
        let found = again_beside_the_receiver(later, false);
        prop_assert_eq!(kinds(&found), [Kind::UnclearRepeats], "{:#?}", found.findings);
        prop_assert_eq!(found.connections[0].resent_segments, [0, 0]);
    }
}
