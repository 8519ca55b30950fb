//! Flows that go on over the connection of another: what rounds over one connection do, flow by flow.

use crate::common::{assert_conserved, host, microseconds, milliseconds, rack, scenario};
use framegauge_fabric::{Act, PortIndex, Rule, Script};
use framegauge_simulator::{Flow, Outcome, Repeat, Simulation, SimulationError, Step};

const GIGABIT: u64 = 1_000_000_000;
const ROUNDS: usize = 5;

fn exchange(server: u16, answer: u64) -> Flow {
    let steps = vec![Step::whole(true, Some(100)), Step::whole(false, Some(answer))];
    Flow { steps, ..Flow::transfer(host(1), host(server), None) }
}

/// Rounds of these flows, as flows of their own: round by round, each over the connection that the first one opened.
fn unrolled(flows: &[Flow]) -> Vec<Flow> {
    let count = flows.len() as u32;
    let one = |number: u32| Flow {
        repeat: Repeat::Never,
        barrier: None,
        over: number.checked_sub(count),
        ..flows[(number % count) as usize].clone()
    };
    (0..count * ROUNDS as u32).map(one).collect()
}

fn played(flows: Vec<Flow>) -> Outcome {
    let mut network = rack(4, GIGABIT, microseconds(200), 64_000);
    // One of the client's requests is lost, and some of what the first server sends.
    let rule = |frames: Vec<u32>| Rule { frames, at_least_bytes: 100, act: Act::Lose };
    network.scripts = vec![
        Script { port: PortIndex(0), rules: vec![rule(vec![7])] },
        Script { port: PortIndex(1), rules: vec![rule(vec![5, 40, 41])] },
    ];
    let outcome = Simulation::new(scenario(network, 1500, flows, milliseconds(60_000))).unwrap().run();
    assert_conserved(&outcome);
    outcome
}

#[test]
fn they_do_what_rounds_over_one_connection_do() {
    let flows: Vec<Flow> = (2..=4)
        .map(|server| Flow {
            repeat: Repeat::Rounds(ROUNDS as u64),
            ..exchange(server, 30_000 * u64::from(server))
        })
        .collect();
    let (rounds, single) = (played(flows.clone()), played(unrolled(&flows)));
    let count = flows.len() as u32;
    let mut told: Vec<_> =
        single.transfers.iter().map(|one| (one.flow % count, one.flow / count, one)).collect();
    let mut known: Vec<_> = rounds.transfers.iter().map(|one| (one.flow, one.round, one)).collect();
    told.sort_by_key(|(flow, round, one)| (*flow, *round, one.step));
    known.sort_by_key(|(flow, round, one)| (*flow, *round, one.step));
    assert_eq!(told.len(), 2 * ROUNDS * flows.len());
    for ((flow, round, one), (its_flow, its_round, other)) in told.into_iter().zip(known) {
        assert_eq!((flow, round), (its_flow, its_round));
        let figures = |one: &framegauge_simulator::Transfer| {
            (one.step, one.begun, one.connected, one.ended, one.bytes, one.resends, one.is_complete)
        };
        assert_eq!(figures(one), figures(other), "flow {flow}, round {round}");
    }
    assert_eq!(single.segments, rounds.segments);
    // One connection for each server, and what was sent is told of the flow whose it was.
    let connections =
        |outcome: &Outcome| outcome.flows.iter().map(|flow| flow.connections).collect::<Vec<_>>();
    assert_eq!(connections(&single), [[1; 3].as_slice(), &[0; 12]].concat());
    for server in 0..3 {
        let mine = single.flows.iter().skip(server).step_by(3);
        let sums = mine
            .map(|flow| flow.sender)
            .fold((0, 0, 0), |sum, one| (sum.0 + one.segments, sum.1 + one.resends, sum.2 + one.timeouts));
        let whole = rounds.flows[server].sender;
        assert_eq!(sums, (whole.segments, whole.resends, whole.timeouts));
    }
    assert!(rounds.flows[0].sender.resends > 0);
}

#[test]
fn they_wait_for_others_too() {
    let mut flows: Vec<Flow> = (2..=4).map(|server| exchange(server, 30_000 * u64::from(server))).collect();
    let next: Vec<Flow> = (0..3)
        .map(|place| Flow { over: Some(place), after: vec![0, 1, 2], ..flows[place as usize].clone() })
        .collect();
    flows.extend(next);
    let outcome = played(flows);
    let of =
        |flows: std::ops::Range<u32>| outcome.transfers.iter().filter(move |one| flows.contains(&one.flow));
    let ended = of(0..3).map(|one| one.ended).max().unwrap();
    let begun: Vec<_> = of(3..6).filter(|one| one.step == 0).map(|one| one.begun).collect();
    assert_eq!(begun, [ended; 3]);
}

#[test]
fn one_begins_no_sooner_than_its_time() {
    let later = Flow { over: Some(0), begin: milliseconds(50), ..exchange(2, 1000) };
    let outcome = played(vec![exchange(2, 1000), later]);
    let begun: Vec<_> = outcome.transfers.iter().map(|one| (one.flow, one.step, one.begun)).collect();
    assert_eq!(begun[2], (1, 0, milliseconds(50)));
    // Over an open connection, a small answer takes a round trip and what its two frames take on two links each.
    let took = outcome.transfers[3].ended - milliseconds(50);
    assert!((microseconds(200)..microseconds(230)).contains(&took), "{took:?}");
}

#[test]
fn what_cannot_go_on_is_refused() {
    let first = || exchange(2, 1000);
    let over = |flow: Flow| Flow { over: Some(0), ..flow };
    let closing = Step { closes: true, ..Step::whole(true, Some(100)) };
    for flows in [
        vec![over(first())],
        vec![first(), over(exchange(3, 1000))],
        vec![first(), over(first()), over(first())],
        vec![Flow { repeat: Repeat::Rounds(2), ..first() }, over(first())],
        vec![first(), over(Flow { repeat: Repeat::Rounds(2), ..first() })],
        vec![first(), over(Flow { barrier: Some(0), ..first() })],
        vec![Flow { steps: vec![closing], ..first() }, over(first())],
    ] {
        let number = flows.len() - 1;
        let network = rack(4, GIGABIT, microseconds(200), 64_000);
        match Simulation::new(scenario(network, 1500, flows, milliseconds(100))) {
            Err(SimulationError::Flow { number: found, problem }) => {
                assert_eq!(found, number);
                assert!(problem.starts_with("cannot go on over"), "{problem}");
            }
            other => panic!("{:?}", other.map(|_| "no error")),
        }
    }
}
