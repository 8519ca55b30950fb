//! Frames a CPU second through two ports: `cargo run --release -p framegauge-fabric --example speed`.
#![allow(clippy::disallowed_methods, reason = "a measurement needs a clock; the crate itself has none")]

use std::time::Instant;

use framegauge_fabric::{
    Aggregate, Ecn, Fabric, HostConfig, HostIndex, LinkConfig, NicConfig, Sink, SwitchConfig, star,
};
use framegauge_frames::{BitRate, Mtu, Picoseconds};

#[derive(Default)]
struct Count {
    delivered: u64,
    discarded: u64,
}

impl Sink for Count {
    fn deliver(&mut self, _host: HostIndex, frames: &[(u32, u16)], _due: Picoseconds) {
        self.delivered += frames.len() as u64;
    }

    fn discard(&mut self, _aggregate: u32, _frame: u16) {
        self.discarded += 1;
    }
}

/// Every host but the last sends to the last, in aggregates of 44 frames.
fn run(hosts: u16, moderation: Picoseconds) -> Result<(), Box<dyn std::error::Error>> {
    const FRAMES: u64 = 10_000_000;
    let link = LinkConfig::symmetric(BitRate::new(1_000_000_000)?, Picoseconds::from_nanoseconds(50_000));
    let switch = SwitchConfig { buffer_bytes: 524_288, port_mtu: Mtu::new(9216)? };
    let names = (1..=hosts).map(|host| HostConfig { name: format!("h{host}") }).collect();
    let mut fabric = Fabric::new(&star(names, link, switch, NicConfig { moderation }))?;
    let mut count = Count::default();

    let began = Instant::now();
    let mut now = Picoseconds::ZERO;
    let mut id = 0;
    while count.delivered + count.discarded < FRAMES {
        for source in (0..hosts - 1).map(HostIndex) {
            while fabric.uplink_backlog_bytes(source) < 131_072 {
                let aggregate = Aggregate {
                    id,
                    frames: 44,
                    captured_bytes: 1514,
                    last_captured_bytes: 1514,
                    destination: HostIndex(hosts - 1),
                    flow: u64::from(source.0),
                    data: true,
                    icmp_error: false,
                    ecn: Ecn::NOT_CAPABLE,
                    band: 0,
                };
                fabric.transmit(now, source, aggregate);
                id += 1;
            }
        }
        now += Picoseconds::from_nanoseconds(100_000);
        fabric.advance(now, &mut count);
        fabric.take_drops();
    }
    let seconds = began.elapsed().as_secs_f64();
    let frames = count.delivered + count.discarded;
    println!(
        "{hosts} hosts, moderation {moderation}: {:.1} M frames/s, {} delivered, {} dropped",
        frames as f64 / seconds / 1e6,
        count.delivered,
        count.discarded
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(2, Picoseconds::ZERO)?;
    run(2, Picoseconds::from_nanoseconds(50_000))?;
    run(17, Picoseconds::ZERO)
}
