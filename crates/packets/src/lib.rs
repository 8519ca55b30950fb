//! Views of frames, the cutting of aggregates into frames, and builders for tests.
//!
//! Bytes in, facts or bytes out: no sockets, no policy. Nothing here panics on any input.
//!
//! - [`parse`] looks at one frame (Ethernet II, one optional 802.1Q tag, IPv4, IPv6, TCP, UDP).
//! - [`VirtioNetHeader`] is what a TAP with `IFF_VNET_HDR` puts before every frame.
//! - [`Segmentation`] says how an aggregate is cut into frames.
//! - [`TrafficClass`] is what an IP header tells queues, [`Segmentation::mark`] what they answer (ECN).
//! - [`Coalescer`] merges frames into aggregates, as large receive offload does. Neither copies payload.
//! - [`pcapng`] writes captures, and reads those again.
//! - [`filter`] tells the kernel which packets bear on TCP.
//! - [`capture`] reads captures of any program, and finds the TCP segments in them.

#[cfg(feature = "build")]
pub mod build;
pub mod capture;
pub mod checksum;
mod coalesce;
mod ecn;
mod error;
pub mod filter;
mod icmp;
pub mod pcapng;
mod segmentation;
mod tcp;
mod view;
mod virtio;
mod vxlan;

pub use coalesce::{CONTEXTS, Coalesced, Coalescer, PIECES_MAXIMUM, Piece, Received};
pub use ecn::{EcnCodepoint, TrafficClass};
pub use error::{Layer, LengthSource, ParseError};
pub use segmentation::{MAX_HEADER_BYTES, Segmentation};
pub use tcp::{SynOptions, TcpFlags, TcpView};
pub use view::{IpVersion, Packet, Transport, UdpView, parse};
pub use virtio::VirtioNetHeader;
