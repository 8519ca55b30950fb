//! What the tests of the fabric share.

use framegauge_fabric::{
    Aggregate, CoDelConfig, Ecn, Fabric, FabricConfig, FqCoDelConfig, HostConfig, HostIndex, Limit,
    LinkConfig, NicConfig, PortEvent, PortIndex, QueueConfig, RedConfig, SfqConfig, Sink, SwitchConfig, star,
};
use framegauge_frames::{BitRate, Mtu, Picoseconds};
use proptest::prelude::*;

/// Everything a fabric tells.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Log {
    /// Due, host, aggregate, frame.
    pub delivered: Vec<(Picoseconds, HostIndex, u32, u16)>,
    /// Due, host, frames handed over.
    pub interrupts: Vec<(Picoseconds, HostIndex, usize)>,
    /// Aggregate, frame.
    pub discarded: Vec<(u32, u16)>,
    /// Aggregate, frame.
    pub marked: Vec<(u32, u16)>,
    /// Output port of a switch, input port, wait.
    pub waits: Vec<(PortIndex, PortIndex, Picoseconds)>,
    /// At ports that are watched.
    pub seen: Vec<PortEvent>,
}

impl Sink for Log {
    fn deliver(&mut self, host: HostIndex, frames: &[(u32, u16)], due: Picoseconds) {
        assert!(!frames.is_empty());
        self.interrupts.push((due, host, frames.len()));
        self.delivered.extend(frames.iter().map(|&(aggregate, frame)| (due, host, aggregate, frame)));
    }

    fn mark(&mut self, aggregate: u32, frame: u16) {
        self.marked.push((aggregate, frame));
    }

    fn discard(&mut self, aggregate: u32, frame: u16) {
        self.discarded.push((aggregate, frame));
    }

    fn seen(&mut self, event: &PortEvent) {
        self.seen.push(*event);
    }

    fn waited(&mut self, port: PortIndex, input_port: PortIndex, wait: Picoseconds) {
        self.waits.push((port, input_port, wait));
    }
}

pub fn gigabit() -> BitRate {
    BitRate::new(1_000_000_000).unwrap()
}

pub fn nanoseconds(nanoseconds: u64) -> Picoseconds {
    Picoseconds::from_nanoseconds(nanoseconds)
}

pub fn hosts(count: usize) -> Vec<HostConfig> {
    (1..=count).map(|host| HostConfig { name: format!("h{host}") }).collect()
}

pub fn rack_config(count: usize, delay: u64, buffer_bytes: u64, port_mtu: u32) -> FabricConfig {
    let link = LinkConfig::symmetric(gigabit(), nanoseconds(delay));
    let switch = SwitchConfig { buffer_bytes, port_mtu: Mtu::new(port_mtu).unwrap() };
    star(hosts(count), link, switch, NicConfig::default())
}

/// Hosts at 1 Gb/s; the delay of a link in nanoseconds.
pub fn rack(count: usize, delay: u64, buffer_bytes: u64, port_mtu: u32) -> Fabric {
    Fabric::new(&rack_config(count, delay, buffer_bytes, port_mtu)).unwrap()
}

/// Two hosts; delay and moderation in nanoseconds.
pub fn pair(delay: u64, buffer_bytes: u64, moderation: u64) -> Fabric {
    let mut config = rack_config(2, delay, buffer_bytes, 9216);
    config.nic = NicConfig { moderation: nanoseconds(moderation) };
    Fabric::new(&config).unwrap()
}

/// An aggregate of equal frames whose flow is its id.
pub fn aggregate(id: u32, frames: u16, captured_bytes: u32, destination: u16) -> Aggregate {
    Aggregate {
        id,
        frames,
        captured_bytes,
        last_captured_bytes: captured_bytes,
        destination: HostIndex(destination),
        flow: u64::from(id),
        data: true,
        icmp_error: false,
        ecn: Ecn::NOT_CAPABLE,
        band: 0,
    }
}

/// Lets everything happen by then, event by event: nothing is delivered before any bound that was ever given for it.
pub fn advance_by_events(fabric: &mut Fabric, log: &mut Log, until: Picoseconds) {
    let mut bound = Picoseconds::ZERO;
    while let Some(deadline) = fabric.next_deadline().filter(|deadline| *deadline <= until) {
        bound = fabric.next_delivery(Picoseconds::ZERO).map_or(bound, |next| bound.max(next));
        let told = log.delivered.len();
        fabric.advance(deadline, log);
        for delivery in &log.delivered[told..] {
            assert!(delivery.0 >= bound, "{delivery:?} before {bound}");
        }
    }
}

/// Any discipline, for 1 Gb/s.
pub fn any_queue() -> impl Strategy<Value = QueueConfig> {
    let limit = Limit::Bytes(9_000);
    let (target, interval) = (nanoseconds(20_000), nanoseconds(200_000));
    let codel = move |ecn| CoDelConfig { limit_bytes: 9_000, target, interval, ecn };
    let red = move |ecn, seed| RedConfig {
        limit,
        minimum: 2_000.0,
        maximum: 6_000.0,
        weight: 0.2,
        most_probability: 0.3,
        gentle: true,
        ecn,
        mean_frame_bytes: 1_518,
        mean_frame_time: nanoseconds(12_304),
        seed,
    };
    let sfq =
        SfqConfig { limit_bytes: 9_000, buckets: 4, quantum_bytes: 2_000, perturbation: interval, seed: 1 };
    prop_oneof![
        Just(QueueConfig::Taildrop { limit }),
        any::<u64>().prop_map(move |seed| QueueConfig::RandomDrop { limit, seed }),
        Just(QueueConfig::Step { limit_bytes: 9_000, threshold_bytes: 3_000 }),
        (any::<bool>(), any::<u64>()).prop_map(move |(ecn, seed)| QueueConfig::Red(red(ecn, seed))),
        Just(QueueConfig::Sfq(sfq)),
        any::<bool>().prop_map(move |ecn| QueueConfig::CoDel(codel(ecn))),
        any::<bool>().prop_map(move |ecn| QueueConfig::FqCoDel(FqCoDelConfig {
            codel: codel(ecn),
            buckets: 4,
            quantum_bytes: 300,
            seed: 1
        })),
    ]
}
