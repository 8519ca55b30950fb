//! Captures in the format pcapng (draft-ietf-opsawg-pcapng): bytes in and out, no files.
//!
//! A [`Section`] writes what every tool reads: one section, little-endian, Ethernet, times in nanoseconds. A
//! [`Reader`] reads as much of any file in memory, of both byte orders; [`crate::capture`] reads files as they come.

pub(crate) mod blocks;
pub(crate) mod format;
mod read;
mod write;

pub use crate::error::CaptureError;
pub use format::{About, Captured, Direction, LINK_ETHERNET, LINK_IP, SNAP_BYTES_MAXIMUM, Statistics};
pub use read::{Interface, Reader};
pub use write::Section;
