//! Whatever segments come: no panic, the causes of a connection's life add up to it, and its picture has all of it.

use crate::scene::{MSS, Scene, diagnosis};
use framegauge_diagnosis::{Table, Thresholds};
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::{SackBlocks, Segment};
use proptest::prelude::*;
use serde_json::Value;

/// The last stamp that a segment may have.
const LATEST: i64 = 4_102_444_800_000_000_000;

/// Any segment between a few ends, near a few places, within a second of the last one or before it.
fn segment() -> impl Strategy<Value = Segment> {
    let places = prop_oneof![0u32..20_000, any::<u32>()];
    let sizes = prop_oneof![Just(0u32), Just(1), Just(MSS), 0u32..70_000];
    let blocks = proptest::collection::vec((0u32..20_000, 0u32..20_000), 0..4);
    // Now and then a clock jumps, by years.
    let steps = prop_oneof![
        20 => -1_000_000i64..400_000_000,
        1 => -LATEST..LATEST,
    ];
    (0usize..2, places.clone(), places, sizes, any::<u8>(), any::<u16>(), steps, blocks).prop_map(
        |(end, seq, ack, bytes, flags, window, step, blocks)| {
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
        },
    )
}

/// Segments with the numbers and times of a capture.
fn captured(segments: Vec<Segment>) -> Vec<Segment> {
    let mut now = 0;
    let numbered = |(place, mut segment): (usize, Segment)| {
        now = (now + segment.nanoseconds).clamp(0, LATEST);
        segment.nanoseconds = now;
        segment.number = place as u64 + 1;
        segment.identification = Some(place as u16 + 1);
        segment
    };
    segments.into_iter().enumerate().map(numbered).collect()
}

/// A column of a picture, with its differences added up.
fn column(direction: &Value, kind: &str, name: &str) -> Vec<i64> {
    let differences = direction[kind][name].as_array().expect("a list").iter();
    let mut value = 0i64;
    let add = |each: &Value| {
        value = value.wrapping_add(each.as_i64().expect("a number"));
        value
    };
    differences.map(add).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_causes_add_up_to_the_life(segments in proptest::collection::vec(segment(), 1..120)) {
        let segments = captured(segments);
        let found = diagnosis(&segments);
        prop_assert_eq!(found.segments, segments.len() as u64);
        for connection in &found.connections {
            let life = connection.end_seconds - connection.begin_seconds;
            let causes: f64 = connection.time.values().sum();
            // Of centuries, doubles have no nanoseconds.
            let slack = 1e-6 + life * 1e-12;
            prop_assert!((life - causes).abs() < slack, "{} of {}: {:?}", causes, life, connection.time);
        }
        for finding in &found.findings {
            prop_assert!(finding.begin_seconds <= finding.end_seconds);
            prop_assert!(finding.packets.iter().all(|number| (1..=segments.len() as u64).contains(number)));
        }
    }

    #[test]
    fn a_picture_has_the_whole_connection(segments in proptest::collection::vec(segment(), 1..120)) {
        let segments = captured(segments);
        let plain = diagnosis(&segments);
        let mut table = Table::new(Thresholds::default());
        table.draw(&(1..=plain.connections.len() as u64).collect::<Vec<_>>());
        segments.iter().for_each(|segment| table.take(segment));
        let mut drawn = table.finish();
        let pictures = std::mem::take(&mut drawn.pictures);
        prop_assert_eq!(&drawn, &plain, "drawing changes nothing");
        for (picture, report) in pictures.iter().zip(&plain.connections) {
            prop_assert_eq!(picture.connection, report.connection);
            let life = report.end_seconds - report.begin_seconds;
            let picture = serde_json::to_value(picture).expect("only words and numbers");
            for (direction, data) in picture["directions"].as_array().expect("two").iter().zip(report.data_segments) {
                prop_assert!(column(direction, "segments", "count").iter().sum::<i64>() >= data as i64);
                prop_assert_eq!(&direction["left_out"], 0);
                prop_assert!(column(direction, "flight", "value").iter().all(|bytes| *bytes >= 0));
                for kind in ["segments", "acks", "sacks", "flight", "rtt"] {
                    let times = column(direction, kind, "time");
                    prop_assert!(times.is_sorted(), "{}: {:?}", kind, times);
                    prop_assert!(times.iter().all(|time| *time >= 0 && *time as f64 / 1e9 <= life + 1e-3));
                }
            }
        }
    }
}
