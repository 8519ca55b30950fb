//! What is known of all flows together.

use super::Search;
use crate::flow::Flow;
use crate::verdict::{Controls, FlowReport, Report, Verdict};
use std::collections::HashMap;

impl Search {
    /// By size, how likely it is that flows have lost it at their edge by chance alone, all of them together.
    pub(super) fn chances(&self) -> HashMap<u32, f64> {
        let mut chances = HashMap::new();
        for (size, chance) in self.flows.iter().filter_map(Flow::edge_chance) {
            *chances.entry(size).or_default() += chance;
        }
        chances
    }

    /// Path MTUs that flows have found, without repetition.
    pub(super) fn hints(&self) -> Vec<u32> {
        let mut hints: Vec<u32> = Vec::new();
        for mtu in self.scouts.iter().filter_map(|scout| self.flows[usize::from(*scout)].path_mtu()) {
            if !hints.contains(&mtu) {
                hints.push(mtu);
            }
        }
        hints
    }

    pub(super) fn controls(&self) -> Controls {
        Controls {
            sent: self.flows.iter().map(|flow| flow.controls_sent).sum(),
            lost: self.flows.iter().map(|flow| flow.controls_lost).sum(),
        }
    }

    /// What is known now; flows without a verdict could not be told.
    pub fn report(&self) -> Report {
        let report = |flow: &Flow| FlowReport {
            verdict: flow.verdict().unwrap_or(Verdict::Unknown),
            path_mtu_bytes: flow.path_mtu(),
            delivered_bytes: flow.delivered(),
            told: flow.told().0,
            disproved: flow.told().1,
            fragment_bytes: flow.fragment,
        };
        Report {
            flows: self.flows.iter().map(report).collect(),
            controls: self.controls(),
            sent_packets: self.sent_packets,
            sent_bytes: self.sent_bytes,
            slowly: self.slow.report(),
        }
    }
}
