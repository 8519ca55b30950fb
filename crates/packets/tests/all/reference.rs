//! Segmentation against an independent one that builds every frame from scratch, with full checksums.

use std::ops::Range;

use crate::common::{Case, case, cut, whole};
use framegauge_packets::build::{TcpFields, tcp_frame};
use framegauge_packets::{MAX_HEADER_BYTES, Segmentation, TcpFlags, VirtioNetHeader, checksum, parse};
use proptest::prelude::*;

/// The frames that a host without offloads would have sent.
fn reference(case: &Case) -> Vec<Vec<u8>> {
    let count = case.payload.len().div_ceil(usize::from(case.gso_bytes)).max(1);
    let frame = |index: usize| {
        let start = index * usize::from(case.gso_bytes);
        let end = (start + usize::from(case.gso_bytes)).min(case.payload.len());
        let mut flags = case.fields.flags;
        if index + 1 != count {
            flags = flags.without(TcpFlags::FIN).without(TcpFlags::PSH);
        }
        if index != 0 {
            flags = flags.without(TcpFlags::CWR);
        }
        let fields = TcpFields {
            seq: case.fields.seq.wrapping_add(start as u32),
            flags,
            identification: case.fields.identification.wrapping_add(index as u16),
            ..case.fields.clone()
        };
        tcp_frame(&case.addresses, &fields, &case.payload[start..end])
    };
    (0..count).map(frame).collect()
}

proptest! {
    #[test]
    fn frames_equal_the_reference(case in case()) {
        let (vnet, frame) = whole(&case);
        let plan = Segmentation::plan(&vnet, &frame).unwrap();
        let expected = reference(&case);
        prop_assert_eq!(usize::from(plan.frames()), expected.len());
        for (index, expected) in expected.iter().enumerate() {
            let index = index as u16;
            let mut found = cut(&plan, &frame, index);
            let vnet = plan.vnet_header();
            prop_assert_eq!(vnet.gso_type, VirtioNetHeader::GSO_NONE);
            prop_assert!(checksum::complete(&vnet, &mut found));
            prop_assert_eq!(&found, expected);
            prop_assert_eq!(plan.captured_bytes(index) as usize, expected.len());
            prop_assert_eq!(plan.tcp_payload_bytes(index) as usize, parse(expected).unwrap().payload_bytes());
        }
    }

    #[test]
    fn payload_ranges_tile_the_payload(case in case()) {
        let (vnet, frame) = whole(&case);
        let plan = Segmentation::plan(&vnet, &frame).unwrap();
        let ranges: Vec<Range<usize>> = (0..plan.frames()).map(|index| plan.payload_range(index)).collect();
        prop_assert_eq!(ranges[0].start, plan.header_bytes());
        prop_assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
        prop_assert_eq!(ranges[ranges.len() - 1].end, frame.len());
    }

    /// A frame that is no aggregate passes through unchanged, whatever it holds.
    #[test]
    fn single_frames_pass_unchanged(frame in prop::collection::vec(any::<u8>(), 14..200), flags in 0u8..4) {
        let vnet = VirtioNetHeader { flags, checksum_start: 34, checksum_offset: 16, ..Default::default() };
        let plan = Segmentation::plan(&vnet, &frame).unwrap();
        prop_assert_eq!(plan.frames(), 1);
        prop_assert_eq!(cut(&plan, &frame, 0), frame.clone());
        prop_assert_eq!(plan.vnet_header(), vnet);
        prop_assert_eq!(plan.captured_bytes(0) as usize, frame.len());
    }

    #[test]
    fn hostile_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        index: u16,
        out_bytes in 0usize..200,
    ) {
        crate::common::exercise(&bytes, index, out_bytes);
    }

    /// Bytes that nearly are an aggregate reach further than noise.
    #[test]
    fn damaged_aggregates_never_panic(
        case in case(), damage in prop::collection::vec((0usize..120, any::<u8>()), 0..6),
        cut_at: Option<u16>, index: u16, out_bytes in 0usize..200,
    ) {
        let (vnet, frame) = whole(&case);
        let mut bytes = vnet.to_bytes().to_vec();
        bytes.extend(frame);
        for (at, value) in damage {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        bytes.truncate(cut_at.map_or(usize::MAX, usize::from));
        crate::common::exercise(&bytes, index, out_bytes);
    }
}

#[test]
fn the_longest_header_fits() {
    assert_eq!(MAX_HEADER_BYTES, 14 + 4 + 60 + 60);
}
