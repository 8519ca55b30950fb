//! Layers between a link's own header and IP: VLAN tags (IEEE 802.1Q, 802.1ad), those of backbones (802.1ah), of port
//! extenders (802.1BR) and of virtual NICs (Cisco's VN-tag), LLC with SNAP (IEEE 802.2, RFC 1042), also on FDDI (RFC 1188),
//! PPPoE (RFC 2516) and PPP (RFC 1661), MPLS (RFC 3032) with IP or Ethernet (RFC 4448) below the last label.

use super::walk::{Inside, Walk, Why, word};
use crate::view::{TYPE_IPV4, TYPE_IPV6, TYPE_VLAN};

/// More than any network stacks.
const LABELS_MAXIMUM: usize = 10;

/// IEEE 802.1Q, 802.1ad, and what came before that.
const TYPES_TAG: [u16; 3] = [TYPE_VLAN, 0x88a8, 0x9100];
/// 802.1ah's service tag, in front of the customer's whole frame.
const TYPE_BACKBONE: u16 = 0x88e7;
const TYPE_VIRTUAL_NIC: u16 = 0x8926;
const TYPE_PORT_EXTENDER: u16 = 0x893f;
const TYPE_PPPOE: u16 = 0x8864;
const TYPES_MPLS: [u16; 2] = [0x8847, 0x8848];
/// Below it an EtherType is a length (IEEE 802.3).
const TYPES_BEGIN: u16 = 0x0600;

/// Both service access points are SNAP's, and the frame is unnumbered information.
const SNAP: [u8; 3] = [0xaa, 0xaa, UNNUMBERED];
/// The control field of unnumbered information (ISO/IEC 13239).
pub(super) const UNNUMBERED: u8 = 3;
const FDDI_BYTES: usize = 13;
/// Frame control of FDDI without class and priority: addresses of 48 bits, and LLC inside.
const FDDI_KIND: u8 = 0x70;
const FDDI_LLC: u8 = 0x50;
/// The lowest bit of the third byte of an MPLS label: it is the last one.
const LAST_LABEL: u8 = 1;

impl Walk<'_> {
    /// What is inside a layer of this EtherType, which is not IP.
    pub(super) fn layer(&mut self, ethertype: u16) -> Result<Inside, Why> {
        match ethertype {
            _ if TYPES_TAG.contains(&ethertype) => Ok(Inside::Ethertype(word(self.take::<4>()?, 2))),
            TYPE_VIRTUAL_NIC => Ok(Inside::Ethertype(word(self.take::<6>()?, 4))),
            TYPE_PORT_EXTENDER => Ok(Inside::Ethertype(word(self.take::<8>()?, 6))),
            TYPE_BACKBONE => {
                self.take::<4>()?;
                self.ethernet()
            }
            TYPE_PPPOE => self.pppoe(),
            _ if TYPES_MPLS.contains(&ethertype) => self.mpls(),
            length if length < TYPES_BEGIN => self.llc(length),
            _ => Err(Why::NotIp { ethertype }),
        }
    }

    /// A header of LLC in a frame of this length; only with SNAP it can carry IP.
    pub(super) fn llc(&mut self, length: u16) -> Result<Inside, Why> {
        if self.peek::<3>()? != &SNAP {
            return Err(Why::NotIp { ethertype: length });
        }
        self.take::<8>().map(|header| Inside::Ethertype(word(header, 6)))
    }

    /// A frame of FDDI. Those of its own management carry nothing.
    pub(super) fn fddi(&mut self) -> Result<Inside, Why> {
        let control = self.peek::<1>()?[0];
        if control & FDDI_KIND != FDDI_LLC {
            return Err(Why::NotIp { ethertype: control.into() });
        }
        self.take::<FDDI_BYTES>()?;
        self.llc(control.into())
    }

    /// A session's header, then PPP.
    pub(super) fn pppoe(&mut self) -> Result<Inside, Why> {
        self.take::<6>()?;
        self.ppp()
    }

    /// PPP, with address and control in front, which links may leave out, and with a protocol of one byte or two.
    pub(super) fn ppp(&mut self) -> Result<Inside, Why> {
        if self.peek::<2>()? == &[0xff, 3] {
            self.at += 2;
        }
        let first = self.take::<1>()?[0];
        // The first byte of a number of two is even.
        let protocol =
            if first & 1 == 1 { u16::from(first) } else { u16::from_be_bytes([first, self.take::<1>()?[0]]) };
        match protocol {
            0x0021 => Ok(Inside::Ethertype(TYPE_IPV4)),
            0x0057 => Ok(Inside::Ethertype(TYPE_IPV6)),
            0x0281 | 0x0283 => self.mpls(),
            _ => Err(Why::NotIp { ethertype: protocol }),
        }
    }

    /// Labels down to the last, which does not tell what it carries: IP begins with its version, a pseudowire with a
    /// control word that begins with four bits of 0 (RFC 4385).
    fn mpls(&mut self) -> Result<Inside, Why> {
        for _ in 0..LABELS_MAXIMUM {
            if self.take::<4>()?[2] & LAST_LABEL == 0 {
                continue;
            }
            if self.peek::<1>()?[0] >> 4 == 0 {
                self.take::<4>()?;
                return self.ethernet();
            }
            return Ok(Inside::Ip);
        }
        Err(Why::TooDeep)
    }
}
