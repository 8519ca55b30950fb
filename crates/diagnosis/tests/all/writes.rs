//! Programs that write whole segments: PSH behind them is that of the write, or of a burst that the kernel hands over.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, kinds};
use framegauge_diagnosis::{Diagnosis, Kind};
use framegauge_packets::TcpFlags;
use proptest::prelude::*;

const RTT: i64 = 10 * MS;

/// Bursts of so many full segments, the last with PSH, so far apart. `aggregated`: a burst is one packet, as before TSO cuts it.
fn written(bursts: &[u32], rest: i64, aggregated: bool) -> Diagnosis {
    let mut scene = Scene::met(RTT);
    scene.talk(3, RTT);
    for count in bursts {
        let packets = if aggregated { 1 } else { *count };
        for packet in 1..=packets {
            let bytes = MSS * count / packets;
            let push = if packet == packets { TcpFlags::PSH } else { TcpFlags(0) };
            scene.send(CLIENT, bytes, TcpFlags::ACK.with(push));
            scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(bytes);
            scene.pass(20_000);
        }
        scene.pass(RTT);
        scene.ack(SERVER);
        scene.pass(rest);
    }
    scene.diagnosis()
}

proptest! {
    /// Nobody knows whether more was there behind a write that always has the same size.
    #[test]
    fn who_always_writes_as_much_had_no_more(
        count in 3u32..40, bursts in 2usize..20, rest in 6 * MS..300 * MS, aggregated: bool
    ) {
        let found = written(&vec![count; bursts], rest, aggregated);
        prop_assert!(!kinds(&found).contains(&Kind::SenderStall), "{:#?}", found.findings);
    }
}

#[test]
fn no_program_writes_whole_segments_that_are_always_others() {
    for aggregated in [true, false] {
        let found = written(&[3, 4, 3, 5, 4, 3, 4, 3, 4], 100 * MS, aggregated);
        assert!(kinds(&found).contains(&Kind::SenderStall), "{aggregated}");
    }
    // Two at once are those of a sender that paces itself.
    assert!(kinds(&written(&[2; 9], 100 * MS, true)).contains(&Kind::SenderStall));
}

/// Writes of as many full segments each, so long after each other, of which each is answered after an RTT. `lost`: the file has
/// nothing of this one until it is sent again behind the next.
fn rhythm(count: u32, rests: &[i64], lost: Option<usize>) -> Diagnosis {
    let mut scene = Scene::met(RTT);
    scene.talk(3, RTT);
    let (begin, mut at) = (scene.next[CLIENT], scene.now);
    let mut events = Vec::new();
    for (place, rest) in rests.iter().enumerate() {
        events.push((at, place as u32, false));
        events.push((at + RTT, place as u32 + 1, true));
        at += rest;
    }
    events.sort_unstable();
    let write = |scene: &mut Scene, place: u32| {
        for packet in 0..count {
            scene.next[CLIENT] = begin.wrapping_add((place * count + packet) * MSS);
            let push = if packet + 1 == count { TcpFlags::PSH } else { TcpFlags(0) };
            scene.send(CLIENT, MSS, TcpFlags::ACK.with(push));
        }
        scene.next[CLIENT] = begin.wrapping_add((place + 1) * count * MSS);
    };
    for (at, place, is_answer) in events {
        scene.now = at;
        match lost.map(|lost| (place as usize).cmp(&(lost + usize::from(is_answer)))) {
            Some(std::cmp::Ordering::Equal) => {}
            _ if is_answer => {
                scene.got[SERVER] = begin.wrapping_add(place * count * MSS);
                scene.send(SERVER, 0, TcpFlags::ACK);
            }
            _ => write(&mut scene, place),
        }
        // What is lost is asked for by what comes behind it, and comes again before that is answered.
        if !is_answer && lost.is_some_and(|lost| lost + 1 == place as usize) {
            (0..3).for_each(|_| scene.send(SERVER, 0, TcpFlags::ACK));
            scene.pass(RTT / 2);
            write(&mut scene, place - 1);
            scene.next[CLIENT] = begin.wrapping_add((place + 1) * count * MSS);
        }
    }
    scene.diagnosis()
}

proptest! {
    /// Writes that follow each other while data is under way are several, and no larger one.
    #[test]
    fn who_writes_as_much_in_any_rhythm_had_no_more(
        count in 3u32..20, rests in proptest::collection::vec(prop_oneof![Just(MS), Just(9 * MS), Just(60 * MS), Just(150 * MS)], 4..20)
    ) {
        let found = kinds(&rhythm(count, &rests, None));
        prop_assert!(!found.contains(&Kind::SenderStall) && !found.contains(&Kind::Unexplained), "{found:?}");
    }
}

#[test]
fn a_write_that_was_lost_makes_none_larger() {
    let mut rests = [100 * MS; 20];
    rests[6] = 2 * MS;
    for lost in [None, Some(6)] {
        let found = kinds(&rhythm(12, &rests, lost));
        assert!(!found.contains(&Kind::SenderStall) && !found.contains(&Kind::Unexplained), "{found:?}");
    }
}
