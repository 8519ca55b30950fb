//! What only a driver in virtual time needs: to stop where a host has something to answer.

use framegauge_frames::Picoseconds;

use crate::{Fabric, Sink};

impl Fabric {
    /// As [`Fabric::advance`], but ends as soon as the sink is full ([`Sink::is_full`]): a host may answer what was handed to
    /// it at that very time. Returns the time up to which everything has happened but for what happens at that time itself.
    pub fn advance_to_delivery(&mut self, limit: Picoseconds, sink: &mut impl Sink) -> Picoseconds {
        self.settle_refused(sink);
        loop {
            let background = self.backgrounds.next().filter(|time| *time <= limit);
            if let Some(time) = self.handle_until_full(background.unwrap_or(limit), sink) {
                return self.tick(time);
            }
            match background {
                Some(time) => {
                    self.tick(time);
                    self.emit_backgrounds(time);
                    self.settle_refused(sink);
                }
                None => break,
            }
        }
        let limit = self.tick(limit);
        if !self.watched.is_empty() {
            self.tell_all_seen(sink);
        }
        limit
    }

    fn handle_until_full(&mut self, limit: Picoseconds, sink: &mut impl Sink) -> Option<Picoseconds> {
        while let Some((time, happening)) = self.next_event(limit) {
            self.handle(time, happening, sink);
            if sink.is_full() {
                return Some(time);
            }
        }
        None
    }
}
