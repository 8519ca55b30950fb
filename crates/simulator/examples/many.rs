//! Many senders to one host, by congestion control: prints goodput, drops and what senders did.
//! `many [senders] [mtu] [buffer bytes] [seconds] [rtt in us] [jitter in us]`

#[path = "../tests/common/mod.rs"]
mod common;
use common::*;
use framegauge_simulator::*;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |place: usize, usual: u64| arguments.get(place).map_or(usual, |text| text.parse().unwrap());
    let (senders, mtu, buffer, seconds) = (number(1, 16), number(2, 1500), number(3, 151_800), number(4, 10));
    for algorithm in [Algorithm::Reno, Algorithm::Cubic, Algorithm::Dctcp] {
        for sack in [true, false] {
            let network = rack(senders as usize + 1, GIGABIT, microseconds(number(5, 100)), buffer);
            let last = host(senders as u16 + 1);
            let flows = (1..=senders as u16).map(|from| Flow::transfer(host(from), last, None)).collect();
            let mut scenario = scenario(network, mtu as u32, flows, milliseconds(1000 * seconds));
            scenario.tcp.algorithm = algorithm;
            scenario.tcp.sack = sack;
            scenario.jitter = microseconds(number(6, 0));
            let outcome = Simulation::new(scenario).unwrap().run();
            assert_conserved(&outcome);
            let rates: Vec<u64> =
                outcome.transfers.iter().map(|transfer| transfer.bytes * 8 / seconds / 1_000_000).collect();
            let sums = outcome.flows.iter().fold(SenderCounts::default(), |mut sum, flow| {
                sum += flow.sender;
                sum
            });
            println!(
                "{algorithm:?} sack {sack}: {:.1} Mb/s, drops {} {rates:?} {sums:?}",
                goodput(&outcome) / 1e6,
                outcome.drops.len()
            );
        }
    }
}
