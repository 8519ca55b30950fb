//! From capture files to TCP segments: what a diagnosis reads.
//!
//! - [`Reader`] gives the packets of pcap and pcapng files as they come, of any size, in bounded memory.
//! - [`decode`] finds the TCP segment in a packet, whatever it is wrapped in: without copies of the payload, without
//!   allocation, and without panicking on any input.
//!
//! ```text
//!   bytes ──> Reader ──> Record ──> decode ──> Segment      TCP, at any depth of tunnels
//!              │          number, time,        IcmpNote     what routers say of packets
//!              │          link, bytes          Why          everything else
//!              └──> CaptureLoss                what the capture itself has missed
//! ```
//!
//! What came in IP fragments is put together by [`Reassembly`].

mod buffer;
mod decode;
mod frame_relay;
mod icmp;
mod layers;
mod link;
mod nflog;
mod outside;
mod pcap;
mod reader;
mod reassembly;
mod sections;
mod segment;
mod stored;
mod tunnels;
mod walk;
mod wireless;

pub use crate::error::CaptureError;
pub use decode::{Checksums, Decoded, Outline, decode, ends, outline};
pub use icmp::{IcmpNote, Quoted};
pub use link::LinkType;
pub use outside::{Outside, outside};
pub use reader::{CaptureLoss, Interface, PACKET_BYTES_MAXIMUM, Reader, Record};
pub use reassembly::Reassembly;
pub use segment::{Fragments, SACK_BLOCKS, SackBlocks, Segment};
pub use walk::{Fragment, FragmentedPacket, Why};
