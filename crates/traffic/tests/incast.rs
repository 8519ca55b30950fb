//! The laws of rounds with a barrier, over make-believe servers in virtual time.

use framegauge_traffic::{Incast, IncastSpec, Silence, Span};
use proptest::prelude::*;

const START: u64 = 77;
const SILENCE: u64 = 1_000_000;

fn spec(servers: u32, rounds: u32) -> IncastSpec {
    IncastSpec { servers, rounds, silence_nanoseconds: SILENCE }
}

/// Runs to the end; server s answers in round r after `takes[(s + r) % takes.len()]`. Checks the barrier: no request goes
/// out while an answer is missing.
fn drive(spec: IncastSpec, takes: &[u64]) -> Incast {
    let mut incast = Incast::new(spec, START);
    let mut due: Vec<(u64, u32)> = Vec::new();
    let mut now = START;
    while !incast.ended() {
        let round = incast.rounds_done();
        let mut asked = 0;
        while let Some(server) = incast.next_request(now) {
            assert_eq!((server, due.len()), (asked, asked as usize), "in order, and no answer is missing");
            due.push((now + takes[(server + round) as usize % takes.len()], server));
            asked += 1;
        }
        assert_eq!(asked, spec.servers, "a round asks every server");
        assert_eq!(incast.next_request(now), None);
        due.sort_unstable();
        for (time, server) in due.drain(..) {
            assert_eq!(incast.rounds_done(), round);
            now = time;
            incast.answered(server, now);
        }
    }
    incast
}

#[test]
fn a_round_begins_when_the_slowest_of_the_one_before_has_answered() {
    let incast = drive(spec(2, 3), &[10, 30]);
    let span = |start, end| Span { start, end };
    assert_eq!(incast.rounds(), [span(0, 30), span(30, 60), span(60, 90)]);
    // By server, and then by round.
    let found = [span(0, 10), span(30, 60), span(60, 70), span(0, 30), span(30, 40), span(60, 90)];
    assert_eq!(incast.answers(), found);
    assert_eq!((incast.started(), incast.rounds_done(), incast.deadline()), (START, 3, None));
}

#[test]
fn a_server_that_is_silent_for_too_long_is_named() {
    let mut incast = Incast::new(spec(3, 2), START);
    assert_eq!((incast.deadline(), incast.silent(u64::MAX)), (None, None), "nobody owes anything");
    for server in 0..3 {
        assert_eq!(incast.next_request(START + u64::from(server)), Some(server));
    }
    incast.answered(0, START + 10);
    // It owes nothing until it is asked again.
    incast.heard(0, START + 11);
    assert_eq!(incast.deadline(), Some(START + 1 + SILENCE));
    incast.heard(1, START + 20);
    assert_eq!(incast.deadline(), Some(START + 2 + SILENCE));
    assert_eq!(incast.silent(START + 1 + SILENCE), None);
    assert_eq!(incast.silent(START + 2 + SILENCE), Some(Silence { server: 2, round: 0 }));
    incast.answered(2, START + 30);
    assert_eq!(incast.silent(START + 20 + SILENCE), Some(Silence { server: 1, round: 0 }));
    incast.answered(1, START + 40);
    assert_eq!(incast.next_request(START + 50), Some(0));
    assert_eq!(incast.silent(START + 50 + SILENCE), Some(Silence { server: 0, round: 1 }));
}

#[test]
fn an_answer_that_nobody_asked_for_changes_nothing() {
    let mut incast = Incast::new(spec(1, 2), START);
    incast.answered(0, START);
    assert_eq!(incast.rounds_done(), 0);
    assert_eq!(incast.next_request(START), Some(0));
    incast.answered(0, START + 5);
    incast.answered(0, START + 6);
    assert_eq!(incast.rounds_done(), 1);
}

proptest! {
    /// Rounds follow each other without a gap, and each lasts as long as its slowest server.
    #[test]
    fn rounds_take_what_their_slowest_servers_take(
        servers in 1u32..20,
        rounds in 1u32..20,
        takes in proptest::collection::vec(1u64..1000, 1..30),
    ) {
        let incast = drive(spec(servers, rounds), &takes);
        let mut begin = 0;
        for (round, span) in incast.rounds().into_iter().enumerate() {
            let slowest = (0..servers as usize).map(|server| takes[(server + round) % takes.len()]).max();
            prop_assert_eq!(span, Span { start: begin, end: begin + slowest.expect("a server") });
            begin = span.end;
        }
        prop_assert_eq!(incast.rounds().len(), rounds as usize);
        prop_assert_eq!(incast.answers().len(), (servers * rounds) as usize);
    }
}
