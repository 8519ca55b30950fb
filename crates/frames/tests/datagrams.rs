//! Datagrams on Ethernet, FDDI and ATM: published figures, and laws that hold for every datagram and MTU.

use framegauge_frames::{Datagram, DatagramError, Family, Medium, Mtu};
use proptest::prelude::*;

fn mtu(bytes: u32) -> Mtu {
    Mtu::new(bytes).unwrap()
}

fn wire(datagram: &Datagram, medium: Medium, mtu_bytes: u32) -> u32 {
    datagram.packets(mtu(mtu_bytes)).iter().map(|packet| medium.wire_bytes(*packet)).sum()
}

#[test]
fn the_published_nfs_datagram_of_8_kib_takes_six_frames_two_or_one() {
    let read = Datagram::nfs_read(8192, Family::V4).unwrap();
    assert_eq!((read.payload_bytes, read.packet_bytes()), (8320, 8348));
    // 8328 bytes behind the IP header, 1480 of them in a full fragment: 5 × 1480 + 928.
    assert_eq!(read.packets(mtu(1500)), [1500, 1500, 1500, 1500, 1500, 948]);
    // 4332 is no multiple of 8.
    assert_eq!(read.packets(mtu(4352)), [4348, 4020]);
    assert_eq!(read.packets(mtu(9000)), [8348]);
    assert_eq!(wire(&read, Medium::Ethernet, 1500), 8448 + 6 * 38);
    assert_eq!(wire(&read, Medium::Ethernet, 9000), 8348 + 38);
    assert_eq!(wire(&read, Medium::Fddi, 4352), 4348 + 4020 + 2 * 30);
    // (8 + 8348 + 8) / 48 = 174.25.
    assert_eq!(Medium::Atm.cells(8348), Some(175));
    assert_eq!(wire(&read, Medium::Atm, 9180), 175 * 53);
}

#[test]
fn media_have_the_mtus_and_cells_of_their_standards() {
    assert_eq!(Medium::ALL.map(|medium| medium.standard_mtu().0), [1500, 4352, 9180]);
    // RFC 1390: of 4500 bytes, 4470 are left behind LLC/SNAP.
    assert_eq!(Medium::Fddi.wire_bytes(4470), 4500);
    // The default MTU of IP over ATM with LLC/SNAP is the maximum of SMDS, 9180: 9196 bytes in 192 cells.
    assert_eq!((Medium::Atm.cells(9180), Medium::Atm.wire_bytes(9180)), (Some(192), 192 * 53));
    // An acknowledgement of 40 bytes with LLC/SNAP takes two cells: 56 bytes do not fit into one.
    assert_eq!(Medium::Atm.cells(40), Some(2));
    assert_eq!(Medium::Atm.cells(32), Some(1));
    assert_eq!(Medium::Atm.cells(33), Some(2));
    assert_eq!((Medium::Ethernet.cells(40), Medium::Fddi.cells(40)), (None, None));
    // A frame of Ethernet is padded to 64 bytes.
    assert_eq!(Medium::Ethernet.wire_bytes(28), 84);
    for medium in Medium::ALL {
        assert!(medium.parts().iter().all(|part| part.bytes > 0 && !part.source.is_empty()), "{medium:?}");
    }
}

#[test]
fn ipv6_has_a_fragment_header_in_fragments_alone() {
    let datagram = |payload| Datagram::new(payload, Family::V6).unwrap();
    assert_eq!(datagram(1452).packets(mtu(1500)), [1500]);
    // 1448 bytes fit behind 48 of headers; 1453 + 8 of UDP are 13 more.
    assert_eq!(datagram(1453).packets(mtu(1500)), [1496, 61]);
}

#[test]
fn data_is_padded_to_whole_units() {
    for (data, payload) in [(0, 128), (1, 132), (3, 132), (4, 132), (5, 136)] {
        assert_eq!(Datagram::nfs_read(data, Family::V4).unwrap().payload_bytes, payload, "{data}");
    }
}

#[test]
fn a_datagram_ends_where_its_length_does() {
    assert_eq!(Datagram::new(65_507, Family::V4).unwrap().packet_bytes(), 65_535);
    assert_eq!(
        Datagram::new(65_508, Family::V4),
        Err(DatagramError::TooLarge { found: 65_508, most: 65_507 })
    );
    assert_eq!(Datagram::new(65_527, Family::V6).unwrap().payload_bytes, 65_527);
    assert!(Datagram::new(65_528, Family::V6).is_err());
    assert!(Datagram::nfs_read(65_507 - 127, Family::V4).is_err());
    assert!(Datagram::nfs_read(u64::MAX, Family::V4).is_err());
}

proptest! {
    #[test]
    fn fragments_carry_the_datagram_once_and_none_is_larger_than_the_mtu(
        payload in 0_u64..=65_507,
        bytes in 576_u32..=65_535,
        is_six: bool,
    ) {
        let family = if is_six { Family::V6 } else { Family::V4 };
        let bytes = bytes.max(family.minimum_mtu_bytes());
        let datagram = Datagram::new(payload, family).unwrap();
        let packets = datagram.packets(mtu(bytes));
        prop_assert!(packets.iter().all(|packet| *packet <= bytes));
        if let [only] = packets[..] {
            prop_assert_eq!(only, datagram.packet_bytes());
        } else {
            let header = family.header_bytes() + if is_six { 8 } else { 0 };
            let carried: u32 = packets.iter().map(|packet| packet - header).sum();
            prop_assert_eq!(u64::from(carried), payload + 8);
            let (last, full) = packets.split_last().unwrap();
            prop_assert!(full.iter().all(|packet| (packet - header) % 8 == 0 && packet + 8 > bytes));
            prop_assert!(*last > header);
        }
    }

    #[test]
    fn the_last_cell_of_a_packet_is_used(packet in 1_u32..=65_535) {
        let cells = Medium::Atm.cells(packet).unwrap();
        prop_assert!(cells * 48 >= packet + 16 && (cells - 1) * 48 < packet + 16);
    }
}
