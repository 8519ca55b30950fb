//! Laws of TCP and queues that a simulation must keep.

use crate::common::{
    GIGABIT, assert_conserved, host, microseconds, milliseconds, rack, rate_between, scenario,
};
use framegauge_fabric::{Impairments, QueueConfig};
use framegauge_frames::Picoseconds;
use framegauge_simulator::{
    Algorithm, Flow, Hystart, Nagle, Outcome, Repeat, Requests, Scenario, Simulation, Step,
};
use framegauge_traffic::Arrivals;

fn run(scenario: Scenario) -> Outcome {
    let outcome = Simulation::new(scenario).unwrap().run();
    assert_conserved(&outcome);
    outcome
}

fn near(found: f64, known: f64, tolerance: f64) {
    assert!((found / known - 1.0).abs() <= tolerance, "found {found}, known {known}");
}

#[test]
fn a_closed_window_limits_the_rate_to_one_per_round_trip() {
    let network = rack(2, GIGABIT, milliseconds(20), 512_000);
    let mut scenario =
        scenario(network, 1500, vec![Flow::transfer(host(1), host(2), None)], milliseconds(4000));
    // 40 segments of 1460: the window is announced in whole segments of the MSS.
    scenario.tcp.receive_window_bytes = (58_400, 58_400);
    // Bursts would wait for a third of the window.
    scenario.tcp.gso_bytes = 0;
    scenario.sample_interval = milliseconds(1000);
    let rate = rate_between(&run(scenario), 1000, 4000);

    near(rate, 8.0 * 40.0 * 1448.0 / 0.02, 0.02);
}

#[test]
fn a_reno_flow_fills_a_link_whose_buffer_holds_a_round_trip() {
    // 100 Mb/s and 20 ms: 250 kB under way.
    let mut network = rack(2, 100_000_000, milliseconds(20), 260_000);
    // The host's own link is faster, so that the queue is the switch's.
    network.ports[0].rate = framegauge_frames::BitRate::new(GIGABIT).unwrap();
    let mut scenario =
        scenario(network, 1500, vec![Flow::transfer(host(1), host(2), None)], milliseconds(60_000));
    scenario.tcp.algorithm = Algorithm::Reno;
    scenario.sample_interval = milliseconds(10_000);
    let outcome = run(scenario);
    assert!(outcome.flows[0].sender.recoveries >= 2, "{:?}", outcome.flows[0]);
    near(rate_between(&outcome, 20_000, 60_000), 1e8 * 1448.0 / 1538.0, 0.002);
}

/// RFC 5681 section 3.1: beyond ssthresh the window grows by a segment per round trip.
#[test]
fn from_the_threshold_on_a_window_grows_by_one_segment_per_round_trip() {
    let network = rack(2, GIGABIT, milliseconds(20), 512_000);
    let flow = Flow::transfer(host(1), host(2), None);
    let mut scenario = scenario(network, 1500, vec![flow], milliseconds(1000));
    scenario.tcp.algorithm = Algorithm::Reno;
    scenario.tcp.delayed_ack = Picoseconds::ZERO;
    scenario.tcp.slow_start_threshold_segments = Some(16);
    scenario.sample_interval = milliseconds(500);
    let rate = rate_between(&run(scenario), 500, 1000);

    // Windows of 40 to 64 segments: those of the round trips from the 25th to the 49th after the first of 10.
    let segments: u32 = (40..65).sum();
    near(rate, 8.0 * 1448.0 * f64::from(segments) / 0.5, 0.04);
}

/// Mathis, Semke, Mahdavi and Ott, "The macroscopic behavior of the TCP congestion avoidance algorithm", 1997: the rate is
/// 1.22 MSS / (RTT √p) where every segment is acknowledged.
#[test]
fn random_loss_gives_the_rate_of_mathis() {
    for loss in [0.0005, 0.002] {
        let mut rates = Vec::new();
        for seed in 1..=4 {
            let mut network = rack(2, GIGABIT, milliseconds(20), 10_000_000);
            network.ports[0].impairments = Impairments { loss, seed, ..Impairments::default() };
            let flow = Flow::transfer(host(1), host(2), None);
            let mut scenario = scenario(network, 1500, vec![flow], milliseconds(100_000));
            scenario.tcp.algorithm = Algorithm::Reno;
            scenario.tcp.delayed_ack = Picoseconds::ZERO;
            scenario.sample_interval = milliseconds(10_000);
            rates.push(rate_between(&run(scenario), 10_000, 100_000));
        }
        let rate = rates.iter().sum::<f64>() / 4.0;
        let known = 1.22 * 8.0 * 1448.0 / (0.020 * f64::sqrt(loss));
        println!("{loss} {rate} {known} {rates:?}");
        near(rate, known, 0.1);
    }
}

#[test]
fn small_writes_wait_for_the_delayed_acknowledgement_unless_nagle_is_off() {
    let request = |nagle| {
        let network = rack(2, GIGABIT, microseconds(200), 512_000);
        let steps = vec![
            // A header and a body, written one after the other: the second waits.
            Step { write_bytes: 200, ..Step::whole(true, Some(400)) },
            Step::whole(false, Some(100)),
        ];
        let flow = Flow { steps, repeat: Repeat::Rounds(50), ..Flow::transfer(host(1), host(2), None) };
        let mut scenario = scenario(network, 1500, vec![flow], milliseconds(10_000));
        scenario.tcp.nagle = nagle;
        run(scenario).end.as_seconds_f64() / 50.0
    };
    let (waits, goes) = (request(Nagle::Classic), request(Nagle::Off));
    assert!(waits > 0.030, "{waits}");
    assert!(goes < 0.001, "{goes}");
}

/// Two connections, whose transactions take 10 ms each: at a rate below 200 per second they keep up with it, and a request
/// that finds none idle waits, which its latency counts.
#[test]
fn requests_at_a_rate_are_due_by_the_schedule_and_wait_for_an_idle_connection() {
    let asked = |rate_per_second, arrivals, duration| {
        let network = rack(2, GIGABIT, milliseconds(10), 512_000);
        let steps = vec![Step::whole(true, Some(100)), Step::whole(false, Some(1000))];
        let flow = Flow { steps, repeat: Repeat::Requests(0), ..Flow::transfer(host(1), host(2), None) };
        let mut scenario = scenario(network, 1500, vec![flow; 2], milliseconds(20_000));
        scenario.requests = vec![Requests { rate_per_second, arrivals, duration }];
        run(scenario)
    };
    let answers = |outcome: &Outcome| {
        let ends = outcome.transfers.iter().filter(|transfer| transfer.step == 1).map(|one| one.ended);
        let mut due: Vec<_> =
            outcome.transfers.iter().filter(|transfer| transfer.step == 0).map(|one| one.begun).collect();
        due.sort();
        (due, ends.collect::<Vec<_>>())
    };
    let outcome = asked(100.0, Arrivals::Uniform, milliseconds(2000));
    let started = outcome.requests[0].started.unwrap();
    let (due, ends) = answers(&outcome);
    let known: Vec<_> = (0..200).map(|count| started + milliseconds(10 * count)).collect();
    assert_eq!((due.len(), ends.len()), (200, 200));
    // The schedule counts nanoseconds.
    assert!(due.iter().zip(&known).all(|(due, known)| known.get() - due.get() < 1000));
    assert_eq!((outcome.requests[0].late, outcome.requests[0].unfinished), (0, 0));

    // Twice what they can: half is answered, and the wait grows by a gap with every second request.
    let outcome = asked(400.0, Arrivals::Uniform, milliseconds(2000));
    let (due, ends) = answers(&outcome);
    near(ends.len() as f64, 800.0, 0.02);
    let waits: Vec<f64> =
        due.iter().zip(&ends).map(|(due, end)| end.as_seconds_f64() - due.as_seconds_f64()).collect();
    near(waits[780] - waits[380], 400.0 * (0.005 - 0.0025), 0.02);
    assert!(outcome.requests[0].late > 790, "{:?}", outcome.requests);
    let outcome = asked(4000.0, Arrivals::Uniform, milliseconds(2000));
    near(outcome.requests[0].unfinished as f64, 8000.0 - 4.0 * 200.0, 0.01);
    // A Poisson process of a rate: the count's variance is its mean.
    let outcome = asked(150.0, Arrivals::Poisson { seed: 3 }, milliseconds(10_000));
    let count = answers(&outcome).1.len() as f64;
    assert!((count - 1500.0).abs() < 4.0 * 1500.0f64.sqrt() && outcome.requests[0].late > 10, "{count}");
    assert_eq!(
        asked(150.0, Arrivals::Poisson { seed: 3 }, milliseconds(10_000)).transfers,
        outcome.transfers
    );
}

/// Header and rest of every message in a write of their own: with Nagle's algorithm the rest waits for the acknowledgement of
/// the header, which is delayed by 40 ms, and with the tick of 4 ms up to 44, on the way there and on the way back.
#[test]
fn the_rest_of_a_message_waits_for_the_acknowledgement_of_its_header() {
    let seconds = |nagle, header: u64| {
        let network = rack(2, GIGABIT, microseconds(200), 512_000);
        let step =
            |from_client, bytes| Step { first_write_bytes: header, ..Step::whole(from_client, Some(bytes)) };
        let steps = vec![step(true, 300), step(false, 300)];
        let flow = Flow { steps, repeat: Repeat::Rounds(50), ..Flow::transfer(host(1), host(2), None) };
        let mut scenario = scenario(network, 1500, vec![flow], milliseconds(10_000));
        scenario.tcp.nagle = nagle;
        run(scenario).end.as_seconds_f64() / 50.0
    };
    let waits = seconds(Nagle::Minshall, 100);
    println!("{waits}");
    assert!((0.040..0.092).contains(&waits), "{waits}");
    assert!(seconds(Nagle::Off, 100) < 0.001 && seconds(Nagle::Minshall, 0) < 0.001);
}

/// HyStart++ (RFC 9406): the first packets of a round trip tell how long the queue was when cwnd was half of what it is, so it
/// sees a queue when cwnd is two to four times what the path holds. In each of four to five more it grows by a quarter. Without
/// it cwnd doubles until the buffer overflows.
#[test]
fn hystart_plus_ends_slow_start_near_the_path_without_loss() {
    for algorithm in [Algorithm::Reno, Algorithm::Cubic] {
        let exit = |hystart| {
            // 100 Mb/s and 40 ms: 325 segments; the buffer holds sixteen times that.
            let mut network = rack(2, 100_000_000, milliseconds(40), 16 * 500_000);
            network.ports[0].rate = framegauge_frames::BitRate::new(GIGABIT).unwrap();
            let flow = Flow::transfer(host(1), host(2), None);
            let mut scenario = scenario(network, 1500, vec![flow], milliseconds(3000));
            scenario.tcp.algorithm = algorithm;
            scenario.tcp.hystart = hystart;
            scenario.logs_segments = true;
            let outcome = run(scenario);
            let left =
                outcome.log.iter().find(|one| one.from_client && one.cwnd_segments >= one.ssthresh_segments);
            (left.map(|one| one.ssthresh_segments), outcome.flows[0].sender.resends)
        };
        let (left, resent) = exit(Hystart::Plus);
        let path = 100e6 * 0.040 / 8.0 / 1538.0;
        assert_eq!(resent, 0, "{algorithm:?}");
        let factor = f64::from(left.unwrap()) / path;
        println!("{algorithm:?} {factor}");
        assert!((2.0 * 1.25f64.powi(4)..4.0 * 1.25f64.powi(5)).contains(&factor), "{algorithm:?} {factor}");
        assert!(exit(Hystart::Off).1 > 100);
    }
}

/// Phanishayee et al., "Measurement and analysis of TCP throughput collapse in cluster-based storage systems", FAST 2008:
/// past the collapse a block takes its own time and a minimum RTO.
#[test]
fn incast_collapses_to_a_block_per_timeout() {
    let servers = 24u16;
    let block = 1_048_576u64;
    let network = rack(usize::from(servers) + 1, GIGABIT, microseconds(100), 64_000);
    let reader = host(servers + 1);
    let flows = (1..=servers).map(|number| Flow {
        steps: vec![Step::whole(true, Some(64)), Step::whole(false, Some(block / u64::from(servers)))],
        repeat: Repeat::Rounds(20),
        barrier: Some(0),
        ..Flow::transfer(reader, host(number), None)
    });
    let flows: Vec<Flow> = flows.collect();
    // One seed comes to anything from 80 to 265 Mb/s.
    let seeds = 1..=12;
    let ends = seeds.clone().map(|seed| {
        let mut scenario = scenario(network.clone(), 1500, flows.clone(), milliseconds(60_000));
        scenario.jitter = microseconds(5);
        scenario.seed = seed;
        run(scenario).end.as_seconds_f64()
    });
    let goodput = 20.0 * 8.0 * block as f64 * seeds.count() as f64 / ends.sum::<f64>();
    let (line, minimum_rto) = (941.5e6, 0.2);
    let collapsed = 8.0 * block as f64 / (8.0 * block as f64 / line + minimum_rto);
    println!("{goodput} {collapsed}");
    // Between one timeout per block, rounded up to the kernel's ticks, and one in every five blocks.
    let every_fifth = 8.0 * block as f64 / (8.0 * block as f64 / line + minimum_rto / 5.0);
    assert!((0.8 * collapsed..every_fifth).contains(&goodput), "{goodput} {collapsed}");
}

/// As the generator of streams: no flow opens its next connection before the last one has ended (crates/traffic).
#[test]
fn rounds_over_new_connections_begin_together_at_a_barrier() {
    let network = rack(3, GIGABIT, microseconds(100), 512_000);
    let sizes = [1_000_000, 10_000, 300_000];
    let flows = sizes.iter().map(|bytes| Flow {
        repeat: Repeat::NewUntil(milliseconds(100)),
        barrier: Some(0),
        ..Flow::transfer(host(1), host(2), Some(*bytes))
    });
    let alone = Flow {
        repeat: Repeat::NewUntil(milliseconds(100)),
        ..Flow::transfer(host(1), host(3), Some(10_000))
    };
    let flows: Vec<Flow> = flows.chain([alone]).collect();
    let outcome = run(scenario(network, 1500, flows, milliseconds(1000)));
    let of = |flow: u32| outcome.transfers.iter().filter(move |transfer| transfer.flow == flow);
    let begun = |flow: u32| of(flow).map(|transfer| transfer.begun).collect::<Vec<_>>();
    let rounds = begun(0).len();
    assert!(rounds > 5 && begun(3).len() > 2 * rounds, "{rounds} {}", begun(3).len());
    assert_eq!((begun(1), begun(2)), (begun(0), begun(0)));
    let ends: Vec<_> = (0..rounds as u32)
        .map(|round| outcome.transfers.iter().filter(move |one| one.flow < 3 && one.round == round))
        .map(|round| round.map(|transfer| transfer.ended).max().unwrap())
        .collect();
    assert_eq!(begun(0)[1..], ends[..rounds - 1]);
    assert!(ends[rounds - 2] < milliseconds(100) && ends[rounds - 1] >= milliseconds(100));
}

#[test]
fn fair_queueing_shares_evenly() {
    let mut network = rack(9, GIGABIT, microseconds(100), 512_000);
    let queue = QueueConfig::Sfq(framegauge_fabric::SfqConfig {
        buckets: 1024,
        limit_bytes: 512_000,
        perturbation: Picoseconds::ZERO,
        quantum_bytes: 1518,
        seed: 3,
    });
    network.ports[17].queue = queue;
    let flows = (1..=8).map(|number| Flow::transfer(host(number), host(9), None)).collect();
    let mut scenario = scenario(network, 1500, flows, milliseconds(2000));
    scenario.sample_interval = milliseconds(500);
    let outcome = run(scenario);
    let rates: Vec<f64> = outcome.transfers.iter().map(|transfer| transfer.bytes as f64).collect();
    let sum: f64 = rates.iter().sum();
    let jain = sum * sum / (8.0 * rates.iter().map(|rate| rate * rate).sum::<f64>());
    assert!(jain >= 0.99, "{jain} {rates:?}");
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_one_does_not() {
    let once = |seed| {
        let network = rack(9, GIGABIT, microseconds(100), 64_000);
        let flows = (1..=8).map(|number| Flow::transfer(host(number), host(9), None)).collect();
        let mut scenario = Scenario { seed, ..scenario(network, 1500, flows, milliseconds(300)) };
        scenario.jitter = microseconds(5);
        run(scenario)
    };
    let (one, same, other) = (once(1), once(1), once(2));
    assert_eq!((&one.transfers, &one.drops, one.segments), (&same.transfers, &same.drops, same.segments));
    assert_ne!(one.transfers, other.transfers);
}

/// Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 3.3: with N flows that are marked above K the queue's
/// peak is K + N segments, and its amplitude √(N (C RTT + K) / 2).
#[test]
fn dctcp_holds_the_queue_at_its_threshold() {
    let (flows, threshold) = (2u64, 40u64);
    let frame = 1518;
    let mut network = rack(3, GIGABIT, microseconds(100), 1_000_000);
    network.ports[5].queue = QueueConfig::Step { limit_bytes: 1_000_000, threshold_bytes: threshold * frame };
    let work = (1..=flows as u16).map(|number| Flow::transfer(host(number), host(3), None)).collect();
    let mut scenario = scenario(network, 1500, work, milliseconds(1000));
    scenario.tcp.algorithm = Algorithm::Dctcp;
    // One segment at a time, acknowledged one at a time: the fluid model has no bursts.
    scenario.tcp.gso_bytes = 0;
    scenario.tcp.delayed_ack = Picoseconds::ZERO;
    scenario.jitter = microseconds(1);
    scenario.sample_interval = microseconds(50);
    let outcome = run(scenario);
    let late =
        |sample: &&framegauge_simulator::PortSample| sample.port.0 == 5 && sample.time > milliseconds(200);
    let peaks: Vec<u64> =
        outcome.port_samples.iter().filter(late).map(|sample| sample.peak_queue_bytes / frame).collect();
    let (most, least) = (*peaks.iter().max().unwrap(), *peaks.iter().min().unwrap());
    println!("peak {most}, least {least}");
    let known = threshold + flows;
    assert!((known - 2..=known + 6).contains(&most), "{most} {known}");
    // C RTT with the queue's own time: the path's 8 segments, and what it holds.
    let amplitude = ((flows * (8 + threshold)) as f64 / 2.0).sqrt();
    let found = (most - least) as f64;
    assert!((0.5 * amplitude..3.0 * amplitude).contains(&found), "{found} {amplitude}");
    assert_eq!(outcome.flows.iter().map(|flow| flow.sender.resends).sum::<u64>(), 0);
}

/// Frames of a flow keep their order where a flow has one way; where packets are sprayed they need not, and nothing is lost.
#[test]
fn a_flow_keeps_its_order_unless_packets_are_sprayed() {
    use framegauge_simulator::{ScenarioSpec, Side};
    for (choice, keeps) in [("flow", true), ("destination", true), ("packet", false)] {
        let hosts: Vec<String> =
            (1..=16).map(|host| format!(r#"{{"name": "h{host}", "mtu": 1500}}"#)).collect();
        let flows: Vec<String> = (1..=8)
            .map(|host| {
                let to = host + 8;
                format!(r#"{{"client": "h{host}", "server": "h{to}", "steps": [{{"from": "client", "bytes": 400000}}]}}"#)
            })
            .collect();
        let json = format!(
            r#"{{"hosts": [{}], "topology": {{"kind": "fat-tree", "k": 4}}, "routing": {{"choice": "{choice}"}},
            "link": {{"bits_per_second": 1000000000, "rtt_seconds": 0.0001, "buffer_bytes": 256000, "port_mtu": 9216}},
            "flows": [{}], "end_seconds": 1, "jitter_seconds": 0.000005, "capture": ["edge3-1>h9"]}}"#,
            hosts.join(","),
            flows.join(",")
        );
        let spec: ScenarioSpec = serde_json::from_str(&json).unwrap();
        let scenario = spec.scenario().map_err(|error| panic!("{error}")).unwrap().0;
        let outcome = run(scenario);
        assert!(outcome.transfers.iter().all(|transfer| transfer.is_complete), "{choice}");
        let sent: Vec<u64> = outcome
            .passed
            .iter()
            .filter(|passed| {
                passed.side == Side::Out && passed.segment.bytes > 0 && !passed.segment.is_resend
            })
            .map(|passed| passed.segment.sequence)
            .collect();
        assert!(sent.len() > 200);
        let resent = outcome.flows.iter().map(|flow| flow.sender.resends).sum::<u64>();
        // A resend is out of order by nature.
        assert!(!keeps || resent == 0, "{choice}: {resent} resent");
        assert_eq!(sent.is_sorted(), keeps, "{choice}");
    }
}

#[test]
fn a_nic_that_merges_is_answered_less_often_with_jitter_too() {
    let segments = |coalesces| {
        let mut network = rack(2, GIGABIT, microseconds(100), 512_000);
        network.nic.moderation = microseconds(50);
        let flow = Flow::transfer(host(1), host(2), Some(10_000_000));
        let mut scenario = scenario(network, 1500, vec![flow], milliseconds(1000));
        scenario.tcp.coalesces = coalesces;
        scenario.jitter = microseconds(5);
        run(scenario).segments
    };
    // Some four frames an interrupt: an acknowledgement for each interrupt instead of every second segment.
    let (merged, single) = (segments(true), segments(false));
    assert!(merged < single - 1000, "{merged} {single}");
}
