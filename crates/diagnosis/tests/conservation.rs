//! Whatever segments come: no panic, and the causes of a connection's life add up to it.

mod scene;

use framegauge_packets::TcpFlags;
use framegauge_packets::capture::{SackBlocks, Segment};
use proptest::prelude::*;
use scene::{MSS, Scene, diagnosis};

/// Any segment between a few ends, near a few places, within a second of the last one or before it.
fn segment() -> impl Strategy<Value = Segment> {
    let places = prop_oneof![0u32..20_000, any::<u32>()];
    let sizes = prop_oneof![Just(0u32), Just(1), Just(MSS), 0u32..70_000];
    let blocks = proptest::collection::vec((0u32..20_000, 0u32..20_000), 0..4);
    (0usize..2, places.clone(), places, sizes, any::<u8>(), any::<u16>(), -1_000_000i64..400_000_000, blocks)
        .prop_map(|(end, seq, ack, bytes, flags, window, step, blocks)| {
            let mut scene = Scene::new();
            scene.next[end] = seq;
            scene.got[end] = ack;
            scene.window[end] = window;
            // SYN and RST are rare, so that connections live.
            let rare = flags & 0xc0 != 0xc0;
            let flags = if rare { flags & !0x06 } else { flags };
            scene.send(end, bytes, TcpFlags(flags));
            let mut segment = scene.segments[0];
            segment.nanoseconds = step;
            let mut sack = SackBlocks { count: blocks.len() as u8, ..SackBlocks::default() };
            sack.blocks[..blocks.len()].copy_from_slice(&blocks);
            segment.sack = sack;
            segment
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_causes_add_up_to_the_life(segments in proptest::collection::vec(segment(), 1..120)) {
        let mut now = 0;
        let segments: Vec<Segment> = segments
            .into_iter()
            .enumerate()
            .map(|(place, mut segment)| {
                now += segment.nanoseconds;
                segment.nanoseconds = now;
                segment.number = place as u64 + 1;
                segment.identification = Some(place as u16 + 1);
                segment
            })
            .collect();
        let found = diagnosis(&segments);
        prop_assert_eq!(found.segments, segments.len() as u64);
        for connection in &found.connections {
            let life = connection.end_seconds - connection.begin_seconds;
            let causes: f64 = connection.time.values().sum();
            prop_assert!((life - causes).abs() < 1e-6, "{} of {}: {:?}", causes, life, connection.time);
        }
        for finding in &found.findings {
            prop_assert!(finding.begin_seconds <= finding.end_seconds);
            prop_assert!(finding.packets.iter().all(|number| (1..=segments.len() as u64).contains(number)));
        }
    }
}
