//! Packets that the capture's length cut.

use crate::findings::{Finding, MOST_PACKETS};
use crate::kinds::Kind;

/// What the capture's length cut off a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cut {
    /// Payload only.
    Payload,
    /// Options of TCP, and all of the payload.
    Options,
    /// The header of IP or TCP, so that the packet is none of any connection.
    Headers,
}

/// The packets that were cut.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cuts {
    counts: [u64; 3],
    payloads: Vec<u64>,
    /// Those that lack more than payload.
    others: Vec<u64>,
}

impl Cuts {
    pub(crate) fn take(&mut self, cut: Cut, number: u64) {
        self.counts[cut as usize] += 1;
        let numbers = if cut == Cut::Payload { &mut self.payloads } else { &mut self.others };
        if numbers.len() < MOST_PACKETS {
            numbers.push(number);
        }
    }

    /// Adds those of another share of the capture.
    pub(crate) fn add(&mut self, other: Cuts) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        for (numbers, more) in [(&mut self.payloads, other.payloads), (&mut self.others, other.others)] {
            numbers.extend(more);
            numbers.sort_unstable();
            numbers.truncate(MOST_PACKETS);
        }
    }

    /// One finding for all of them. `seconds`: from the first segment of the capture to its last.
    pub(crate) fn finding(self, seconds: f64) -> Option<Finding> {
        let [payload, options, headers] = self.counts;
        let count = payload + options + headers;
        if count == 0 {
            return None;
        }
        let mut text = format!("The capture's length cut {}.", packets(count));
        if options + headers == 0 {
            text += " All headers are whole, so that nothing is lost but the check of checksums.";
        }
        if options > 0 {
            text +=
                &format!(" Of {} it cut TCP options: SACK or timestamps may be missing.", packets(options));
        }
        if headers > 0 {
            text += &format!(
                " Of {} it cut the header of IP or TCP: they are in no connection.",
                packets(headers)
            );
        }
        Some(Finding {
            kind: Kind::Truncated,
            connection: None,
            begin_seconds: 0.0,
            end_seconds: seconds,
            count,
            lost_seconds: 0.0,
            packets: if self.others.is_empty() { self.payloads } else { self.others },
            text,
            remedy: Kind::Truncated.remedy(),
        })
    }
}

pub(crate) fn packets(count: u64) -> String {
    if count == 1 { "1 packet".to_owned() } else { format!("{count} packets") }
}
