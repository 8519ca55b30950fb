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
    let first = all.iter().filter(|each| each.name == interface).map(|each| each.index).collect();
    let meant = reached(&all, &first, |_| false, Of::Mtu);
    let others = meant.iter().filter(|index| !first.contains(index));
    Ok(others.filter_map(|index| Some(all.iter().find(|each| each.index == *index)?.name.clone())).collect())
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
        let here = relations::read()?;
        let of = first.values().copied().max().unwrap_or(Of::Mtu);
        let changed =
            here.iter().filter(|each| first.contains_key(&each.name)).map(|each| each.index).collect();
        let meant = reached(&here, &changed, |_| false, of);
        let mut places = vec![Place { inode: None, states: states(&here, &meant, of, whole)? }];
        if of == Of::Mtu {
            places.extend(elsewhere(&meant, whole)?);
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
                if let Some(one) = now.iter().find(|each| each.index == state.index)
                    && state.differs_in_mtu(one)
                {
                    let _ = state.put_mtu_back(&one.name);
                }
            }
        }
        let now = read();
        let there: Vec<(&State, &Related)> = self
            .states
            .iter()
            .filter_map(|state| Some((state, now.iter().find(|each| each.index == state.index)?)))
            .collect();
        for (state, one) in &there {
            state.put_back(&one.name);
        }
        let names: Names = now.iter().map(|each| (each.index, each.name.clone())).collect();
        let found = there.iter().flat_map(|(state, one)| state.differences(one, &names));
        let path = self.inode.and_then(|inode| networks::others().ok()?.remove(&inode));
        found.map(|each| path.as_ref().map_or(each.clone(), |path| each.inside(path))).collect()
    }
}

fn states(all: &[Related], meant: &[u32], of: Of, whole: bool) -> Result<Vec<State>> {
    let there = meant.iter().filter_map(|index| all.iter().find(|each| each.index == *index));
    there.map(|one| State::read(one, of, whole)).collect()
}

/// What stands on these interfaces in other networks, and on what stands there, as far as networks can be entered.
fn elsewhere(meant: &[u32], whole: bool) -> Result<Vec<Place>> {
    let own = namespace::inode()?;
    let others = networks::others().unwrap_or_default();
    let mut known: BTreeMap<u64, (Network, BTreeSet<u32>)> = BTreeMap::new();
    let Ok(here) = networks::own() else { return Ok(Vec::new()) };
    known.insert(own, (here, meant.iter().copied().collect()));
    let mut places = BTreeMap::new();
    loop {
        let before: usize = known.values().map(|each| each.1.len()).sum();
        for (inode, path) in &others {
            let Some((indices, states)) = seen_from(path, *inode, &known, whole) else { continue };
            if !indices.is_empty() {
                places.insert(*inode, Place { inode: Some(*inode), states });
                if let Ok(network) = networks::open(path, *inode) {
                    known.insert(*inode, (network, indices));
                }
            }
        }
        if known.values().map(|each| each.1.len()).sum::<usize>() == before {
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
        if all.iter().any(|each| each.link_network.is_some()) {
            for (_, (other, indices)) in known.iter().filter(|each| *each.0 != inode) {
                if let Some(number) = networks::number_of(other)? {
                    below.insert(number, indices);
                }
            }
        }
        let stands = |each: &Related| {
            let indices = each.link_network.and_then(|number| below.get(&number));
            indices.is_some_and(|indices| indices.iter().any(|index| stands_on(each, *index)))
        };
        let meant = reached(&all, &BTreeSet::new(), stands, Of::Mtu);
        Ok((meant.iter().copied().collect(), states(&all, &meant, Of::Mtu, whole)?))
    };
    network.run(inside).ok()
}
