//! What the kernel may change along with a setting: interfaces that stand on the one that is changed, in every network of
//! this machine, the MTUs of routes, and below 1280 bytes all of IPv6. Read before a change, it is put back and compared
//! after it.

mod difference;
mod reach;
mod state;

pub use difference::{Difference, quoted};

use super::Setting;
use framegauge_linux::Result;
use framegauge_linux::namespace::{self, Network};
use framegauge_linux::networks;
use framegauge_linux::whole::relations::{self, Related};
use reach::{Of, reached, stands_on};
use state::{Names, State};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// MTUs may depend on each other: a second pass raises what the first could not.
const PASSES: usize = 2;

/// What some settings may take along, as it was before them.
#[derive(Debug, Clone)]
pub struct Around {
    places: Vec<Place>,
}

/// The other interfaces of this network that a change of an interface's MTU may change as well, by name and in the order in
/// which they may be raised.
pub fn along(interface: &str) -> Result<Vec<String>> {
    let all = relations::read()?;
    let first = all.iter().filter(|link| link.name == interface).map(|link| link.index).collect();
    let indices = reached(&all, &first, |_| false, Of::Mtu);
    let others = indices.iter().filter(|index| !first.contains(index));
    Ok(others.filter_map(|index| Some(all.iter().find(|link| link.index == *index)?.name.clone())).collect())
}

/// The interfaces of one network; `inode`: of another than that of the process.
#[derive(Debug, Clone)]
struct Place {
    inode: Option<u64>,
    states: Vec<State>,
}

impl Around {
    /// Reads what the changes of `wanted` may take along; `None` if they change nothing else.
    pub fn read(wanted: &[(Setting, String)]) -> Result<Option<Self>> {
        let mut first: BTreeMap<String, Of> = BTreeMap::new();
        let mut whole = false;
        for (setting, value) in wanted {
            let (interface, of) = match setting {
                Setting::Mtu(interface) => (interface, Of::Mtu),
                Setting::Offload(_, interface)
                | Setting::HardwareGro(interface)
                | Setting::Aggregates(_, interface) => (interface, Of::Features),
                Setting::Ipv6Mtu(_) | Setting::Routes(..) | Setting::Qdisc(_) | Setting::Sysctl(_) => {
                    continue;
                }
            };
            whole |= setting.takes_ipv6(value);
            let most = first.entry(interface.clone()).or_insert(of);
            *most = of.max(*most);
        }
        if first.is_empty() {
            return Ok(None);
        }
        let links = relations::read()?;
        let of = first.values().copied().max().unwrap_or(Of::Mtu);
        let changed =
            links.iter().filter(|link| first.contains_key(&link.name)).map(|link| link.index).collect();
        let indices = reached(&links, &changed, |_| false, of);
        let mut places = vec![Place { inode: None, states: states(&links, &indices, of, whole)? }];
        if of == Of::Mtu {
            places.extend(elsewhere(&indices, whole)?);
        }
        Ok(Some(Self { places }))
    }

    /// Puts everything back; what differs then.
    pub fn put_back(&self) -> Vec<Difference> {
        let mut differences = Vec::new();
        for place in &self.places {
            match place.inside(|| Ok(place.put_back())) {
                Ok(more) => differences.extend(more),
                Err(error) => differences.push(Difference::new(
                    "the interfaces of another network".into(),
                    error,
                    "them as they were",
                    Vec::new(),
                )),
            }
        }
        differences
    }
}

impl Place {
    /// Does work in its network; nothing, if that is gone, and its interfaces with it.
    fn inside<T: Default + Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let Some(inode) = self.inode else { return work() };
        match networks::others()?.get(&inode).map(|path| networks::open(path, inode)) {
            Some(Ok(network)) => network.run(work),
            _ => Ok(T::default()),
        }
    }

    fn put_back(&self) -> Vec<Difference> {
        let read = || relations::read().unwrap_or_default();
        for _ in 0..PASSES {
            for state in &self.states {
                // Read each time: what stands on an interface may have followed it.
                let now = read();
                if let Some(link) = now.iter().find(|item| item.index == state.index)
                    && state.differs_in_mtu(link)
                {
                    let _ = state.put_mtu_back(&link.name);
                }
            }
        }
        let now = read();
        let pairs: Vec<(&State, &Related)> = self
            .states
            .iter()
            .filter_map(|state| Some((state, now.iter().find(|item| item.index == state.index)?)))
            .collect();
        for (state, link) in &pairs {
            state.put_back(&link.name);
        }
        let names: Names = now.iter().map(|item| (item.index, item.name.clone())).collect();
        let differences = pairs.iter().flat_map(|(state, link)| state.differences(link, &names));
        let path = self.inode.and_then(|inode| networks::others().ok()?.remove(&inode));
        differences.map(|item| path.as_ref().map_or(item.clone(), |path| item.inside(path))).collect()
    }
}

fn states(all: &[Related], indices: &[u32], of: Of, whole: bool) -> Result<Vec<State>> {
    let links = indices.iter().filter_map(|index| all.iter().find(|link| link.index == *index));
    links.map(|link| State::read(link, of, whole)).collect()
}

/// What stands on these interfaces in other networks, and on what stands there, as far as networks can be entered.
fn elsewhere(own_indices: &[u32], whole: bool) -> Result<Vec<Place>> {
    let own = namespace::inode()?;
    let others = networks::others().unwrap_or_default();
    let mut known: BTreeMap<u64, (Network, BTreeSet<u32>)> = BTreeMap::new();
    let Ok(own_network) = networks::own() else { return Ok(Vec::new()) };
    known.insert(own, (own_network, own_indices.iter().copied().collect()));
    let mut places = BTreeMap::new();
    loop {
        let before: usize = known.values().map(|entry| entry.1.len()).sum();
        for (inode, path) in &others {
            let Some((indices, states)) = seen_from(path, *inode, &known, whole) else { continue };
            if !indices.is_empty() {
                places.insert(*inode, Place { inode: Some(*inode), states });
                if let Ok(network) = networks::open(path, *inode) {
                    known.insert(*inode, (network, indices));
                }
            }
        }
        if known.values().map(|entry| entry.1.len()).sum::<usize>() == before {
            return Ok(places.into_values().collect());
        }
    }
}

type Known = BTreeMap<u64, (Network, BTreeSet<u32>)>;

/// The interfaces of a network that stand on known ones of others, and what stands on them; `None` if it is gone.
fn seen_from(path: &Path, inode: u64, known: &Known, whole: bool) -> Option<(BTreeSet<u32>, Vec<State>)> {
    let network = networks::open(path, inode).ok()?;
    let inside = || {
        let all = relations::read()?;
        let mut below: BTreeMap<u32, &BTreeSet<u32>> = BTreeMap::new();
        if all.iter().any(|item| item.link_network.is_some()) {
            for (_, (other, indices)) in known.iter().filter(|item| *item.0 != inode) {
                if let Some(number) = networks::number_of(other)? {
                    below.insert(number, indices);
                }
            }
        }
        let stands = |item: &Related| {
            let indices = item.link_network.and_then(|number| below.get(&number));
            indices.is_some_and(|indices| indices.iter().any(|index| stands_on(item, *index)))
        };
        let reached_indices = reached(&all, &BTreeSet::new(), stands, Of::Mtu);
        Ok((reached_indices.iter().copied().collect(), states(&all, &reached_indices, Of::Mtu, whole)?))
    };
    network.run(inside).ok()
}
