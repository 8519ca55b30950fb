//! Which interfaces a change of one may change as well.
//!
//! ```text
//!   eth1 ──link── eth1.7, macvlan, ipvlan, macsec   lowered with it (`NETDEV_CHANGEMTU`), and not raised again
//!   eth1 ─master─ bridge, bond, team                a bridge follows its ports
//!   bond ──ports─ eth1, eth2                        get the MTU of their master; a bridge's ports do not
//! ```
//!
//! Those above may be in other networks of the machine: a container's macvlan is lowered like one beside its parent. LRO is
//! switched off downwards, too (`netdev_sync_lower_features`).

use framegauge_linux::whole::relations::Related;
use std::collections::BTreeSet;

/// Masters that leave the MTUs of their ports alone.
const LEAVE_PORTS: [&str; 3] = ["bridge", "vrf", "openvswitch"];

/// What a change is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    /// Offloads and sizes of aggregates.
    Features,
    /// The MTU, which offloads may follow.
    Mtu,
}

/// The interfaces of one network that a change of those in `first` reaches, these among them, in the order in which they
/// may be raised. `first` are the interfaces of this network that are changed; `above` tells whether one stands on an
/// interface of another network that is.
pub fn reached(all: &[Related], first: &BTreeSet<u32>, above: impl Fn(&Related) -> bool, of: Of) -> Vec<u32> {
    let is_first = |link: &&Related| first.contains(&link.index) || above(link);
    let mut reached: Vec<u32> = all.iter().filter(is_first).map(|link| link.index).collect();
    let mut place = 0;
    while place < reached.len() {
        let index = reached[place];
        place += 1;
        let Some(current) = all.iter().find(|link| link.index == index) else { continue };
        let pushes_down = !current.kind.as_deref().is_some_and(|kind| LEAVE_PORTS.contains(&kind));
        let is_next = |link: &&Related| {
            let stands_on_it = stands_on(link, index) && link.link_network.is_none();
            let carries_it = stands_on(current, link.index) && current.link_network.is_none();
            stands_on_it
                || current.master == Some(link.index)
                || link.master == Some(index) && pushes_down
                // A port of a switch in hardware changes the interface of the host's CPU.
                || carries_it && (of == Of::Features || current.kind.as_deref() == Some("dsa"))
        };
        for link in all.iter().filter(is_next) {
            if !reached.contains(&link.index) {
                reached.push(link.index);
            }
        }
    }
    reached
}

/// Whether an interface stands on that of an index. The two ends of a veth do not: neither has an MTU of the other's.
pub fn stands_on(link: &Related, index: u32) -> bool {
    link.kind.as_deref() != Some("veth") && link.link == Some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn related(index: u32, kind: Option<&str>, link: Option<u32>, master: Option<u32>) -> Related {
        let kind = kind.map(ToString::to_string);
        Related { index, name: format!("i{index}"), mtu: 1500, kind, link, link_network: None, master }
    }

    #[test]
    fn what_stands_on_an_interface_is_reached_and_what_carries_it_is_not() {
        let all = [
            related(1, None, None, Some(5)),
            related(2, Some("vlan"), Some(1), None),
            related(3, Some("macvlan"), Some(2), None),
            related(4, None, None, Some(5)),
            related(5, Some("bridge"), None, None),
            related(6, Some("vlan"), Some(4), None),
        ];
        let first = |index| BTreeSet::from([index]);
        assert_eq!(reached(&all, &first(1), |_| false, Of::Mtu), [1, 2, 5, 3]);
        assert_eq!(reached(&all, &first(2), |_| false, Of::Mtu), [2, 3]);
        assert_eq!(reached(&all, &first(2), |_| false, Of::Features), [2, 1, 3, 5]);
        assert_eq!(reached(&all, &BTreeSet::new(), |link| link.index == 6, Of::Mtu), [6]);
    }

    #[test]
    fn a_bond_gives_its_mtu_to_its_ports_and_a_bridge_does_not() {
        for (kind, expected) in [("bond", vec![9, 1, 2]), ("bridge", vec![9])] {
            let all = [
                related(1, None, None, Some(9)),
                related(2, None, None, Some(9)),
                related(9, Some(kind), None, None),
            ];
            assert_eq!(reached(&all, &BTreeSet::from([9]), |_| false, Of::Mtu), expected, "{kind}");
        }
    }

    #[test]
    fn the_other_end_of_a_veth_is_left_alone() {
        let all = [related(1, Some("veth"), Some(2), None), related(2, Some("veth"), Some(1), None)];
        assert_eq!(reached(&all, &BTreeSet::from([1]), |_| false, Of::Features), [1]);
    }

    #[test]
    fn a_number_of_another_network_is_no_interface_of_this_one() {
        let mut away = related(2, Some("macvlan"), Some(1), None);
        away.link_network = Some(0);
        assert_eq!(
            reached(&[related(1, None, None, None), away], &BTreeSet::from([1]), |_| false, Of::Mtu),
            [1]
        );
    }
}
