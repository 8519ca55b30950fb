//! What encapsulations take: published figures, the table of the documentation, and laws that hold for every stack.
#![allow(clippy::disallowed_methods, reason = "a test reads the documentation")]

use framegauge_frames::{
    BitRate, Encapsulation, EspCipher, EspSuite, Family, Fit, Hmac, InUdp, Mtu, OpenVpnSuite, Stack, WORDS,
};
use proptest::prelude::*;

fn stack(text: &str) -> Stack {
    Stack::parse(text.split(',')).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn fit(text: &str, mtu: u32) -> Fit {
    stack(text).fit(Mtu::new(mtu).unwrap()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> String {
    Stack::parse(text.split(',')).unwrap_err().to_string()
}

/// Encapsulations, MTU, inner MTU; who says so.
const PUBLISHED: [(&str, u32, u32, &str); 98] = [
    ("vxlan", 1500, 1450, "Linux vxlan_headroom(): 20 + 8 + 8 + 14"),
    ("vxlan,ipv6", 1500, 1430, "Linux vxlan_headroom(): 40 + 8 + 8 + 14"),
    ("vxlan", 9000, 8950, "RFC 7348 section 5"),
    ("vxlan:gpe", 1500, 1464, "Linux vxlan_headroom(): GPE has no Ethernet header"),
    ("geneve", 1500, 1450, "RFC 8926 sections 3.1 and 3.4: 20 + 8 + 8 + 14"),
    ("geneve,ipv6", 1500, 1430, "RFC 8926 sections 3.2 and 3.4"),
    ("geneve:8", 1500, 1442, "OVN: 58 with its one option of 8 bytes"),
    ("geneve:252", 1500, 1198, "RFC 8926 section 3.4: Opt Len has six bits, in units of 4 bytes"),
    ("gre", 1500, 1476, "RFC 2784 section 2.1: 20 + 4; the MTU that `ip tunnel add mode gre` gives"),
    ("gre:key", 1500, 1472, "RFC 2890 section 2"),
    ("gre:checksum", 1500, 1472, "RFC 2784 section 2.5: checksum and reserved1"),
    ("gre:key:checksum:sequence", 1500, 1464, "Linux gre_calc_hlen(): 4 + 4 + 4 + 4"),
    ("gre,ipv6", 1500, 1456, "RFC 7676: 40 + 4"),
    ("gre:encap-limit,ipv6", 1500, 1448, "Linux ip6gre_tnl_link_config(): 8 for the encapsulation limit"),
    ("gretap", 1500, 1462, "Linux gre_tap_init(): the MTU that it gives"),
    ("gretap:key", 1500, 1458, "RFC 2890 section 2"),
    ("gretap,ipv6", 1500, 1442, "40 + 4 + 14"),
    ("nvgre", 1500, 1458, "RFC 7637 section 3.2: 20 + 8 + 14"),
    ("nvgre,ipv6", 1500, 1438, "RFC 7637 section 3.2: 40 + 8 + 14"),
    ("ipip", 1500, 1480, "RFC 2003 section 3.1"),
    ("ipip,ipv6", 1500, 1460, "RFC 2473 section 3.1"),
    ("6in4", 1500, 1480, "RFC 4213 section 3.2.1"),
    ("4in6", 1500, 1460, "RFC 2473 section 3.1"),
    ("ip6ip6:encap-limit", 1500, 1452, "Linux ip6_tnl_link_config(): the MTU that ip6tnl gives"),
    ("wireguard", 1500, 1440, "WireGuard paper section 5.4.6: 20 + 8 + 16 + 16"),
    ("wireguard,ipv6", 1500, 1420, "Linux wg_setup(): the MTU that it gives, for either family"),
    // 1500 - 20 - 8 - 8 - 16 = 1448 for ciphertext, of which 2 are the trailer.
    ("esp-tunnel", 1500, 1446, "RFC 4303 section 2; RFC 4106 sections 3.1 and 6; Linux xfrm_state_mtu()"),
    ("esp-tunnel", 1501, 1446, "RFC 4303 section 2.4: four bytes at a time"),
    ("esp-tunnel", 1503, 1446, "RFC 4303 section 2.4"),
    ("esp-tunnel", 1504, 1450, "RFC 4303 section 2.4"),
    ("esp-tunnel,ipv6", 1500, 1426, "RFC 4303: 20 more"),
    ("esp-tunnel:nat-t", 1500, 1438, "RFC 3948 section 2.1: 8 more"),
    ("esp-transport", 1500, 1466, "RFC 4303 section 3.1.1: 8 + 8 + 2 + 16, no IP header"),
    ("esp-transport:nat-t", 1500, 1458, "RFC 3948 section 2.1"),
    ("pppoe", 1500, 1492, "RFC 2516 section 7"),
    ("pppoe", 1508, 1500, "RFC 4638"),
    ("vlan", 1500, 1500, "IEEE 802.3: a tagged frame may be 4 bytes longer"),
    ("qinq", 9000, 9000, "the same, twice"),
    ("mpls:3", 9000, 9000, "RFC 3032 section 3.1: labels are no part of the IP packet"),
    (
        "mpls:3:in-mtu",
        9000,
        8988,
        "RFC 3032 section 3.1, where the link counts them: Linux mpls_pkt_too_big()",
    ),
    ("macsec:in-mtu", 1500, 1468, "Linux macsec_newlink(): 16 + 16"),
    ("macsec:no-sci:in-mtu", 1500, 1476, "IEEE 802.1AE clause 9.3: 8 + 16"),
    ("vxlan,vlan", 1500, 1446, "a tag of the inner frame is inside of the outer packet"),
    ("esp-transport,vxlan", 1500, 1416, "34 of ESP, then 50 of VXLAN"),
    // Linux xfrm_state_mtu(): ((1500 - 44 - ICV) & ~15) - 2 in tunnel mode.
    (
        "esp-tunnel:aes-cbc:sha1",
        1500,
        1438,
        "RFC 3602 section 3, RFC 2404: 1440 of ciphertext, 2 are the trailer",
    ),
    ("esp-tunnel:aes-cbc", 1500, 1438, "RFC 4868: 16 of ICV, 1440 of ciphertext"),
    ("esp-tunnel:aes-cbc:sha512", 1500, 1422, "RFC 4868: 32 of ICV, 1424 of ciphertext"),
    ("esp-tunnel:aes-cbc:sha384", 1500, 1422, "RFC 4868: 24 of ICV, 1432 are no whole blocks"),
    ("esp-tunnel:aes-cbc:sha1,ipv6", 1500, 1422, "20 more: 1424 of ciphertext"),
    ("esp-tunnel:aes-cbc:sha1:nat-t", 1500, 1422, "RFC 3948: 8 more"),
    ("esp-tunnel:3des-cbc:sha1", 1500, 1446, "RFC 2451: 8 of IV, blocks of 8: 1448 of ciphertext"),
    ("esp-tunnel:aes-ctr:sha256", 1500, 1446, "RFC 3686: 8 of IV, no blocks"),
    ("esp-tunnel:null:sha1", 1500, 1458, "RFC 2410: no IV"),
    ("esp-tunnel:chacha20", 1500, 1446, "RFC 7634 section 2: as AES-GCM-16"),
    ("esp-tunnel:aes-gcm-8", 1500, 1454, "RFC 4106 section 6: 8 of ICV"),
    ("esp-tunnel:aes-gcm-12", 1500, 1450, "RFC 4106 section 6: 12 of ICV"),
    // ((1500 - 24 - 12 - 20) & ~15) + 20 - 2: the IP header is not enciphered.
    ("esp-transport:aes-cbc:sha1", 1500, 1458, "Linux xfrm_state_mtu() in transport mode"),
    ("esp-transport:aes-cbc:sha1,ipv6", 1500, 1462, "the same with 40 of IP header: 1424 + 40 - 2"),
    ("ah-transport:sha1", 1500, 1476, "RFC 4302 section 2, RFC 2404: 12 + 12"),
    ("ah-transport", 1500, 1472, "RFC 4868: 12 + 16"),
    ("ah-transport:align8", 1500, 1468, "Linux ah_init_state() without align4: to 8 bytes"),
    ("ah-transport,ipv6", 1500, 1468, "RFC 4302 section 3.3.3.2.1: to 8 bytes over IPv6"),
    ("ah-tunnel:sha1", 1500, 1456, "20 + 12 + 12"),
    ("ah-tunnel:sha512", 1500, 1436, "20 + 12 + 32"),
    ("ah-tunnel:sha512,ipv6", 1500, 1412, "40 + 12 + 32 + 4 of padding"),
    ("ah-transport:sha1,esp-transport", 1500, 1442, "AH around ESP: 24 + 34"),
    ("l2tp", 1500, 1462, "RFC 2661 section 3.1: 20 + 8 + 6, PPP 4; Linux pppol2tp_xmit()"),
    ("l2tp:length:sequence", 1500, 1456, "RFC 2661 section 3.1: 2 and 4 more"),
    ("l2tp,ipv6", 1500, 1442, "20 more"),
    ("l2tpv3:udp", 1500, 1446, "Linux l2tp_eth_adjust_mtu(): 20 + 8 + 4 + 4 + 4 + 14"),
    ("l2tpv3", 1500, 1458, "RFC 3931 section 4.1.1: 20 + 4 + 4 + 14"),
    ("l2tpv3:no-sublayer", 1500, 1462, "RFC 3931 section 4.6"),
    ("l2tpv3:8:udp", 1500, 1438, "RFC 3931 section 4.1: a cookie of 64 bits"),
    ("l2tpv3,ipv6", 1500, 1438, "20 more"),
    ("pptp", 1500, 1460, "RFC 2637 section 4.1: 20 + 16, PPP 4"),
    ("openvpn", 1500, 1448, "OpenVPN crypto.h: 20 + 8 + 4 + 4 + 16"),
    ("openvpn:tap", 1500, 1434, "14 of Ethernet"),
    ("openvpn,ipv6", 1500, 1428, "20 more"),
    // 1500 - 20 - 8 - 4 - 20 - 16 = 1432 for ciphertext: 89 blocks are 1424, of them 4 are the packet ID, 1 padding.
    ("openvpn:cbc", 1500, 1419, "OpenVPN crypto.h: HMAC-SHA1 of 20 bytes, IV of 16"),
    ("openvpn:cbc:sha256", 1500, 1403, "HMAC-SHA256 of 32 bytes: 1420 for ciphertext, 1408 in blocks"),
    ("stt", 1500, 1428, "draft-davie-stt-08 section 3: 20 + 20 + 18 + 14"),
    ("gtp-u", 1500, 1464, "3GPP TS 29.281 section 5.1: 20 + 8 + 8"),
    ("gtp-u:sequence", 1500, 1460, "3GPP TS 29.281 section 5.1: 4 more"),
    ("gtp-u:pdu-session", 1500, 1456, "3GPP TS 38.415: a container of 4 bytes behind the optional fields"),
    ("gtp-u:pdu-session,ipv6", 1500, 1436, "20 more"),
    ("srv6:1", 1500, 1436, "RFC 8754 section 2: 40 + 8 + 16; Linux seg6 mode encap"),
    ("srv6:3", 1500, 1404, "RFC 8754 section 2: 40 + 8 + 3 x 16"),
    ("srv6:3:reduced", 1500, 1420, "RFC 8986 section 5.2: one segment less"),
    ("srv6:1:reduced", 1500, 1460, "RFC 8986 section 5.2: no header at all"),
    ("srv6:2:l2", 1500, 1406, "RFC 8986 section 5.3: 40 + 8 + 32 + 14"),
    ("fou", 1500, 1472, "Linux fou_encap_hlen(): 20 + 8"),
    ("gue", 1500, 1468, "Linux gue_encap_hlen(): 20 + 8 + 4"),
    ("gre:fou", 1500, 1468, "RFC 8086: 20 + 8 + 4"),
    ("gretap:key:gue,ipv6", 1500, 1426, "40 + 8 + 4 + 8 + 14"),
    ("464xlat", 1500, 1480, "RFC 7915 section 4.1: the IPv6 header is 20 longer"),
    ("nat64:fragment", 1500, 1472, "RFC 7915 section 4: a fragment header of 8 bytes besides"),
    ("pppoe,l2tp,esp-transport", 1500, 1418, "8 + 38: 1454; ((1454 - 32 - 20) & ~3) + 20 - 2"),
    ("vlan,vxlan,ipv6,esp-tunnel:aes-cbc:sha1", 1500, 1358, "70: 1430; ((1430 - 56) & ~15) - 2 = 1358"),
];

#[test]
fn published_figures() {
    for (words, mtu, inner, source) in PUBLISHED {
        let found = fit(words, mtu);
        assert_eq!(found.inner_mtu.bytes(), inner, "{words} at {mtu}: {source}");
        assert_eq!(found.overhead_bytes(), mtu - inner);
        for layer in &found.layers {
            let parts: u32 = layer.parts.iter().map(|part| part.bytes).sum();
            assert_eq!(layer.overhead_bytes, parts);
            assert!(layer.parts.iter().all(|part| !part.source.is_empty() && part.bytes > 0));
        }
    }
}

#[test]
fn frames_grow_by_what_is_not_in_the_mtu() {
    // Untagged, 802.1Q, 802.1ad, MACsec with SCI, two labels: IEEE 802.3 clause 3.2 plus each.
    for (words, frame) in
        [("vlan", 1522), ("qinq", 1526), ("macsec", 1550), ("macsec:no-sci", 1542), ("mpls:2", 1526)]
    {
        let found = fit(words, 1500);
        assert_eq!((found.frame_bytes, found.wire_bytes), (frame, frame + 20), "{words}");
        assert_eq!(found.frame_overhead_bytes(), frame - 1518);
    }
    assert_eq!(fit("vlan,mpls:2,vxlan", 1500).frame_bytes, 1518 + 4 + 8);
    assert_eq!(fit("vxlan,vlan", 1500).frame_bytes, 1518, "the inner tag is inside of the outer packet");
    assert_eq!(fit("mpls:2:in-mtu", 1500).frame_bytes, 1518);
    assert_eq!(fit("esp-tunnel", 1503).frame_bytes, 1518, "ESP leaves three bytes of 1503 unused");
    assert_eq!(fit("esp-tunnel", 1503).layers[0].parts.last().unwrap().bytes, 3);
}

#[test]
fn ceilings_inside() {
    let found = fit("vxlan,ipv6", 9000);
    let rate = BitRate::new(10_000_000_000).unwrap();
    let [v4, v6] = found.ceilings(Some(rate))[..] else { panic!("both versions are carried") };
    assert_eq!((v4.family, v4.mss_bytes, v4.segment_payload_bytes), (Family::V4, 8890, 8878));
    assert_eq!((v6.family, v6.mss_bytes, v6.segment_payload_bytes), (Family::V6, 8870, 8858));
    // 10^10 / (9038 * 8) frames, each with 8878 bytes of payload.
    assert!((v4.packets_per_second.unwrap() - 138_305.0).abs() < 1.0);
    assert!((v4.goodput_bits_per_second.unwrap() - 9.822_97e9).abs() < 1e5);
    assert_eq!(found.ceilings(None)[0].goodput_bits_per_second, None);
    // Without any encapsulation it is the ordinary ceiling.
    let plain = Stack::new(vec![]).unwrap().fit(Mtu::new(1500).unwrap()).unwrap();
    let gigabit = BitRate::new(1_000_000_000).unwrap();
    let ordinary = framegauge_frames::ceiling(Mtu::new(1500).unwrap(), Family::V4, true, gigabit);
    let found = plain.ceilings(Some(gigabit))[0].goodput_bits_per_second.unwrap();
    assert!((found - ordinary.goodput_bits_per_second).abs() < 1.0);
}

#[test]
fn only_what_is_carried_has_a_ceiling() {
    let families =
        |words, mtu| fit(words, mtu).ceilings(None).iter().map(|each| each.family).collect::<Vec<_>>();
    assert_eq!(families("6in4", 1500), [Family::V6]);
    assert_eq!(families("4in6", 1500), [Family::V4]);
    assert_eq!(families("ipip", 1500), [Family::V4]);
    assert_eq!(families("esp-transport,ipv6", 1500), [Family::V6]);
    assert_eq!(families("6in4,esp-transport", 1500), [Family::V6]);
    assert_eq!(families("gre", 1500), [Family::V4, Family::V6]);
    assert_eq!(families("wireguard,ipv6", 1280), [Family::V4], "1200 bytes are too few for IPv6");
}

#[test]
fn mistakes_are_named_in_one_line() {
    assert!(
        refusal("vxlam")
            .starts_with("encapsulations: found \"vxlam\", expected vxlan, or another of vlan, qinq,")
    );
    assert!(refusal("").starts_with("encapsulations: found \"\", expected one of vlan"));
    assert_eq!(
        refusal("ipv6,vxlan"),
        "ipv6: found nothing that it could belong to, expected an encapsulation before it whose underlay it is"
    );
    assert_eq!(refusal("6in4,ipv6"), "6in4: found ipv6 as its underlay, expected ipv4");
    assert_eq!(
        refusal("vlan,ipv4"),
        "vlan: found ipv4 as its underlay, expected no underlay: it has no IP header"
    );
    assert_eq!(
        refusal("gre:kee"),
        "gre: found \"kee\", expected one of key, checksum, sequence, encap-limit, fou, gue"
    );
    assert_eq!(refusal("nvgre:key"), "nvgre: found \"key\", expected no option");
    assert_eq!(
        refusal("geneve:10"),
        "geneve: found \"10\", expected bytes of options: a multiple of 4 up to 252"
    );
    assert_eq!(
        refusal("geneve:256"),
        "geneve: found \"256\", expected bytes of options: a multiple of 4 up to 252"
    );
    assert_eq!(refusal("mpls:0"), "mpls: found \"0\", expected 1 to 16 labels");
    assert_eq!(refusal("mpls:LABELS"), "mpls: found \"LABELS\", expected a number in the place of LABELS");
    assert_eq!(refusal("vxlan:"), "vxlan: found \"\", expected one of gpe");
    assert_eq!(
        refusal("gre,vlan"),
        "vlan: found gre around it, which carries no Ethernet, expected Ethernet around it"
    );
    assert_eq!(
        refusal("ipip,vxlan,ipv6"),
        "vxlan: found ipip around it, which carries ipv4 only, expected ipv4 as its underlay"
    );
    assert_eq!(
        refusal("gre:encap-limit"),
        "gre:encap-limit: found encap-limit over ipv4, expected ipv6 as its underlay: IPv4 has no such option"
    );
    assert_eq!(refusal(&["vlan"; 17].join(",")), "encapsulations: found 17 layers, expected at most 16");
    let small = |words, mtu| stack(words).fit(Mtu::new(mtu).unwrap()).unwrap_err().to_string();
    assert_eq!(
        small("vxlan,ipv6", 1279),
        "vxlan: found an MTU of 1279 bytes around it, expected at least 1280 for ipv6"
    );
    assert_eq!(
        small("vxlan", 100),
        "vxlan: found room for packets of 50 bytes inside of it, expected at least 68 for ipv4"
    );
    assert_eq!(stack("gre,mpls").layers().len(), 2, "RFC 4023: MPLS in GRE");
}

#[test]
fn options_that_do_not_go_together_are_named() {
    assert_eq!(
        refusal("esp-tunnel:aes-cbc:null"),
        "esp-tunnel: found aes-cbc and null, expected one of them"
    );
    assert_eq!(
        refusal("esp-transport:chacha20:sha1"),
        "esp-transport: found sha1 with chacha20, expected aes-cbc or another cipher that does not authenticate by \
         itself"
    );
    assert_eq!(
        refusal("openvpn:sha1"),
        "openvpn: found sha1 without cbc, expected cbc with it: GCM authenticates by itself"
    );
    assert_eq!(refusal("gre:fou:gue"), "gre: found fou and gue, expected one of them");
    assert_eq!(refusal("l2tpv3:5"), "l2tpv3: found \"5\", expected bytes of the cookie: 0, 4 or 8");
    assert_eq!(refusal("srv6:17"), "srv6: found \"17\", expected 1 to 16 segments");
    assert_eq!(refusal("srv6,ipv4"), "srv6: found ipv4 as its underlay, expected ipv6");
    assert_eq!(
        refusal("nat64,4in6"),
        "4in6: found 464xlat around it, which carries ipv4 only, expected ipv4 as its underlay"
    );
}

/// What OpenVPN 2.6.14 sent over IPv4 for inner packets, as tcpdump saw it: `ping -s 1000 -M do` and one byte more.
#[test]
fn packets_of_openvpn() {
    for (words, inner, outer) in [
        ("openvpn", 1028, 1080),
        ("openvpn", 1029, 1081),
        ("openvpn:cbc", 1028, 1108),
        ("openvpn:cbc", 1031, 1108),
    ] {
        let encapsulation = stack(words).layers()[0].encapsulation;
        assert_eq!(wrap(encapsulation, inner, 1500), outer, "{words}");
        assert!(fit(words, outer as u32).inner_mtu.bytes() as usize >= inner, "{words}");
        assert!((fit(words, outer as u32 - 1).inner_mtu.bytes() as usize) < inner, "{words}");
    }
}

/// Where the size depends on the packet, both ends are told, and which of them counts.
#[test]
fn ranges() {
    let range = |words| fit(words, 1500).layers[0].range.map(|range| (range.least_bytes, range.most_bytes));
    assert_eq!(range("esp-tunnel"), Some((54, 57)), "RFC 4303 section 2.4");
    assert_eq!(range("esp-tunnel:aes-cbc:sha1"), Some((58, 73)), "RFC 3602: blocks of 16");
    assert_eq!(range("openvpn:cbc"), Some((73, 88)), "RFC 5652: 1 to 16 bytes of padding");
    assert_eq!(range("wireguard"), Some((60, 75)), "Linux calculate_skb_padding()");
    assert_eq!(range("pptp"), Some((34, 40)), "RFC 2637: acknowledgements only where they are due");
    assert_eq!(range("l2tp"), Some((36, 38)), "RFC 1661 section 6.6: address and control may be left out");
    assert_eq!(range("vxlan"), None);
    // The whole range is used: the overhead of every packet lies in it, and both ends occur.
    for words in ["esp-tunnel:aes-cbc", "esp-transport:3des-cbc", "openvpn:cbc:sha256", "wireguard,ipv6"] {
        let found = fit(words, 1500);
        let inner = found.inner_mtu.bytes() as usize;
        let sizes =
            (1280..=inner).map(|packet| wrap(found.layers[0].layer.encapsulation, packet, inner) - packet);
        let sizes: Vec<usize> = sizes.collect();
        let range = found.layers[0].range.unwrap();
        assert_eq!(*sizes.iter().min().unwrap(), range.least_bytes as usize, "{words}");
        assert_eq!(*sizes.iter().max().unwrap(), range.most_bytes as usize, "{words}");
    }
}

/// The rows of the documentation's table: `| word | … | over IPv4 | over IPv6 | source |`.
#[test]
fn the_documentation_says_the_same() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/encapsulation.md");
    let text = std::fs::read_to_string(path).expect("the documentation is there");
    let mut seen = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let word = cells[0].trim_matches('`');
        for (cell, underlay) in [(cells[2], "ipv4"), (cells[3], "ipv6")] {
            let Ok(bytes) = cell.parse::<u32>() else { continue };
            let words =
                if cells[2] == cells[3] || cells[3].is_empty() { vec![word] } else { vec![word, underlay] };
            let found = Stack::parse(words).unwrap_or_else(|error| panic!("{line}: {error}"));
            let overhead: u32 = found.layers().iter().map(|layer| layer.encapsulation.overhead_bytes()).sum();
            assert_eq!(overhead, bytes, "{line}");
        }
        seen.push(word.split(':').next().unwrap_or_default().to_string());
    }
    for (word, _) in WORDS {
        assert!(
            seen.iter().any(|each| each == word),
            "docs/reference/encapsulation.md has no row for {word}"
        );
    }
}

/// The check value of IPsec, in bytes.
fn truncated(hmac: Hmac) -> usize {
    match hmac {
        Hmac::Md5 | Hmac::Sha1 => 12,
        Hmac::Sha256 => 16,
        Hmac::Sha384 => 24,
        Hmac::Sha512 => 32,
    }
}

/// What surrounds `packet` bytes, header by header, written down without the crate's tables. A packet may not exceed
/// `mtu`, the tunnel's own; WireGuard pads up to it.
fn wrap(encapsulation: Encapsulation, packet: usize, mtu: usize) -> usize {
    let mut bytes = vec![0u8; packet];
    let mut add = |count: usize| bytes.extend(std::iter::repeat_n(0, count));
    let gre = |options: framegauge_frames::GreOptions| {
        let fields = [options.key, options.checksum, options.sequence];
        4 + 4 * fields.iter().filter(|field| **field).count()
            + if options.encapsulation_limit { 8 } else { 0 }
    };
    match encapsulation {
        Encapsulation::Vlan => add(4),
        Encapsulation::Qinq => add(8),
        Encapsulation::Macsec { sci } => add(if sci { 32 } else { 24 }),
        Encapsulation::Mpls { labels } => add(4 * usize::from(labels)),
        Encapsulation::Pppoe => add(8),
        Encapsulation::Vxlan { underlay, gpe } => add(ip(underlay) + 16 + if gpe { 0 } else { 14 }),
        Encapsulation::Geneve { underlay, options_bytes } => {
            add(ip(underlay) + 30 + usize::from(options_bytes))
        }
        Encapsulation::Gre { underlay, options } => add(ip(underlay) + in_udp(options.in_udp) + gre(options)),
        Encapsulation::Gretap { underlay, options } => {
            add(ip(underlay) + in_udp(options.in_udp) + gre(options) + 14)
        }
        Encapsulation::Nvgre { underlay } => add(ip(underlay) + 22),
        Encapsulation::Ip { underlay, encapsulation_limit, .. } => {
            add(ip(underlay) + if encapsulation_limit { 8 } else { 0 });
        }
        Encapsulation::WireGuard { underlay } => {
            let padding = packet.next_multiple_of(16).min(mtu.max(packet)) - packet;
            add(ip(underlay) + 8 + 32 + padding);
        }
        _ => add(around(encapsulation, packet)),
    }
    bytes.len()
}

fn ip(family: Family) -> usize {
    if family == Family::V4 { 20 } else { 40 }
}

fn in_udp(kind: Option<InUdp>) -> usize {
    match kind {
        None => 0,
        Some(InUdp::Fou) => 8,
        Some(InUdp::Gue) => 12,
    }
}

/// ESP without its IP header.
fn esp(suite: EspSuite, enciphered: usize) -> usize {
    let (iv, block) = match suite.cipher {
        EspCipher::Null => (0, 4),
        EspCipher::AesCbc => (16, 16),
        EspCipher::TripleDes => (8, 8),
        EspCipher::AesGcm { .. } | EspCipher::ChaCha20 | EspCipher::AesCtr => (8, 4),
    };
    let check = match suite.cipher {
        EspCipher::AesGcm { icv_bytes } => usize::from(icv_bytes),
        EspCipher::ChaCha20 => 16,
        _ => truncated(suite.hmac),
    };
    let trailer = (block - (enciphered + 2) % block) % block + 2;
    8 + iv + trailer + check
}

/// The same for encapsulations with a cipher, those of telephone networks and those in UDP.
fn around(encapsulation: Encapsulation, packet: usize) -> usize {
    match encapsulation {
        Encapsulation::EspTunnel { underlay, nat_traversal, suite } => {
            ip(underlay) + if nat_traversal { 8 } else { 0 } + esp(suite, packet)
        }
        Encapsulation::EspTransport { family, nat_traversal, suite } => {
            let enciphered = packet - ip(family.unwrap_or(Family::V4));
            8 * usize::from(nat_traversal) + esp(suite, enciphered)
        }
        Encapsulation::Ah { family, tunnel, hmac, align8 } => {
            let multiple = if align8 || family == Family::V6 { 8 } else { 4 };
            let header = (12 + truncated(hmac)).next_multiple_of(multiple);
            header + if tunnel { ip(family) } else { 0 }
        }
        Encapsulation::L2tp { underlay, length, sequence } => {
            ip(underlay) + 8 + 6 + 4 + 2 * usize::from(length) + 4 * usize::from(sequence)
        }
        Encapsulation::L2tpV3 { underlay, udp, cookie_bytes, sublayer } => {
            let outer = if udp { 8 + 4 } else { 0 };
            ip(underlay) + outer + 4 + usize::from(cookie_bytes) + 4 * usize::from(sublayer) + 14
        }
        Encapsulation::Pptp => 40,
        Encapsulation::OpenVpn { underlay, tap, suite } => {
            let data = packet + if tap { 14 } else { 0 };
            let around = match suite {
                OpenVpnSuite::Aead => 24,
                OpenVpnSuite::Cbc(hmac) => {
                    let digest = match hmac {
                        Hmac::Md5 => 16,
                        Hmac::Sha1 => 20,
                        Hmac::Sha256 => 32,
                        Hmac::Sha384 => 48,
                        Hmac::Sha512 => 64,
                    };
                    let padding = 16 - (4 + data) % 16;
                    4 + digest + 16 + 4 + padding
                }
            };
            ip(underlay) + 8 + around + data - packet
        }
        Encapsulation::Stt { underlay } => ip(underlay) + 20 + 18 + 14,
        Encapsulation::GtpU { underlay, sequence, pdu_session } => {
            let optional = if sequence || pdu_session { 4 } else { 0 };
            ip(underlay) + 8 + 8 + optional + if pdu_session { 4 } else { 0 }
        }
        Encapsulation::Srv6 { segments, reduced, l2 } => {
            let listed = usize::from(segments) - usize::from(reduced);
            let header = if listed == 0 { 0 } else { 8 + 16 * listed };
            40 + header + if l2 { 14 } else { 0 }
        }
        Encapsulation::Fou { underlay, kind } => ip(underlay) + in_udp(Some(kind)),
        Encapsulation::Nat64 { fragment_header } => 20 + if fragment_header { 8 } else { 0 },
        _ => unreachable!("wrap() has the others"),
    }
}

/// Whether a packet with everything around it fits the link, and how long its frame is.
fn forward(found: &Fit, packet: usize) -> (bool, usize) {
    let (mut bytes, mut beyond_mtu) = (packet, 0);
    for fitted in found.layers.iter().rev() {
        let wrapped = wrap(fitted.layer.encapsulation, bytes, fitted.inner_mtu.bytes() as usize);
        if fitted.within_mtu {
            bytes = wrapped;
        } else {
            beyond_mtu += wrapped - bytes;
        }
    }
    (bytes <= found.mtu.bytes() as usize, (bytes + beyond_mtu + 14).max(60) + 4)
}

/// Any words in any order; many make no stack.
fn words() -> impl Strategy<Value = Vec<String>> {
    let numbers = prop_oneof![Just(":4".to_string()), Just(":12".to_string()), Just(String::new())];
    let one =
        (0..WORDS.len(), any::<[u8; 3]>(), 0..3u8, numbers).prop_map(|(place, chosen, underlay, number)| {
            let (name, options) = WORDS[place];
            let mut word = name.to_string();
            for (place, option) in options.iter().enumerate() {
                let is_chosen = chosen.iter().any(|one| usize::from(*one) % (options.len() + 2) == place);
                if option.chars().all(|letter| letter.is_uppercase() || letter == '_') {
                    word.push_str(&number);
                } else if is_chosen {
                    word.push_str(&format!(":{option}"));
                }
            }
            let family = ["", "ipv4", "ipv6"][usize::from(underlay)];
            [word, family.to_string()].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>()
        });
    proptest::collection::vec(one, 0..5).prop_map(|layers| layers.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, max_global_rejects: 1_000_000, ..ProptestConfig::default() })]

    #[test]
    fn the_inner_mtu_fits_and_one_byte_more_does_not(words in words(), mtu in 68u32..=65_535) {
        let Ok(stack) = Stack::parse(words.iter().map(String::as_str)) else { return Ok(()) };
        let Ok(found) = stack.fit(Mtu::new(mtu).unwrap()) else { return Ok(()) };
        let inner = found.inner_mtu.bytes() as usize;
        let (fits, frame) = forward(&found, inner);
        prop_assert!(fits, "{words:?}");
        prop_assert_eq!(frame, found.frame_bytes as usize);
        prop_assert!(!forward(&found, inner + 1).0, "{words:?}");
    }

    #[test]
    fn every_word_alone_fits_exactly(place in 0..WORDS.len(), v6: bool, mtu in 1280u32..=9216) {
        let mut words = vec![WORDS[place].0];
        if v6 {
            words.push("ipv6");
        }
        let Ok(stack) = Stack::parse(words) else { return Ok(()) };
        let found = stack.fit(Mtu::new(mtu).unwrap()).unwrap();
        let inner = found.inner_mtu.bytes() as usize;
        prop_assert!(forward(&found, inner).0 && !forward(&found, inner + 1).0);
        // Written and read again it is the same.
        let written: Vec<String> = stack.layers().iter().flat_map(|layer| {
            let family = layer.encapsulation.underlay().map(|family| family.to_string());
            [Some(layer.to_string()), family].into_iter().flatten()
        }).collect();
        prop_assert_eq!(Stack::parse(written.iter().map(String::as_str)), Ok(stack));
    }

    #[test]
    fn no_text_panics(text in "[a-z0-9:,-]{0,40}", mtu in 68u32..=65_535) {
        if let Ok(stack) = Stack::parse(text.split(',')) {
            let _ = stack.fit(Mtu::new(mtu).unwrap()).map(|found| found.ceilings(None));
        }
    }
}
