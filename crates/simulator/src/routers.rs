//! Routers: they send packets on from subnet to subnet, and tell the sender of one that is too large for the next NIC.
//!
//! A router is several ends of the fabric, one for each of its NICs, whose ports queue as those of switches do. It takes no
//! time of its own. A packet that is larger than the MTU of the NIC by which it would leave is dropped at that NIC's port,
//! and an ICMP error goes back with that MTU (RFC 1191 section 4, RFC 8201 section 4); the fabric drops the error where a
//! router's errors are filtered. Switches tell nobody.

use framegauge_fabric::{Ends, HostIndex, Owner};
use framegauge_frames::Picoseconds;

use crate::net::Net;
use crate::segment::Segment;

/// What an ICMP error has before what it quotes (RFC 792, RFC 4443 section 3.2).
const ICMP_HEADER_BYTES: u32 = 8;

/// The ways of packets between subnets: those of the rack.
#[derive(Debug, Clone)]
pub struct Routers {
    ends: Ends,
    /// By end: its router, if it is one's.
    owners: Vec<Option<usize>>,
    /// By router and subnet.
    hops: Vec<Vec<Option<Hop>>>,
    /// By end: the largest packet that it sends, in bytes.
    mtus: Vec<u32>,
}

/// By which end a router sends on, and to which next one; none: to the destination itself.
#[derive(Debug, Clone, Copy)]
struct Hop {
    from: usize,
    gateway: Option<usize>,
}

fn index(end: usize) -> HostIndex {
    HostIndex(end as u16)
}

impl Routers {
    /// Those of a network with these ends, whose MTUs are these; none if there are no routers.
    pub fn of(ends: &Ends, mtus: &[u32]) -> Option<Routers> {
        let owner = |end: usize| match ends.owner(end) {
            Owner::Router(router) => Some(router),
            Owner::Host(_) => None,
        };
        let owners: Vec<Option<usize>> = (0..ends.len()).map(owner).collect();
        let count = owners.iter().flatten().max()? + 1;
        let hop = |router: usize, subnet: usize| {
            let owner = Owner::Router(router);
            let own = ends.ends_of(owner).iter().copied().find(|end| ends.subnet(*end) == subnet);
            match own {
                Some(from) => Some(Hop { from, gateway: None }),
                None => {
                    ends.leg_to_subnet(owner, subnet).map(|leg| Hop { from: leg.from, gateway: Some(leg.to) })
                }
            }
        };
        let hops = (0..count).map(|router| (0..ends.subnets()).map(|subnet| hop(router, subnet)).collect());
        Some(Routers { ends: ends.clone(), hops: hops.collect(), owners, mtus: mtus.to_vec() })
    }

    /// By which end a host sends to an end of another, and to which next one; none: there is no way.
    pub(crate) fn first_leg(&self, from: HostIndex, to: HostIndex) -> Option<(HostIndex, HostIndex)> {
        let legs = self.ends.legs(self.ends.owner(usize::from(from.0)), usize::from(to.0))?;
        legs.first().map(|leg| (index(leg.from), index(leg.to)))
    }

    /// Whether packets that come to this end are to go on.
    pub(crate) fn owns(&self, end: HostIndex) -> bool {
        self.owners[usize::from(end.0)].is_some()
    }

    /// The router takes other packets from now on.
    pub(crate) fn set_mtu(&mut self, end: HostIndex, bytes: u32) {
        self.mtus[usize::from(end.0)] = bytes;
    }

    /// By which end the router that owns one sends on to a destination, to which next one, and how large a packet may be;
    /// none: there is no way.
    fn hop(&self, at: HostIndex, destination: HostIndex) -> Option<(HostIndex, HostIndex, u32)> {
        let router = self.owners[usize::from(at.0)]?;
        let Hop { from, gateway } = self.hops[router][self.ends.subnet(usize::from(destination.0))]?;
        Some((index(from), gateway.map_or(destination, index), self.mtus[from]))
    }
}

impl Net {
    /// Whether what has come to this end is a router's to send on.
    #[inline]
    pub(crate) fn is_routed(&self, end: HostIndex) -> bool {
        self.routers.as_ref().is_some_and(|routers| routers.owns(end))
    }

    /// A router sends on what has come to it.
    pub(crate) fn send_on(&mut self, now: Picoseconds, at: HostIndex, id: u32) {
        let segment = *self.slab.get(id);
        let to = self.places[segment.to as usize].host;
        let Some((from, next, mtu)) = self.routers.as_ref().and_then(|routers| routers.hop(at, to)) else {
            return;
        };
        let aggregate = self.aggregate(id, next);
        self.fabric.transmit(now, from, aggregate);
        let packet_bytes = self.packet_bytes(&segment);
        if packet_bytes > mtu && segment.reported_mtu().is_none() {
            self.report(now, at, &segment, packet_bytes, mtu);
        }
    }

    /// A router tells the sender of a packet that it was too large.
    fn report(&mut self, now: Picoseconds, at: HostIndex, segment: &Segment, packet_bytes: u32, mtu: u32) {
        let to = self.places[segment.from as usize].host;
        let Some((from, next, _)) = self.routers.as_ref().and_then(|routers| routers.hop(at, to)) else {
            return;
        };
        let most = self.family.largest_error_bytes() - self.family.header_bytes();
        let message_bytes = (packet_bytes + ICMP_HEADER_BYTES).min(most);
        let id = self.slab.insert(Segment::too_big(segment, from, message_bytes, mtu));
        self.segments += 1;
        let aggregate = self.aggregate(id, next);
        self.fabric.transmit(now, from, aggregate);
    }
}
