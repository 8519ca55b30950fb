//! How much memory a scenario takes, before any of it is taken.

use framegauge_networks::TopologySpec;

use crate::ScenarioSpec;

/// Of a port, with the frames of a queue that is not empty.
const PORT_BYTES: u64 = 1_500;
/// Of a destination in a switch's routes.
const ROUTE_BYTES: u64 = 8;
/// Of a flow: both ends of a connection, with a window under way.
const FLOW_BYTES: u64 = 8_000;
/// Of a flow over the connection of another.
const FURTHER_BYTES: u64 = 600;
/// Of a host, with its names.
const HOST_BYTES: u64 = 1_000;

impl ScenarioSpec {
    /// Bytes that it takes, roughly: seen to be right within a third for fat-trees of 128 to 8,192 hosts.
    pub fn memory_bytes(&self) -> u64 {
        let hosts = self.hosts.len() as u64;
        let (switches, ports) = match &self.topology {
            TopologySpec::Rack { nics, .. } => (1, 2 * hosts * u64::from(*nics)),
            TopologySpec::Dumbbell { .. } => (2, 2 * (hosts + 1)),
            TopologySpec::LeafSpine { leaves, spines } => {
                let (leaves, spines) = (*leaves as u64, *spines as u64);
                (leaves + spines, 2 * (hosts + leaves.saturating_mul(spines)))
            }
            TopologySpec::FatTree { k } => {
                let k = *k as u64;
                (k.saturating_mul(k) / 4 * 5, k.saturating_pow(3) / 4 * 6)
            }
            TopologySpec::Custom { switches, links, .. } => (switches.len() as u64, 2 * links.len() as u64),
        };
        let routes = switches.saturating_mul(hosts).saturating_mul(ROUTE_BYTES);
        let further = self.flows.iter().filter(|flow| flow.over.is_some()).count() as u64;
        let parts = [
            ports.saturating_mul(PORT_BYTES),
            routes,
            self.flows.len() as u64 * FLOW_BYTES - further * (FLOW_BYTES - FURTHER_BYTES),
            hosts * HOST_BYTES,
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fat_tree_of_8192_hosts_takes_some_200_megabytes() {
        let hosts: Vec<String> =
            (0..8192).map(|host| format!(r#"{{"name": "h{host}", "mtu": 1500}}"#)).collect();
        let flow = r#"{"client": "h0", "server": "h1", "steps": [{"from": "client", "bytes": null}]}"#;
        let json = format!(
            r#"{{"hosts": [{}], "topology": {{"kind": "fat-tree", "k": 32}}, "flows": [{}], "end_seconds": 1,
            "link": {{"bits_per_second": 1000000000, "rtt_seconds": 0.0001, "buffer_bytes": 256000, "port_mtu": 9216}}}}"#,
            hosts.join(","),
            vec![flow; 8192].join(",")
        );
        let spec: ScenarioSpec = serde_json::from_str(&json).unwrap();
        // 262 MB were seen.
        assert!((180_000_000..350_000_000).contains(&spec.memory_bytes()), "{}", spec.memory_bytes());
    }
}
