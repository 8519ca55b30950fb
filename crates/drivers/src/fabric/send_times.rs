//! The times at which hosts sent the packets that the fabric reads.

use framegauge_fabric::{Aggregate, Fabric, HostIndex};
use framegauge_frames::Picoseconds;
use framegauge_linux::stamps::Stamps;
use framegauge_linux::tap::Tap;

use crate::fabric::record::Record;

/// What is on its way into a TAP is there sooner.
const DROPPED_AFTER: Picoseconds = Picoseconds::from_nanoseconds(1_000_000);

/// The times at which packets were sent to one TAP.
pub(crate) struct SendTimes {
    stamps: Option<Stamps>,
    epoch: u64,
    /// How many of them were read, or dropped at a full TAP.
    read: u64,
    /// How many were sent when some were not there to be read, and since when.
    missing: Option<(u64, Picoseconds)>,
}

impl SendTimes {
    /// Send times from now on, if the kernel stamps packets. Times of the fabric begin with `epoch`.
    pub(crate) fn of(tap: &Tap, epoch: u64) -> Self {
        Self { stamps: Stamps::of(tap.raw()).ok(), epoch, read: 0, missing: None }
    }

    /// For a TAP whose packets count as sent when they are read.
    pub(crate) fn unknown() -> Self {
        Self { stamps: None, epoch: 0, read: 0, missing: None }
    }

    pub(crate) fn are_known(&self) -> bool {
        self.stamps.is_some()
    }

    /// Whether more was sent than was read. Never if times are unknown.
    pub(crate) fn are_ahead(&self) -> bool {
        self.are_known() && !self.are_used_up()
    }

    /// Whether all that was sent was read. Never if times are unknown.
    pub(crate) fn are_used_up(&self) -> bool {
        self.stamps.as_ref().is_some_and(|stamps| stamps.count() == self.read)
    }

    /// When the packet was sent that was read at `now`.
    pub(crate) fn next(&mut self, now: Picoseconds) -> Picoseconds {
        let Some(stamps) = &self.stamps else { return now };
        let time = stamps.time(self.read);
        // One that was taken for dropped is there after all; its time has gone.
        self.read = stamps.count().min(self.read + 1);
        time.map_or(now, |time| self.since_epoch(time))
    }

    /// Nothing was there to be read at `now`: what was sent and stays away has been dropped.
    pub(crate) fn none_left(&mut self, now: Picoseconds) {
        let Some(stamps) = &self.stamps else { return };
        let count = stamps.count();
        match self.missing {
            _ if count == self.read => self.missing = None,
            Some((before, since)) if before == count => {
                if now > since + DROPPED_AFTER {
                    self.read = count;
                }
            }
            _ => self.missing = Some((count, now)),
        }
    }

    fn since_epoch(&self, time: u64) -> Picoseconds {
        Picoseconds::from_nanoseconds(time.saturating_sub(self.epoch))
    }
}

/// What was read from hosts and the fabric does not know of yet.
#[derive(Default)]
pub(crate) struct Arrivals {
    waiting: Vec<(Picoseconds, HostIndex, Aggregate)>,
}

impl Arrivals {
    pub(crate) fn push(&mut self, sent: Picoseconds, host: HostIndex, aggregate: Aggregate) {
        self.waiting.push((sent, host, aggregate));
    }

    /// When the first of what [`Arrivals::transmit`] has left was sent.
    pub(crate) fn first(&self) -> Option<Picoseconds> {
        self.waiting.first().map(|(sent, ..)| *sent)
    }

    /// Hands over what was sent by `now`, in the order in which it was sent.
    pub(crate) fn transmit(&mut self, now: Picoseconds, fabric: &mut Fabric, record: &mut Option<Record>) {
        self.waiting.sort_by_key(|(sent, ..)| *sent);
        let due = self.waiting.partition_point(|(sent, ..)| *sent <= now);
        for (sent, host, aggregate) in self.waiting.drain(..due) {
            // The fabric was told of a later time if this was just being sent, or its NIC was full.
            let sent = sent.max(fabric.now());
            if let Some(record) = record {
                record.handed_over.push((sent, host, aggregate));
            }
            fabric.transmit(sent, host, aggregate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use framegauge_linux::clock::{monotonic_nanoseconds, sleep};
    use std::net::UdpSocket;

    /// Linux's default length of a TAP's queue.
    const HOLDS: usize = 1000;

    /// A TAP and a socket that sends to it.
    fn tap() -> Option<(Tap, SendTimes, UdpSocket)> {
        let (tap, socket) = framegauge_linux::trial::tap()?;
        if let Err(error) = framegauge_linux::stamps::can_be_had() {
            return framegauge_linux::trial::not_run("BPF", &error);
        }
        let times = SendTimes::of(&tap, 0);
        assert!(times.are_known());
        Some((tap, times, socket))
    }

    fn now() -> Picoseconds {
        Picoseconds::from_nanoseconds(monotonic_nanoseconds())
    }

    /// Reads all that there is; the times at which it was sent.
    fn read(tap: &Tap, times: &mut SendTimes) -> Vec<Picoseconds> {
        let (mut stamps, mut buffer) = (Vec::new(), [0; 2048]);
        while tap.read(&mut buffer).expect("it is readable").is_some() {
            stamps.push(times.next(now()));
        }
        times.none_left(now());
        stamps
    }

    #[test]
    fn packets_that_a_full_tap_dropped_are_forgotten() {
        let Some((tap, mut times, socket)) = tap() else { return };
        let before = now();
        for _ in 0..HOLDS + 10 {
            // A full TAP says so to the sender, or not, by kernel.
            let _ = socket.send(&[1]);
        }
        let after = now();
        assert!(times.are_ahead());
        let stamps = read(&tap, &mut times);
        assert_eq!(stamps.len(), HOLDS);
        assert!(stamps.is_sorted() && before <= stamps[0] && stamps[HOLDS - 1] <= after);
        // They might be on their way still; after a while they are not.
        assert!(times.are_ahead());
        sleep(2_000_000);
        assert!(read(&tap, &mut times).is_empty());
        assert!(!times.are_ahead());
        let before = now();
        socket.send(&[1]).expect("it is sent");
        let after = now();
        let stamps = read(&tap, &mut times);
        assert!(
            stamps.len() == 1 && before <= stamps[0] && stamps[0] <= after,
            "{before} {stamps:?} {after}"
        );
    }

    #[test]
    fn what_the_times_do_not_tell_was_sent_now() {
        let Some((tap, mut times, socket)) = tap() else { return };
        socket.send(&[1]).expect("it is sent");
        times.read = 1;
        assert!(!times.are_ahead());
        let before = now();
        assert!(read(&tap, &mut times)[0] >= before);
        assert_eq!((times.read, times.are_ahead()), (1, false));
        let mut unknown = SendTimes::unknown();
        assert_eq!((unknown.next(before), unknown.are_ahead(), unknown.are_known()), (before, false, false));
    }
}
