//! Programs that write whole segments: PSH behind them is that of the write, or of a burst that the kernel hands over.

mod scene;

use framegauge_diagnosis::{Diagnosis, Kind};
use framegauge_packets::TcpFlags;
use proptest::prelude::*;
use scene::{CLIENT, MS, MSS, SERVER, Scene, kinds};

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
