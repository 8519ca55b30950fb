//! Generic netlink: families by their name, and what TCP remembers of its peers (`ip tcp_metrics`).

use crate::error::Result;
use crate::netlink::{DUMP, Message, Socket, attribute};

const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const METRICS_GET: u8 = 1;

/// The number of the family `name`; `ENOENT` in a kernel that lacks it.
pub(crate) fn family(socket: &Socket, name: &str, operation: &str) -> Result<u16> {
    let mut ask = Message::new(CONTROL, 0, &[GET_FAMILY, 1, 0, 0]);
    ask.text(FAMILY_NAME, name);
    let answers = socket.request(ask, operation)?;
    answers
        .iter()
        .find_map(|body| attribute(body.get(4..)?, FAMILY_ID)?.try_into().ok().map(u16::from_ne_bytes))
        .ok_or_else(|| crate::OsError::errno(operation, libc::ENOENT))
}

/// How many peers TCP remembers in the calling thread's network namespace.
pub fn tcp_metrics_entries() -> Result<usize> {
    let operation = "list what TCP remembers of its peers";
    let socket = Socket::open(libc::NETLINK_GENERIC)?;
    let family = family(&socket, "tcp_metrics", operation)?;
    socket
        .request(Message::new(family, DUMP, &[METRICS_GET, 1, 0, 0]), operation)
        .map(|entries| entries.len())
}
