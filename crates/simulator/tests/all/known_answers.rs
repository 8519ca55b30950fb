//! Answers that are known beforehand.

use crate::common::{
    GIGABIT, assert_conserved, host, microseconds, milliseconds, rack, rate_between, scenario,
};
use framegauge_frames::{BitRate, Family, Mtu, ceiling};
use framegauge_simulator::{Flow, ScenarioSpec, Simulation};
use serde_json::{Value, json};

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

/// Two hosts on a switch, of which the one sends as fast as 0.999 of 100 Mb/s; what is read in the second half.
fn goodput(mtu: u32, tcp: &Value, overlay: Option<&str>) -> f64 {
    let mut spec = json!({
        "hosts": [{"name": "h1", "mtu": mtu}, {"name": "h2", "mtu": mtu}],
        "link": {"bits_per_second": 100_000_000, "rtt_seconds": 0.0002, "buffer_bytes": 262_144, "port_mtu": 9216},
        "shaper": {"factor": 0.999}, "tcp": tcp,
        "flows": [{"client": "h1", "server": "h2", "steps": [{"from": "client", "bytes": null}]}],
        "end_seconds": 2.0, "sample_seconds": 1.0,
    });
    if let Some(overlay) = overlay {
        spec["overlay"] = json!(overlay);
    }
    let spec: ScenarioSpec = serde_json::from_value(spec).unwrap();
    let (scenario, _) = spec.scenario().unwrap();
    let outcome = Simulation::new(scenario).unwrap().run();
    assert_conserved(&outcome);
    rate_between(&outcome, 1000, 2000)
}

/// Line rate x payload / wire bytes: IPv4 20, IPv6 40, TCP 20, timestamps 12; frame and wire 38 more than the MTU.
#[test]
fn ipv6_and_timestamps_have_the_ceilings_of_their_headers() {
    for (mtu, family, timestamps, headers) in [
        (1500, 6, true, 72),
        (9000, 6, true, 72),
        (1280, 6, false, 60),
        (1500, 4, false, 40),
        (576, 4, true, 52),
    ] {
        let known = 0.999e8 * f64::from(mtu - headers) / f64::from(mtu + 38);
        let rate = goodput(mtu, &json!({"family": family, "timestamps": timestamps}), None);
        assert!((rate / known - 1.0).abs() < 1e-3, "MTU {mtu}, IPv{family}: {rate}, known {known}");
    }
}

/// The MTU inside is smaller by what the overlay puts before each packet, and full frames are as large as without it: Ethernet
/// 14, UDP 8 and a header of 8 (RFC 7348, RFC 8926) behind IPv4 or IPv6.
#[test]
fn overlays_take_their_headers_from_the_mtu() {
    for (overlay, family, inside) in
        [("vxlan", 4, 50), ("geneve", 4, 50), ("vxlan", 6, 70), ("geneve", 6, 70)]
    {
        for mtu in [1500, 9000] {
            let headers = inside + if family == 6 { 72 } else { 52 };
            let known = 0.999e8 * f64::from(mtu - headers) / f64::from(mtu + 38);
            let rate = goodput(mtu, &json!({"family": family}), Some(overlay));
            assert!((rate / known - 1.0).abs() < 1e-3, "{overlay}, MTU {mtu}: {rate}, known {known}");
        }
    }
}

/// RFC 8200 section 5: 1280, inside of an overlay as well.
#[test]
fn ipv6_has_a_least_mtu_also_inside() {
    let refused = |mtu: u32, overlay: Option<&str>| {
        let mut spec = json!({
            "hosts": [{"name": "h1", "mtu": mtu}, {"name": "h2", "mtu": mtu}], "tcp": {"family": 6},
            "link": {"bits_per_second": 100_000_000, "rtt_seconds": 0.0002, "buffer_bytes": 262_144, "port_mtu": 9216},
            "flows": [], "end_seconds": 1.0,
        });
        spec["overlay"] = json!(overlay);
        serde_json::from_value::<ScenarioSpec>(spec).unwrap().scenario().err()
    };
    assert_eq!([refused(1280, None), refused(1350, Some("vxlan"))], [None, None]);
    let said = refused(1279, None).unwrap();
    assert_eq!(said, "host h1: MTU 1279 is below the 1280 bytes that V6 needs");
    let said = refused(1349, Some("vxlan")).unwrap();
    assert_eq!(said, "host h1: MTU 1279 is below the 1280 bytes that V6 needs");
}
