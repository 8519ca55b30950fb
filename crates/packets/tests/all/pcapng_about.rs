//! What a capture of ours says of itself, and of what it could not keep.

use framegauge_packets::capture::Reader;
use framegauge_packets::pcapng::{About, Captured, Direction, LINK_ETHERNET, LINK_IP, Section, Statistics};

#[test]
fn drops_of_each_interface_are_read_back() {
    let mut bytes = Vec::new();
    let about = About { system: Some("Linux 6.18"), comment: Some("host h1") };
    let mut section = Section::begin_about(&mut bytes, about);
    section.interface_with(&mut bytes, "eth0", 192, LINK_ETHERNET);
    section.interface_with(&mut bytes, "wg0", 192, LINK_IP);
    let packet = Captured {
        interface: 1,
        time_nanoseconds: 1_795_697_145_991_291_500,
        original_bytes: 9000,
        bytes: &[0x45; 40],
        direction: Some(Direction::Outbound),
        comment: None,
    };
    section.packet(&mut bytes, &packet).expect("an interface that is described");
    for (interface, dropped_packets) in [(0, 7), (1, 1 << 40)] {
        let start_nanoseconds = 1_795_697_145_000_000_000;
        let end_nanoseconds = start_nanoseconds + 5_000_000_000;
        let accepted_packets = dropped_packets + 1;
        section.statistics(
            &mut bytes,
            &Statistics { interface, start_nanoseconds, end_nanoseconds, accepted_packets, dropped_packets },
        );
    }
    assert!(bytes.windows(7).any(|window| window == b"host h1"));
    let mut reader = Reader::new(bytes.as_slice()).expect("a capture");
    let record = reader.next().expect("it is whole").expect("a packet");
    assert_eq!((record.nanoseconds, record.original_bytes), (1_795_697_145_991_291_500, 9000));
    assert!(reader.next().expect("it is whole").is_none());
    assert_eq!(reader.loss().packets(), Some(7 + (1 << 40)));
    let links: Vec<u16> = reader.interfaces().iter().map(|interface| interface.link_type).collect();
    assert_eq!(links, [LINK_ETHERNET, LINK_IP]);
    for interface in reader.interfaces() {
        let times = (interface.begun, interface.ended);
        assert_eq!(times, (Some(1_795_697_145_000_000_000), Some(1_795_697_150_000_000_000)));
    }
}
