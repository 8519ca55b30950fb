//! Networks in which nothing is dropped, because who sends too much is paused.

use crate::common::{Log, aggregate, gigabit, hosts, nanoseconds, rack_config};
use framegauge_fabric::{
    Act, Fabric, FabricConfig, Graph, HostIndex, Impairments, LinkConfig, LosslessConfig, NicConfig,
    NodeIndex, PortChange, PortConfig, PortIndex, QueueConfig, Routing, Rule, Script, SharedBufferConfig,
    SwitchConfig, star,
};
use framegauge_frames::{BitRate, Mtu, Picoseconds, wire_bytes};
use proptest::prelude::*;

/// A full frame of MTU 1500 at 1 Gb/s.
const T: u64 = 12_304;

/// Makes a network lossless: ports have no limits of their own.
fn lossless(mut config: FabricConfig, bytes: u64, largest: u32, headroom_bytes: Option<u64>) -> FabricConfig {
    for port in &mut config.ports {
        port.queue = QueueConfig::taildrop(u64::MAX);
    }
    let lossless = Some(LosslessConfig { frame_bytes: largest, headroom_bytes });
    config.shared_buffer = Some(SharedBufferConfig { bytes, alpha: 1.0, lossless });
    config
}

/// What all links of a network need besides a full frame each, by the message of a buffer that is too small.
fn needed_bytes(config: &FabricConfig) -> u64 {
    let mut small = config.clone();
    let shared = small.shared_buffer.unwrap();
    small.shared_buffer = Some(SharedBufferConfig { bytes: 64, ..shared });
    let said = small.check().unwrap_err().to_string();
    let number = said.split("expected ").nth(1).unwrap().split(' ').next().unwrap();
    number.parse().unwrap()
}

/// Sends so many frames each from these hosts to those, and lets all of it happen.
fn drained(
    config: &FabricConfig,
    sends: &[(u16, u16, u32, u16)],
    mut watch: impl FnMut(&Fabric),
) -> (Fabric, Log) {
    let mut fabric = Fabric::new(config).unwrap();
    let mut log = Log::default();
    for (id, (from, frames, captured, to)) in sends.iter().enumerate() {
        fabric.transmit(Picoseconds::ZERO, HostIndex(*from), aggregate(id as u32, *frames, *captured, *to));
    }
    while let Some(deadline) = fabric.next_deadline() {
        fabric.advance(deadline, &mut log);
        watch(&fabric);
    }
    (fabric, log)
}

#[test]
fn the_headroom_is_what_the_standard_says() {
    // Links of 10 us at 1 Gb/s, frames of 1518 bytes, 1538 on the wire. A PAUSE waits for one of these and takes 84 bytes
    // itself; two links are 2 x 1250 bytes and 614.4 ns are 76.8. Of 4198.8, rounded up, 1518 / 1538 are frames: 4145
    // bytes, and there are the frame over the threshold and the last one. A full frame more makes 8699 for each link.
    let config = lossless(rack_config(3, 10_000, 0, 1500), 1 << 20, 1518, None);
    assert_eq!(needed_bytes(&config), 3 * (4145 + 2 * 1518 + 1518));
    let small = lossless(rack_config(3, 10_000, 0, 1500), 26_096, 1518, None);
    let expected = "shared buffer: found 26096 bytes, expected 26097 or more: headroom and a full frame of the 3 links to switch";
    assert_eq!(small.check().unwrap_err().to_string(), expected);
    // By the largest frame that a port lets pass.
    assert_eq!(needed_bytes(&lossless(rack_config(3, 10_000, 0, 1500), 1 << 20, 9018, None)), 26_097);
    assert!(needed_bytes(&lossless(rack_config(3, 10_000, 0, 9000), 1 << 20, 9018, None)) > 3 * 3 * 9018);
}

#[test]
fn two_senders_of_one_output_are_paused_half_of_the_time() {
    let sends = [(0, 4000, 1514, 2), (1, 4000, 1514, 2)];
    let config = lossless(rack_config(3, 1000, 0, 1500), 60_000, 1518, None);
    let (mut fabric, log) = drained(&config, &sends, |_| {});
    assert_eq!((log.delivered.len(), log.discarded.len()), (8000, 0));
    assert!(fabric.take_drops().is_empty());
    // The output never idles: the first frame arrives after T and a link, the last one 8000 T and another link later.
    let end = log.delivered.last().unwrap().0;
    assert_eq!(end, nanoseconds(8001 * T + 2000));
    let ports = fabric.counters().ports;
    let span = (8000 * T) as f64 * 1e-9;
    for (up, down) in [(0, 1), (2, 3)] {
        // Each has sent half of the time: 4000 T.
        assert_eq!(ports[up].busy, nanoseconds(4000 * T));
        let share = ports[up].paused.as_seconds_f64() / span;
        // A frame that has begun is finished in each pause; at the end one may send alone for what the buffer holds.
        let finished = (ports[down].pauses_sent * T) as f64 * 1e-9 / span;
        assert!(share > 0.48 && share < 0.5 + finished + 0.01, "{share}, {finished}");
        assert!(ports[down].pauses_sent > 100);
        assert_eq!(ports[down].busy, nanoseconds(2 * 672 * ports[down].pauses_sent));
        assert_eq!(ports[up].pauses_sent, 0);
    }
    assert_eq!((ports[5].paused, ports[5].peak_queue_bytes <= 60_000), (Picoseconds::ZERO, true));
}

#[test]
fn a_pause_stops_the_sender_when_the_standard_says() {
    // One frame is over the threshold of a buffer that is all headroom but a frame per link: 9018 at 1 Gb/s, sent to a host
    // at 100 Mb/s. h1's second frame arrives at 2 T; the switch has free 3 x 1518 less the first, which is more than 1518;
    // the third, at 3 T, finds 1518 free and 3036 held: it is over. The PAUSE is 672 ns long, the response 614.4 ns:
    // h1 has begun its fourth at 3 T and finishes it at 4 T, and then waits.
    let mut config = lossless(rack_config(3, 0, 0, 1500), 1 << 20, 1518, None);
    config.ports[5].rate = BitRate::new(100_000_000).unwrap();
    config.shared_buffer.as_mut().unwrap().bytes = needed_bytes(&config);
    let mut fabric = Fabric::new(&config).unwrap();
    let mut log = Log::default();
    fabric.transmit(Picoseconds::ZERO, HostIndex(0), aggregate(0, 10, 1514, 2));
    fabric.advance(nanoseconds(3 * T - 1), &mut log);
    assert_eq!(fabric.counters().ports[1].pauses_sent, 0);
    fabric.advance(nanoseconds(3 * T), &mut log);
    assert_eq!(fabric.counters().ports[1].pauses_sent, 1);
    // 30 T is before the first three have left, at 10 T each: the headroom is not empty.
    let until = nanoseconds(10 * T);
    fabric.advance(until, &mut log);
    let up = fabric.counters().ports[0];
    assert_eq!((up.sent_frames, up.queued_frames), (4, 6));
    assert_eq!(up.paused, until - nanoseconds(3 * T + 672) - Picoseconds::new(614_400));
    assert_eq!(up.busy, nanoseconds(4 * T));
    // It has stood still since 4 T, and 6 frames are to come.
    assert_eq!(fabric.uplink_held_back(HostIndex(0)), nanoseconds(6 * T));
    assert_eq!(fabric.uplink_backlog(HostIndex(0)), nanoseconds(6 * T));
}

#[test]
fn a_flow_to_an_idle_port_is_slowed_by_its_neighbour() {
    // h1 sends in turn to h3, which h2 and h5 send to as well, and to h4, which nobody else does. Pauses know no flows: h1
    // gets a third of h3's link and, as its frames alternate, no more of h4's, which could carry all that h1 sends there.
    let alternating = (0..4000).map(|n| (0, 1, 1514, 2 + n % 2));
    let sends: Vec<_> = alternating.chain([(1, 8000, 1514, 2), (4, 8000, 1514, 2)]).collect();
    let last_at_h4 = |config: &FabricConfig| {
        let (fabric, log) = drained(config, &sends, |_| {});
        let at_h4 = log.delivered.iter().filter(|each| each.1 == HostIndex(3)).map(|each| each.0);
        (at_h4.max().unwrap(), fabric.counters().ports[5].dropped_frames)
    };
    let own = rack_config(5, 1000, 60_000, 1500);
    let (alone, dropped) = last_at_h4(&own);
    assert_eq!((alone, dropped > 1000), (nanoseconds(4001 * T + 2000), true));
    let (slowed, dropped) = last_at_h4(&lossless(own, 400_000, 1518, None));
    assert_eq!(dropped, 0);
    // A third of the rate instead of half of it.
    let factor = slowed.as_seconds_f64() / alone.as_seconds_f64();
    assert!((1.4..1.6).contains(&factor), "{factor}");
}

/// How many frames are dropped at most where h1 sends to h3, whose link is slow, and frames for h1 are always on the way back,
/// with a headroom that is so much smaller.
fn tight(mtu: u32, less: u64) -> usize {
    let largest = mtu + 18;
    let link = LinkConfig::symmetric(gigabit(), nanoseconds(20_000));
    let switch = SwitchConfig { buffer_bytes: 0, port_mtu: Mtu::new(mtu).unwrap() };
    let mut config = star(hosts(3), link, switch, NicConfig::default());
    let headroom = needed_bytes(&lossless(config.clone(), 1 << 20, largest, None)) / 3 - u64::from(largest);
    config.ports[5].rate = BitRate::new(10_000_000).unwrap();
    let config = lossless(config, 1 << 20, largest, Some(headroom - less));
    // h2 sends to h1, in its own time: frames begin at h1's port as the PAUSE is to be sent.
    let mut most = 0;
    for phase in 0..12 {
        let mut fabric = Fabric::new(&config).unwrap();
        let mut log = Log::default();
        let serialisation = gigabit().serialisation(u64::from(wire_bytes(largest)));
        fabric.transmit(Picoseconds::ZERO, HostIndex(0), aggregate(0, 400, mtu + 14, 2));
        let later = Picoseconds::new(serialisation.get() * phase / 12);
        fabric.advance(later, &mut log);
        fabric.transmit(later, HostIndex(1), aggregate(1, 400, mtu + 14, 0));
        while let Some(deadline) = fabric.next_deadline() {
            fabric.advance(deadline, &mut log);
        }
        most = most.max(log.discarded.len());
    }
    most
}

#[test]
fn the_headroom_is_not_a_frame_more_than_is_needed() {
    for mtu in [1500, 4000, 9000] {
        assert_eq!(tight(mtu, 0), 0, "{mtu}");
        assert!(tight(mtu, u64::from(mtu) + 18) > 0, "{mtu}");
    }
}

#[test]
fn a_circle_of_full_links_stands_still_for_ever() {
    // Five switches in a ring, a host at each that sends two switches on: every link between switches waits for the next.
    let names = |letter: &str| (1..=5).map(|number| format!("{letter}{number}")).collect::<Vec<_>>();
    let switch = |number: usize| format!("s{}", number % 5 + 1);
    let links: Vec<_> =
        (0..5).flat_map(|n| [(format!("h{}", n + 1), switch(n)), (switch(n), switch(n + 1))]).collect();
    let graph = Graph::custom(&names("h"), &[], &names("s"), &links).unwrap();
    let mtu = Mtu::new(1500).ok();
    let config =
        graph.fabric(Routing::default(), NicConfig::default(), |from, to| plain(from, to, mtu)).unwrap();
    let sends: Vec<_> = (0..5).map(|n| (n, 2000, 1514, (n + 2) % 5)).collect();
    let (mut fabric, log) = drained(&lossless(config, 40_000, 1518, None), &sends, |_| {});
    assert!(fabric.take_drops().is_empty());
    let waiting: u64 = fabric.counters().ports.iter().map(|port| port.queued_frames).sum();
    assert_eq!(log.delivered.len() + waiting as usize, 10_000);
    assert!(waiting > 1000);
}

fn plain(from: NodeIndex, to: NodeIndex, mtu: Option<Mtu>) -> PortConfig {
    PortConfig {
        from,
        to,
        rate: gigabit(),
        delay: Picoseconds::ZERO,
        queue: QueueConfig::taildrop(u64::MAX),
        output_mtu: mtu,
        input_mtu: mtu,
        impairments: Impairments::default(),
    }
}

#[test]
fn what_cannot_work_is_said() {
    let whole = || lossless(rack_config(3, 1000, 0, 1500), 1 << 20, 1518, None);
    let said = |config: FabricConfig| config.check().unwrap_err().to_string();
    let mut config = whole();
    config.ports[3].queue = QueueConfig::taildrop(1000);
    let expected = "shared buffer: found another queue at switch>h2, expected taildrop, step or priority with room for all of it where it is lossless";
    assert_eq!(said(config), expected);
    let mut config = whole();
    config.ports[1].from = config.ports[0].from;
    assert!(said(config).starts_with("shared buffer: found no link back for"));
    let mut config = whole();
    let rules = vec![Rule { frames: vec![1], at_least_bytes: 0, act: Act::Hold(nanoseconds(1)) }];
    config.scripts.push(Script { port: PortIndex(2), rules });
    assert_eq!(
        said(config),
        "shared buffer: found a script that holds frames of h2>switch, expected none where it is lossless"
    );
    assert_eq!(
        said(lossless(rack_config(3, 0, 0, 1500), 1 << 20, 63, None)),
        "shared buffer: found frames of 63 bytes, expected 64 or more"
    );
    let mut fabric = Fabric::new(&whole()).unwrap();
    let change = PortChange { up: Some(false), ..PortChange::default() };
    let refused = fabric.change(Picoseconds::ZERO, PortIndex(1), change, &mut Log::default()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "shared buffer: found a change, expected none while the network is lossless"
    );
}

/// A network without circles: a star, a dumbbell or a fat tree, with links of its own.
#[derive(Debug, Clone)]
struct Case {
    config: FabricConfig,
    sends: Vec<(u64, u16, u16, u32, u16)>,
}

fn case() -> impl Strategy<Value = Case> {
    let links = prop::collection::vec((6u32..11, 1u64..10, 0u64..100_000, prop::bool::ANY), 64);
    let network = (0usize..3, 1500u32..9217, 0u64..40_000, 0.1f64..8.0, links, 0u64..5_000);
    let sends = prop::collection::vec((0u64..200_000, 0u16..16, 1u16..60, 60u32..9_300, 0u16..16), 1..40);
    (network, sends).prop_map(|((shape, mtu, more, alpha, links, jitter), sends)| {
        let (count, graph) = match shape {
            0 => (5, Graph::rack(&names(5), 1)),
            1 => (6, Graph::dumbbell(&names(6), 3)),
            _ => (16, Graph::fat_tree(&names(16), 4)),
        };
        let mtu = Mtu::new(mtu).unwrap();
        let mut config = graph
            .unwrap()
            .fabric(Routing::default(), NicConfig::default(), |from, to| plain(from, to, Some(mtu)))
            .unwrap();
        for (port, (digits, first, delay, tagged)) in config.ports.iter_mut().zip(links.iter().cycle()) {
            port.rate = BitRate::new(first * 10_u64.pow(*digits)).unwrap();
            port.delay = nanoseconds(*delay);
            port.impairments.tagged = *tagged;
            port.impairments.jitter = nanoseconds(jitter);
        }
        let mut config = lossless(config, u64::MAX >> 1, mtu.frame_bytes(), None);
        let needed = needed_bytes(&config);
        let shared = config.shared_buffer.as_mut().unwrap();
        (shared.bytes, shared.alpha) = (needed + more, alpha);
        let fits = |captured: u32| captured.min(mtu.frame_bytes() - 4);
        let sends = sends.into_iter().map(|(wait, from, frames, captured, to)| {
            (wait, from % count, frames, fits(captured), to % count)
        });
        Case { config, sends: sends.collect() }
    })
}

fn names(count: usize) -> Vec<String> {
    (1..=count).map(|host| format!("h{host}")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn nothing_is_ever_dropped(case in case()) {
        let mut fabric = Fabric::new(&case.config).unwrap();
        let (mut log, mut now, mut sent) = (Log::default(), Picoseconds::ZERO, 0);
        let hosts = fabric.hosts();
        let law = |fabric: &Fabric| {
            let ports = fabric.counters().ports;
            ports.iter().all(|port| {
                port.received_frames == port.sent_frames + port.dropped_frames + port.queued_frames
                    && port.received_bytes == port.sent_bytes + port.dropped_bytes + port.queued_bytes
            })
        };
        for (id, (wait, from, frames, captured, to)) in case.sends.iter().enumerate() {
            now += nanoseconds(*wait);
            fabric.advance(now, &mut log);
            fabric.transmit(now, HostIndex(*from), aggregate(id as u32, *frames, *captured, *to));
            prop_assert!(law(&fabric));
            sent += usize::from(*frames);
        }
        while let Some(deadline) = fabric.next_deadline() {
            fabric.advance(deadline, &mut log);
        }
        prop_assert!(law(&fabric));
        prop_assert_eq!(log.discarded.len(), 0);
        // Without circles nobody waits for ever.
        prop_assert_eq!(log.delivered.len(), sent);
        prop_assert!(fabric.take_drops().is_empty());
        for host in 0..hosts {
            prop_assert_eq!(fabric.uplink_backlog(HostIndex(host as u16)), Picoseconds::ZERO);
        }
        let ports = fabric.counters().ports;
        prop_assert!(ports.iter().all(|port| port.queued_frames == 0));
    }

    /// How the caller slices time changes nothing, and neither does who watches.
    #[test]
    fn the_outcome_is_determined(case in case(), step in 1u64..500_000) {
        let run = |step: Option<u64>| {
            let mut fabric = Fabric::new(&case.config).unwrap();
            let (mut log, mut now) = (Log::default(), Picoseconds::ZERO);
            if step.is_some() {
                (0..fabric.ports()).for_each(|port| fabric.watch(PortIndex(port as u16), true));
            }
            for (id, (wait, from, frames, captured, to)) in case.sends.iter().enumerate() {
                let next = now + nanoseconds(*wait);
                while let Some(step) = step && now + nanoseconds(step) < next {
                    now += nanoseconds(step);
                    fabric.advance(now, &mut log);
                }
                now = next;
                fabric.advance(now, &mut log);
                fabric.transmit(now, HostIndex(*from), aggregate(id as u32, *frames, *captured, *to));
            }
            while let Some(deadline) = fabric.next_deadline() {
                now = now.max(deadline) + nanoseconds(step.unwrap_or(0));
                fabric.advance(now, &mut log);
            }
            (log.delivered, log.waits, fabric.counters().ports)
        };
        let ((delivered, waits, ports), (same, again, others)) = (run(None), run(Some(step)));
        prop_assert_eq!(delivered, same);
        prop_assert_eq!(waits, again);
        for (port, other) in ports.iter().zip(&others) {
            prop_assert_eq!((port.sent_frames, port.pauses_sent), (other.sent_frames, other.pauses_sent));
            prop_assert_eq!((port.busy, port.peak_queue_bytes), (other.busy, other.peak_queue_bytes));
        }
    }
}
