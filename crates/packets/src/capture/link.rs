//! What the packets of an interface begin with.

/// The link types that are read (https://www.tcpdump.org/linktypes.html).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// 0 and 108: four bytes of address family, in the byte order of the host that captured or of the network.
    Loopback,
    /// 1: Ethernet II, without preamble.
    Ethernet,
    /// 9 and 50: PPP.
    Ppp,
    /// 51: PPPoE, without Ethernet in front.
    PppEther,
    /// 12, 14, 101, and for one version of IP alone 228 and 229: the packet itself.
    Ip,
    /// 104: Cisco's HDLC, with an EtherType.
    CiscoHdlc,
    /// 105: IEEE 802.11.
    Wireless,
    /// 113: what Linux writes for the interface `any`.
    LinuxCooked,
    /// 127: IEEE 802.11 behind what the radio said of it.
    Radiotap,
    /// 192: Ethernet or IEEE 802.11 behind what was said of the packet.
    PerPacket,
    /// 276: the second version of that, with the interface's number.
    LinuxCooked2,
}

impl LinkType {
    /// By the number in a capture; `None` for link types that are not read.
    pub const fn from_number(number: u16) -> Option<LinkType> {
        Some(match number {
            0 | 108 => LinkType::Loopback,
            1 => LinkType::Ethernet,
            9 | 50 => LinkType::Ppp,
            51 => LinkType::PppEther,
            12 | 14 | 101 | 228 | 229 => LinkType::Ip,
            104 => LinkType::CiscoHdlc,
            105 => LinkType::Wireless,
            113 => LinkType::LinuxCooked,
            127 => LinkType::Radiotap,
            192 => LinkType::PerPacket,
            276 => LinkType::LinuxCooked2,
            _ => return None,
        })
    }
}
