//! What is told and written down of frames that are marked.

use crate::common::{Log, aggregate, nanoseconds, rack_config};
use framegauge_fabric::{Aggregate, Ecn, Fabric, HostIndex, PortIndex, QueueConfig, Reason};

/// Of a full frame at 1 Gb/s, in nanoseconds.
const T: u64 = 12_304;

#[test]
fn marks_are_recorded_with_their_runs() {
    // h1 and h2 each send ten full frames to h3 at time 0, without delay. The port to h3 has room for four and marks
    // what makes more than two. Arrivals from both at k T, k = 1...10, a departure at (k + 1) T.
    //
    // k    before  h1            h2
    // 1    0       1             2
    // 2    1       2             3, marked
    // 3    2       3, marked     4, marked
    // 4...10  3    4, marked     drop
    let mut config = rack_config(3, 0, 1 << 20, 9216);
    config.ports[5].queue = QueueConfig::Step { limit_bytes: 4 * 1518, threshold_bytes: 2 * 1518 };
    let mut fabric = Fabric::new(&config).unwrap();
    let mut log = Log::default();
    let capable = |id, frames| Aggregate { ecn: Ecn::CAPABLE, ..aggregate(id, frames, 1514, 2) };
    fabric.transmit(nanoseconds(0), HostIndex(0), capable(0, 10));
    fabric.transmit(nanoseconds(0), HostIndex(1), capable(1, 10));
    fabric.advance(nanoseconds(1_000_000), &mut log);

    // Time, input port, marked, run, buffer before the frame.
    let mut expected = vec![(2, 2, true, 1, 2), (3, 0, true, 1, 2), (3, 2, true, 2, 3)];
    for k in 4..=10 {
        expected.push((k, 0, true, (k - 2) as u32, 3));
        expected.push((k, 2, false, (k - 3) as u32, 4));
    }
    let expected: Vec<_> = expected
        .into_iter()
        .map(|(k, input, marked, run, held)| (nanoseconds(k * T), PortIndex(input), marked, run, held * 1518))
        .collect();
    let records = fabric.take_drops();
    let found: Vec<_> = records
        .iter()
        .map(|record| (record.time, record.input_port, record.marked, record.run_length, record.queue_bytes))
        .collect();
    assert_eq!(found, expected);
    assert!(records.iter().all(|record| record.port == PortIndex(5)));
    let reason = |marked| if marked { Reason::Step } else { Reason::Taildrop };
    assert!(records.iter().all(|record| record.reason == reason(record.marked)));

    assert_eq!((log.marked.len(), log.discarded.len(), log.delivered.len()), (10, 7, 13));
    let port = fabric.counters().ports[5];
    assert_eq!((port.marked_frames, port.dropped_frames, port.sent_frames), (10, 7, 13));

    // One frame of h2 alone ends both of its runs.
    fabric.transmit(nanoseconds(1_000_000), HostIndex(1), capable(2, 1));
    fabric.advance(nanoseconds(2_000_000), &mut log);
    assert!(fabric.take_drops().is_empty());
    // Four of h1 at once with four of h2 behind them: 1 1, 2 2, 3 3, 4 4 of each, as above with k up to 4.
    fabric.transmit(nanoseconds(2_000_000), HostIndex(1), capable(3, 4));
    fabric.transmit(nanoseconds(2_000_000), HostIndex(0), capable(4, 4));
    fabric.advance(nanoseconds(3_000_000), &mut log);
    let runs: Vec<_> =
        fabric.take_drops().iter().map(|record| (record.input_port.0, record.run_length)).collect();
    assert_eq!(runs, [(2, 1), (0, 1), (2, 2), (0, 2), (2, 1)]);
}
