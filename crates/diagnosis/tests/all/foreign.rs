//! SACK blocks of data that was never sent.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind};
use proptest::prelude::*;

const RTT: i64 = 10 * MS;

/// A loss that duplicate acknowledgements reveal, whose SACK blocks are off by so much.
fn shifted(by: u32) -> Diagnosis {
    let mut scene = Scene::met(RTT);
    scene.talk(10, RTT);
    let begin = scene.data(CLIENT, MSS);
    for _ in 0..5 {
        scene.data(CLIENT, MSS);
    }
    scene.pass(RTT);
    for count in 1..=5 {
        let block = (begin.wrapping_add(MSS), begin.wrapping_add(MSS * (count + 1)));
        scene.sack(SERVER, begin, &[(block.0.wrapping_add(by), block.1.wrapping_add(by))]);
        scene.pass(10_000);
    }
    scene.again(CLIENT, begin, MSS);
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.talk(3, RTT);
    scene.diagnosis()
}

#[test]
fn blocks_of_data_that_was_never_sent_are_named() {
    let found = shifted(1 << 29);
    assert_eq!(kinds(&found), [Kind::FastRetransmit, Kind::ForeignSack]);
    let finding = one(&found, Kind::ForeignSack);
    assert_eq!((finding.count, finding.packets.len()), (5, 5));
    assert!(finding.text.contains("rewrites sequence numbers"), "{}", finding.text);
}

#[test]
fn what_the_capture_may_only_lack_is_not() {
    // The window has 65,536 bytes, of which 8,688 are under way.
    for by in [0, MSS, 20 * MSS] {
        assert!(!kinds(&shifted(by)).contains(&Kind::ForeignSack), "{by}");
    }
}

proptest! {
    /// Wherever the numbers are moved to, they prove no loss and no needless repeat beyond that of the one segment.
    #[test]
    fn they_are_evidence_for_nothing_else(by in 70_000u32..u32::MAX - 70_000) {
        prop_assert_eq!(kinds(&shifted(by)), [Kind::FastRetransmit, Kind::ForeignSack]);
    }
}
