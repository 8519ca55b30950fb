//! The laws of request and response, over a make-believe server in virtual time.

use framegauge_traffic::{Arrivals, Load, Rr, RrSpec, RrSummary};
use proptest::prelude::*;

const MILLISECOND: u64 = 1_000_000;
const START: u64 = 77;

/// A server that answers each request after `service`, and nothing within a stall.
#[derive(Debug, Clone, Copy)]
struct Server {
    service: u64,
    stall: (u64, u64),
}

impl Server {
    fn answer_time(&self, sent: u64) -> u64 {
        let end = sent + self.service;
        if (self.stall.0..self.stall.1).contains(&end) { self.stall.1 } else { end }
    }
}

/// Runs to the end, jumping from event to event; checks that no connection has two requests outstanding.
fn drive(spec: RrSpec, server: Server) -> RrSummary {
    let mut rr = Rr::new(spec, START);
    let mut answers: Vec<(u64, u32)> = Vec::new();
    let mut now = START;
    loop {
        while let Some(connection) = rr.next_request(now) {
            assert!(answers.iter().all(|(_, other)| *other != connection), "two requests on {connection}");
            answers.push((START + server.answer_time(now - START), connection));
        }
        if rr.ended(now) {
            return rr.finish();
        }
        let (place, event) = answers
            .iter()
            .enumerate()
            .map(|(place, (time, _))| (Some(place), *time))
            .min_by_key(|(_, time)| *time)
            .unwrap_or((None, u64::MAX));
        if event <= rr.deadline() {
            now = event;
            let (_, connection) = answers.swap_remove(place.expect("an answer"));
            rr.answered(connection, now);
        } else {
            assert!(rr.deadline() > now, "a deadline that has passed asks for nothing");
            now = rr.deadline();
        }
    }
}

fn spec(connections: u32, load: Load, milliseconds: u64) -> RrSpec {
    RrSpec { connections, load, duration_nanoseconds: milliseconds * MILLISECOND }
}

fn uniform(rate_per_second: f64) -> Load {
    Load::Open { rate_per_second, arrivals: Arrivals::Uniform }
}

fn steady(service: u64) -> Server {
    Server { service, stall: (0, 0) }
}

#[test]
fn a_closed_loop_sends_when_it_is_answered() {
    let summary = drive(spec(1, Load::Closed, 10), steady(MILLISECOND));
    assert_eq!(summary.transactions.len(), 10);
    for (number, transaction) in summary.transactions.iter().enumerate() {
        assert_eq!(transaction.sent, number as u64 * MILLISECOND);
        assert_eq!((transaction.due, transaction.end), (transaction.sent, transaction.sent + MILLISECOND));
    }
    assert_eq!((summary.late, summary.unfinished, summary.active_nanoseconds), (0, 0, 10 * MILLISECOND));
}

#[test]
fn a_stall_shows_in_the_latency_of_all_it_held_up_and_in_a_closed_loop_once() {
    // One request a millisecond, answered at once but for 50 ms.
    let server = Server { service: 100_000, stall: (20 * MILLISECOND, 70 * MILLISECOND) };
    let slow = |summary: &RrSummary| {
        summary.transactions.iter().filter(|each| each.end - each.due > 2 * MILLISECOND).count()
    };
    let open = drive(spec(1, uniform(1000.0), 100), server);
    assert_eq!((open.transactions.len(), open.unfinished), (100, 0));
    // The one that was under way, those that became due meanwhile, and some while the queue drains.
    assert!((50..60).contains(&slow(&open)), "{}", slow(&open));
    assert!((49..60).contains(&open.late), "{}", open.late);
    let worst = open.transactions.iter().map(|each| each.end - each.due).max();
    assert_eq!(worst, Some(50 * MILLISECOND));
    assert_eq!(slow(&drive(spec(1, Load::Closed, 100), server)), 1);
}

#[test]
fn a_free_connection_makes_no_request_late() {
    let summary = drive(spec(4, uniform(1000.0), 100), steady(3 * MILLISECOND));
    assert_eq!((summary.transactions.len(), summary.late), (100, 0));
    assert!(summary.transactions.iter().all(|each| each.sent == each.due));
    let used = |connection| summary.transactions.iter().filter(|each| each.connection == connection).count();
    assert_eq!([used(0), used(1), used(2), used(3)], [25; 4]);
}

#[test]
fn what_is_never_answered_is_reported_and_not_waited_for_for_ever() {
    let never = Server { service: 100_000, stall: (10 * MILLISECOND, u64::MAX / 2) };
    let closed = drive(spec(3, Load::Closed, 100), never);
    assert_eq!(closed.unfinished, 3);
    let open = drive(spec(3, uniform(1000.0), 100), never);
    assert_eq!(open.transactions.len() as u64 + open.unfinished, 100);
    assert_eq!(open.active_nanoseconds, 100 * MILLISECOND);
}

#[test]
fn an_answer_to_nothing_counts_for_nothing() {
    let mut rr = Rr::new(spec(1, Load::Closed, 1), 0);
    rr.answered(0, 5);
    assert_eq!(rr.next_request(6), Some(0));
    assert_eq!(rr.next_request(6), None);
}

fn loads() -> impl Strategy<Value = Load> {
    let arrivals =
        prop_oneof![Just(Arrivals::Uniform), any::<u64>().prop_map(|seed| Arrivals::Poisson { seed })];
    let open = (10f64..20_000.0, arrivals)
        .prop_map(|(rate_per_second, arrivals)| Load::Open { rate_per_second, arrivals });
    prop_oneof![Just(Load::Closed), open]
}

proptest! {
    #[test]
    fn every_due_request_is_answered_or_reported(
        connections in 1u32..6, load in loads(), milliseconds in 0u64..100, service in 10_000u64..5_000_000,
        stall in 0u64..100, length in 0u64..4000,
    ) {
        let stall = (stall * MILLISECOND, (stall + length) * MILLISECOND);
        let spec = spec(connections, load, milliseconds);
        let summary = drive(spec, Server { service, stall });
        for transaction in &summary.transactions {
            prop_assert!(transaction.due <= transaction.sent && transaction.sent < transaction.end);
            prop_assert!(transaction.due < spec.duration_nanoseconds);
            prop_assert!(load != Load::Closed || transaction.due == transaction.sent);
            prop_assert!(transaction.end <= summary.active_nanoseconds);
        }
        prop_assert!(summary.transactions.windows(2).all(|pair| pair[0].end <= pair[1].end));
        if let Load::Open { rate_per_second, arrivals } = load {
            let mut schedule = framegauge_traffic::Schedule::new(rate_per_second, arrivals);
            let mut due = Vec::new();
            while schedule.due() < spec.duration_nanoseconds {
                due.push(schedule.due());
                schedule.advance();
            }
            prop_assert_eq!(summary.transactions.len() as u64 + summary.unfinished, due.len() as u64);
            let mut found: Vec<u64> = summary.transactions.iter().map(|transaction| transaction.due).collect();
            found.sort_unstable();
            if summary.unfinished == 0 {
                prop_assert_eq!(found, due);
            }
        } else {
            prop_assert!(summary.unfinished <= u64::from(connections));
            prop_assert_eq!(summary.late, 0);
        }
    }
}
