//! Answers that are known beforehand.

use crate::common::{
    GIGABIT, assert_conserved, host, microseconds, milliseconds, rack, rate_between, scenario,
};
use framegauge_frames::{BitRate, Family, Mtu, ceiling};
use framegauge_simulator::{Flow, Simulation};

#[test]
fn a_full_link_carries_the_goodput_of_its_mtu() {
    for mtu in [1500, 4200, 8000, 9000] {
        let network = rack(2, GIGABIT, microseconds(100), 512_000);
        let flow = Flow::transfer(host(1), host(2), None);
        let mut scenario = scenario(network, mtu, vec![flow], milliseconds(500));
        scenario.sample_interval = milliseconds(100);
        let outcome = Simulation::new(scenario).unwrap().run();
        assert_conserved(&outcome);
        let known = ceiling(Mtu::new(mtu).unwrap(), Family::V4, true, BitRate::new(GIGABIT).unwrap());
        // Hosts send a thousandth below the line.
        let ratio = rate_between(&outcome, 100, 500) / (0.999 * known.goodput_bits_per_second);
        assert!((0.999..=1.001).contains(&ratio), "MTU {mtu}: {ratio}");
    }
}
