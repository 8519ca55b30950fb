//! Frame relay (ITU-T Q.922) with IP, PPP or Ethernet inside (RFC 2427, RFC 1973), or with Cisco's own encapsulation.

use super::layers::UNNUMBERED;
use super::walk::{Inside, Walk, Why, word};
use crate::view::{TYPE_IPV4, TYPE_IPV6};

/// Bytes of an address: the lowest bit is set in the last of them.
const ADDRESS_BYTES_MINIMUM: usize = 2;
const ADDRESS_BYTES_MAXIMUM: usize = 4;

/// What network layer protocol identifiers name (ISO/IEC TR 9577).
const SNAP: u8 = 0x80;
const IPV6: u8 = 0x8e;
const IPV4: u8 = 0xcc;
const PPP: u8 = 0xcf;

/// Who gave the number of a protocol: EtherTypes, and those of IEEE 802.1 for frames that are bridged.
const OUI_ETHERTYPE: [u8; 3] = [0, 0, 0];
const OUI_BRIDGED: [u8; 3] = [0, 0x80, 0xc2];
/// Ethernet, with its frame check sequence and without.
const BRIDGED_ETHERNET: [u16; 2] = [1, 7];

impl Walk<'_> {
    /// A frame from its address on.
    pub(super) fn frame_relay(&mut self) -> Result<Inside, Why> {
        for count in 1.. {
            let is_last = self.take::<1>()?[0] & 1 == 1;
            match is_last {
                true if count < ADDRESS_BYTES_MINIMUM => return Err(Why::Malformed),
                true => break,
                false if count == ADDRESS_BYTES_MAXIMUM => return Err(Why::Malformed),
                false => {}
            }
        }
        if self.peek::<1>()?[0] != UNNUMBERED {
            // Cisco's has an EtherType where RFC 2427 has the control field, as tcpdump tells them apart.
            return self.take::<2>().map(|kind| Inside::Ethertype(word(kind, 0)));
        }
        self.at += 1;
        // A byte of padding may stand in front of the identifier, and must where that is SNAP's.
        if self.peek::<1>()?[0] == 0 {
            self.at += 1;
        }
        match self.take::<1>()?[0] {
            IPV4 => Ok(Inside::Ethertype(TYPE_IPV4)),
            IPV6 => Ok(Inside::Ethertype(TYPE_IPV6)),
            PPP => self.ppp(),
            SNAP => {
                let header = self.take::<5>()?;
                let (oui, kind) = ([header[0], header[1], header[2]], word(header, 3));
                match oui {
                    OUI_ETHERTYPE => Ok(Inside::Ethertype(kind)),
                    OUI_BRIDGED if BRIDGED_ETHERNET.contains(&kind) => self.ethernet(),
                    _ => Err(Why::NotIp { ethertype: kind }),
                }
            }
            other => Err(Why::NotIp { ethertype: other.into() }),
        }
    }
}
