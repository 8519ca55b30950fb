//! Which interface stands on which. Layout: `linux/if_link.h`.

use crate::error::Result;
use crate::netlink::{DUMP, Message, Socket, attribute, attribute_text, attribute_u32};
use crate::rtnetlink::link_header;

const RTM_GETLINK: u16 = 18;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_LINK_NETNSID: u16 = 37;
const INFO_KIND: u16 = 1;
const LINK_BYTES: usize = 16;

/// An interface and its neighbours in the tree of interfaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Related {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// What it is, as `ip link add type` calls it.
    pub kind: Option<String>,
    /// The index of what it stands on, or of its other end.
    pub link: Option<u32>,
    /// The number by which this network knows that of `link`, if that is another.
    pub link_network: Option<u32>,
    /// The bridge, bond or the like that it is a port of.
    pub master: Option<u32>,
}

/// All interfaces of the calling thread's network.
pub fn read() -> Result<Vec<Related>> {
    let message = Message::new(RTM_GETLINK, DUMP, &link_header(0, 0, 0));
    let answers = Socket::route()?.request(message, "list the interfaces")?;
    Ok(answers.iter().filter_map(|body| parse(body)).collect())
}

/// Reads one answer; `None` if it is damaged.
pub fn parse(body: &[u8]) -> Option<Related> {
    let attributes = body.get(LINK_BYTES..)?;
    let index = u32::from_ne_bytes(body[4..8].try_into().ok()?);
    Some(Related {
        index,
        name: attribute_text(attributes, libc::IFLA_IFNAME)?,
        mtu: attribute_u32(attributes, libc::IFLA_MTU)?,
        kind: attribute(attributes, IFLA_LINKINFO).and_then(|info| attribute_text(info, INFO_KIND)),
        link: attribute_u32(attributes, libc::IFLA_LINK).filter(|link| *link != 0),
        link_network: attribute_u32(attributes, IFLA_LINK_NETNSID),
        master: attribute_u32(attributes, IFLA_MASTER).filter(|master| *master != 0),
    })
}
