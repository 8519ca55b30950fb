//! The devices of chains of ingress and egress, in what `nft list chains` prints: its JSON leaves them out up to 1.0.6.

use crate::lengths::LengthFilter;
use std::collections::HashMap;

type Devices<'a> = HashMap<(&'a str, &'a str, &'a str), Vec<&'a str>>;

/// Whether the device of a filter is to be looked for.
pub fn lacks_device(filter: &LengthFilter) -> bool {
    filter.device.is_none() && ["ingress", "egress"].contains(&filter.hook.as_str())
}

/// The filters with the devices of their chains, once for each; one whose devices are not listed is not certain.
pub fn with_devices(filters: Vec<LengthFilter>, chains: &str) -> Vec<LengthFilter> {
    let devices = devices(chains);
    let mut all = Vec::new();
    for filter in filters {
        if !lacks_device(&filter) {
            all.push(filter);
            continue;
        }
        let base = (filter.family.as_str(), filter.table.as_str(), filter.base.as_str());
        match devices.get(&base) {
            Some(names) => {
                let on = |name: &&str| LengthFilter { device: Some(name.to_string()), ..filter.clone() };
                all.extend(names.iter().map(on));
            }
            None => all.push(LengthFilter { certain: false, ..filter }),
        }
    }
    all
}

/// By the family, table and name of the chain.
fn devices(chains: &str) -> Devices<'_> {
    let (mut table, mut chain) = (("", ""), "");
    let mut devices = HashMap::new();
    for line in chains.lines().map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["table", family, name, ..] => table = (family, name),
            ["chain", name, ..] => chain = name,
            ["type", ..] => {
                let names = named(line);
                if !names.is_empty() {
                    devices.insert((table.0, table.1, chain), names);
                }
            }
            _ => {}
        }
    }
    devices
}

/// `device "v0" priority` or `devices = { v0, v2 } priority`.
fn named(line: &str) -> Vec<&str> {
    let words = if let Some((_, words)) = line.split_once(" devices = {") {
        words.split('}').next().unwrap_or_default()
    } else if let Some((_, words)) = line.split_once(" device ") {
        words.split_whitespace().next().unwrap_or_default()
    } else {
        return Vec::new();
    };
    let names = words.split(',').map(|word| word.trim().trim_matches('"'));
    names.filter(|name| !name.is_empty()).collect()
}
