//! How frames enter the network: by a host's NIC.

use framegauge_frames::{BitRate, Picoseconds, frame_bytes};

use crate::drops::DropLog;
use crate::port::Port;
use crate::{Aggregate, Fabric, Frame, HostIndex, PortIndex, Reason};

/// When a host's NIC will have sent everything it was handed, had it never been paused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Uplink {
    pub(crate) port: PortIndex,
    pub(crate) rate: BitRate,
    pub(crate) idle_from: Picoseconds,
    pub(crate) filters_icmp_errors: bool,
}

impl Fabric {
    /// A host hands a super-packet to its NIC, whose queue has no limit: stop while
    /// [`Fabric::uplink_backlog_bytes`] is high. May be called with a `now` beyond [`Fabric::next_deadline`], but not where the
    /// network is lossless: a PAUSE may have come by then. What is for a member of a bond gets to the one that its switch chooses.
    ///
    /// # Panics
    ///
    /// If the source or the destination is not a host of this fabric, or switches do not join them.
    pub fn transmit(&mut self, now: Picoseconds, source: HostIndex, aggregate: Aggregate) {
        let segment = |host: HostIndex| self.segments[usize::from(host.0)];
        assert_eq!(segment(source), segment(aggregate.destination), "no way to {:?}", aggregate.destination);
        let destination = match &self.bonds {
            Some(bonds) => bonds.incoming(source, aggregate.destination, aggregate.flow),
            None => aggregate.destination,
        };
        let Some(last) = aggregate.frames.checked_sub(1) else {
            return;
        };
        let now = self.tick(now);
        if self.backgrounds.next().is_some_and(|time| time <= now) {
            self.emit_backgrounds(now);
        }
        let uplink = &mut self.uplinks[usize::from(source.0)];
        let port = &mut self.ports[usize::from(uplink.port.0)];
        let sizes = [aggregate.captured_bytes, aggregate.last_captured_bytes].map(frame_bytes);
        let sending = port.serialisation(sizes[1]) + port.serialisation(sizes[0]).saturating_mul(last.into());
        let filtered = aggregate.icmp_error && uplink.filters_icmp_errors;
        if port.is_up() && !filtered {
            uplink.idle_from = uplink.idle_from.max(now - port.held_back(now)) + sending;
        }

        let (was_idle, mut refused) = (port.next_arrival().is_none(), false);
        for index in 0..=last {
            let frame = Frame {
                flow: aggregate.flow,
                aggregate: aggregate.id,
                frame_bytes: sizes[usize::from(index == last)],
                index,
                destination,
                input_port: uplink.port,
                since: now,
                ecn: aggregate.ecn,
                band: aggregate.band,
            };
            // A host's NIC has no limit and no MTU: its kernel keeps to it. Its link may be down; a router's has a queue.
            let offered = match filtered {
                false => port.offer(now, frame, u32::MAX),
                true => port.refuse(now, frame, u32::MAX, Reason::Filtered),
            };
            // The first that is taken in ends a run, and the others with it as long as nothing else happens.
            if index == 0 || offered.is_err() || port.has_news() {
                self.drops.note_offered(port, uplink.port, &frame, now, offered);
            }
            refused |= offered.is_err();
        }
        let uplink = uplink.port;
        if refused {
            self.unsettled.push(uplink);
        }
        if was_idle {
            self.schedule_arrival(uplink.0.into());
        }
    }

    /// Wire bytes that a host's NIC was handed and has not sent yet, a byte that is being sent included.
    ///
    /// # Panics
    ///
    /// If the host is not one of this fabric.
    pub fn uplink_backlog_bytes(&self, host: HostIndex) -> u64 {
        self.uplinks[usize::from(host.0)].rate.bytes_within(self.uplink_backlog(host))
    }

    /// How long a host's NIC takes to send what it was handed.
    ///
    /// # Panics
    ///
    /// If the host is not one of this fabric.
    pub fn uplink_backlog(&self, host: HostIndex) -> Picoseconds {
        (self.uplinks[usize::from(host.0)].idle_from + self.uplink_held_back(host)) - self.heard
    }

    /// How long a host's NIC takes to send what it was handed, but for so many bytes at the end.
    ///
    /// # Panics
    ///
    /// If the host is not one of this fabric.
    pub fn uplink_backlog_before(&self, host: HostIndex, bytes: u64) -> Picoseconds {
        let last = self.uplinks[usize::from(host.0)].rate.serialisation(bytes);
        self.uplink_backlog(host).saturating_sub(last)
    }

    /// How long frames have waited in a host's NIC by now for nothing but the end of a pause, all times together: what was
    /// handed over before leaves so much later than it seemed then.
    ///
    /// # Panics
    ///
    /// If the host is not one of this fabric.
    pub fn uplink_held_back(&self, host: HostIndex) -> Picoseconds {
        let port = self.uplinks[usize::from(host.0)].port;
        self.ports[usize::from(port.0)].held_back(self.heard)
    }

    /// The highest rate at which a host's NIC sends now; `None` without hosts.
    pub fn fastest_uplink(&self) -> Option<BitRate> {
        self.uplinks.iter().map(|uplink| uplink.rate).max()
    }
}

impl DropLog {
    /// Writes down what became of a frame that was offered to the port of a NIC, and of others there with it. It is told
    /// later, when there is a sink; the frames that come until then must not change how many were dropped in a row.
    pub(crate) fn note_offered(
        &mut self,
        port: &mut Port,
        index: PortIndex,
        frame: &Frame,
        now: Picoseconds,
        offered: Result<(), Reason>,
    ) {
        match offered {
            Ok(()) if port.has_marked(frame) => {}
            Ok(()) => self.end_runs(index, index),
            Err(reason) => port.note_refused(now, *frame, reason, port.buffered_bytes()),
        }
        if port.has_news() {
            port.unrecorded().iter().for_each(|fate| self.record(fate, index));
        }
    }
}
