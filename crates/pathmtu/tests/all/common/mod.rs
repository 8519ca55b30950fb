//! A network in virtual time under the search: true path MTU by flow, loss both ways, delay that reorders, duplicates.

use framegauge_pathmtu::{Config, FlowReport, Next, Report, Search, Told};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// splitmix64 (G. Steele et al., 2014): the same everywhere.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn chance(&mut self, share: f64) -> bool {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64 <= share && share > 0.0
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}

/// What the network does.
#[derive(Debug, Clone)]
pub struct Network {
    /// By flow, the largest packet that passes.
    pub mtus: Vec<u32>,
    /// Share of packets lost each way.
    pub loss: f64,
    /// Share of acknowledgements that come twice.
    pub duplicates: f64,
    /// Least and most time there and back.
    pub delay: (Duration, Duration),
    /// Share of acknowledgements that come a second late.
    pub late: f64,
    /// A router that says so.
    pub router: bool,
    /// How long answers on other paths took.
    pub elsewhere: Duration,
    pub seed: u64,
}

enum Event {
    Delivered { flow: u16, number: u32, bytes: u32 },
    TooBig { flow: u16, number: u32, mtu: u32 },
}

/// Runs a search to its end; the report, and how long it took.
pub fn run(config: Config, network: &Network) -> (Report, Duration) {
    let mut search = Search::new(config);
    search.on_answer_elsewhere(network.elsewhere);
    let mut random = Random(network.seed);
    let mut events: Vec<Option<Event>> = Vec::new();
    let mut due: BinaryHeap<Reverse<(Duration, usize)>> = BinaryHeap::new();
    let mut now = Duration::from_secs(3);
    let begun = now;
    let router = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    loop {
        assert!(now < begun + Duration::from_secs(120), "no end: {:?}", search.report());
        let until = match search.poll(now, true) {
            Next::Done => return (search.report(), now - begun),
            Next::Wait(until) => until,
            Next::Send { flow, number, bytes } => {
                let mut plan = |event: Event, random: &mut Random| {
                    let spread = (network.delay.1 - network.delay.0).as_nanos() as u64;
                    let mut at = now + network.delay.0 + Duration::from_nanos(random.below(spread + 1));
                    if random.chance(network.late) {
                        at += Duration::from_secs(1);
                    }
                    due.push(Reverse((at, events.len())));
                    events.push(Some(event));
                };
                let mtu = network.mtus[usize::from(flow)];
                let lost = random.chance(network.loss) || random.chance(network.loss);
                if lost {
                    continue;
                }
                if bytes <= mtu {
                    let twice = random.chance(network.duplicates);
                    for _ in 0..=usize::from(twice) {
                        plan(Event::Delivered { flow, number, bytes }, &mut random);
                    }
                } else if network.router {
                    plan(Event::TooBig { flow, number, mtu }, &mut random);
                }
                continue;
            }
        };
        match due.peek() {
            Some(Reverse((at, _))) if *at <= until => {
                let Some(Reverse((at, event))) = due.pop() else { unreachable!() };
                now = now.max(at);
                match events[event].take() {
                    Some(Event::Delivered { flow, number, bytes }) => {
                        search.on_delivered(now, flow, number, bytes, None);
                    }
                    Some(Event::TooBig { flow, number, mtu }) => {
                        search.on_too_big(now, flow, number, Told { by: Some(router), mtu_bytes: Some(mtu) });
                    }
                    None => {}
                }
            }
            _ => now = now.max(until),
        }
    }
}

pub fn config(target: u32, flows: u16) -> Config {
    let patience = Duration::from_secs(60);
    Config {
        target,
        flows,
        exact: true,
        false_claim: 1e-10,
        controls_a_probe: 3,
        in_flight_bytes: 96 * 1024,
        patience,
        gap: Duration::ZERO,
        seed: 1,
    }
}

pub fn quiet(mtus: Vec<u32>) -> Network {
    let delay = (Duration::from_micros(200), Duration::from_micros(400));
    Network {
        mtus,
        loss: 0.0,
        duplicates: 0.0,
        delay,
        late: 0.0,
        router: false,
        elsewhere: Duration::ZERO,
        seed: 1,
    }
}

pub fn mtus(report: &Report) -> Vec<Option<u32>> {
    report.flows.iter().map(|flow: &FlowReport| flow.path_mtu_bytes).collect()
}
