//! What the packets of an interface begin with.

/// The link types that are read, and what messages say of them.
macro_rules! link_types {
    ($($(#[$doc:meta])+ $name:ident: $first:literal $($more:literal)*,)+) => {
        /// The link types that are read (https://www.tcpdump.org/linktypes.html).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum LinkType { $($(#[$doc])+ $name,)+ }

        impl LinkType {
            /// By the number in a capture; `None` for link types that are not read.
            pub const fn from_number(number: u16) -> Option<LinkType> {
                Some(match number {
                    $($first $(| $more)* => LinkType::$name,)+
                    _ => return None,
                })
            }
        }

        /// What a link type should have been.
        pub(super) const EXPECTED: &str = concat!("one that is read:" $(, " ", $first $(, " ", $more)*)+);
    };
}

link_types! {
    /// Four bytes of address family, in the byte order of the host that captured or of the network.
    Loopback: 0 108,
    /// Ethernet II, without preamble.
    Ethernet: 1,
    /// PPP.
    Ppp: 9 50,
    /// FDDI, without preamble.
    Fddi: 10,
    /// The packet itself; 228 and 229 are those of one version of IP alone.
    Ip: 12 14 101 228 229,
    /// PPPoE, without Ethernet in front.
    PppEther: 51,
    /// Cisco's HDLC, with an EtherType.
    CiscoHdlc: 104,
    /// IEEE 802.11.
    Wireless: 105,
    /// Frame relay, from its address on.
    FrameRelay: 107,
    /// What Linux writes for the interface `any`.
    LinuxCooked: 113,
    /// IEEE 802.11 behind what the radio said of it.
    Radiotap: 127,
    /// Ethernet or IEEE 802.11 behind what was said of the packet.
    PerPacket: 192,
    /// What Linux writes for a group of its firewall's log.
    Nflog: 239,
    /// The second version of 113, with the interface's number.
    LinuxCooked2: 276,
}
