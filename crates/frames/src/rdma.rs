//! RDMA over Converged Ethernet (RoCEv2): which MTU each of its path MTUs needs, and what of the wire is payload.

use crate::encapsulation::Part;
use crate::{ETHERNET_HEADER_BYTES, Family, Mtu, frame_bytes, wire_bytes};

/// The path MTUs that there are: the payload of a full packet (InfiniBand Architecture Specification, `ibv_mtu`).
pub const RDMA_PATH_MTUS: [u32; 5] = [256, 512, 1024, 2048, 4096];

const PART_OF: &str = "IBTA specification volume 1 chapter 9";
const BTH: Part = Part { name: "base transport header", bytes: 12, source: PART_OF };
const RETH: Part = Part { name: "RDMA header of the first packet", bytes: 16, source: PART_OF };
const ICRC: Part = Part { name: "invariant CRC", bytes: 4, source: "IBTA annex A17" };
const UDP: Part = Part { name: "UDP header", bytes: 8, source: "IBTA annex A17" };
/// Linux keeps room for any header: GRH (40), UDP (8), BTH (12), XRC (4), atomic (28) and CRC (4).
const LINUX_RESERVES_BYTES: u32 = 96;

/// A path MTU of RDMA.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RdmaPath {
    /// Payload of a full packet.
    pub path_mtu_bytes: u32,
    /// The IP packet that begins a WRITE, its longest with so much payload but for immediate data (4 more).
    pub packet_bytes: u32,
    /// The MTU of the interface from which drivers of Linux offer this path MTU.
    pub linux_mtu_bytes: u32,
    /// What a full packet behind the first occupies on the wire.
    pub wire_bytes: u32,
    /// Its payload as a share of that.
    pub payload_share: f64,
}

/// The headers of a packet that begins a WRITE, from the outside in.
pub fn rdma_headers(family: Family) -> [Part; 5] {
    let (name, source) = match family {
        Family::V4 => ("IPv4 header", "RFC 791 section 3.1"),
        Family::V6 => ("IPv6 header", "RFC 8200 section 3"),
    };
    [Part { name, bytes: family.header_bytes(), source }, UDP, BTH, RETH, ICRC]
}

/// Every path MTU, from the smallest on.
pub fn rdma_paths(family: Family) -> [RdmaPath; 5] {
    let headers: u32 = rdma_headers(family).iter().map(|part| part.bytes).sum();
    RDMA_PATH_MTUS.map(|path_mtu_bytes| {
        let packet_bytes = path_mtu_bytes + headers;
        let wire = wire_bytes(frame_bytes(ETHERNET_HEADER_BYTES + packet_bytes - RETH.bytes));
        RdmaPath {
            path_mtu_bytes,
            packet_bytes,
            linux_mtu_bytes: path_mtu_bytes + LINUX_RESERVES_BYTES,
            wire_bytes: wire,
            payload_share: f64::from(path_mtu_bytes) / f64::from(wire),
        }
    })
}

/// The largest path MTU whose packets fit an interface with this MTU.
pub fn rdma_path_mtu(mtu: Mtu, family: Family) -> Option<u32> {
    largest(family, |path| path.packet_bytes <= mtu.bytes())
}

/// The path MTU that drivers of Linux offer on an interface with this MTU (`iboe_get_mtu()`).
pub fn rdma_linux_path_mtu(mtu: Mtu) -> Option<u32> {
    largest(Family::V4, |path| path.linux_mtu_bytes <= mtu.bytes())
}

fn largest(family: Family, fits: impl Fn(&RdmaPath) -> bool) -> Option<u32> {
    rdma_paths(family).iter().rev().find(|path| fits(path)).map(|path| path.path_mtu_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(bytes: u32, family: Family) -> RdmaPath {
        *rdma_paths(family).iter().find(|path| path.path_mtu_bytes == bytes).unwrap()
    }

    #[test]
    fn published_figures() {
        // 4096 + 20 + 8 + 12 + 16 + 4, and 82 bytes around the payload of every further packet.
        assert_eq!(path(4096, Family::V4).packet_bytes, 4156);
        assert_eq!(path(4096, Family::V6).packet_bytes, 4176);
        assert_eq!(path(1024, Family::V4).wire_bytes, 1024 + 82);
        let percent = |bytes| (path(bytes, Family::V4).payload_share * 1000.0).round() / 10.0;
        assert_eq!((percent(1024), percent(2048), percent(4096)), (92.6, 96.2, 98.0));
    }

    #[test]
    fn which_path_mtu_an_interface_carries() {
        let carries = |mtu| rdma_path_mtu(Mtu::new(mtu).unwrap(), Family::V4);
        assert_eq!(carries(1500), Some(1024));
        assert_eq!((carries(4155), carries(4156), carries(9000)), (Some(2048), Some(4096), Some(4096)));
        assert_eq!(carries(300), None);
        assert_eq!(rdma_path_mtu(Mtu::new(4156).unwrap(), Family::V6), Some(2048));
        // Linux include/rdma/ib_addr.h: 1500 gives 1024, 4200 all that 9000 gives.
        let offers = |mtu| rdma_linux_path_mtu(Mtu::new(mtu).unwrap());
        assert_eq!((offers(1500), offers(4191), offers(4192)), (Some(1024), Some(2048), Some(4096)));
        assert_eq!((offers(4200), offers(9000)), (Some(4096), Some(4096)));
        assert!(offers(1119) < carries(1119), "Linux keeps room for headers that these packets do not have");
    }
}
