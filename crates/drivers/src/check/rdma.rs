//! Ports of RDMA and their path MTU, beside the interface that each belongs to. Readings only.
//!
//! The kernel shows ports in sysfs (`Documentation/ABI/stable/sysfs-class-infiniband`). The path MTU that is in use
//! (`active_mtu` of `ibv_query_port()`) is not part of it: some drivers show it there all the same, else `ibv_devinfo` of
//! rdma-core is asked, where it is installed. No RDMA hardware was at hand: tested with folders that were made up.

use crate::check::programs::{PATIENCE, find, printed};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Where the kernel shows them.
pub const FOLDER: &str = "/sys/class/infiniband";
/// Far more than any host has.
const MOST_PORTS: usize = 256;
const PROGRAM: &str = "ibv_devinfo";

/// A port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RdmaPort {
    /// Its device, such as `mlx5_0`.
    pub device: String,
    /// Its number, from 1 on.
    pub port: u32,
    /// `Ethernet` for RoCE, `InfiniBand` otherwise.
    pub link_layer: Option<String>,
    /// Such as `4: ACTIVE`.
    pub state: Option<String>,
    /// The interface whose MTU bears on it.
    pub interface: Option<String>,
    /// The path MTU in use, or why it is not known.
    pub active_mtu: Result<u32, String>,
}

/// Every port of this host.
pub fn ports() -> Vec<RdmaPort> {
    ports_in(Path::new(FOLDER), devices)
}

/// What `ibv_devinfo` prints of all devices.
fn devices() -> Result<String, String> {
    let program = find(PROGRAM).ok_or(format!("{PROGRAM} is not installed"))?;
    printed(PROGRAM, Command::new(program), PATIENCE).map(|text| String::from_utf8_lossy(&text).into_owned())
}

/// The ports in a folder; `ask` is asked once, if that does not say what is in use.
fn ports_in(folder: &Path, ask: impl FnOnce() -> Result<String, String>) -> Vec<RdmaPort> {
    let mut ports = Vec::new();
    for device in names(folder) {
        for number in names(&folder.join(&device).join("ports")) {
            let Ok(port) = number.parse() else { continue };
            if ports.len() < MOST_PORTS {
                ports.push(read(folder, &device, port));
            }
        }
    }
    if ports.iter().any(|port| port.active_mtu.is_err()) {
        let mtus = ask().map(|text| active_mtus(&text));
        for port in ports.iter_mut().filter(|port| port.active_mtu.is_err()) {
            port.active_mtu = mtus.clone().and_then(|all| {
                let mtu = all.get(&(port.device.clone(), port.port)).copied();
                mtu.ok_or(format!("{PROGRAM} does not tell it"))
            });
        }
    }
    ports
}

fn read(folder: &Path, device: &str, port: u32) -> RdmaPort {
    let place = folder.join(device).join("ports").join(port.to_string());
    let active = line(&place.join("active_mtu")).and_then(|text| bytes(&text));
    RdmaPort {
        device: device.to_string(),
        port,
        link_layer: line(&place.join("link_layer")),
        state: line(&place.join("state")),
        interface: interface(folder, device, &place),
        active_mtu: active.ok_or_else(|| "sysfs does not tell it".to_string()),
    }
}

/// The interface of the first address of the port that has one, else the only one of the device.
fn interface(folder: &Path, device: &str, port: &Path) -> Option<String> {
    let addresses = port.join("gid_attrs").join("ndevs");
    let mut numbers: Vec<u32> = names(&addresses).iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    let by_address = numbers.iter().find_map(|number| line(&addresses.join(number.to_string())));
    by_address.or_else(|| {
        let of_device = names(&folder.join(device).join("device").join("net"));
        if let [only] = of_device.as_slice() { Some(only.clone()) } else { None }
    })
}

/// By device and port what `ibv_devinfo` prints: `hca_id: mlx5_0`, `port: 1`, `active_mtu: 1024 (3)`.
fn active_mtus(text: &str) -> BTreeMap<(String, u32), u32> {
    let mut mtus = BTreeMap::new();
    let (mut device, mut port) = (String::new(), 0);
    for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
        match key.trim() {
            "hca_id" => (device, port) = (value.trim().to_string(), 0),
            "port" => port = value.trim().parse().unwrap_or(0),
            "active_mtu" => {
                if let Some(mtu) = bytes(value) {
                    mtus.insert((device.clone(), port), mtu);
                }
            }
            _ => {}
        }
    }
    mtus
}

/// A path MTU in bytes: the first number that is one, of `4096`, `4096 (5)` or `5: 4096`.
fn bytes(text: &str) -> Option<u32> {
    let words = text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|word| word.parse().ok());
    words.into_iter().find(|number| framegauge_frames::RDMA_PATH_MTUS.contains(number))
}

/// A line of a file; nothing where it is empty, or cannot be read (an address without an interface).
fn line(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let first = text.lines().next()?.trim();
    (!first.is_empty()).then(|| first.chars().take(100).collect())
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    struct Made(PathBuf);

    impl Made {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("fgtest-rdma-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).expect("a folder");
            Self(path)
        }

        fn file(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
    }

    impl Drop for Made {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// As `ibv_devinfo` of rdma-core prints it.
    const PRINTED: &str = "hca_id:\tmlx5_0\n\ttransport:\t\tInfiniBand (0)\n\tfw_ver:\t\t\t16.35.2000\n\
        \tphys_port_cnt:\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\
        \t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t1024 (3)\n\t\t\tlink_layer:\t\tEthernet\n\n\
        hca_id:\tmlx5_1\n\t\tport:\t1\n\t\t\tactive_mtu:\t\t4096 (5)\n";

    #[test]
    fn ports_with_their_interface_and_path_mtu() {
        let folder = Made::new("two");
        folder.file("mlx5_0/ports/1/link_layer", "Ethernet\n");
        folder.file("mlx5_0/ports/1/state", "4: ACTIVE\n");
        folder.file("mlx5_0/ports/1/gid_attrs/ndevs/0", "eth2\n");
        folder.file("mlx5_0/ports/1/gid_attrs/ndevs/10", "eth2.5\n");
        folder.file("mlx5_1/ports/1/active_mtu", "5: 4096\n");
        folder.file("mlx5_1/device/net/eth3/mtu", "9000\n");
        folder.file("mlx5_2/ports/1/link_layer", "InfiniBand\n");
        let ports = ports_in(&folder.0, || Ok(PRINTED.to_string()));
        let rows: Vec<_> = ports
            .iter()
            .map(|port| (port.device.as_str(), port.interface.as_deref(), port.active_mtu.clone()))
            .collect();
        let unknown = Err("ibv_devinfo does not tell it".to_string());
        assert_eq!(
            rows,
            [
                ("mlx5_0", Some("eth2"), Ok(1024)),
                ("mlx5_1", Some("eth3"), Ok(4096)),
                ("mlx5_2", None, unknown),
            ]
        );
        assert_eq!(ports[0].state.as_deref(), Some("4: ACTIVE"));
        assert_eq!(ports[2].link_layer.as_deref(), Some("InfiniBand"));
    }

    #[test]
    fn what_is_not_known_has_a_reason() {
        let folder = Made::new("one");
        folder.file("rxe0/ports/1/state", "4: ACTIVE\n");
        let [port] = &ports_in(&folder.0, || Err("ibv_devinfo is not installed".into()))[..] else {
            panic!("one port")
        };
        assert_eq!(port.active_mtu, Err("ibv_devinfo is not installed".to_string()));
        assert!(ports_in(Path::new("/nonexistent"), || unreachable!("nothing is unknown")).is_empty());
    }

    #[test]
    fn path_mtus_as_they_are_written() {
        let cases = [("4096", Some(4096)), (" 1024 (3)", Some(1024)), ("5: 4096", Some(4096)), ("3", None)];
        for (text, mtu) in cases {
            assert_eq!(bytes(text), mtu, "{text}");
        }
    }
}
