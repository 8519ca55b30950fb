//! Segments and ICMP errors that were stored come back as they were.

use framegauge_packets::capture::{Fragments, IcmpNote, Quoted, SACK_BLOCKS, SackBlocks, Segment};
use framegauge_packets::{SynOptions, TcpFlags};
use proptest::prelude::*;
use std::net::{IpAddr, SocketAddr};

/// Two addresses of one version.
fn pair() -> impl Strategy<Value = (IpAddr, IpAddr)> {
    prop_oneof![
        any::<([u8; 4], [u8; 4])>().prop_map(|(one, other)| (one.into(), other.into())),
        any::<([u8; 16], [u8; 16])>().prop_map(|(one, other)| (one.into(), other.into())),
    ]
}

prop_compose! {
    fn segment()(
        (one, other) in pair(),
        (nanoseconds, number, ports) in any::<(i64, u64, (u16, u16))>(),
        (seq, ack, window, payload_bytes, ip_bytes) in any::<(u32, u32, u16, u32, u32)>(),
        (flags, hops, ecn, multipath, fast_open) in any::<(u8, u8, u8, bool, bool)>(),
        (timestamps, identification) in any::<(Option<(u32, u32)>, Option<u16>)>(),
        blocks in prop::collection::vec(any::<(u32, u32)>(), 0..=SACK_BLOCKS),
        (checksum_is_right, option_bytes, options_are_cut) in any::<(Option<bool>, u8, bool)>(),
        syn in any::<Option<(Option<u16>, bool, Option<u8>, bool)>>(),
        fragments in any::<Option<(u16, bool)>>(),
    ) -> Segment {
        let mut sack = SackBlocks { count: blocks.len() as u8, ..SackBlocks::default() };
        sack.blocks[..blocks.len()].copy_from_slice(&blocks);
        let syn = syn.map(|(mss, timestamps, window_scale, sack_permitted)| {
            SynOptions { mss, timestamps, window_scale, sack_permitted }
        });
        let fragments = fragments.map(|(first_bytes, are_whole)| Fragments { first_bytes, are_whole });
        Segment {
            nanoseconds, number, seq, ack, window, payload_bytes, ip_bytes, timestamps, sack, syn, multipath, fast_open,
            identification, hops, ecn, checksum_is_right, option_bytes, options_are_cut, fragments,
            source: SocketAddr::new(one, ports.0),
            destination: SocketAddr::new(other, ports.1),
            flags: TcpFlags(flags),
        }
    }
}

prop_compose! {
    fn note()(
        (source, destination) in pair(),
        (nanoseconds, number, kind, code, mtu) in any::<(i64, u64, u8, u8, Option<u32>)>(),
        quoted in prop::option::of((pair(), any::<(u16, u16, u32, u32)>())),
    ) -> IcmpNote {
        let quoted = quoted.map(|((one, other), (from, to, seq, ip_bytes))| Quoted {
            source: SocketAddr::new(one, from),
            destination: SocketAddr::new(other, to),
            seq,
            ip_bytes,
        });
        IcmpNote { nanoseconds, number, source, destination, kind, code, mtu, quoted }
    }
}

proptest! {
    #[test]
    fn a_segment_comes_back(segment in segment()) {
        let mut bytes = Vec::new();
        segment.store(&mut bytes);
        prop_assert!(bytes.len() < 128);
        prop_assert_eq!(Segment::stored(&bytes), Some(segment));
        prop_assert_eq!(Segment::stored(&bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn a_note_comes_back(note in note()) {
        let mut bytes = Vec::new();
        note.store(&mut bytes);
        prop_assert_eq!(IcmpNote::stored(&bytes), Some(note));
        prop_assert_eq!(IcmpNote::stored(&bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn other_bytes_are_no_fault(bytes in prop::collection::vec(any::<u8>(), 0..150)) {
        let _ = (Segment::stored(&bytes), IcmpNote::stored(&bytes));
    }
}
