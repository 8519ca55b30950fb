//! What the error queue of a UDP socket says (`struct sock_extended_err`, include/uapi/linux/errqueue.h).

use std::net::{IpAddr, SocketAddr};

const ORIGIN_LOCAL: u8 = 1;
const ORIGIN_ICMP: u8 = 2;
const ORIGIN_ICMP6: u8 = 3;

/// What was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Refusal {
    /// Its TTL or hop limit has run out.
    Expired,
    /// It is larger than this MTU; none: no MTU was named.
    TooBig(Option<u32>),
    /// There is no such host, network or port, or it is forbidden; type and code of the ICMP message.
    Unreachable(u8, u8),
    /// Something else.
    #[default]
    Other,
}

/// One entry of the queue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// What was said.
    pub refusal: Refusal,
    /// Who said it; none: this host, or it is not known.
    pub by: Option<IpAddr>,
    /// Where the datagram was to go.
    pub destination: Option<SocketAddr>,
    /// The beginning of its payload, as far as it was quoted.
    pub quoted: Vec<u8>,
}

/// Reads the extended error and the offender behind it; none if it is too short to be one.
pub fn parse_report(data: &[u8]) -> Option<Report> {
    let word = |place: usize| data.get(place..place + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let (errno, info) = (word(0)?, word(8)?);
    let &[origin, kind, code] = data.get(4..7)? else { return None };
    let mtu = (info > 0).then_some(info);
    // ICMP: RFC 792, RFC 1191; ICMPv6: RFC 4443.
    let refusal = match (origin, kind, code) {
        (ORIGIN_LOCAL, ..) if errno == libc::EMSGSIZE as u32 => Refusal::TooBig(mtu),
        (ORIGIN_ICMP, 11, 0) | (ORIGIN_ICMP6, 3, 0) => Refusal::Expired,
        (ORIGIN_ICMP, 3, 4) | (ORIGIN_ICMP6, 2, _) => Refusal::TooBig(mtu),
        (ORIGIN_ICMP, 3, _) | (ORIGIN_ICMP6, 1, _) => Refusal::Unreachable(kind, code),
        _ => Refusal::Other,
    };
    let by = if origin == ORIGIN_LOCAL { None } else { offender(data.get(16..)?) };
    Some(Report { refusal, by, ..Report::default() })
}

/// `SO_EE_OFFENDER`: a sockaddr; none if its family says so.
fn offender(raw: &[u8]) -> Option<IpAddr> {
    let family = i32::from(u16::from_ne_bytes(raw.get(..2)?.try_into().ok()?));
    match family {
        libc::AF_INET => raw.get(4..8)?.first_chunk::<4>().map(|bytes| IpAddr::from(*bytes)),
        libc::AF_INET6 => raw.get(8..24)?.first_chunk::<16>().map(|bytes| IpAddr::from(*bytes)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(errno: i32, origin: u8, kind: u8, code: u8, info: u32, offender: &[u8]) -> Vec<u8> {
        let mut bytes = (errno as u32).to_ne_bytes().to_vec();
        bytes.extend([origin, kind, code, 0]);
        bytes.extend(info.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(offender);
        bytes
    }

    #[test]
    fn says_who_said_what() {
        let mut v4 = (libc::AF_INET as u16).to_ne_bytes().to_vec();
        v4.extend([0, 0, 10, 1, 0, 254, 0, 0, 0, 0, 0, 0, 0, 0]);
        let router = Some(IpAddr::from([10, 1, 0, 254]));
        for (kind, code, info, refusal) in [
            (3, 4, 1500, Refusal::TooBig(Some(1500))),
            (3, 4, 0, Refusal::TooBig(None)),
            (11, 0, 0, Refusal::Expired),
            (3, 1, 0, Refusal::Unreachable(3, 1)),
            (12, 0, 0, Refusal::Other),
        ] {
            let report = parse_report(&entry(0, ORIGIN_ICMP, kind, code, info, &v4)).expect("an entry");
            assert_eq!((report.refusal, report.by), (refusal, router));
        }
        let mut v6 = (libc::AF_INET6 as u16).to_ne_bytes().to_vec();
        v6.extend([0; 6]);
        v6.extend([0xfd, 0x78, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
        let report = parse_report(&entry(0, ORIGIN_ICMP6, 2, 0, 1400, &v6)).expect("an entry");
        assert_eq!(
            (report.refusal, report.by),
            (Refusal::TooBig(Some(1400)), Some("fd78::1".parse().expect("an address")))
        );
        let own = parse_report(&entry(libc::EMSGSIZE, ORIGIN_LOCAL, 0, 0, 1500, &v4)).expect("an entry");
        assert_eq!((own.refusal, own.by), (Refusal::TooBig(Some(1500)), None));
    }

    #[test]
    fn what_is_cut_is_none_or_without_offender() {
        let whole = entry(0, ORIGIN_ICMP, 11, 0, 0, &[2, 0, 0, 0, 10, 0, 0, 1]);
        for length in 0..whole.len() {
            let report = parse_report(&whole[..length]);
            assert!(report.is_none_or(|report| report.by.is_none() || length == whole.len()), "{length}");
        }
    }
}
