//! However the connections of a capture are divided among tables, and however few these have room for: the same is told.

use crate::scene::{MS, MSS, SERVER, Scene};
use framegauge_diagnosis::{Clock, Cut, Diagnosis, Finding, Numbers, Part, Table, Thresholds, Told, share};
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;
use proptest::prelude::*;

/// What comes next in a capture of a few hosts: whose and of which end, whether it is a repeat, how many bytes, which flags,
/// and how long after the last.
type Step = ((usize, usize, bool), u32, u8, i64);

fn step() -> impl Strategy<Value = Step> {
    let flags =
        prop_oneof![20 => Just(0x10u8), 3 => Just(0x02), 2 => Just(0x12), 2 => Just(0x11), 1 => any::<u8>()];
    let bytes = prop_oneof![Just(0u32), Just(100), Just(MSS), Just(9000)];
    // Now and then so long that a closed connection is forgotten, and now and then back.
    let pause = prop_oneof![20 => 0i64..300 * MS, 2 => 30_000 * MS..90_000 * MS, 1 => -50 * MS..0];
    ((0usize..12, 0usize..2, any::<bool>()), bytes, flags, pause)
}

fn captured(steps: Vec<Step>) -> Vec<Segment> {
    let mut scenes: Vec<Scene> = (0..12)
        .map(|number| Scene::between(&format!("10.0.1.{}:{}", number % 5, 40_000 + number), "10.0.0.2:80"))
        .collect();
    let mut now = scenes[0].now;
    let mut found = Vec::new();
    for ((place, end, is_again), bytes, flags, pause) in steps {
        let scene = &mut scenes[place];
        now += pause;
        scene.now = now;
        match flags {
            0x10 if is_again => scene.again(end, scene.next[end].wrapping_sub(bytes), bytes),
            0x10 => {
                scene.got[end] = scene.next[1 - end];
                scene.data(end, bytes);
            }
            flags => scene.send(end, bytes, TcpFlags(flags)),
        }
        let mut segment = *scene.segments.last().expect("just sent");
        segment.number = found.len() as u64 + 1;
        found.push(segment);
    }
    found
}

/// Takes the segments that a table has no room for with another, and so on.
fn take(segments: &[(Segment, Clock)], room: usize, told: &mut Vec<Told>, part: &mut Part) {
    let mut table = Table::share(Thresholds::default());
    let mut left = Vec::new();
    for (segment, clock) in segments {
        if !table.offer(segment, *clock, room) {
            left.push((*segment, *clock));
        }
        assert!(table.living() <= room);
        told.extend(table.told());
    }
    let (rest, own) = table.close();
    told.extend(rest);
    part.add(own);
    if !left.is_empty() {
        take(&left, room, told, part);
    }
}

fn divided(segments: &[Segment], shares: usize, room: usize) -> Diagnosis {
    let origin = segments[0].nanoseconds;
    let mut clock = Clock { origin, now: origin };
    let mut parts = vec![Vec::new(); shares];
    for segment in segments {
        clock.now = clock.now.max(segment.nanoseconds);
        parts[share(segment.destination, segment.source, shares, 3)].push((*segment, clock));
    }
    let (mut told, mut part) = (Vec::new(), Part::default());
    parts.iter().rev().for_each(|own| take(own, room, &mut told, &mut part));
    let numbers = Numbers::new(told.iter().map(Told::number).collect());
    let whole = part.conclude(&numbers, &Thresholds::default());
    let (mut connections, mut findings): (Vec<_>, Vec<Finding>) = (Vec::new(), Vec::new());
    for mut each in told {
        each.report.connection = numbers.of(each.report.connection);
        each.findings.iter_mut().for_each(|finding| finding.connection = Some(each.report.connection));
        connections.push(each.report);
        findings.extend(each.findings);
    }
    findings.extend(whole.findings);
    findings.sort_by_key(Finding::rank);
    connections.sort_by_key(|each| each.connection);
    Diagnosis {
        connections,
        findings,
        segments: whole.segments,
        seconds: whole.seconds,
        pictures: whole.pictures,
        witnesses: whole.witnesses,
    }
}

fn whole(segments: &[Segment]) -> Diagnosis {
    let mut table = Table::new(Thresholds::default());
    segments.iter().for_each(|segment| table.take(segment));
    table.finish()
}

proptest! {
    #[test]
    fn shares_with_little_room_tell_what_one_table_tells(
        steps in proptest::collection::vec(step(), 1..300),
        shares in 1usize..5,
        room in 1usize..4,
    ) {
        let segments = captured(steps);
        prop_assert_eq!(divided(&segments, shares, room), whole(&segments));
    }
}

#[test]
fn what_only_many_connections_tell_is_told_of_shares() {
    let mut segments = Vec::new();
    for number in 0..12 {
        let mut scene = Scene::between(&format!("10.0.1.{number}:40000"), "10.0.0.2:80");
        scene.meet(MS);
        scene.data(SERVER, MSS);
        scene.pass(1_000 * MS);
        scene.send(SERVER, 0, TcpFlags::RST);
        segments.extend(scene.segments);
    }
    segments.sort_by_key(|segment| segment.nanoseconds);
    segments.iter_mut().enumerate().for_each(|(place, segment)| segment.number = place as u64 + 1);
    let expected = whole(&segments);
    assert!(expected.findings.iter().any(|finding| finding.connection.is_none()), "{expected:?}");
    for shares in 1..4 {
        assert_eq!(divided(&segments, shares, 2), expected);
    }
}

#[test]
fn cuts_of_shares_are_counted_together_and_named_in_order() {
    let cuts = |numbers: &mut dyn Iterator<Item = u64>| {
        let mut table = Table::share(Thresholds::default());
        numbers.for_each(|number| table.take_cut(Cut::Payload, number));
        table.close().1
    };
    let mut odd = cuts(&mut (1..100).step_by(2));
    odd.add(cuts(&mut (2..100).step_by(2)));
    let apart = odd.conclude(&Numbers::default(), &Thresholds::default()).findings;
    assert_eq!(apart, cuts(&mut (1..100)).conclude(&Numbers::default(), &Thresholds::default()).findings);
    assert_eq!((apart[0].count, &apart[0].packets[..3]), (99, &[1, 2, 3][..]));
}

/// A connection is forgotten a minute after it was closed, whether others begin meanwhile or not.
#[test]
fn what_comes_long_after_a_close_is_another_connection() {
    let connections = |pause: i64| {
        let mut scene = Scene::met(MS);
        scene.send(SERVER, 0, TcpFlags::RST);
        scene.pass(pause);
        scene.data(0, 10);
        scene.diagnosis().connections.len()
    };
    assert_eq!((connections(59_999 * MS), connections(60_000 * MS)), (1, 2));
}
