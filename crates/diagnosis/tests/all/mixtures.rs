//! What files are made of: half captures, several taps in one file, packets in another order, and any mixture of them.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, diagnosis, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind};
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;
use proptest::prelude::*;

const RTT: i64 = 20 * MS;
/// What nobody may say of what was delivered.
const LOSSES: [Kind; 17] = [
    Kind::RtoStall,
    Kind::TailLoss,
    Kind::FastRetransmit,
    Kind::DoubleLoss,
    Kind::RetransmitStorm,
    Kind::SpuriousRetransmit,
    Kind::PmtuBlackHole,
    Kind::SynLoss,
    Kind::Incast,
    Kind::ReorderingTimer,
    Kind::Reordering,
    Kind::AckUnheard,
    Kind::ForeignSack,
    Kind::ProtocolViolation,
    Kind::Unexplained,
    Kind::SenderStall,
    Kind::DeadPeer,
];

/// How one connection is in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Whole,
    /// Only what this end sends.
    Half(usize),
    /// At two taps, the second so much later and so many hops on for what the client sends; the other way round for the
    /// server's packets.
    Twice {
        apart: i64,
        hops: u8,
    },
    /// From a mirror port that shows each packet again, so much later.
    Mirrored(i64),
    /// Without so many packets at both ends.
    Cut(usize, usize),
    /// With a length that has cut off all options.
    Short,
}

fn taken() -> impl Strategy<Value = Taken> {
    prop_oneof![
        Just(Taken::Whole),
        Just(Taken::Half(CLIENT)),
        Just(Taken::Half(SERVER)),
        (prop_oneof![Just(5_000i64), Just(700_000), Just(9 * MS)], 1u8..4)
            .prop_map(|(apart, hops)| Taken::Twice { apart, hops }),
        prop_oneof![Just(2_000i64), Just(4 * MS), Just(90 * MS), Just(3_000 * MS)].prop_map(Taken::Mirrored),
        (0usize..60, 0usize..40).prop_map(|(begin, end)| Taken::Cut(begin, end)),
        Just(Taken::Short),
    ]
}

/// A clean conversation: after a rest each, bursts of so many segments, and then probes whether the client lives.
fn conversation(port: u16, bursts: &[(u32, i64)], ip6: bool, is_numbered: bool) -> Vec<Segment> {
    let (client, server) = match ip6 {
        true => (format!("[fd00::1]:{port}"), "[fd00::2]:80"),
        false => (format!("10.0.0.1:{port}"), "10.0.0.2:80"),
    };
    let mut scene = Scene::between(&client, server);
    scene.meet(RTT);
    for (count, rest) in bursts {
        scene.pass(*rest);
        scene.data(CLIENT, 100);
        scene.pass(RTT);
        scene.got[SERVER] = scene.next[CLIENT];
        let begin = scene.next[SERVER];
        for place in 0..*count {
            scene.data(SERVER, MSS);
            scene.pass(12_000);
            if place % 2 == 1 {
                scene.got[CLIENT] = begin.wrapping_add((place + 1) * MSS);
                scene.send(CLIENT, 0, TcpFlags::ACK);
                scene.pass(3_000);
            }
        }
        scene.ack(CLIENT);
    }
    for _ in 0..4 {
        scene.pass(15_000 * MS);
        let next = scene.next[SERVER];
        scene.next[SERVER] = next.wrapping_sub(1);
        scene.send(SERVER, 0, TcpFlags::ACK);
        scene.next[SERVER] = next;
        scene.pass(10_000);
        scene.ack(CLIENT);
    }
    scene.pass(MS);
    scene.send(CLIENT, 0, TcpFlags::ACK.with(TcpFlags::FIN));
    scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(1);
    scene.pass(RTT);
    scene.got[SERVER] = scene.next[CLIENT];
    scene.send(SERVER, 0, TcpFlags::ACK.with(TcpFlags::FIN));
    scene.next[SERVER] = scene.next[SERVER].wrapping_add(1);
    scene.pass(10_000);
    scene.ack(CLIENT);
    for segment in &mut scene.segments {
        if ip6 || !is_numbered {
            segment.identification = (!ip6).then_some(0);
        }
    }
    scene.segments
}

/// What the file has of it.
fn filed(all: &[Segment], how: Taken) -> Vec<Segment> {
    let client = all[0].source;
    match how {
        Taken::Whole => all.to_vec(),
        Taken::Half(end) => {
            all.iter().filter(|segment| (segment.source == client) == (end == CLIENT)).copied().collect()
        }
        Taken::Mirrored(after) => {
            let again = |segment: &Segment| Segment { nanoseconds: segment.nanoseconds + after, ..*segment };
            all.iter().flat_map(|segment| [*segment, again(segment)]).collect()
        }
        Taken::Cut(begin, end) => {
            let end = all.len().saturating_sub(end);
            all[begin.min(end.saturating_sub(1))..end].to_vec()
        }
        Taken::Short => {
            let short = |segment: &Segment| Segment {
                timestamps: None,
                options_are_cut: true,
                syn: segment.syn.map(|_| Default::default()),
                ..*segment
            };
            all.iter().map(short).collect()
        }
        Taken::Twice { apart, hops } => {
            // The first tap is beside the client.
            let far = |segment: &Segment| {
                let mut copy = *segment;
                if segment.source == client {
                    copy.nanoseconds += apart;
                    copy.hops -= hops;
                } else {
                    copy.nanoseconds -= apart;
                    copy.hops += hops;
                }
                copy
            };
            all.iter().flat_map(|segment| [*segment, far(segment)]).collect()
        }
    }
}

/// All of them in the order of their stamps.
fn merged(mut all: Vec<Segment>) -> Vec<Segment> {
    all.sort_by_key(|segment| segment.nanoseconds);
    for (place, segment) in all.iter_mut().enumerate() {
        segment.number = place as u64 + 1;
    }
    all
}

/// Of a kind, for each connection.
fn of(found: &Diagnosis, kind: Kind) -> Vec<u64> {
    found.findings.iter().filter(|each| each.kind == kind).filter_map(|each| each.connection).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever mixture of whole and half captures and of taps a file is, of what was delivered nothing was lost.
    #[test]
    fn no_mixture_makes_losses(
        parts in proptest::collection::vec((taken(), any::<bool>(), any::<bool>(), 0i64..40), 1..5),
        bursts in proptest::collection::vec((1u32..60, prop_oneof![Just(MS), Just(40 * MS), Just(700 * MS)]), 4..9),
    ) {
        let mut all = Vec::new();
        for (place, (how, ip6, is_numbered, after)) in parts.iter().enumerate() {
            let own = conversation(40_000 + place as u16, &bursts, *ip6, *is_numbered);
            all.extend(filed(&own, *how).into_iter().map(|mut segment| {
                segment.nanoseconds += after * MS;
                // Some hosts stamp nothing; then nobody knows copies that come so late that a timer may have run out.
                if place % 2 == 1 && !matches!(how, Taken::Mirrored(after) if *after > 5 * MS) {
                    segment.timestamps = None;
                }
                segment
            }));
        }
        let found = diagnosis(&merged(all));
        for finding in &found.findings {
            prop_assert!(!LOSSES.contains(&finding.kind), "{parts:?}: {finding:?}");
        }
        prop_assert_eq!(found.connections.len(), parts.len());
        let port = |number: u64| found.connections[number as usize - 1].ends.client.port().max(
            found.connections[number as usize - 1].ends.server.port());
        let mut halves: Vec<u16> = of(&found, Kind::HalfCapture).into_iter().map(port).collect();
        halves.sort_unstable();
        let expected: Vec<u16> = parts.iter().enumerate()
            .filter(|(_, part)| matches!(part.0, Taken::Half(_)))
            .map(|(place, _)| 40_000 + place as u16)
            .collect();
        prop_assert_eq!(halves, expected);
    }
}

#[test]
fn a_syn_ack_that_was_recorded_before_its_syn_opens_the_same_connection() {
    let mut all = conversation(40_000, &[(4, MS); 3], false, true);
    all.swap(0, 1);
    let stamps = [all[1].nanoseconds, all[0].nanoseconds];
    (all[0].nanoseconds, all[1].nanoseconds) = (stamps[0], stamps[1]);
    let found = diagnosis(&merged(all));
    assert_eq!(found.connections.len(), 1, "{found:#?}");
    assert_eq!(kinds(&found), []);
    assert_eq!(found.connections[0].ends.client.port(), 40_000);
    assert!(found.connections[0].has_handshake);
}

#[test]
fn a_segment_that_was_sent_again_is_no_copy_of_another_tap() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    let begin = scene.data(CLIENT, MSS);
    scene.pass(240 * MS);
    scene.again(CLIENT, begin, MSS);
    scene.pass(RTT);
    scene.ack(SERVER);
    let found = diagnosis(&merged(filed(&scene.segments, Taken::Twice { apart: 3 * MS, hops: 2 })));
    assert!(kinds(&found).contains(&Kind::TailLoss), "{found:#?}");
    assert_eq!(found.connections[0].resent_segments, [1, 0]);
    assert_eq!(one(&found, Kind::CaptureDuplicates).count as usize, scene.segments.len());
}

#[test]
fn of_what_only_one_direction_shows_nobody_knows_what_arrived() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    let begin = scene.data(CLIENT, MSS);
    for wait in [210, 420, 840] {
        scene.pass(wait * MS);
        scene.again(CLIENT, begin, MSS);
    }
    let found = diagnosis(&merged(filed(&scene.segments, Taken::Half(CLIENT))));
    assert_eq!(kinds(&found), [Kind::RtoStall, Kind::HalfCapture]);
    let text = one(&found, Kind::RtoStall).text;
    assert!(!text.contains("was ever acknowledged"), "{text}");
}
