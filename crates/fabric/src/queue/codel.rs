//! Controlled delay.

use framegauge_frames::Picoseconds;

use crate::queue::fifo::Fifo;
use crate::{CoDelConfig, Discipline, Ecn, Fate, Frame, Reason};

/// If the smallest wait within a sliding interval stays above the target, drops at the head begin, at intervals that
/// shrink with the square root of their number (RFC 8289).
#[derive(Debug, Clone)]
pub struct CoDel {
    queue: Fifo,
    limit_bytes: u64,
    control: Control,
}

impl CoDel {
    /// An empty queue.
    pub fn new(config: CoDelConfig) -> CoDel {
        CoDel { queue: Fifo::default(), limit_bytes: config.limit_bytes, control: Control::new(config) }
    }
}

impl Discipline for CoDel {
    fn offer(
        &mut self,
        _now: Picoseconds,
        frame: Frame,
        transmitting_bytes: u64,
        _fates: &mut Vec<Fate>,
    ) -> Result<(), Reason> {
        if self.queue.bytes() + transmitting_bytes + u64::from(frame.frame_bytes) > self.limit_bytes {
            return Err(Reason::Taildrop);
        }
        self.queue.push(frame);
        Ok(())
    }

    fn take(&mut self, now: Picoseconds, fates: &mut Vec<Fate>) -> Option<Frame> {
        self.control.take(now, &mut self.queue, 0, fates)
    }

    fn drain(&mut self) -> Vec<Frame> {
        self.queue.drain().collect()
    }

    fn bytes(&self) -> u64 {
        self.queue.bytes()
    }

    fn frames(&self) -> u64 {
        self.queue.len()
    }
}

/// The state of RFC 8289, section 5, of one queue.
#[derive(Debug, Clone)]
pub(crate) struct Control {
    target: Picoseconds,
    interval: Picoseconds,
    ecn: bool,
    /// The largest frame so far: with no more than that left, a queue is not standing.
    largest_bytes: u64,
    first_above: Option<Picoseconds>,
    drop_next: Picoseconds,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl Control {
    pub(crate) fn new(config: CoDelConfig) -> Control {
        Control {
            target: config.target,
            interval: config.interval,
            ecn: config.ecn,
            largest_bytes: 0,
            first_above: None,
            drop_next: Picoseconds::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    /// The next frame to send; `other_bytes` wait in other queues of the port.
    pub(crate) fn take(
        &mut self,
        now: Picoseconds,
        queue: &mut Fifo,
        other_bytes: u64,
        fates: &mut Vec<Fate>,
    ) -> Option<Frame> {
        let (mut frame, mut standing) = self.look(now, queue);
        if self.dropping {
            self.dropping = standing;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                let passed = self.strike(now, frame?, other_bytes + queue.bytes(), fates);
                if passed.is_some() {
                    self.drop_next = self.control_law(self.drop_next);
                    return passed;
                }
                (frame, standing) = self.look(now, queue);
                self.dropping = standing;
                if standing {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if standing {
            frame = match self.strike(now, frame?, other_bytes + queue.bytes(), fates) {
                None => self.look(now, queue).0,
                passed => passed,
            };
            self.dropping = true;
            // Back soon after the last time: where that left off, not from the beginning.
            let since = self.count - self.last_count;
            let lately = now.saturating_sub(self.drop_next) < self.interval.saturating_mul(16);
            self.count = if since > 1 && lately { since } else { 1 };
            self.drop_next = self.control_law(now);
            self.last_count = self.count;
        }
        frame
    }

    /// `dodequeue`: the first frame, and whether it may be dropped.
    fn look(&mut self, now: Picoseconds, queue: &mut Fifo) -> (Option<Frame>, bool) {
        let Some(frame) = queue.pop() else {
            self.first_above = None;
            return (None, false);
        };
        self.largest_bytes = self.largest_bytes.max(u64::from(frame.frame_bytes));
        if now - frame.since < self.target || queue.bytes() <= self.largest_bytes {
            self.first_above = None;
            return (Some(frame), false);
        }
        let standing = self.first_above.is_some_and(|since| now >= since);
        self.first_above.get_or_insert(now + self.interval);
        (Some(frame), standing)
    }

    /// Drops the frame, or marks and keeps it.
    fn strike(
        &mut self,
        time: Picoseconds,
        mut frame: Frame,
        queue_bytes: u64,
        fates: &mut Vec<Fate>,
    ) -> Option<Frame> {
        let marked = self.ecn && frame.ecn != Ecn::NOT_CAPABLE;
        if marked {
            frame.ecn = Ecn::MARKED;
        }
        fates.push(Fate { time, frame, reason: Reason::Sojourn, marked, queue_bytes });
        marked.then_some(frame)
    }

    /// When the next one is due: an interval over the root of the count later.
    fn control_law(&self, time: Picoseconds) -> Picoseconds {
        let interval = self.interval.as_picoseconds() as f64 / f64::from(self.count).sqrt();
        time + Picoseconds::new(interval as u64)
    }
}
