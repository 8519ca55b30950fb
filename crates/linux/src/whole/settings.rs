//! The settings that IPv6 has for each interface (`/proc/sys/net/ipv6/conf`, `…/neigh`). The kernel makes them anew when
//! IPv6 comes back to an interface, and gives `mtu` the interface's with every change of that.

use crate::error::{Context, OsError, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;

const FOLDERS: [&str; 2] = ["conf", "neigh"];

/// A setting and its value, by its place below `/proc/sys/net/ipv6`: `conf/eth0/mtu`.
pub type Settings = BTreeMap<String, String>;

/// Those of an interface; none where it has no IPv6. One that cannot be read is left out: a secret that was never set.
pub fn read(interface: &str) -> Settings {
    let mut settings = Settings::new();
    for folder in FOLDERS {
        let below = format!("{folder}/{interface}");
        for entry in std::fs::read_dir(path(&below)).into_iter().flatten().flatten() {
            let name = format!("{below}/{}", entry.file_name().to_string_lossy());
            if let Ok(text) = std::fs::read_to_string(path(&name)) {
                settings.insert(name, text.trim().to_string());
            }
        }
    }
    settings
}

/// The value of one of them.
pub fn value(place: &str) -> Result<String> {
    demand_plain(place)?;
    let text = std::fs::read_to_string(path(place)).during(format!("read net/ipv6/{place}"))?;
    Ok(text.trim().to_string())
}

/// Sets one of them.
pub fn write(place: &str, value: &str) -> Result<()> {
    demand_plain(place)?;
    std::fs::write(path(place), value).during(format!("set net/ipv6/{place} to {value:?}"))
}

/// An error unless a place is below the settings of IPv6.
fn demand_plain(place: &str) -> Result<()> {
    if place.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(OsError::errno(format!("find the setting {place:?} of IPv6"), libc::EINVAL));
    }
    Ok(())
}

fn path(place: &str) -> PathBuf {
    PathBuf::from("/proc/sys/net/ipv6").join(place)
}
