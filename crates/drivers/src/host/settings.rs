//! One setting of a host that can be changed and put back: `mtu:eth0`, `mtu6:eth0`, `routes4:eth0`, `tso:eth0`, `gso_size:eth0`,
//! `qdisc:eth0`, `sysctl:net.ipv4.tcp_rmem`.

pub mod around;
pub mod held_routes;
mod mending;

use crate::host::allowed;
use crate::{OsError, Result};
use framegauge_linux::aggregates::{self as sizes, Direction};
use framegauge_linux::ethtool::{self, Offload};
use framegauge_linux::features::{self, HARDWARE_GRO};
use framegauge_linux::rtnetlink::{LinkChange, change_link, link};
use framegauge_linux::whole::settings as ipv6;
use framegauge_linux::{qdisc, routes, sysctl};
use held_routes::HeldRoutes;
use std::fmt;

/// The queue discipline that the kernel chooses, with all its classes.
const DEFAULT: &str = "default";

/// Which setting.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// The MTU of an interface, in bytes.
    Mtu(String),
    /// The MTU that IPv6 has for an interface, in bytes: a router may have announced a smaller one, or somebody has set it.
    /// The kernel gives it the interface's with every change of that.
    Ipv6Mtu(String),
    /// The path MTUs of the routes of an IP version through an interface, as [`HeldRoutes`] has them.
    Routes(u8, String),
    /// An offload of an interface, "on" or "off".
    Offload(Switch, String),
    /// GRO in the hardware of an interface, "on" or "off".
    HardwareGro(String),
    /// The largest aggregates of an interface in bytes, "IPV6 IPV4"; a kernel older than 6.3 has one for both.
    Aggregates(Direction, String),
    /// The root queue discipline of an interface, by its kind; "default" is whatever the kernel puts there.
    Qdisc(String),
    /// A setting under `/proc/sys`.
    Sysctl(String),
}

/// An offload by the name that `ethtool -K` has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Switch {
    /// TCP segmentation.
    Tso,
    /// Generic segmentation.
    Gso,
    /// Generic receive offload.
    Gro,
    /// Checksums on transmit.
    Tx,
    /// Large receive.
    Lro,
}

impl Switch {
    const ALL: [(&str, Self, Offload); 5] = [
        ("tso", Self::Tso, Offload::Tso),
        ("gso", Self::Gso, Offload::Gso),
        ("gro", Self::Gro, Offload::Gro),
        ("tx", Self::Tx, Offload::TxChecksum),
        ("lro", Self::Lro, Offload::Lro),
    ];

    fn row(self) -> (&'static str, Offload) {
        let row = Self::ALL.iter().find(|row| row.1 == self).expect("every switch has its row");
        (row.0, row.2)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mtu(interface) => write!(out, "mtu:{interface}"),
            Self::Ipv6Mtu(interface) => write!(out, "mtu6:{interface}"),
            Self::Routes(version, interface) => write!(out, "routes{version}:{interface}"),
            Self::Offload(switch, interface) => write!(out, "{}:{interface}", switch.row().0),
            Self::HardwareGro(interface) => write!(out, "{HARDWARE_GRO}:{interface}"),
            Self::Aggregates(Direction::Sent, interface) => write!(out, "gso_size:{interface}"),
            Self::Aggregates(Direction::Received, interface) => write!(out, "gro_size:{interface}"),
            Self::Qdisc(interface) => write!(out, "qdisc:{interface}"),
            Self::Sysctl(name) => write!(out, "sysctl:{name}"),
        }
    }
}

impl Setting {
    /// Reads a name such as `mtu:eth0`, if that may be changed; what is wrong with it otherwise.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        const EXPECTED: &str = "expected mtu:IFACE, mtu6:, routes4:, routes6:, tso:, gso:, gro:, rx-gro-hw:, lro:, tx:, gso_size:, gro_size: or \
                                qdisc:IFACE, or sysctl:NAME";
        let (kind, name) = text.split_once(':').ok_or(format!("found {text:?}, {EXPECTED}"))?;
        let switch = Switch::ALL.iter().find(|row| row.0 == kind).map(|row| row.1);
        match kind {
            "sysctl" => allowed::sysctl(name)?,
            _ => allowed::interface(name)?,
        }
        match (kind, switch) {
            ("mtu", _) => Ok(Self::Mtu(name.into())),
            ("mtu6", _) => Ok(Self::Ipv6Mtu(name.into())),
            ("routes4", _) => Ok(Self::Routes(4, name.into())),
            ("routes6", _) => Ok(Self::Routes(6, name.into())),
            (HARDWARE_GRO, _) => Ok(Self::HardwareGro(name.into())),
            ("gso_size", _) => Ok(Self::Aggregates(Direction::Sent, name.into())),
            ("gro_size", _) => Ok(Self::Aggregates(Direction::Received, name.into())),
            ("qdisc", _) => Ok(Self::Qdisc(name.into())),
            ("sysctl", _) => Ok(Self::Sysctl(name.into())),
            (_, Some(switch)) => Ok(Self::Offload(switch, name.into())),
            _ => Err(format!("found {text:?}, {EXPECTED}")),
        }
    }

    /// Whether it may have a value, or what is wrong with it.
    pub fn allows(&self, value: &str) -> std::result::Result<(), String> {
        match self {
            Self::Mtu(_) => allowed::mtu(value),
            Self::Ipv6Mtu(_) => allowed::ipv6_mtu(value),
            Self::Routes(version, _) => HeldRoutes::allows(value, *version),
            Self::Offload(..) | Self::HardwareGro(_) if matches!(value, "on" | "off") => Ok(()),
            Self::Offload(..) | Self::HardwareGro(_) => {
                Err(format!("found {self}={value:?}, expected on or off"))
            }
            Self::Aggregates(..) => allowed::aggregates(value),
            Self::Qdisc(_) if value == DEFAULT => Ok(()),
            Self::Qdisc(_) => allowed::qdisc(value),
            Self::Sysctl(name) => allowed::sysctl_value(name, value),
        }
    }

    /// Whether a value takes IPv6 from the interface.
    pub fn takes_ipv6(&self, value: &str) -> bool {
        matches!(self, Self::Mtu(_)) && value.parse::<u32>().is_ok_and(|mtu| mtu < allowed::LEAST_IPV6_MTU)
    }

    /// Its value now.
    pub fn read(&self) -> Result<String> {
        match self {
            Self::Mtu(interface) => Ok(link(interface)?.mtu.to_string()),
            Self::Ipv6Mtu(interface) => ipv6::value(&place_of_mtu(interface)),
            Self::Routes(version, interface) => Ok(HeldRoutes::read(interface, *version)?.to_string()),
            Self::Offload(switch, interface) => {
                Ok(if ethtool::get(interface, switch.row().1)? { "on" } else { "off" }.into())
            }
            Self::HardwareGro(interface) => {
                let on = features::read(interface, HARDWARE_GRO)?.is_some_and(|reading| reading.on);
                Ok(if on { "on" } else { "off" }.into())
            }
            Self::Aggregates(direction, interface) => {
                let (ipv6, ipv4) = sizes::read(interface)?.of(*direction);
                let limits = [ipv6, ipv4].into_iter().flatten();
                Ok(limits.map(|bytes| bytes.to_string()).collect::<Vec<_>>().join(" "))
            }
            Self::Qdisc(interface) => {
                let reading = qdisc::read(interface)?;
                Ok(if reading.default { DEFAULT.into() } else { reading.kind })
            }
            Self::Sysctl(name) => sysctl::read(name),
        }
    }

    /// Its value now, if [`Setting::write`] can put it back; what is in the way otherwise.
    pub fn before(&self) -> std::result::Result<String, String> {
        let now = self.read().map_err(|error| error.to_string())?;
        match self {
            Self::HardwareGro(interface) => {
                let feature = features::read(interface, HARDWARE_GRO).map_err(|error| error.to_string())?;
                match feature {
                    Some(feature) if feature.changeable => Ok(now),
                    Some(_) => Err(format!(
                        "{interface} says {HARDWARE_GRO}: {now} [fixed], expected one that can be switched"
                    )),
                    None => Err(format!("{interface} has no {HARDWARE_GRO}, expected Linux 4.16 or later")),
                }
            }
            Self::Qdisc(interface) if now != DEFAULT => Err(format!(
                "{interface} has a queue discipline that somebody has set ({now}): it could not be put back as it is"
            )),
            _ => Ok(now),
        }
    }

    /// Sets it. A device may refuse silently: read it back.
    pub fn write(&self, value: &str) -> Result<()> {
        let refusal = || OsError::errno(format!("set {self} to {value:?}"), 22);
        match self {
            Self::Mtu(interface) => {
                let mtu = value.parse().map_err(|_| refusal())?;
                change_link(interface, LinkChange { mtu: Some(mtu), ..LinkChange::default() })?;
                // What the kernel remembers of paths was found with the other MTU.
                routes::forget_path_mtus()
            }
            Self::Ipv6Mtu(interface) => {
                ipv6::write(&place_of_mtu(interface), value)?;
                routes::forget_path_mtus()
            }
            Self::Routes(version, interface) => {
                HeldRoutes::parse(value).map_err(|_| refusal())?.write(interface, *version)?;
                routes::forget_path_mtus()
            }
            Self::Aggregates(direction, interface) => {
                let (ipv6, ipv4) = allowed::two_sizes(value).ok_or_else(refusal)?;
                sizes::set(interface, *direction, ipv6, ipv4)
            }
            Self::Offload(switch, interface) => match value {
                "on" => ethtool::set(interface, switch.row().1, true),
                "off" => ethtool::set(interface, switch.row().1, false),
                _ => Err(refusal()),
            },
            Self::HardwareGro(interface) => match value {
                "on" => features::set(interface, HARDWARE_GRO, true),
                "off" => features::set(interface, HARDWARE_GRO, false),
                _ => Err(refusal()),
            },
            Self::Qdisc(interface) if value == DEFAULT => qdisc::clear(interface),
            Self::Qdisc(interface) => qdisc::set(interface, value),
            Self::Sysctl(name) => sysctl::write(name, value),
        }
    }
}

/// Where the MTU of IPv6 is below its settings.
fn place_of_mtu(interface: &str) -> String {
    format!("conf/{interface}/mtu")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_being_said() {
        for text in [
            "mtu:eth0",
            "mtu6:bond0.7",
            "routes4:eth0",
            "routes6:bond0.7",
            "tso:bond0.7",
            "gso:e",
            "gro:e",
            "tx:e",
            "rx-gro-hw:e",
            "lro:e",
            "gso_size:e",
            "gro_size:bond0.7",
            "qdisc:e",
            "sysctl:net.ipv4.tcp_rmem",
        ] {
            assert_eq!(Setting::parse(text).expect("a setting").to_string(), text);
        }
    }

    #[test]
    fn nothing_else_is_a_setting() {
        for text in [
            "",
            "mtu",
            "mtu:",
            "mtu:a/b",
            "mtu6:a/../b",
            "mtu6:lo",
            "routes:eth0",
            "routes4:lo",
            "queue:eth0",
            "sysctl:../x",
            "sysctl:a..b",
            "sysctl:a b",
            "sysctl:kernel.core_pattern",
            "mtu:a=b",
            "mtu:lo",
            "gso_size:lo",
            "gso_size:",
            "gro:averylonginterface",
        ] {
            assert!(Setting::parse(text).is_err(), "{text}");
        }
    }
}
