//! Figures that were computed by hand or are published, and laws that hold for every input.

use framegauge_frames::{
    BitRate, Family, Mtu, MtuError, Picoseconds, aggregate_wire_bytes, ceiling, frame_bytes,
    shaper_size_table, slow_start_transfer_time, switched_transfer_time, wire_bytes,
};
use proptest::prelude::*;

fn gigabit() -> BitRate {
    BitRate::new(1_000_000_000).unwrap()
}

fn mtu(bytes: u32) -> Mtu {
    Mtu::new(bytes).unwrap()
}

#[test]
fn layers_of_a_frame() {
    for (bytes, frame, wire, mss, payload) in [(1500, 1518, 1538, 1460, 1448), (9000, 9018, 9038, 8960, 8948)]
    {
        let mtu = mtu(bytes);
        assert_eq!((mtu.frame_bytes(), mtu.wire_bytes()), (frame, wire));
        assert_eq!(mtu.mss(Family::V4), mss);
        assert_eq!(mtu.mss(Family::V6), mss - 20);
        assert_eq!(mtu.segment_payload(Family::V4, true), payload);
        assert_eq!(mtu.segment_payload(Family::V4, false), mss);
        // Captured at a TAP: the packet in its Ethernet header.
        assert_eq!(wire_bytes(frame_bytes(bytes + 14)), wire);
    }
}

#[test]
fn a_short_frame_is_padded() {
    assert_eq!(frame_bytes(42), 64);
    assert_eq!(frame_bytes(60), 64);
    assert_eq!(frame_bytes(61), 65);
    assert_eq!(wire_bytes(64), 84);
}

#[test]
fn an_mtu_has_limits() {
    assert_eq!(Mtu::new(67), Err(MtuError::OutOfRange { found: 67 }));
    assert_eq!(Mtu::new(65_536), Err(MtuError::OutOfRange { found: 65_536 }));
    let error = mtu(1279).check(Family::V6).unwrap_err();
    assert_eq!(error.to_string(), "MTU 1279 is below the 1280 bytes that V6 needs");
    assert_eq!(mtu(1280).check(Family::V6), Ok(mtu(1280)));
    assert_eq!(mtu(68).check(Family::V4), Ok(mtu(68)));
}

#[test]
fn goodput_ceilings_at_one_gigabit() {
    let goodput = |bytes, family, timestamps| {
        ceiling(mtu(bytes), family, timestamps, gigabit()).goodput_bits_per_second / 1e6
    };
    let close =
        |found: f64, expected: f64| assert!((found - expected).abs() < 0.01, "{found} is not {expected}");
    close(goodput(1500, Family::V4, true), 941.48);
    close(goodput(9000, Family::V4, true), 990.04);
    close(goodput(1500, Family::V4, false), 949.28);
    close(goodput(9000, Family::V4, false), 991.37);
    close(goodput(1500, Family::V6, true), 928.48);
    let gain = goodput(9000, Family::V4, true) / goodput(1500, Family::V4, true);
    assert!((gain - 1.0516).abs() < 0.0001, "{gain}");
}

#[test]
fn serialisation_times() {
    assert_eq!(gigabit().serialisation(1538), Picoseconds::from_nanoseconds(12_304));
    assert_eq!(gigabit().serialisation(9038), Picoseconds::from_nanoseconds(72_304));
    // 8 × 10¹² ÷ 3 does not come out even: rounded up.
    assert_eq!(BitRate::new(3).unwrap().serialisation(1), Picoseconds::new(2_666_666_666_667));
    assert_eq!(BitRate::new(1).unwrap().serialisation(u64::MAX), Picoseconds::MAX);
    assert!(BitRate::new(0).is_err());
}

#[test]
fn aggregates_cut_into_frames() {
    assert_eq!(aggregate_wire_bytes(66, 66, 1448), 90);
    assert_eq!(aggregate_wire_bytes(1514, 66, 1448), 1538);
    assert_eq!(aggregate_wire_bytes(66 + 2 * 1448, 66, 1448), 2 * 1538);
    assert_eq!(aggregate_wire_bytes(66 + 2 * 1448 + 1, 66, 1448), 2 * 1538 + 91);
    assert_eq!(aggregate_wire_bytes(42, 66, 1448), 84);
    assert_eq!(aggregate_wire_bytes(5000, 66, 0), 5024);
}

#[test]
fn the_shaper_charges_full_segments_to_two_bytes() {
    for (bytes, family, header) in [
        (576, Family::V4, 66),
        (1500, Family::V4, 66),
        (1500, Family::V6, 86),
        (9000, Family::V4, 66),
        (9000, Family::V6, 86),
        (65_535, Family::V4, 66),
    ] {
        let mtu = mtu(bytes);
        let table = shaper_size_table(mtu, family, 0);
        assert!(table.data.len() * 2 <= 32 * 1024);
        assert_eq!(table.cell_log, 3, "8,194 cells of 8 bytes; 4 bytes would need 16,388");
        let payload = mtu.segment_payload(family, true);
        for segments in 1..=(65_535 + 14 - header) / payload {
            let charged = table.charged_bytes(header + segments * payload);
            let truth = u64::from(segments) * u64::from(mtu.wire_bytes());
            assert!(charged.abs_diff(truth) <= 2, "{mtu:?} {segments} segments: {charged}, not {truth}");
        }
    }
}

/// Inside VXLAN 1398 bytes fit into a frame of MTU 1500 (1500 - 50 - 52). An aggregate of ten such segments has 116 bytes of
/// headers once (14 + 50 + 52), and takes ten full frames of 1538 bytes on the wire; a lone ACK takes 116 + 24.
#[test]
fn the_shaper_charges_what_is_in_a_tunnel_with_all_its_headers() {
    let table = shaper_size_table(mtu(1500), Family::V4, 50);
    assert!(table.charged_bytes(116 + 10 * 1398).abs_diff(15_380) <= 2);
    assert!(table.charged_bytes(116 + 1398).abs_diff(1538) <= 2);
    assert!((140..=148).contains(&table.charged_bytes(116)));
    // As if there were no tunnel, nine frames would be without its 50 bytes.
    assert!(
        shaper_size_table(mtu(1500), Family::V4, 0).charged_bytes(116 + 10 * 1398).abs_diff(14_930) <= 100
    );
}

#[test]
fn short_transfers() {
    let time = |size, rtt_microseconds: u64, delayed| {
        let rtt = Picoseconds::from_nanoseconds(rtt_microseconds * 1000);
        slow_start_transfer_time(size, 1000, 1e9, rtt, 10, delayed).as_nanoseconds()
    };
    // A segment takes 8 µs. Nothing to send: the handshake and one RTT.
    assert_eq!(time(0, 200, false), 400_000);
    // Ten segments in one round: 200 + 80 + 200.
    assert_eq!(time(10_000, 200, false), 480_000);
    // The eleventh waits for the first ACK: 200 + (200 + 8) + 8 + 200.
    assert_eq!(time(11_000, 200, false), 616_000);
    // Or for the ACK of two segments.
    assert_eq!(time(11_000, 200, true), 624_000);
    // Rounds of 10 and 20 wait, that of 40 (320 µs) exceeds 208 µs: from there the line is busy.
    // 200 + 208 + 208 + (40 + 5) × 8 + 200.
    assert_eq!(time(75_000, 200, false), 1_176_000);
    // Without a round-trip time only the line counts.
    assert_eq!(time(1_000_000, 0, false), 8_000_000);
    // Of jumbo segments only seven fit the window of a SYN-ACK: 200 + 7 × 72 + (3 × 72) + 200 with a busy line.
    let jumbo = slow_start_transfer_time(90_000, 9000, 1e9, Picoseconds::from_nanoseconds(200_000), 10, true);
    assert_eq!(jumbo.as_nanoseconds(), 200_000 + 10 * 72_000 + 200_000);
    let far = slow_start_transfer_time(90_000, 9000, 1e9, Picoseconds::from_nanoseconds(1_200_000), 10, true);
    assert_eq!(far.as_nanoseconds(), 1_200_000 + (1_200_000 + 2 * 72_000) + 3 * 72_000 + 1_200_000);
    let never = slow_start_transfer_time(1, 0, 1e9, Picoseconds::ZERO, 10, false);
    assert_eq!(never, Picoseconds::MAX);
    let never = slow_start_transfer_time(1, 1448, f64::NAN, Picoseconds::ZERO, 10, false);
    assert_eq!(never, Picoseconds::MAX);
}

#[test]
fn time_saturates() {
    assert_eq!(Picoseconds::MAX + Picoseconds::new(1), Picoseconds::MAX);
    assert_eq!(Picoseconds::ZERO - Picoseconds::new(1), Picoseconds::ZERO);
    assert_eq!(Picoseconds::from_seconds_f64(-1.0), Picoseconds::ZERO);
    assert_eq!(Picoseconds::from_seconds_f64(f64::NAN), Picoseconds::ZERO);
    assert_eq!(Picoseconds::from_seconds_f64(0.0002).as_nanoseconds(), 200_000);
    assert_eq!(Picoseconds::from_nanoseconds(1500).as_seconds_f64(), 1.5e-6);
}

proptest! {
    #[test]
    fn output_never_exceeds_the_line_rate(bytes in 0u64..1 << 40, rate in 1u64..1 << 45) {
        let time = u128::from(BitRate::new(rate).unwrap().serialisation(bytes).get());
        prop_assume!(time < u128::from(u64::MAX));
        let bits = u128::from(bytes) * 8 * 1_000_000_000_000;
        prop_assert!(time * u128::from(rate) >= bits);
        prop_assert!(time == 0 || (time - 1) * u128::from(rate) < bits);
    }

    #[test]
    fn bytes_within_undoes_serialisation(bytes in 0u64..1 << 20, rate in 1_000u64..1 << 40) {
        let rate = BitRate::new(rate).unwrap();
        let back = rate.bytes_within(rate.serialisation(bytes));
        prop_assert!((bytes..=bytes + 1).contains(&back));
    }

    #[test]
    fn an_aggregate_costs_what_its_frames_cost(
        skb in 0u32..70_000, header in 14u32..140, payload in 1u32..9_000,
    ) {
        let mut expected = 0;
        let mut left = skb.saturating_sub(header);
        while left > payload {
            expected += u64::from(wire_bytes(frame_bytes(header + payload)));
            left -= payload;
        }
        let last = if skb < header { skb } else { header + left };
        expected += u64::from(wire_bytes(frame_bytes(last)));
        prop_assert_eq!(aggregate_wire_bytes(skb, header, payload), expected);
    }

    #[test]
    fn a_size_table_is_never_far_off(bytes in 576u32..=65_535, length in 42u32..=65_549) {
        let mtu = mtu(bytes);
        let table = shaper_size_table(mtu, Family::V4, 0);
        let truth = aggregate_wire_bytes(length, 66, mtu.segment_payload(Family::V4, true));
        let charged = table.charged_bytes(length);
        // At most a cell too long plus a frame that begins in it; too little only within 8 bytes of k full
        // segments, where the frame that has just begun is left out.
        prop_assert!(charged + 98 >= truth && charged <= truth + 100, "{} for {}", charged, truth);
    }

    #[test]
    fn no_table_panics(bytes in 68u32..=65_535, v6: bool, tunnel in 0u32..200, length: u32) {
        let family = if v6 { Family::V6 } else { Family::V4 };
        shaper_size_table(mtu(bytes), family, tunnel).charged_bytes(length);
    }

    #[test]
    fn more_bytes_never_arrive_earlier(
        size in 0u64..10_000_000, more in 0u64..100_000, rtt in 0u64..10_000_000, delayed: bool,
    ) {
        let time = |size| {
            let rtt = Picoseconds::from_nanoseconds(rtt);
            slow_start_transfer_time(size, 1448, 941.48e6, rtt, 10, delayed)
        };
        // Each round is rounded to a picosecond on its own.
        prop_assert!(time(size + more) + Picoseconds::new(64) >= time(size));
    }
}

#[test]
fn a_switch_adds_one_serialisation_to_the_round_trip() {
    let (mtu, rate) = (Mtu::new(1500).unwrap(), BitRate::new(1_000_000_000).unwrap());
    let found = switched_transfer_time(0, mtu, Family::V4, rate, Picoseconds::from_nanoseconds(200_000));
    // Nothing is sent: the handshake and one more round trip, each with 1538 bytes at 1 Gb/s.
    assert_eq!(found, Picoseconds::from_nanoseconds(2 * (200_000 + 12_304)));
}
