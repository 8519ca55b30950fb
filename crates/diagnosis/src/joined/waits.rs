//! Who kept the other end waiting: the time between a request's arrival and its answer's leaving, at the tap nearest to who
//! answers, and the same wait at the tap nearest to who asks. Each is measured by one clock.

use super::record::{Record, Trace};
use super::report::{Held, Wait};
use std::collections::HashMap;

/// An acknowledgement that leaves later than this was delayed on purpose (`Thresholds::delayed_ack_least`).
const DELAYED_NANOSECONDS: i64 = 30_000_000;
/// Packets that are named.
const MOST_PACKETS: usize = 20;

/// An answer: where it begins in its lane, when the request ended, when the answer began, and its packet's number.
struct Turn {
    place: i64,
    asked: i64,
    answered: i64,
    packet: u32,
}

/// What the far end of a lane let the near end wait for. `near` is the tap nearest to who sends in `lane`, and `far` that
/// nearest to who answers.
pub(super) fn waits(near: &Trace, far: &Trace, lane: usize) -> Wait {
    let far_turns: HashMap<i64, Turn> = turns(far, lane).into_iter().map(|turn| (turn.place, turn)).collect();
    let mut wait = Wait { acknowledgements: acknowledgements(far, lane), ..Wait::default() };
    let mut held: Vec<(i64, u32)> = Vec::new();
    for turn in turns(near, lane) {
        let Some(same) = far_turns.get(&turn.place) else { continue };
        let (whole, inside) = (turn.answered - turn.asked, same.answered - same.asked);
        // A request that the far tap has not, or not yet whole, makes no turn.
        if inside > whole {
            continue;
        }
        wait.answers += 1;
        wait.waited_seconds += whole as f64 / 1e9;
        wait.held_seconds += inside as f64 / 1e9;
        held.push((inside, same.packet));
    }
    held.sort_unstable_by(|one, two| two.cmp(one));
    wait.longest_held_seconds = held.first().map_or(0.0, |(longest, _)| *longest as f64 / 1e9);
    wait.packets = held.iter().take(MOST_PACKETS).map(|(_, packet)| u64::from(*packet)).collect();
    wait
}

/// The changes from data of `lane` to new data of the other lane, at one tap. What leaves while a part of the request is still
/// missing there does not answer it.
fn turns(trace: &Trace, lane: usize) -> Vec<Turn> {
    let mut turns = Vec::new();
    let mut request_at: Option<i64> = None;
    let mut high = [i64::MIN; 2];
    let mut missing = Missing::default();
    for (of, now, record) in in_order(trace) {
        let before = high[of];
        high[of] = before.max(record.end());
        if of == lane && before < record.begin && before != i64::MIN {
            missing.0.push((before, record.begin));
        }
        if record.payload() == 0 {
            continue;
        }
        if record.end() <= before {
            // What completes a request ends it.
            if of == lane && missing.fill(record) {
                request_at = request_at.map(|_| now);
            }
        } else if of == lane {
            request_at = Some(now);
        } else if let Some(request_at) = request_at.take()
            && std::mem::take(&mut missing).0.is_empty()
        {
            turns.push(Turn { place: record.begin, asked: request_at, answered: now, packet: record.number });
        }
    }
    turns
}

/// The parts of a request that a tap has not seen while later ones passed.
#[derive(Default)]
struct Missing(Vec<(i64, i64)>);

impl Missing {
    /// Takes off what a record has. Whether it had some of it.
    fn fill(&mut self, record: &Record) -> bool {
        let before = self.0.clone();
        self.0 = before
            .iter()
            .flat_map(|&(begin, end)| [(begin, end.min(record.begin)), (begin.max(record.end()), end)])
            .filter(|(begin, end)| begin < end)
            .collect();
        self.0 != before
    }
}

/// Acknowledgements that the far end held back, at the tap nearest to it.
fn acknowledgements(trace: &Trace, lane: usize) -> Held {
    let mut held = Held::default();
    // Data that is not acknowledged yet, since when; and up to where it goes.
    let (mut since, mut high) = (None, i64::MIN);
    for (of, now, record) in in_order(trace) {
        if of == lane && record.payload() > 0 && record.end() > high {
            high = record.end();
            since.get_or_insert(now);
        } else if of != lane
            && let Some(begin) = since.take()
        {
            let waited = now - begin;
            if waited >= DELAYED_NANOSECONDS {
                held.count += 1;
                held.seconds += waited as f64 / 1e9;
            }
        }
    }
    held
}

/// The packets of both lanes as they were captured, with their times: none is earlier than the one before, whatever its
/// stamp says.
fn in_order(trace: &Trace) -> impl Iterator<Item = (usize, i64, &Record)> {
    let mut now = i64::MIN;
    let mut lanes = [trace.lanes[0].records.iter().peekable(), trace.lanes[1].records.iter().peekable()];
    std::iter::from_fn(move || {
        let number = |record: Option<&&Record>| record.map_or(u64::MAX, |record| u64::from(record.number));
        let (one, two) = (number(lanes[0].peek()), number(lanes[1].peek()));
        let lane = usize::from(two < one);
        lanes[lane].next().map(|record| {
            now = now.max(record.nanoseconds);
            (lane, now, record)
        })
    })
}
