//! Gaps of the capture's clock, and gaps that both ends' clocks know of.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, diagnosis, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind, Righted, Stamps};
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;
use proptest::prelude::*;

const RTT: i64 = 10 * MS;

/// A client that asks, or sends much, for a second or so.
fn conversation(is_bulk: bool) -> Vec<Segment> {
    let mut scene = Scene::met(RTT);
    scene.talk(3, RTT);
    for _ in 0..40 {
        if is_bulk {
            (0..10).for_each(|_| _ = scene.data(CLIENT, MSS));
            scene.pass(RTT);
            scene.ack(SERVER);
            scene.pass(10_000);
        } else {
            scene.talk(1, RTT);
            scene.pass(20 * MS);
        }
    }
    scene.segments
}

/// Both ends echo what had come when they sent, and stamp with clocks that tick so often a second; from a packet on, the capture's
/// clock is ahead by `step`, and those of an end by `own`.
fn stepped(mut segments: Vec<Segment>, (from, step): (usize, i64), own: [i64; 2], hertz: i64) -> Diagnosis {
    let client = segments[0].source;
    let mut newest = [0; 2];
    for (number, segment) in segments.iter_mut().enumerate() {
        let end = usize::from(segment.source != client);
        let ahead = if number >= from { own[end] } else { 0 };
        let value = ((segment.nanoseconds + ahead) / (1_000_000_000 / hertz)) as u32;
        segment.timestamps = Some((value, newest[1 - end]));
        newest[end] = value;
        segment.nanoseconds += if number >= from { step } else { 0 };
    }
    diagnosis(&segments)
}

/// How connections of a file talk.
const BULK: usize = 0;
const ASKS: usize = 1;
/// The file has none of the acknowledgements without data.
const FILTERED: usize = 2;

/// Connections of one file, without timestamps, each a little later than the one before.
fn together(kinds: &[usize]) -> Vec<Segment> {
    let one = |(number, kind): (usize, &usize)| {
        let mut scene = Scene::between(&format!("10.0.0.{}:40000", number + 1), "10.0.1.1:80");
        scene.pass(number as i64 * 7 * MS);
        scene.meet(RTT);
        for _ in 0..60 {
            if *kind == BULK {
                (0..4).for_each(|_| _ = scene.data(CLIENT, MSS));
                scene.pass(RTT);
                scene.ack(SERVER);
                scene.pass(10_000);
            } else {
                scene.talk(1, RTT);
                scene.pass(5 * MS);
            }
        }
        let is_left = |each: &Segment| *kind != FILTERED || each.payload_bytes > 0 || each.syn.is_some();
        scene.segments.into_iter().filter(is_left).collect::<Vec<Segment>>()
    };
    let mut all: Vec<Segment> = kinds.iter().enumerate().flat_map(one).collect();
    all.sort_by_key(|each| each.nanoseconds);
    for (number, each) in all.iter_mut().enumerate() {
        (each.number, each.timestamps) = (number as u64 + 1, None);
    }
    all
}

/// What a file tells that is read once more where its clock was set.
fn read(segments: &[Segment]) -> Diagnosis {
    let once = diagnosis(segments);
    let mut stamps = Stamps::default();
    segments.iter().for_each(|each| stamps.see(each.number, each.nanoseconds));
    let mut righted = Righted::new(stamps.steps(&once.witnesses));
    let again =
        |each: &Segment| Segment { nanoseconds: righted.right(each.number, each.nanoseconds), ..*each };
    let mut found = diagnosis(&segments.iter().map(again).collect::<Vec<Segment>>());
    found.findings.extend(righted.finding(segments[0].nanoseconds));
    found
}

/// Behind the last segment of a burst of which the answer is under way.
fn under_way(segments: &[Segment], place: f64) -> f64 {
    let is_its = |(_, each): &(usize, &Segment)| {
        each.payload_bytes == MSS && each.source.ip().to_string() == "10.0.0.1"
    };
    let all: Vec<usize> = segments.iter().enumerate().filter(is_its).map(|(number, _)| number).collect();
    let last = (all.len() as f64 * place) as usize / 4 * 4 + 3;
    (all[last] as f64 + 1.5) / segments.len() as f64
}

/// From a packet on, the clock is ahead.
fn set(segments: &mut [Segment], place: f64, step: i64) {
    let from = (segments.len() as f64 * place) as usize;
    segments[from..].iter_mut().for_each(|each| each.nanoseconds += step);
}

/// Beside the receiver, clients of these hosts send much; nothing is under way here between their bursts.
fn beside_the_receiver(hosts: &[u8], push: bool) -> Vec<Segment> {
    let one = |(number, host): (usize, &u8)| {
        let mut scene = Scene::between(&format!("10.0.0.{host}:{}", 40_000 + number), "10.0.1.1:80");
        scene.pass(number as i64 * 3 * MS);
        scene.meet_at_server(RTT);
        for _ in 0..60 {
            for segment in 0..4 {
                let flags = if push && segment == 3 { TcpFlags::PSH } else { TcpFlags(0) };
                scene.send(CLIENT, MSS, TcpFlags::ACK.with(flags));
                scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(MSS);
            }
            scene.pass(20_000);
            scene.ack(SERVER);
            scene.pass(RTT);
        }
        scene.segments
    };
    let mut all: Vec<Segment> = hosts.iter().enumerate().flat_map(one).collect();
    all.sort_by_key(|each| each.nanoseconds);
    for (number, each) in all.iter_mut().enumerate() {
        (each.number, each.timestamps) = (number as u64 + 1, None);
    }
    all
}

/// The first packet of a burst at about this part of the file.
fn of_burst(segments: &[Segment], place: f64) -> usize {
    let from = (segments.len() as f64 * place) as usize;
    let answers = |each: &Segment| each.payload_bytes == 0;
    from + segments[from..].iter().position(answers).expect("it is answered") + 1
}

/// What a clock that never runs says is of no use, and there may be any amount of it.
#[test]
fn a_connection_says_no_more_than_so_much_of_the_clock() {
    let mut segments = conversation(true);
    let latest = segments.iter().map(|each| each.nanoseconds).max().unwrap_or(0);
    for (number, each) in segments.iter_mut().enumerate() {
        each.nanoseconds = latest - number as i64 * 1_000 * MS;
    }
    assert!(segments.len() > 400);
    assert_eq!(diagnosis(&segments).witnesses.len(), 64);
}

proptest! {
    /// Senders of several hosts that had more to send rest at the same time, and go on: that is the clock. Those of one host may
    /// have stood still, and those that had written all may have had nothing to send.
    #[test]
    fn beside_the_receiver_several_hosts_that_go_on_tell_it(
        hosts in 2u8..6, place in 0.2..0.8f64, step in 2_100 * MS..90_000 * MS,
    ) {
        for (is_one, push) in [(false, false), (true, false), (false, true)] {
            let hosts: Vec<u8> = (1..=hosts).map(|host| if is_one { 1 } else { host }).collect();
            let mut segments = beside_the_receiver(&hosts, push);
            let from = of_burst(&segments, place);
            segments[from..].iter_mut().for_each(|each| each.nanoseconds += step);
            let found = read(&segments);
            let is_told = kinds(&found).contains(&Kind::ClockJump);
            prop_assert_eq!(is_told, !is_one && !push, "{:#?}", found.findings);
            if is_told {
                prop_assert_eq!(kinds(&found), [Kind::ClockJump]);
            }
        }
    }

    /// However a clock is set, and whatever connections do then: it is said once, and nobody has waited.
    #[test]
    fn a_clock_that_is_set_is_told_once_for_all_connections(
        mut talking in prop::collection::vec(0usize..3, 2..6),
        place in 0.2..0.9f64,
        step in prop_oneof![2_100 * MS..90_000 * MS, 3_600_000 * MS..9_000_000 * MS, -9_000_000 * MS..-600 * MS],
    ) {
        talking[0] = BULK;
        let mut segments = together(&talking);
        let (before, life) = (kinds(&diagnosis(&segments)), diagnosis(&segments).seconds);
        let place = under_way(&segments, place);
        set(&mut segments, place, step);
        let found = read(&segments);
        let jumps: Vec<_> = found.findings.iter().filter(|each| each.kind == Kind::ClockJump).collect();
        prop_assert_eq!((jumps.len(), jumps[0].connection), (1, None), "{:#?}", found.findings);
        prop_assert!((jumps[0].lost_seconds - step.max(0) as f64 / 1e9).abs() < 0.05);
        let others = kinds(&found).into_iter().filter(|kind| *kind != Kind::ClockJump).collect::<Vec<Kind>>();
        prop_assert_eq!(others, before, "{:#?}", found.findings);
        prop_assert!((found.seconds - life).abs() < 0.05, "{} s of {}", found.seconds, life);
    }

    /// A rest of all of them, of which the file lacks the acknowledgements, is none of the clock.
    #[test]
    fn a_rest_of_a_file_without_acknowledgements_is_none_of_the_clock(
        count in 1usize..4, place in 0.2..0.9f64, rest in 3_000 * MS..90_000 * MS,
    ) {
        let mut segments = together(&vec![FILTERED; count]);
        set(&mut segments, place, rest);
        prop_assert!(!kinds(&read(&segments)).contains(&Kind::ClockJump));
    }

    /// Nor is one before which the file lacks an acknowledgement: the next one is of what was sent after it as well.
    #[test]
    fn a_rest_before_which_an_answer_is_missing_is_none_of_the_clock(
        place in 0.2..0.9f64, rest in 3_000 * MS..90_000 * MS,
    ) {
        let mut segments = together(&[BULK]);
        let answered = under_way(&segments, place);
        segments.remove((segments.len() as f64 * answered) as usize);
        set(&mut segments, answered, rest);
        (0..).zip(&mut segments).for_each(|(number, each)| each.number = number + 1);
        prop_assert!(!kinds(&read(&segments)).contains(&Kind::ClockJump));
    }

    /// A rest that a sender ends by its timer has gone by, whatever one of which an acknowledgement is missing says.
    #[test]
    fn what_was_repeated_says_that_the_time_went_by(place in 0.2..0.9f64, rest in 3_000 * MS..90_000 * MS) {
        let mut segments = together(&[BULK, BULK, BULK]);
        set(&mut segments, place, rest);
        let from = (segments.len() as f64 * place) as usize;
        let later = segments[from].nanoseconds - MS;
        let mut repeats = Vec::new();
        for client in 1..4u8 {
            let is_own = |each: &&Segment| each.source.ip().to_string() == format!("10.0.0.{client}") && each.payload_bytes > 0;
            let last = segments[..from].iter().rev().find(is_own).expect("it has sent");
            repeats.push(Segment { nanoseconds: later, identification: last.identification.map(|own| own + 5000), ..*last });
        }
        segments.splice(from..from, repeats);
        (0..).zip(&mut segments).for_each(|(number, each)| each.number = number + 1);
        let found = read(&segments);
        prop_assert!(!kinds(&found).contains(&Kind::ClockJump), "{:#?}", found.findings);
    }

    /// Packets that only come late are no clock that was set.
    #[test]
    fn what_comes_late_is_none_of_the_clock(place in 0.2..0.8f64, late in 1usize..20, by in 600 * MS..9_000 * MS) {
        let mut segments = together(&[BULK, ASKS, BULK]);
        let from = (segments.len() as f64 * place) as usize;
        segments[from..from + late].iter_mut().for_each(|each| each.nanoseconds -= by);
        prop_assert!(!kinds(&read(&segments)).contains(&Kind::ClockJump));
    }

    /// Wherever the capture's clock is set forward: nobody waited for that, and no other kind has its time.
    #[test]
    fn a_clock_that_is_set_forward_is_no_pause(is_bulk: bool, place in 0.1..0.8f64, step in 700 * MS..90_000 * MS) {
        let segments = conversation(is_bulk);
        let from = (segments.len() as f64 * place) as usize;
        let found = stepped(segments, (from, step), [0; 2], 1000);
        prop_assert_eq!(kinds(&found), [Kind::ClockJump], "{:#?}", found.findings);
        prop_assert!((one(&found, Kind::ClockJump).lost_seconds - step as f64 / 1e9).abs() < 0.05);
    }

    /// Where the clock of an end went on meanwhile, or ticks too seldom to tell, the gap may be true.
    #[test]
    fn a_gap_that_an_end_knows_of_is_none_of_the_clock(
        is_bulk: bool, place in 0.1..0.8f64, step in 700 * MS..90_000 * MS, knows in 1usize..5,
    ) {
        let segments = conversation(is_bulk);
        let from = (segments.len() as f64 * place) as usize;
        let own = [knows & 1, knows >> 1 & 1].map(|knows| knows as i64 * step);
        let found = stepped(segments, (from, step), own, if knows == 4 { 100 } else { 1000 });
        prop_assert!(!kinds(&found).contains(&Kind::ClockJump), "{:#?}", found.findings);
    }
}
