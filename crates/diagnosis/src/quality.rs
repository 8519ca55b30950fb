//! What a capture cannot tell, and why: duplicates, loss, one direction only, aggregates, checksums, cut packets.

use crate::Thresholds;
use crate::connection::{Connection, SIDES};
use crate::findings::{Finding, MOST_PACKETS};
use crate::kinds::Kind;

/// Fewer segments of a direction say nothing about its checksums.
const LEAST_CHECKED: u64 = 3;
/// Packets of one direction from which the silence of the other tells.
const LEAST_HEARD: u64 = 10;

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

fn packets(count: u64) -> String {
    if count == 1 { "1 packet".to_owned() } else { format!("{count} packets") }
}

/// Checksums of one direction, those of aggregates apart: the kernel that merges segments leaves theirs open, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Checksums {
    checked: [u64; 2],
    wrong: [u64; 2],
}

impl Checksums {
    pub(crate) fn take(&mut self, is_right: bool, is_aggregate: bool) {
        self.checked[usize::from(is_aggregate)] += 1;
        self.wrong[usize::from(is_aggregate)] += u64::from(!is_right);
    }

    /// Whether there are some, and none is right.
    pub(crate) fn are_all_wrong(&self) -> bool {
        self.checked.iter().sum::<u64>() > 0 && self.checked == self.wrong
    }

    /// Whether one of a segment that is no aggregate is right.
    pub(crate) fn has_right(&self) -> bool {
        self.checked[0] > self.wrong[0]
    }

    /// Whether they are left to a NIC: nearly all are wrong. A few that are wrong were damaged on the way.
    fn are_left_open(&self) -> bool {
        let mut both = self.checked.into_iter().zip(self.wrong);
        both.any(|(checked, wrong)| checked >= LEAST_CHECKED && wrong * 10 >= checked * 9)
    }
}

impl Connection {
    /// Names what limits the view of this connection, at its end.
    pub(crate) fn judge_capture(&mut self, limits: &Thresholds) {
        let (first, last) = (self.first, self.last);
        for side in SIDES {
            let counts = self.half(side).counts;
            let heard = self.half(side.other()).counts;
            // Acknowledgements that go on say that the other end sends.
            let is_unheard = counts.unseen_bytes > 0 || heard.segments >= LEAST_HEARD;
            if counts.segments == 0 && is_unheard {
                self.note(Kind::HalfCapture, first, last, 0, &[]);
                self.tallies.retain(|tally| tally.kind != Kind::CaptureLoss);
            }
            if counts.aggregates > 0 {
                self.note(Kind::Aggregates, first, last, 0, &[]);
            }
            // A receiver discards what has a wrong checksum; an answer says that it was right on the wire.
            if counts.acknowledgements > 0 && self.half(side).checksums.are_left_open() {
                let number = self.half(side).last_number;
                self.note(Kind::ChecksumOffload, first, last, 0, &[number]);
            }
        }
        let unseen: u64 = self.halves.iter().map(|half| half.counts.unseen_bytes).sum();
        let bytes: u64 = self.halves.iter().map(|half| half.counts.bytes).sum();
        // One packet at the capture's edge is no loss.
        if (unseen as f64) < limits.capture_loss * (bytes + unseen) as f64 {
            self.tallies.retain(|tally| tally.kind != Kind::CaptureLoss);
        }
    }
}
