//! Repeats of what had arrived, or was never repaired: each counts once, whoever says so, and nothing was lost.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind};
use framegauge_packets::TcpFlags;
use proptest::prelude::*;

const RTT: i64 = 30 * MS;

/// The ways in which it shows that a repeat was needless.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sign {
    /// The receiver has it twice (D-SACK), and its clock does not tell.
    Copy,
    /// The acknowledgement echoes the first copy (Eifel).
    Echo,
    /// The acknowledgement comes sooner than any other.
    Time,
    Nothing,
}

/// A burst of which SACK says that the first is missing, and its repeat at the sender's tap. `answered`: the acknowledgement comes so
/// much later.
fn repaired(sign: Sign, answered: i64) -> Diagnosis {
    repaired_scene(sign, answered).diagnosis()
}

fn repaired_scene(sign: Sign, answered: i64) -> Scene {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    let begin = scene.data(CLIENT, MSS);
    let stamp = (scene.now / MS) as u32;
    (0..5).for_each(|_| _ = scene.data(CLIENT, MSS));
    let end = scene.next[CLIENT];
    scene.pass(RTT);
    for count in 2..=6 {
        scene.sack(SERVER, begin, &[(begin.wrapping_add(MSS), begin.wrapping_add(MSS * count))]);
        scene.pass(10_000);
    }
    scene.again(CLIENT, begin, MSS);
    scene.pass(answered);
    scene.ack(SERVER);
    if sign == Sign::Echo {
        scene.segments.last_mut().expect("just sent").timestamps = Some((1, stamp));
    }
    scene.pass(RTT);
    if sign == Sign::Copy {
        scene.sack(SERVER, end, &[(begin, begin.wrapping_add(MSS))]);
    }
    scene.talk(2, RTT);
    if sign == Sign::Time {
        scene.segments.iter_mut().for_each(|segment| segment.timestamps = None);
    }
    scene
}

#[test]
fn a_repair_of_what_was_only_overtaken_is_none() {
    for (sign, answered) in [(Sign::Copy, RTT * 2 / 3), (Sign::Echo, RTT * 2 / 3), (Sign::Time, 3 * MS)] {
        let found = repaired(sign, answered);
        assert_eq!(kinds(&found), [Kind::SpuriousRetransmit], "{sign:?} {found:#?}");
        assert_eq!(one(&found, Kind::SpuriousRetransmit).count, 1, "{sign:?}");
    }
    assert_eq!(kinds(&repaired(Sign::Nothing, RTT)), [Kind::FastRetransmit]);
}

proptest! {
    /// What was sent once and came twice was doubled on the way: that is no repeat, whatever else was repeated.
    #[test]
    fn what_came_twice_and_was_sent_once_was_not_sent_again(
        answered in RTT * 2 / 3..RTT * 3, doubled in proptest::collection::vec(0u32..6, 1..6)
    ) {
        let mut scene = repaired_scene(Sign::Nothing, answered);
        for place in doubled {
            let begin = scene.next[CLIENT].wrapping_add(place * MSS);
            (0..6).for_each(|_| _ = scene.data(CLIENT, MSS));
            scene.pass(RTT);
            scene.sack(SERVER, scene.next[CLIENT], &[(begin, begin.wrapping_add(MSS))]);
        }
        prop_assert_eq!(kinds(&scene.diagnosis()), [Kind::FastRetransmit]);
    }
}

#[test]
fn what_nobody_answers_was_not_repaired() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    let begin = scene.data(CLIENT, MSS);
    scene.data(CLIENT, 200);
    scene.pass(RTT);
    scene.sack(SERVER, begin, &[(begin.wrapping_add(MSS), scene.next[CLIENT])]);
    scene.again(CLIENT, begin, MSS);
    for wait in [250, 500, 1000, 2000] {
        scene.pass(wait * MS);
        scene.again(CLIENT, begin, MSS);
    }
    assert!(!kinds(&scene.diagnosis()).contains(&Kind::FastRetransmit), "{:#?}", scene.diagnosis().findings);
}

/// Beside the receiver, whose acknowledgement was lost on its way back: the sender repeats the same, each time after twice as long.
/// Of each repeat the receiver says that it had that, or nothing.
fn unheard(says: &[bool]) -> Diagnosis {
    let mut scene = Scene::new();
    scene.meet_at_server(RTT);
    scene.talk(5, 20_000);
    let begin = scene.data(CLIENT, 100);
    scene.pass(20_000);
    scene.ack(SERVER);
    for (turn, says) in says.iter().enumerate() {
        scene.pass((220 * MS) << turn);
        scene.again(CLIENT, begin, 100);
        scene.pass(20_000);
        scene.ack(SERVER);
        if *says {
            scene.segments.pop();
            scene.sack(SERVER, scene.next[CLIENT], &[(begin, scene.next[CLIENT])]);
        }
    }
    scene.pass(300 * MS);
    if says.iter().all(|says| *says) {
        // With its data it says the last again.
        scene.sack(SERVER, scene.next[CLIENT], &[(begin, scene.next[CLIENT])]);
    }
    scene.talk(2, 20_000);
    scene.diagnosis()
}

proptest! {
    /// As many repeats were needless as were sent.
    #[test]
    fn each_repeat_counts_once(says in proptest::collection::vec(any::<bool>(), 1..5)) {
        let found = unheard(&says);
        prop_assert_eq!(kinds(&found), [Kind::SpuriousRetransmit], "{:#?}", found.findings);
        prop_assert_eq!(one(&found, Kind::SpuriousRetransmit).count, says.len() as u64);
    }

    /// Of a repair of several segments some had arrived: if all had, nothing was lost.
    #[test]
    fn a_repair_is_one_if_anything_was_lost(had in proptest::collection::vec(any::<bool>(), 1..8)) {
        let mut scene = Scene::met(RTT);
        scene.talk(5, RTT);
        let begins: Vec<u32> = had.iter().map(|_| scene.data(CLIENT, MSS)).collect();
        let behind = scene.data(CLIENT, MSS);
        (0..2).for_each(|_| _ = scene.data(CLIENT, MSS));
        let end = scene.next[CLIENT];
        scene.pass(RTT);
        for count in 1..=3 {
            scene.sack(SERVER, begins[0], &[(behind, behind.wrapping_add(MSS * count))]);
        }
        begins.iter().for_each(|begin| scene.again(CLIENT, *begin, MSS));
        scene.pass(RTT);
        for (begin, had) in begins.iter().zip(&had) {
            let next = begin.wrapping_add(MSS);
            let mut blocks = if *had { vec![(*begin, next)] } else { vec![] };
            if next != behind {
                blocks.push((behind, end));
            }
            scene.sack(SERVER, if next == behind { end } else { next }, &blocks);
            scene.pass(10_000);
        }
        scene.talk(2, RTT);
        let found = scene.diagnosis();
        let needless = had.iter().filter(|had| **had).count();
        let told = found.findings.iter().find(|finding| finding.kind == Kind::SpuriousRetransmit);
        prop_assert_eq!(told.map_or(0, |finding| finding.count), needless as u64);
        prop_assert_eq!(kinds(&found).contains(&Kind::FastRetransmit), needless < had.len());
    }
}

#[test]
fn a_late_answer_behind_a_needless_timeout_is_the_same_silence() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    let begin = scene.data(CLIENT, MSS);
    let stamp = (scene.now / MS) as u32;
    scene.data(CLIENT, MSS);
    scene.pass(250 * MS);
    scene.again(CLIENT, begin, MSS);
    scene.pass(400 * MS);
    scene.ack(SERVER);
    scene.segments.last_mut().expect("just sent").timestamps = Some((1, stamp));
    scene.talk(2, RTT);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::SpuriousRetransmit], "{:#?}", found.findings);
    let finding = one(&found, Kind::SpuriousRetransmit);
    assert!(finding.count == 1 && (finding.lost_seconds - 0.65).abs() < 1e-6, "{finding:#?}");
}

proptest! {
    /// Beside the receiver, without SACK and timestamps: a burst is acknowledged, and that comes too late to its sender, whose timer
    /// has run out, so that it sends all of it again as it hears of the first.
    #[test]
    fn what_was_acknowledged_and_comes_again_was_sent_in_vain(count in 4u32..40, late in 250 * MS..800 * MS) {
        let mut scene = Scene::new();
        scene.syn.iter_mut().for_each(|syn| (syn.timestamps, syn.sack_permitted) = (false, false));
        scene.meet_at_server(RTT);
        scene.talk(20, RTT);
        let begin = scene.next[CLIENT];
        for _ in 0..count {
            scene.data(CLIENT, MSS);
            scene.ack(SERVER);
            scene.pass(20_000);
        }
        scene.pass(late);
        for place in 0..count {
            scene.again(CLIENT, begin.wrapping_add(place * MSS), MSS);
            scene.pass(20_000);
            scene.ack(SERVER);
        }
        scene.pass(RTT);
        scene.talk(3, RTT);
        scene.segments.iter_mut().for_each(|segment| segment.timestamps = None);
        let found = scene.diagnosis();
        prop_assert_eq!(one(&found, Kind::SpuriousRetransmit).count, u64::from(count), "{:#?}", found.findings);
    }
}

/// Beside the sender, without SACK and timestamps: of a burst the first is sent again by a timer. `is_late`: nothing was lost, the way
/// stood still, and answers come for one after the other; or else the second had been lost as well, and is sent again.
fn timed_out(count: u32, answer: i64, is_late: bool) -> Diagnosis {
    let mut scene = Scene::new();
    scene.syn.iter_mut().for_each(|syn| (syn.timestamps, syn.sack_permitted) = (false, false));
    scene.meet(RTT);
    scene.talk(20, RTT);
    let begin = scene.next[CLIENT];
    (0..count).for_each(|_| _ = scene.data(CLIENT, MSS));
    scene.pass(250 * MS);
    scene.again(CLIENT, begin, MSS);
    scene.pass(answer);
    scene.got[SERVER] = begin.wrapping_add(MSS);
    scene.send(SERVER, 0, TcpFlags::ACK);
    if is_late {
        // Two new segments leave before more is sent again (RFC 5682 section 2.1).
        (0..2).for_each(|_| _ = scene.data(CLIENT, MSS));
    } else {
        scene.pass(20_000);
        scene.again(CLIENT, begin.wrapping_add(MSS), MSS);
        scene.pass(answer);
    }
    for place in 2..=count {
        scene.pass(20_000);
        scene.got[SERVER] = begin.wrapping_add(MSS * place);
        scene.send(SERVER, 0, TcpFlags::ACK);
    }
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.segments.iter_mut().for_each(|segment| segment.timestamps = None);
    scene.diagnosis()
}

proptest! {
    /// What is answered without being sent again had been under way all the time (RFC 5682).
    #[test]
    fn a_timeout_whose_burst_arrives_by_itself_was_needless(count in 3u32..30, answer in 30 * MS..90 * MS) {
        let found = timed_out(count, answer, true);
        prop_assert_eq!(kinds(&found), [Kind::SpuriousRetransmit], "{:#?}", found.findings);
        prop_assert!((one(&found, Kind::SpuriousRetransmit).lost_seconds - 0.25).abs() < 1e-9);
        prop_assert!(!kinds(&timed_out(count, answer, false)).contains(&Kind::SpuriousRetransmit));
    }
}

/// The way stands still. A message is under way, the next one leaves, and then a timer sends the first again; both arrive by
/// themselves. `echo`: which of them the answer echoes, if they have timestamps.
fn stood_still(period: i64, timer: i64, answer: i64, echo: Option<usize>) -> Diagnosis {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    let begin = scene.next[CLIENT];
    let mut stamps = [0; 3];
    for (place, wait) in [0, period, timer].into_iter().enumerate() {
        scene.pass(wait);
        stamps[place] = (scene.now / MS) as u32;
        if place < 2 {
            scene.data(CLIENT, 300);
        } else {
            scene.again(CLIENT, begin, 300);
        }
    }
    scene.pass(answer);
    scene.ack(SERVER);
    if let Some(echo) = echo {
        scene.segments.last_mut().expect("just sent").timestamps = Some((1, stamps[echo]));
    } else {
        scene.segments.iter_mut().for_each(|segment| segment.timestamps = None);
    }
    scene.diagnosis()
}

proptest! {
    /// An answer to what was sent before the repeat, or that comes sooner than one to the repeat can, shows that nothing was lost,
    /// also where new data has ended the silence.
    #[test]
    fn a_repeat_behind_new_data_may_be_needless(period in 120 * MS..190 * MS, timer in 100 * MS..150 * MS) {
        for (answer, echo) in [(RTT, Some(0)), (RTT, Some(1)), (RTT / 3, None)] {
            let found = stood_still(period, timer, answer, echo);
            prop_assert_eq!(kinds(&found), [Kind::SpuriousRetransmit], "{:?} {:#?}", echo, found.findings);
        }
        for echo in [Some(2), None] {
            let found = stood_still(period, timer, RTT, echo);
            prop_assert_eq!(kinds(&found), [Kind::RtoStall], "{:?} {:#?}", echo, found.findings);
        }
    }
}

/// Many repairs within a second of what had only been overtaken: nothing was lost, so that there is no storm of losses.
#[test]
fn where_all_repeats_were_needless_there_is_no_storm_of_losses() {
    let near = 4 * MS;
    let storm = |is_said: bool| {
        let mut scene = Scene::met(near);
        scene.talk(5, near);
        for _ in 0..40 {
            let begin = scene.data(CLIENT, MSS);
            (0..5).for_each(|_| _ = scene.data(CLIENT, MSS));
            scene.pass(near);
            for count in 2..=6 {
                scene.sack(SERVER, begin, &[(begin.wrapping_add(MSS), begin.wrapping_add(MSS * count))]);
                scene.pass(10_000);
            }
            scene.again(CLIENT, begin, MSS);
            scene.pass(near);
            scene.ack(SERVER);
            scene.pass(near);
            if is_said {
                scene.sack(SERVER, scene.next[CLIENT], &[(begin, begin.wrapping_add(MSS))]);
            }
        }
        kinds(&scene.diagnosis())
    };
    assert_eq!(storm(true), [Kind::SpuriousRetransmit]);
    assert!(storm(false).contains(&Kind::RetransmitStorm));
}

/// A sender that learns that its segments are too large sends all of them again in smaller ones; one whose segments are lost sends
/// them again as they were.
#[test]
fn what_is_sent_again_for_its_size_makes_no_storm_of_losses() {
    let resent = |bytes: u32| {
        let mut scene = Scene::met(4 * MS);
        scene.talk(5, 4 * MS);
        let begins: Vec<u32> = (0..40).map(|_| scene.data(CLIENT, MSS)).collect();
        scene.pass(250 * MS);
        let (mut begin, end) = (begins[0], scene.next[CLIENT]);
        while begin != end {
            let size = bytes.min(end.wrapping_sub(begin));
            scene.again(CLIENT, begin, size);
            scene.pass(4 * MS);
            begin = begin.wrapping_add(size);
            scene.sack(SERVER, begin, &[]);
            scene.pass(10_000);
        }
        scene.talk(1, 4 * MS);
        kinds(&scene.diagnosis())
    };
    for bytes in [1348, 1024, 512] {
        assert!(!resent(bytes).contains(&Kind::RetransmitStorm), "{bytes}");
    }
    assert!(resent(MSS).contains(&Kind::RetransmitStorm));
}
