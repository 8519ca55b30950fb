//! Echoes as they are written, read back and told from others'; and the search against targets that limit how often they answer.
use crate::common::{Random, config};
use framegauge_frames::Family;
use framegauge_packets::checksum::internet_checksum;
use framegauge_pathmtu::{
    Answer, Carrier, Config, Datagram, Echo, MESSAGE_BYTES, MessageError, Next, Probe, Report, Search, Token,
    Verdict,
};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

const TOKEN: Token = [7; 16];

fn echo(family: Family, headed: bool) -> Echo {
    Echo { family, identifier: 0x1234, headed }
}

/// What a host makes of a request: the same with the type of a reply, behind an IPv4 header where the socket shows it.
fn reply(echo: Echo, request: &[u8]) -> Vec<u8> {
    let mut whole = if echo.headed { vec![0x45; 20] } else { Vec::new() };
    whole.extend_from_slice(request);
    let kind = whole.len() - request.len();
    whole[kind] = if echo.family == Family::V4 { 0 } else { 129 };
    whole
}

fn read(echo: Echo, bytes: &[u8]) -> Result<Answer, MessageError> {
    let datagram = Datagram { kept: &bytes[..bytes.len().min(64)], bytes: bytes.len(), fragment_bytes: 0 };
    Carrier::Echo(echo).answer(&TOKEN, datagram)
}

fn request(echo: Echo, probe: Probe) -> Vec<u8> {
    let mut payload = vec![0xa5; 70_000];
    Carrier::Echo(echo).write(&probe, &TOKEN, echo.family, &mut payload).to_vec()
}

#[test]
fn a_request_has_the_size_of_its_probe_and_a_checksum() {
    for (family, header) in [(Family::V4, 20), (Family::V6, 40)] {
        let bytes = request(echo(family, false), Probe { id: 0x5_6789, ip_bytes: 9000 });
        assert_eq!(bytes.len(), 9000 - header);
        assert_eq!(bytes[..2], [if header == 20 { 8 } else { 128 }, 0]);
        assert_eq!(bytes[4..8], [0x12, 0x34, 0x67, 0x89]);
    }
    // The sum over a packet that has its checksum is all ones (RFC 1071).
    assert_eq!(internet_checksum(&request(echo(Family::V4, false), Probe { id: 1, ip_bytes: 1500 })), 0);
}

#[test]
fn only_the_echo_of_a_probe_counts() {
    let own = echo(Family::V4, false);
    let bytes = request(own, Probe { id: 9, ip_bytes: 1500 });
    let answer = Answer { id: 9, ip_bytes: 1500, fragment_bytes: None, cut_bytes: None };
    assert_eq!(read(own, &reply(own, &bytes)), Ok(answer));
    // One's own request, as a host that sends to itself hears it.
    assert_eq!(read(own, &bytes), Err(MessageError::Kind));
    for (place, error) in
        [(1, MessageError::Kind), (4, MessageError::Kind), (7, MessageError::Kind), (12, MessageError::Token)]
    {
        let mut other = reply(own, &bytes);
        other[place] ^= 1;
        assert_eq!(read(own, &other), Err(error), "{place}");
    }
    let mut longer = reply(own, &bytes);
    longer.push(0);
    assert_eq!(read(own, &longer), Err(MessageError::Kind));
}

#[test]
fn an_echo_that_comes_back_short_says_how_short() {
    for headed in [false, true] {
        let own = echo(Family::V4, headed);
        let whole = reply(own, &request(own, Probe { id: 9, ip_bytes: 1500 }));
        let cut = &whole[..whole.len() - 1400];
        assert_eq!(read(own, cut).map(|answer| (answer.ip_bytes, answer.cut_bytes)), Ok((1500, Some(100))));
    }
}

#[test]
fn what_is_quoted_may_end_behind_the_header_but_must_be_ours() {
    let own = echo(Family::V4, false);
    let carrier = Carrier::Echo(own);
    let bytes = request(own, Probe { id: 9, ip_bytes: 1500 });
    assert_eq!(carrier.quoted(&TOKEN, &bytes[..128]), Ok(Probe { id: 9, ip_bytes: 1500 }));
    assert!(matches!(carrier.quoted(&TOKEN, &bytes[..8]), Err(MessageError::Short { .. })));
    assert_eq!(carrier.quoted(&TOKEN, &bytes[..7]), Err(MessageError::Kind));
    let foreign = Carrier::Echo(Echo { identifier: 1, ..own });
    assert_eq!(foreign.quoted(&TOKEN, &bytes[..8]), Err(MessageError::Kind));
}

proptest! {
    #[test]
    fn echoes_are_read_back(id: u64, ip_bytes in 100u32..=65_535, v6: bool, headed: bool, cut in 0usize..70_000) {
        let own = echo(if v6 { Family::V6 } else { Family::V4 }, headed && !v6);
        let whole = reply(own, &request(own, Probe { id, ip_bytes }));
        let least = whole.len() - request(own, Probe { id, ip_bytes }).len() + 8 + MESSAGE_BYTES;
        let kept = whole.len().saturating_sub(cut).max(least).min(whole.len());
        let cut = whole.len() - kept;
        let cut_bytes = (cut > 0).then_some(ip_bytes - cut as u32);
        prop_assert_eq!(read(own, &whole[..kept]), Ok(Answer { id, ip_bytes, fragment_bytes: None, cut_bytes }));
    }

    #[test]
    fn no_packet_makes_a_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..120), v6: bool, headed: bool) {
        let own = echo(if v6 { Family::V6 } else { Family::V4 }, headed);
        let _ = read(own, &bytes);
        let _ = Carrier::Echo(own).quoted(&TOKEN, &bytes);
    }
}

/// A target that answers so often and no more: a bucket of answers, or of bytes.
#[derive(Clone, Copy)]
struct Limit {
    per_second: f64,
    burst: f64,
    bytes: bool,
}

/// Searches a path of `mtu` to such a target; the report, and the time.
fn limited(mtu: u32, limit: Limit, loss: f64, seed: u64) -> (Report, Duration) {
    let gap = Duration::from_millis(5);
    let asked = Config { gap, in_flight_bytes: 32 * 1024, false_claim: 1e-7, ..config(9000, 1) };
    let mut search = Search::new(asked);
    let mut random = Random(seed);
    let mut due: BinaryHeap<Reverse<(Duration, u32, u32)>> = BinaryHeap::new();
    let (mut now, mut filled, mut bucket) = (Duration::ZERO, Duration::ZERO, limit.burst);
    loop {
        match search.poll(now, true) {
            Next::Done => return (search.report(), now),
            Next::Send { number, bytes, .. } => {
                if bytes > mtu || random.chance(loss) {
                    continue;
                }
                bucket = (bucket + (now - filled).as_secs_f64() * limit.per_second).min(limit.burst);
                filled = now;
                let cost = if limit.bytes { f64::from(bytes) } else { 1.0 };
                if bucket >= cost {
                    bucket -= cost;
                    due.push(Reverse((now + Duration::from_micros(300 + random.below(200)), number, bytes)));
                }
            }
            Next::Wait(until) => match due.peek() {
                Some(Reverse((at, ..))) if *at <= until => {
                    let Some(Reverse((at, number, bytes))) = due.pop() else { unreachable!() };
                    now = now.max(at);
                    search.on_delivered(now, 0, number, bytes, None);
                }
                _ => now = now.max(until),
            },
        }
    }
}

#[test]
fn echoes_are_paced_and_a_black_hole_takes_a_second() {
    let free = Limit { per_second: 1e9, burst: 1e9, bytes: false };
    let (report, took) = limited(1500, free, 0.0, 1);
    assert_eq!((report.flows[0].verdict, report.flows[0].path_mtu_bytes), (Verdict::BlackHole, Some(1500)));
    assert!(took >= Duration::from_millis(4) * (report.sent_packets as u32 - 2), "{took:?} {report:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn a_limit_on_answers_is_no_mtu() {
    for per_second in [2.0, 6.25, 10.0, 20.0, 25.0, 50.0, 66.7, 100.0, 200.0] {
        for burst in [1.0, 2.0, 6.0, 20.0] {
            for seed in 0..20 {
                let limit = Limit { per_second, burst, bytes: false };
                let (report, _) = limited(9000, limit, [0.0, 0.05, 0.19][seed as usize % 3], seed);
                let flow = report.flows[0];
                let told_apart = f64::from(report.controls.lost) > 0.3 * f64::from(report.controls.sent);
                assert!(
                    matches!(flow.verdict, Verdict::CarriesTarget | Verdict::Unknown) || told_apart,
                    "{per_second} a second, burst {burst}, {seed}: {report:?}"
                );
            }
        }
    }
}
