//! Pacing: how far apart the segments of a window leave, by Linux' `tcp_update_pacing_rate`.

use crate::common::{GIGABIT, assert_conserved, host, milliseconds, rack, rate_between, scenario};
use framegauge_frames::{BitRate, Family, Mtu, Picoseconds, ceiling};
use framegauge_simulator::{Flow, Hystart, Logged, Outcome, Scenario, Simulation};

/// Payload of a full segment at MTU 1500, with timestamps.
const PAYLOAD: u64 = 1448;
/// Above any link: pacing at the rate of cwnd alone.
const UNLIMITED: u64 = 10_000_000_000_000;

/// A flow without end from h1 to h2 over an RTT of 10 ms, one segment at a time.
fn paced(bits_per_second: Option<u64>) -> Scenario {
    let flow = Flow { pacing_bits_per_second: bits_per_second, ..Flow::transfer(host(1), host(2), None) };
    let network = rack(2, GIGABIT, milliseconds(10), 4_000_000);
    let mut scenario = scenario(network, 1500, vec![flow], milliseconds(2_000));
    scenario.tcp.gso_bytes = 0;
    scenario.sample_interval = milliseconds(10);
    scenario.logs_segments = true;
    scenario
}

fn run(scenario: Scenario) -> Outcome {
    let outcome = Simulation::new(scenario).unwrap().run();
    assert_conserved(&outcome);
    outcome
}

/// Data segments of the second half, each with the time since the one before, in nanoseconds.
fn gaps(outcome: &Outcome) -> Vec<(u64, &Logged)> {
    let half = Picoseconds::new(outcome.end.get() / 2);
    let data: Vec<&Logged> =
        outcome.log.iter().filter(|logged| logged.from_client && logged.bytes > 0).collect();
    let pairs = data.windows(2).filter(|pair| pair[0].time > half);
    pairs.map(|pair| ((pair[1].time - pair[0].time).as_nanoseconds(), pair[1])).collect()
}

/// 1448 bytes at 75 Mb/s are 154,453 ns.
#[test]
fn a_rate_is_the_distance_of_segments() {
    let outcome = run(paced(Some(75_000_000)));
    let expected = 8 * PAYLOAD * 1_000_000_000 / 75_000_000;
    let found = gaps(&outcome);
    assert!(found.len() > 5_000, "{}", found.len());
    for (gap, logged) in found {
        assert_eq!(gap, expected, "{logged:?}");
    }
    assert!((rate_between(&outcome, 1_000, 2_000) / 75e6 - 1.0).abs() < 0.001);
}

/// A flow whose window of 64,000 bytes is the limit, so that cwnd stays, and the RTT is that of the path. Interrupts a
/// millisecond apart let several segments go at once.
fn limited(bits_per_second: Option<u64>) -> Scenario {
    let mut scenario = paced(bits_per_second);
    scenario.tcp.receive_window_bytes = (64_000, 64_000);
    scenario.network.nic.moderation = milliseconds(1);
    scenario
}

/// Segments of a window are srtt / (ratio x cwnd) apart; only behind the first, which comes late as it waited for an
/// acknowledgement, the next follows after half of that. Moderation lets srtt vary a little.
fn assert_apart(outcome: &Outcome, percent: u64) {
    let half = Picoseconds::new(outcome.end.get() / 2);
    let last = outcome.samples.last().unwrap();
    let found = gaps(outcome);
    assert!(found.iter().all(|(_, logged)| logged.cwnd_segments == last.cwnd_segments), "{last:?}");
    let late = outcome.samples.iter().filter(|sample| sample.time >= half);
    let srtts: Vec<u64> = late.map(|sample| sample.smoothed_rtt.as_nanoseconds()).collect();
    let expected = |srtt: u64| srtt * 100 / percent / u64::from(last.cwnd_segments);
    let (least, most) = (expected(*srtts.iter().min().unwrap()), expected(*srtts.iter().max().unwrap()));
    assert!(most - least < least / 10, "{least} to {most}");
    let slack = least / 100;
    let mut counts = [0, 0];
    for (gap, logged) in &found {
        assert!(gap + slack >= least / 2, "{gap} of {least} to {most}: {logged:?}");
        counts[0] += usize::from((least - slack..=most + slack).contains(gap));
        counts[1] += usize::from(*gap <= most / 2 + slack);
    }
    assert!(
        counts[0] > found.len() / 3 && counts[1] > found.len() / 10,
        "{percent}: {counts:?} of {}",
        found.len()
    );
}

/// `tcp_pacing_ss_ratio`.
#[test]
fn a_window_leaves_at_twice_its_rate_in_slow_start() {
    for percent in [200, 100] {
        let mut scenario = limited(Some(UNLIMITED));
        scenario.tcp.hystart = Hystart::Off;
        scenario.tcp.pacing_percent.0 = percent;
        let outcome = run(scenario);
        assert!(outcome.samples.last().unwrap().cwnd_segments > 64_000 / PAYLOAD as u32);
        assert_apart(&outcome, u64::from(percent));
    }
}

/// Without pacing they leave as the NIC takes them: 1538 bytes at 0.999 Gb/s are 12.3 us, far less than a paced window's.
#[test]
fn without_pacing_a_window_leaves_in_bursts() {
    let scenario = limited(None);
    let least = gaps(&run(scenario)).iter().map(|(gap, _)| *gap).min().unwrap();
    assert!(least < 13_000, "{least}");
}

/// After a loss, cwnd is above half its threshold: the ratio is 1.2. The link to h2 and its buffer lose some of the first
/// flights; what the window allows then passes without a queue, so that the RTT is that of the path again.
#[test]
fn a_window_leaves_at_a_fifth_more_than_its_rate_after_slow_start() {
    let mut scenario = limited(Some(UNLIMITED));
    scenario.network = rack(2, GIGABIT, milliseconds(10), 10_000);
    scenario.network.nic.moderation = milliseconds(1);
    let names = scenario.network.port_names();
    let down = names.iter().position(|name| name == "switch>h2").unwrap();
    scenario.network.ports[down].rate = BitRate::new(GIGABIT / 10).unwrap();
    let outcome = run(scenario);
    assert!(outcome.flows[0].sender.resends > 0);
    let (_, logged) = gaps(&outcome)[0];
    assert!(logged.cwnd_segments >= logged.ssthresh_segments / 2);
    assert_apart(&outcome, 120);
}

#[test]
fn a_paced_flow_fills_the_link() {
    let mut scenario = paced(Some(UNLIMITED));
    scenario.tcp.gso_bytes = 65_536;
    let outcome = run(scenario);
    let known = ceiling(Mtu::new(1500).unwrap(), Family::V4, true, BitRate::new(GIGABIT).unwrap());
    let ratio = rate_between(&outcome, 1_000, 2_000) / (0.999 * known.goodput_bits_per_second);
    assert!((0.999..=1.001).contains(&ratio), "{ratio}");
}
