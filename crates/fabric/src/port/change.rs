//! What happens to a port when its link or its queue is changed while it works.

use framegauge_frames::Picoseconds;

use super::{Port, output_limit_bytes};
use crate::impairments::Disturbance;
use crate::{Discipline, Fate, Frame, PortConfig, Queue, QueueConfig, Reason};

impl Port {
    /// Takes on rate, delay, loss and MTUs. What is being sent or on the link goes on as it was.
    pub(crate) fn reconfigure(&mut self, now: Picoseconds, config: &PortConfig) {
        self.catch_up(now);
        self.rate = config.line_rate().unwrap_or(config.rate);
        self.last_size = (0, Picoseconds::ZERO);
        let delay = config.delay + config.impairments.phase;
        if delay < self.delay {
            // It keeps what comes after from overtaking what is on the link.
            self.disturbance.get_or_insert_with(|| Box::new(Disturbance::new(&config.impairments)));
        }
        let loss = config.impairments.loss;
        if loss > 0.0 || self.disturbance.is_some() {
            let disturbance =
                self.disturbance.get_or_insert_with(|| Box::new(Disturbance::new(&config.impairments)));
            disturbance.set_loss(loss);
        }
        self.delay = delay;
        self.least_delay = self.least_delay.min(delay);
        self.input_limit_bytes = config.input_mtu.map_or(u32::MAX, |mtu| mtu.frame_bytes());
        self.output_limit_bytes = output_limit_bytes(config);
        self.set_plain_limit();
    }

    /// Puts another queue in the place of the one there is: what waits is offered to it in order.
    pub(crate) fn replace_queue(&mut self, now: Picoseconds, config: QueueConfig) {
        self.catch_up(now);
        let waiting = self.queue.drain();
        self.queue = Queue::beginning(now, config);
        let mut left_bytes: u64 = waiting.iter().map(|frame| u64::from(frame.frame_bytes)).sum();
        for frame in waiting {
            let (before, transmitting_bytes) = (self.fates.len(), self.transmitting_bytes());
            left_bytes -= u64::from(frame.frame_bytes);
            if let Err(reason) = self.queue.offer(now, frame, transmitting_bytes, &mut self.fates) {
                let queue_bytes = self.queue.bytes();
                self.fates.push(Fate { time: now, frame, reason, marked: false, queue_bytes });
            }
            // What is still to be offered is in the buffer, too.
            self.fates[before..].iter_mut().for_each(|fate| fate.queue_bytes += left_bytes);
            self.count_fates(before);
        }
    }

    /// Loses what waits, what is being sent and what is on the link, and takes nothing in any more.
    pub(crate) fn take_down(&mut self, now: Picoseconds) {
        self.catch_up(now);
        self.is_up = false;
        self.set_plain_limit();
        let mut held_bytes = self.buffered_bytes();
        let sending = self.transmission.take();
        if let Some(sending) = sending {
            self.counters.busy = self.counters.busy - (sending.departs - now);
        }
        let mut under_way: Vec<Frame> = self.in_flight.drain(..).map(|departed| departed.frame).collect();
        let still_held = under_way.split_off(under_way.len() - usize::from(sending.is_some()));
        for frame in under_way {
            let fate = self.lose(now, frame, Reason::LinkDown, held_bytes);
            self.fates.push(fate);
            self.has_news = true;
        }
        let before = self.fates.len();
        for frame in still_held.into_iter().chain(self.queue.drain()) {
            held_bytes -= u64::from(frame.frame_bytes);
            self.note_refused(now, frame, Reason::LinkDown, held_bytes);
        }
        self.count_fates(before);
        // The discipline learns that the line is idle.
        self.start(now);
    }

    /// Takes frames in again.
    pub(crate) fn bring_up(&mut self) {
        self.is_up = true;
        self.set_plain_limit();
    }

    /// Keeps a frame that was refused for [`Port::swap_fates`].
    #[cold]
    pub(crate) fn note_refused(&mut self, time: Picoseconds, frame: Frame, reason: Reason, queue_bytes: u64) {
        self.fates.push(Fate { time, frame, reason, marked: false, queue_bytes });
        self.has_news = true;
    }

    /// When everything that waits will have been sent, if nothing more comes.
    pub(crate) fn idle_from(&self, now: Picoseconds) -> Picoseconds {
        let (mut ahead, mut idle_from) = (self.clone(), now);
        while let Some(sending) = ahead.transmission {
            idle_from = sending.departs;
            ahead.catch_up(idle_from);
        }
        idle_from
    }
}
