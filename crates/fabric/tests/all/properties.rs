//! Laws that hold for every input.

use std::collections::{HashMap, HashSet};

use crate::common::{Log, hosts, nanoseconds};
use framegauge_fabric::{
    Aggregate, Counters, Drop, Ecn, Fabric, FabricConfig, HostIndex, LinkConfig, NicConfig, SwitchConfig,
    star,
};
use framegauge_frames::{BitRate, Mtu, Picoseconds, frame_bytes, wire_bytes};
use proptest::prelude::*;

/// A fabric and what its hosts do: each transmission waits so many nanoseconds after the one before.
#[derive(Debug, Clone)]
struct Case {
    config: FabricConfig,
    buffer_bytes: u64,
    port_mtu: Mtu,
    sends: Vec<(u64, u16, Aggregate)>,
    /// How far `advance` jumps, in nanoseconds.
    step: u64,
}

fn sends(hosts: u16) -> impl Strategy<Value = Vec<(u64, u16, Aggregate)>> {
    let one = (0u64..60_000, 0..hosts, 0..hosts, 1u16..8, 42u32..3000, 42u32..3000);
    prop::collection::vec(one, 1..40).prop_map(|sends| {
        let number = |(id, (wait, source, to, frames, captured_bytes, last))| {
            let (id, last_captured_bytes, destination) =
                (id as u32, u32::min(last, captured_bytes), HostIndex(to));
            let flow = u64::from(source) << 16 | u64::from(to);
            let (data, ecn, band) = (true, Ecn::NOT_CAPABLE, 0);
            (
                wait,
                source,
                Aggregate {
                    id,
                    frames,
                    captured_bytes,
                    last_captured_bytes,
                    destination,
                    flow,
                    data,
                    icmp_error: false,
                    ecn,
                    band,
                },
            )
        };
        sends.into_iter().enumerate().map(number).collect()
    })
}

fn case() -> impl Strategy<Value = Case> {
    let links = (1_000_000u64..2_000_000_000, 1_000_000u64..2_000_000_000, 0u64..100_000);
    let sizes = (2u16..6, 64u64..20_000, 600u32..3_000, prop_oneof![Just(0u64), 1u64..100_000]);
    (sizes, links, 1u64..500_000).prop_flat_map(|(sizes, links, step)| {
        let (count, buffer_bytes, port_mtu, moderation) = sizes;
        let link = LinkConfig {
            uplink: BitRate::new(links.0).unwrap(),
            downlink: BitRate::new(links.1).unwrap(),
            delay: nanoseconds(links.2),
        };
        let port_mtu = Mtu::new(port_mtu).unwrap();
        let nic = NicConfig { moderation: nanoseconds(moderation) };
        let config = star(hosts(count.into()), link, SwitchConfig { buffer_bytes, port_mtu }, nic);
        sends(count).prop_map(move |sends| Case {
            config: config.clone(),
            buffer_bytes,
            port_mtu,
            sends,
            step,
        })
    })
}

/// What a case comes to; `watch` sees the fabric after every step.
struct Outcome {
    log: Log,
    drops: Vec<Drop>,
    counters: Counters,
    sent_at: HashMap<u32, (Picoseconds, u16, Aggregate)>,
}

fn run(case: &Case, mut watch: impl FnMut(&Fabric, &Log)) -> Outcome {
    let mut fabric = Fabric::new(&case.config).unwrap();
    let mut log = Log::default();
    let mut now = Picoseconds::ZERO;
    let mut sent_at = HashMap::new();
    for &(wait, source, aggregate) in &case.sends {
        now += nanoseconds(wait);
        fabric.transmit(now, HostIndex(source), aggregate);
        sent_at.insert(aggregate.id, (now, source, aggregate));
        watch(&fabric, &log);
        if wait % 3 == 0 {
            fabric.advance(now, &mut log);
            watch(&fabric, &log);
        }
    }
    while let Some(deadline) = fabric.next_deadline() {
        now = now.max(deadline) + nanoseconds(case.step);
        fabric.advance(now, &mut log);
        watch(&fabric, &log);
    }
    Outcome { log, drops: fabric.take_drops(), counters: fabric.counters(), sent_at }
}

/// `frame_bytes` of one frame of an aggregate.
fn size(aggregate: &Aggregate, frame: u16) -> u32 {
    let last = frame + 1 == aggregate.frames;
    frame_bytes(if last { aggregate.last_captured_bytes } else { aggregate.captured_bytes })
}

proptest! {
    #[test]
    fn every_frame_meets_one_end(case in case()) {
        let outcome = run(&case, |_, _| {});
        let mut ends = HashSet::new();
        let delivered = outcome.log.delivered.iter().map(|&(_, host, id, frame)| (id, frame, Some(host)));
        let discarded = outcome.log.discarded.iter().map(|&(id, frame)| (id, frame, None));
        for (id, frame, host) in delivered.chain(discarded) {
            prop_assert!(ends.insert((id, frame)), "frame {} of {} twice", frame, id);
            let aggregate = outcome.sent_at[&id].2;
            prop_assert!(frame < aggregate.frames);
            prop_assert!(host.is_none_or(|host| host == aggregate.destination));
        }
        let all: usize = case.sends.iter().map(|send| usize::from(send.2.frames)).sum();
        prop_assert_eq!(ends.len(), all);
        prop_assert_eq!(outcome.drops.len(), outcome.log.discarded.len());
    }

    #[test]
    fn a_flow_keeps_its_order(case in case()) {
        let outcome = run(&case, |_, _| {});
        let mut latest = HashMap::new();
        for &(due, _, id, frame) in &outcome.log.delivered {
            let position = (id, frame);
            let flow = outcome.sent_at[&id].2.flow;
            if let Some((earlier, earlier_due)) = latest.insert(flow, (position, due)) {
                prop_assert!(earlier < position && earlier_due <= due);
            }
        }
    }

    #[test]
    fn no_frame_is_early(case in case()) {
        let outcome = run(&case, |_, _| {});
        let [up, down] = [0, 1].map(|port| case.config.ports[port]);
        for &(due, _, id, frame) in &outcome.log.delivered {
            let (began, _, aggregate) = outcome.sent_at[&id];
            let before: Picoseconds = (0..=frame).fold(Picoseconds::ZERO, |sum, frame| {
                sum + up.rate.serialisation(u64::from(wire_bytes(size(&aggregate, frame))))
            });
            let last_hop = down.rate.serialisation(u64::from(wire_bytes(size(&aggregate, frame))));
            // Moderation adds between nothing and all of its time: the timer may have been started by others.
            let earliest = began + before + up.delay + last_hop + down.delay;
            prop_assert!(due >= earliest, "{} before {}", due, earliest);
        }
    }

    #[test]
    fn output_never_exceeds_the_line_rate(mut case in case()) {
        // Without moderation deliveries are departures, one delay later.
        case.config.nic = NicConfig::default();
        let outcome = run(&case, |_, _| {});
        let rate = case.config.ports[1].rate;
        let mut by_host: HashMap<HostIndex, Vec<(Picoseconds, u64)>> = HashMap::new();
        for &(due, host, id, frame) in &outcome.log.delivered {
            let wire = wire_bytes(size(&outcome.sent_at[&id].2, frame));
            by_host.entry(host).or_default().push((due, u64::from(wire)));
        }
        for departures in by_host.values() {
            for (index, (begin, _)) in departures.iter().enumerate() {
                let mut bytes = 0;
                for (end, wire) in &departures[index + 1..] {
                    bytes += wire;
                    prop_assert!(*end - *begin >= rate.serialisation(bytes));
                }
            }
        }
    }

    #[test]
    fn interrupts_keep_their_distance(case in case()) {
        let outcome = run(&case, |_, _| {});
        for (host, &counted) in outcome.counters.interrupts.iter().enumerate() {
            let of_host = |interrupt: &&(Picoseconds, HostIndex, usize)| usize::from(interrupt.1.0) == host;
            let due: Vec<_> = outcome.log.interrupts.iter().filter(of_host).map(|told| told.0).collect();
            prop_assert_eq!(due.len() as u64, counted);
            prop_assert!(due.windows(2).all(|pair| pair[1] - pair[0] >= case.config.nic.moderation));
        }
    }

    #[test]
    fn buffers_keep_their_limits(case in case()) {
        let outcome = run(&case, |_, _| {});
        for port in outcome.counters.ports.iter().skip(1).step_by(2) {
            prop_assert!(port.peak_queue_bytes <= case.buffer_bytes);
        }
        for drop in &outcome.drops {
            prop_assert!(drop.queue_bytes <= case.buffer_bytes);
            let giant = drop.frame_bytes > case.port_mtu.frame_bytes();
            prop_assert_eq!(giant, drop.reason.name() == "giant");
            let full = drop.queue_bytes + u64::from(drop.frame_bytes) > case.buffer_bytes;
            prop_assert!(giant || full, "dropped with room");
        }
    }

    #[test]
    fn ports_conserve_frames_at_every_moment(case in case()) {
        let mut failure = None;
        let outcome = run(&case, |fabric, _| {
            for (port, counted) in fabric.counters().ports.iter().enumerate() {
                let frames = counted.sent_frames + counted.dropped_frames + counted.queued_frames;
                let bytes = counted.sent_bytes + counted.dropped_bytes + counted.queued_bytes;
                if (counted.received_frames, counted.received_bytes) != (frames, bytes) {
                    failure = Some((port, *counted));
                }
            }
        });
        prop_assert_eq!(failure, None);
        let sum = |of: fn(&framegauge_fabric::PortCounters) -> u64, parity: usize| -> u64 {
            outcome.counters.ports.iter().skip(parity).step_by(2).map(of).sum()
        };
        prop_assert_eq!(sum(|port| port.sent_frames, 0), sum(|port| port.received_frames, 1));
        prop_assert_eq!(sum(|port| port.sent_frames, 1) as usize, outcome.log.delivered.len());
        prop_assert_eq!(sum(|port| port.dropped_frames, 1) as usize, outcome.log.discarded.len());
    }

    #[test]
    fn the_backlog_is_what_the_uplink_holds(case in case()) {
        let mut failure = None;
        run(&case, |fabric, _| {
            let ports = fabric.counters().ports;
            for host in 0..fabric.hosts() {
                let queued = ports[2 * host].queued_frames;
                let backlog = fabric.uplink_backlog_bytes(HostIndex(host as u16));
                let wire = ports[2 * host].queued_bytes + 20 * queued;
                // All of what waits and a part of what is being sent; rounding adds a picosecond a frame.
                if backlog > wire + 1 || (queued == 0) != (backlog == 0) {
                    failure = Some((host, backlog, wire));
                }
            }
        });
        prop_assert_eq!(failure, None);
    }

    /// How the caller slices time changes nothing, and neither does running twice.
    #[test]
    fn the_outcome_is_determined(case in case(), other_step in 1u64..500_000) {
        let first = run(&case, |_, _| {});
        let again = run(&Case { step: other_step, ..case }, |_, _| {});
        prop_assert_eq!(&first.log, &again.log);
        prop_assert_eq!(&first.drops, &again.drops);
        prop_assert_eq!(first.counters.ports, again.counters.ports);
    }
}
