//! Softirqs a CPU, from `/proc/softirqs`.

use std::collections::BTreeMap;

use crate::ParseError;
use crate::error::number;

/// How often one CPU has worked through each of the network's softirqs since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NetworkSoftirqs {
    /// `NET_RX`. Threaded NAPI polls on threads of its own, which are not counted here.
    pub receive: u64,
    /// `NET_TX`.
    pub transmit: u64,
}

impl NetworkSoftirqs {
    /// What came on top since an earlier reading; never below zero.
    pub fn since(&self, earlier: &NetworkSoftirqs) -> NetworkSoftirqs {
        NetworkSoftirqs {
            receive: self.receive.saturating_sub(earlier.receive),
            transmit: self.transmit.saturating_sub(earlier.transmit),
        }
    }
}

/// Parses `/proc/softirqs`, by CPU number: a line of CPUs, then a line a softirq with a count a CPU.
pub fn parse_softirqs(text: &str) -> Result<BTreeMap<u32, NetworkSoftirqs>, ParseError> {
    let mut lines = text.lines().enumerate();
    let (_, header) = lines.next().ok_or_else(|| ParseError::new(0, "", "a line of CPUs"))?;
    let mut cpus = Vec::new();
    for name in header.split_whitespace() {
        let digits = name.strip_prefix("CPU");
        cpus.push(number::<u32>(0, digits.or(Some(name)), "\"CPU\" and the number of a CPU")?);
    }
    let mut by_cpu: BTreeMap<u32, NetworkSoftirqs> =
        cpus.iter().map(|cpu| (*cpu, NetworkSoftirqs::default())).collect();
    let mut has_row = [false; 2];
    for (index, line) in lines {
        let Some((name, counts)) = line.split_once(':') else {
            continue;
        };
        let place = match name.trim() {
            "NET_RX" => 0,
            "NET_TX" => 1,
            _ => continue,
        };
        has_row[place] = true;
        let mut counts = counts.split_whitespace();
        for cpu in &cpus {
            let count = number(index, counts.next(), "a count for every CPU of the first line")?;
            let entry = by_cpu.entry(*cpu).or_default();
            *(if place == 0 { &mut entry.receive } else { &mut entry.transmit }) = count;
        }
    }
    if has_row != [true; 2] {
        return Err(ParseError::new(0, header, "lines that begin with NET_RX and NET_TX"));
    }
    Ok(by_cpu)
}
