//! The sizes and rates of Ethernet, IP and TCP as types, and every sum that is done with them.
//!
//! Nothing else in framegauge adds up headers: ceilings, overheads and serialisation times come from here.
//! Words follow the glossary: an [`Mtu`] is the largest IP packet, a frame has 18 bytes more, the wire 38.
//!
//! ```
//! use framegauge_frames::{BitRate, Family, Mtu, ceiling};
//!
//! let gigabit = BitRate::new(1_000_000_000)?;
//! let standard = ceiling(Mtu::new(1500)?, Family::V4, true, gigabit);
//! let jumbo = ceiling(Mtu::new(9000)?, Family::V4, true, gigabit);
//! assert_eq!(standard.wire_bytes, 1538);
//! assert!((jumbo.goodput_bits_per_second / standard.goodput_bits_per_second - 1.0516).abs() < 1e-4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aggregate;
mod ceiling;
mod datagram;
mod draws;
mod encapsulation;
mod mtu;
mod rate;
mod rdma;
mod time;
mod transfer;

pub use aggregate::{SizeTable, aggregate_wire_bytes, shaper_size_table};
pub use ceiling::{Ceiling, ceiling};
pub use datagram::{Datagram, DatagramError, Medium};
pub use draws::{SplitMix, below, mixed};
pub use encapsulation::{
    Encapsulation, EncapsulationError, EspCipher, EspSuite, Fit, FittedLayer, GreOptions, Hmac, InUdp,
    InnerCeiling, Layer, OpenVpnSuite, Part, Range, Stack, WORDS,
};
pub use mtu::{
    ETHERNET_HEADER_BYTES, FRAME_OVERHEAD_BYTES, Family, Mtu, MtuError, TCP_HEADER_BYTES,
    TIMESTAMPS_OPTION_BYTES, WIRE_OVERHEAD_BYTES, frame_bytes, wire_bytes,
};
pub use rate::{BitRate, BitRateError};
pub use rdma::{RDMA_PATH_MTUS, RdmaPath, rdma_headers, rdma_linux_path_mtu, rdma_path_mtu, rdma_paths};
pub use time::Picoseconds;
pub use transfer::{slow_start_transfer_time, switched_transfer_time};
