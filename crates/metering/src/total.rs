//! What all packets of a direction are in a sample, as the host sees them and on the wire.

/// All packets of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Total {
    /// As the host sees them: an aggregate is one.
    pub aggregates: u64,
    /// Their bytes from the IP header on.
    pub aggregate_bytes: u64,
    /// As they are on the wire.
    pub packets: u64,
    /// Their bytes from the IP header on, with the headers of every segment.
    pub bytes: u64,
    /// Those of TCP, on the wire.
    pub tcp_packets: u64,
    /// IP and TCP headers of these, in bytes.
    pub tcp_header_bytes: u64,
    /// Packets that a larger MTU leaves as they are.
    pub others: u64,
}
