//! Bonds: several links between a host and its switch that are one to all others (IEEE 802.1AX, link aggregation).
//!
//! All members of a bond have one address. The host chooses the member by which a frame leaves, the switch the one by which
//! a frame gets to the host, each by a hash of its own, so that frames of a flow keep their order (802.1AX, 6.2.4). Neither
//! asks how busy a member is. A member whose link is down is not left out.

use framegauge_frames::{below, mixed};

use crate::{ConfigError, Fabric, HostIndex};

/// What two flows must have in common to take the same member in any case: `xmit_hash_policy` of Linux' bonding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BondHash {
    /// Source and destination (`layer2`, `layer2+3`): all flows of a pair of hosts take one member.
    Addresses,
    /// Source and destination with their ports (`layer3+4`).
    Ports,
}

/// All bonds of a fabric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BondConfig {
    /// What is hashed.
    pub hash: BondHash,
    /// By host, which is a member: the first of its bond, which the others follow, and how many there are; 1: it has none.
    pub members: Vec<(HostIndex, u16)>,
    /// Of hashes.
    pub seed: u64,
}

/// Who chooses: no two of them by the same hash, or the choice of one would be that of the next again.
const HOSTS: u64 = 1 << 62;
const SWITCHES: u64 = 1 << 63;

impl BondConfig {
    fn first(&self, host: HostIndex) -> HostIndex {
        self.members[usize::from(host.0)].0
    }

    fn key(&self, source: HostIndex, destination: HostIndex, flow: u64) -> u64 {
        match self.hash {
            BondHash::Addresses => {
                u64::from(self.first(source).0) << 16 | u64::from(self.first(destination).0)
            }
            BondHash::Ports => flow,
        }
    }

    fn member(&self, of: HostIndex, key: u64, chooser: u64) -> HostIndex {
        let (first, count) = self.members[usize::from(of.0)];
        let bits = mixed(mixed(key) ^ mixed(self.seed ^ chooser));
        HostIndex(first.0 + below(bits, count.into()) as u16)
    }

    /// The member by which a host sends a flow to another.
    pub(crate) fn outgoing(&self, source: HostIndex, destination: HostIndex, flow: u64) -> HostIndex {
        let chooser = HOSTS | u64::from(self.first(source).0);
        self.member(source, self.key(source, destination, flow), chooser)
    }

    /// The member by which the switch of a host sends a flow to it.
    pub(crate) fn incoming(&self, source: HostIndex, destination: HostIndex, flow: u64) -> HostIndex {
        self.member(destination, self.key(source, destination, flow), SWITCHES)
    }

    /// Whether every member is one of `hosts` hosts, and of the bond that it says.
    pub(crate) fn check(&self, hosts: usize) -> Result<(), ConfigError> {
        if self.members.len() != hosts {
            let expected = "one a host";
            return Err(ConfigError::Count { what: "members of bonds", found: self.members.len(), expected });
        }
        for (host, bond) in self.members.iter().enumerate() {
            let (first, end) = (usize::from(bond.0.0), usize::from(bond.0.0) + usize::from(bond.1));
            let is_alike = self.members.get(first..end).is_some_and(|own| own.iter().all(|own| own == bond));
            if !(first..end).contains(&host) || !is_alike {
                return Err(ConfigError::Bond { host });
            }
        }
        Ok(())
    }
}

impl Fabric {
    /// The end by which a host sends a flow to another: the one that its bond chooses, or itself.
    ///
    /// # Panics
    ///
    /// If the source is not a host of this fabric.
    pub fn outgoing(&self, source: HostIndex, destination: HostIndex, flow: u64) -> HostIndex {
        self.bonds.as_ref().map_or(source, |bonds| bonds.outgoing(source, destination, flow))
    }
}
