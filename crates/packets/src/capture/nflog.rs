//! Packets that Linux' firewall logs for a program (https://www.tcpdump.org/linktypes/LINKTYPE_NFLOG.html): a header of
//! four bytes, then attributes of netlink, of which one is the packet from its network header on.

use super::walk::{Inside, Walk, Why, word};

/// Far more than the kernel writes.
const ATTRIBUTES_MAXIMUM: usize = 64;
const HEAD_BYTES: usize = 4;

/// Of `enum nfulnl_attr_type`: what the kernel says of the packet, of which the first two bytes are the EtherType, and the
/// packet.
const PACKET_HEADER: u16 = 1;
const PAYLOAD: u16 = 9;
/// The upper two bits of an attribute's type are flags; all types are small.
const TYPE_BITS: u16 = 0x3fff;

/// AF_INET and AF_INET6 of Linux.
const FAMILIES_IP: [u8; 2] = [2, 10];

/// Length and type of an attribute, in the byte order of the host that captured: that in which the type is small.
fn head(bytes: &[u8; HEAD_BYTES]) -> Option<(usize, u16)> {
    [word(bytes, 2).swap_bytes(), word(bytes, 2)]
        .into_iter()
        .zip([word(bytes, 0).swap_bytes(), word(bytes, 0)])
        .find(|(kind, _)| kind & TYPE_BITS < 0x100)
        .map(|(kind, length)| (usize::from(length), kind & TYPE_BITS))
}

impl Walk<'_> {
    /// The packet that was logged; what the kernel kept of it ends what was captured.
    pub(super) fn nflog(&mut self) -> Result<Inside, Why> {
        let family = self.take::<HEAD_BYTES>()?[0];
        let mut ethertype = None;
        for _ in 0..ATTRIBUTES_MAXIMUM {
            let (length, kind) = head(self.take::<HEAD_BYTES>()?).ok_or(Why::Malformed)?;
            let content = length.checked_sub(HEAD_BYTES).ok_or(Why::Malformed)?;
            match kind {
                PAYLOAD => {
                    self.end = self.end.min(self.at + content);
                    self.bytes = &self.bytes[..self.bytes.len().min(self.at + content)];
                    return match ethertype {
                        _ if FAMILIES_IP.contains(&family) => Ok(Inside::Ip),
                        Some(ethertype) => Ok(Inside::Ethertype(ethertype)),
                        None => Err(Why::NotIp { ethertype: family.into() }),
                    };
                }
                PACKET_HEADER => ethertype = Some(word(self.peek::<2>()?, 0)),
                _ => {}
            }
            self.at += content.next_multiple_of(HEAD_BYTES);
        }
        Err(Why::TooDeep)
    }
}
