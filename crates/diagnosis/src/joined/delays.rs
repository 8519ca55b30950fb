//! One-way delays between two taps, and when they rise.

use super::clocks::Clocks;
use super::record::Record;
use super::report::{Delay, DelayPart, Rise};

/// Points of the series.
const PARTS: usize = 100;
/// A delay has risen when its median over a part is this many times the least, and so much above it: a queue
/// (`Thresholds::bloat_factor`, `Thresholds::bloat_nanoseconds`).
const RISE_FACTOR: i64 = 5;
const RISE_NANOSECONDS: i64 = 1_000_000;

/// The delays of packets that are the same at both taps. `None` if the clocks cannot be aligned, or there are none.
pub(super) fn delays(
    clocks: &Clocks,
    files: (usize, usize),
    (sent, received): (&[Record], &[Record]),
    passed: &[(u32, u32)],
) -> Option<Delay> {
    let mut uncertainty = 0;
    let mut all = Vec::with_capacity(passed.len());
    for (here, there) in passed {
        let (here, there) = (sent[*here as usize].nanoseconds, received[*there as usize].nanoseconds);
        let (delay, more) = clocks.delay(files, here, there)?;
        uncertainty = uncertainty.max(more);
        all.push((here, delay));
    }
    all.sort_unstable();
    let (first, last) = (all.first()?.0, all.last()?.0);
    let mut sorted: Vec<i64> = all.iter().map(|(_, delay)| *delay).collect();
    sorted.sort_unstable();
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
    let series = series(&all, first, last);
    Some(Delay {
        packets: all.len() as u64,
        least_seconds: seconds(at(0.0)),
        median_seconds: seconds(at(0.5)),
        p99_seconds: seconds(at(0.99)),
        most_seconds: seconds(at(1.0)),
        uncertainty_seconds: seconds(uncertainty),
        rises: rises(&series, at(0.0)),
        series: series.into_iter().map(|(part, _)| part).collect(),
    })
}

fn seconds(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// Equal parts of the time, of which those without packets are left out; with each one's median.
fn series(all: &[(i64, i64)], first: i64, last: i64) -> Vec<(DelayPart, i64)> {
    let width = ((last - first) / PARTS as i64 + 1).max(1);
    all.chunk_by(|one, two| (one.0 - first) / width == (two.0 - first) / width)
        .map(|chunk| {
            let mut delays: Vec<i64> = chunk.iter().map(|(_, delay)| *delay).collect();
            delays.sort_unstable();
            let median = delays[delays.len() / 2];
            let part = DelayPart {
                begin_seconds: seconds(chunk[0].0),
                end_seconds: seconds(chunk[chunk.len() - 1].0),
                least_seconds: seconds(delays[0]),
                median_seconds: seconds(median),
                most_seconds: seconds(delays[delays.len() - 1]),
            };
            (part, median)
        })
        .collect()
}

fn rises(series: &[(DelayPart, i64)], least: i64) -> Vec<Rise> {
    let limit = least.max(0).saturating_mul(RISE_FACTOR).max(least.saturating_add(RISE_NANOSECONDS));
    series
        .chunk_by(|one, two| (one.1 > limit) == (two.1 > limit))
        .filter(|run| run[0].1 > limit)
        .map(|run| Rise {
            begin_seconds: run[0].0.begin_seconds,
            end_seconds: run[run.len() - 1].0.end_seconds,
            median_seconds: seconds(run.iter().map(|(_, median)| *median).max().unwrap_or(0)),
        })
        .collect()
}
