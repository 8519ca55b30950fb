//! The largest aggregates of a host's NICs: checked against what its devices take, and set.

use framegauge_linux::aggregates::{self, Direction};
pub use framegauge_linux::aggregates::{AggregateSizes, read};
use framegauge_linux::{Result, process};

/// What every device takes, and what an IP header can name: the usual sizes.
pub const USUAL_BYTES: u32 = 65_536;
/// What the kernel's GRO merges at most (`GRO_MAX_SIZE`).
const MOST_MERGED_BYTES: u32 = 8 * 65_535;

/// The sizes that are asked for, of both IP versions; none are left as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked {
    /// The largest aggregate that the stack builds.
    pub gso_bytes: Option<u32>,
    /// The largest that it merges.
    pub gro_bytes: Option<u32>,
}

impl Asked {
    /// What stands against these sizes: the name of the size, what is asked for, and the limit with where it is from.
    pub fn refused(&self, sizes: &AggregateSizes) -> Option<(&'static str, u32, String)> {
        let device = sizes.tso_maximum_bytes.unwrap_or(USUAL_BYTES);
        let limits = [
            ("gso_size", self.gso_bytes, device, "tso_max_size of the device"),
            ("gro_size", self.gro_bytes, MOST_MERGED_BYTES, "GRO's own"),
        ];
        for (name, size, limit, whose) in limits {
            let Some(size) = size.filter(|bytes| *bytes > USUAL_BYTES) else { continue };
            if size > limit {
                return Some((name, size, format!("{limit} ({whose})")));
            }
            if sizes.gso_ipv4_bytes.is_none() {
                let kernel = process::kernel_release();
                return Some((name, size, format!("{USUAL_BYTES} (Linux {kernel}: IPv4 needs 6.3)")));
            }
        }
        None
    }

    /// Sets them.
    pub fn set(&self, interface: &str) -> Result<()> {
        let now = aggregates::read(interface)?;
        for (direction, bytes) in [(Direction::Sent, self.gso_bytes), (Direction::Received, self.gro_bytes)] {
            let Some(bytes) = bytes else { continue };
            aggregates::set(interface, direction, bytes, now.of(direction).1.map(|_| bytes))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VETH: AggregateSizes = AggregateSizes {
        gso_bytes: Some(USUAL_BYTES),
        gro_bytes: Some(USUAL_BYTES),
        gso_ipv4_bytes: Some(USUAL_BYTES),
        gro_ipv4_bytes: Some(USUAL_BYTES),
        tso_maximum_bytes: Some(524_280),
    };

    fn refused(gso_bytes: u32, gro_bytes: u32, sizes: AggregateSizes) -> Option<(&'static str, u32, String)> {
        Asked { gso_bytes: Some(gso_bytes), gro_bytes: Some(gro_bytes) }.refused(&sizes)
    }

    #[test]
    fn the_limit_is_the_devices_or_the_kernels() {
        assert_eq!(refused(524_280, 524_280, VETH), None);
        assert_eq!(Asked::default().refused(&AggregateSizes::default()), None);
        let tap = AggregateSizes { tso_maximum_bytes: Some(USUAL_BYTES), ..VETH };
        assert_eq!(refused(USUAL_BYTES, 180_000, tap), None);
        let (name, size, limit) = refused(180_000, USUAL_BYTES, tap).expect("above the device's");
        assert_eq!((name, size, limit.as_str()), ("gso_size", 180_000, "65536 (tso_max_size of the device)"));
        let (name, _, limit) = refused(USUAL_BYTES, 524_281, VETH).expect("above what GRO merges");
        assert_eq!((name, limit.as_str()), ("gro_size", "524280 (GRO's own)"));
        let old = AggregateSizes { gso_ipv4_bytes: None, gro_ipv4_bytes: None, ..VETH };
        assert_eq!(refused(USUAL_BYTES, USUAL_BYTES, old), None);
        let (_, _, limit) = refused(180_000, USUAL_BYTES, old).expect("there is no size of IPv4");
        assert!(limit.starts_with("65536 (Linux ") && limit.ends_with(": IPv4 needs 6.3)"), "{limit}");
    }
}
