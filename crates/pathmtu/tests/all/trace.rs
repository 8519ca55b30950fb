//! Traces along chains of routers whose faults are known.

use framegauge_pathmtu::{Hop, HopOutcome, Trace, TraceConfig, TraceSize, Traces};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// A chain: routers 1 to n, then the far end.
#[derive(Debug, Clone)]
struct Chain {
    routers: u8,
    /// Behind this router (0: this host) large packets vanish, or are refused by it.
    fault: Option<(u8, bool)>,
    /// Routers that never say that anything has expired.
    mute: Vec<u8>,
    /// Packets whose answers are lost, by number.
    lost: Vec<u32>,
}

fn router(number: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, number, 1).into()
}

/// Runs a trace; its hops, how long it took, and how many packets were sent.
fn run(chain: &Chain, patient: bool) -> (Vec<Hop>, Duration, u32) {
    let mut trace = Trace::new(TraceConfig { hops: 16, patient });
    let (mut now, mut sent) = (Duration::from_secs(1), 0);
    let begun = now;
    while !trace.done() {
        assert!(now < begun + Duration::from_secs(30));
        match trace.poll(now) {
            Some(probe) => {
                sent += 1;
                if chain.lost.contains(&probe.number) {
                    continue;
                }
                let large = probe.size == TraceSize::Large;
                let stopped = chain
                    .fault
                    .filter(|(behind, _)| large && *behind < probe.ttl && *behind <= chain.routers);
                let outcome = match stopped {
                    Some((_, false)) => continue,
                    Some((behind, true)) => HopOutcome::TooBig(Some(router(behind)), Some(1500)),
                    None if probe.ttl > chain.routers => HopOutcome::Delivered,
                    None if chain.mute.contains(&probe.ttl) => continue,
                    None => HopOutcome::Expired(router(probe.ttl)),
                };
                trace.on_outcome(now + Duration::from_micros(300), probe.number, outcome);
            }
            None => now = trace.deadline().map_or(now, |deadline| deadline.max(now)),
        }
    }
    (trace.hops().to_vec(), now - begun, sent)
}

fn chain(routers: u8) -> Chain {
    Chain { routers, fault: None, mute: vec![], lost: vec![] }
}

#[test]
fn a_clean_path_takes_one_pair_a_hop() {
    let (hops, took, sent) = run(&chain(2), true);
    let outcomes: Vec<_> = hops.iter().map(|hop| (hop.ttl, hop.small, hop.large)).collect();
    let expired = |number| HopOutcome::Expired(router(number));
    let arrived = HopOutcome::Delivered;
    assert_eq!(outcomes, [(1, expired(1), expired(1)), (2, expired(2), expired(2)), (3, arrived, arrived)]);
    assert!(took < Duration::from_millis(10), "{took:?}");
    // Small ones for every TTL, large ones only as far as the path goes.
    assert_eq!(sent, 16 + 3);
}

#[test]
fn the_link_that_swallows_large_packets_lies_behind_the_last_hop_that_had_one() {
    let (hops, took, _) = run(&Chain { fault: Some((1, false)), ..chain(3) }, true);
    let large: Vec<_> = hops.iter().map(|hop| hop.large).collect();
    assert_eq!(
        large,
        [HopOutcome::Expired(router(1)), HopOutcome::Silent, HopOutcome::Silent, HopOutcome::Silent]
    );
    assert_eq!(hops[3].small, HopOutcome::Delivered);
    assert!(took < Duration::from_millis(200), "{took:?}");
}

#[test]
fn a_router_that_refuses_is_named() {
    let (hops, ..) = run(&Chain { fault: Some((1, true)), ..chain(2) }, true);
    assert_eq!(hops[0].large, HopOutcome::Expired(router(1)));
    assert_eq!(hops[1].large, HopOutcome::TooBig(Some(router(1)), Some(1500)));
}

#[test]
fn a_mute_router_is_asked_once_more_after_its_limit() {
    let mute = Chain { mute: vec![2], ..chain(3) };
    let (hops, took, _) = run(&mute, true);
    assert_eq!((hops[1].small, hops[1].large), (HopOutcome::Silent, HopOutcome::Silent));
    assert_eq!(hops[2].large, HopOutcome::Expired(router(3)));
    assert!(took > Duration::from_secs(1) && took < Duration::from_secs(2), "{took:?}");
    assert!(run(&mute, false).1 < Duration::from_millis(200));
}

#[test]
fn nothing_answers_and_it_ends() {
    let silent = Chain { mute: (1..=16).collect(), ..chain(16) };
    let (hops, took, _) = run(&silent, true);
    assert!(hops.is_empty());
    assert!(took < Duration::from_secs(5), "{took:?}");
}

proptest! {
    #[test]
    fn it_ends_and_never_puts_the_fault_too_far(
        routers in 0u8..12, fault in prop::option::of((0u8..12, any::<bool>())),
        mute in prop::collection::vec(1u8..12, 0..4), lost in prop::collection::vec(0u32..80, 0..20), patient: bool,
    ) {
        let chain = Chain { routers, fault, mute, lost };
        let (hops, ..) = run(&chain, patient);
        for hop in hops {
            let passed = matches!(hop.large, HopOutcome::Expired(_) | HopOutcome::Delivered);
            let beyond = fault.is_some_and(|(behind, _)| behind < hop.ttl && behind <= routers);
            prop_assert!(!(passed && beyond));
        }
    }
}

/// A router that answers six times at once, and then once a second, as Linux does to each host.
#[derive(Debug, Clone)]
struct Limited {
    tokens: f64,
    at: Duration,
}

impl Limited {
    fn answers(&mut self, now: Duration) -> bool {
        self.tokens = (self.tokens + (now - self.at).as_secs_f64()).min(6.0);
        self.at = now;
        let answers = self.tokens >= 1.0;
        self.tokens -= if answers { 1.0 } else { 0.0 };
        answers
    }
}

#[test]
fn the_first_of_many_traces_know_which_routers_receive_large_packets() {
    // Three routers; behind the second, large packets vanish. Answers take 5 ms, and a turn sends all that it can.
    let mut traces = Traces::new(TraceConfig { hops: 16, patient: true }, [4; 24]);
    let mut routers = vec![Limited { tokens: 6.0, at: Duration::ZERO }; 3];
    let mut arriving: Vec<(Duration, usize, u32, HopOutcome)> = vec![];
    let mut now = Duration::from_secs(1);
    while !traces.done() {
        assert!(now < Duration::from_secs(30));
        while let Some((index, probe)) = traces.poll(now) {
            let lost = probe.size == TraceSize::Large && probe.ttl > 2;
            let outcome = match probe.ttl {
                _ if lost => continue,
                4.. => HopOutcome::Delivered,
                ttl if routers[usize::from(ttl) - 1].answers(now) => HopOutcome::Expired(router(ttl)),
                _ => continue,
            };
            arriving.push((now + Duration::from_millis(5), index, probe.number, outcome));
        }
        let next = arriving.iter().map(|each| each.0).chain(traces.deadline()).min();
        now = next.map_or(now, |next| next.max(now));
        for (_, index, number, outcome) in arriving.extract_if(.., |each| each.0 <= now) {
            traces.on_outcome(now, index, number, outcome);
        }
    }
    let known = |hop: &Hop| (hop.small != HopOutcome::Silent, hop.large != HopOutcome::Silent);
    for hops in traces.hops().take(2) {
        assert_eq!(
            hops.iter().map(known).collect::<Vec<_>>(),
            [(true, true), (true, true), (true, false), (true, false)]
        );
    }
    assert!(traces.hops().all(|hops| known(&hops[3]) == (true, false)), "all of them have been asked");
}
