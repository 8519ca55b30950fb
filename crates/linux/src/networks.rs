//! The other networks of this machine, by what shows them: processes (`/proc/PID/ns/net`) and mounts (`ip netns add`).

use crate::error::{Context, OsError, Result};
use crate::namespace::{Network, inode};
use crate::netlink::{Message, Socket, attribute_u32};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const RTM_GETNSID: u16 = 90;
const NETNSA_NSID: u16 = 1;
const NETNSA_FD: u16 = 3;
/// Where mounts are told, with the root of each and its kind.
const MOUNTS: &str = "/proc/self/mountinfo";
const ROOT_FIELD: usize = 3;
const PLACE_FIELD: usize = 4;
const KIND: &str = " - nsfs ";

/// The networks that can be seen, without the caller's own: a path to each by its inode. One with a name has that path.
pub fn others() -> Result<BTreeMap<u64, PathBuf>> {
    let own = inode()?;
    let mut paths = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").during("list the processes")?.flatten() {
        let is_process =
            entry.file_name().to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        let path = entry.path().join("ns/net");
        if is_process && let Ok(network) = std::fs::metadata(&path) {
            paths.entry(network.ino()).or_insert(path);
        }
    }
    let mounts = std::fs::read_to_string(MOUNTS).during(format!("read {MOUNTS}"))?;
    for line in mounts.lines().filter(|line| line.contains(KIND)) {
        let fields: Vec<&str> = line.split(' ').collect();
        if fields.get(ROOT_FIELD).is_some_and(|root| root.starts_with("net:["))
            && let Some(path) = fields.get(PLACE_FIELD).map(PathBuf::from)
            && let Ok(network) = std::fs::metadata(&path)
        {
            paths.insert(network.ino(), path);
        }
    }
    paths.remove(&own);
    Ok(paths)
}

/// That of the calling thread.
pub fn own() -> Result<Network> {
    let path = "/proc/thread-self/ns/net";
    Ok(Network::of_file(File::open(path).during(format!("open {path}"))?))
}

/// A network by a path to it, if it is still the one of this inode.
pub fn open(path: &Path, inode: u64) -> Result<Network> {
    let operation = format!("open the network {}", path.display());
    let file = File::open(path).during(operation.clone())?;
    if file.metadata().during(operation.clone())?.ino() != inode {
        return Err(OsError::errno(operation, libc::ENOENT));
    }
    Ok(Network::of_file(file))
}

/// The number by which the calling thread's network knows another; `None` if it does not.
pub fn number_of(network: &Network) -> Result<Option<u32>> {
    // struct rtgenmsg, padded.
    let mut message = Message::new(RTM_GETNSID, 0, &[0; 4]);
    message.u32(NETNSA_FD, network.descriptor().as_raw_fd() as u32);
    let answers = Socket::route()?.request(message, "look up the number of a network")?;
    let number = answers.iter().find_map(|body| attribute_u32(body.get(4..)?, NETNSA_NSID));
    Ok(number.filter(|number| *number != u32::MAX))
}
