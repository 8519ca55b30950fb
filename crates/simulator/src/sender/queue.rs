//! What was sent and is not acknowledged: the retransmission queue and its counts.

use std::collections::VecDeque;

use framegauge_frames::Picoseconds;

use super::rates::Flight;

/// A segment that was sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) sequence: u64,
    /// Payload.
    pub(crate) bytes: u32,
    /// SYN or FIN, which takes a sequence number.
    pub(crate) control: bool,
    pub(crate) is_acked: bool,
    pub(crate) is_lost: bool,
    /// It was sent again and that is not yet known to be lost.
    pub(crate) is_resent: bool,
    /// It does not begin within a super-segment.
    pub(crate) is_head: bool,
    /// How often it was sent again.
    pub(crate) resends: u16,
    /// When it was sent, or sent again, the last time.
    pub(crate) at: Picoseconds,
}

impl Sent {
    /// Sent for the first time.
    pub(crate) fn new(sequence: u64, bytes: u32, control: bool, at: Picoseconds) -> Sent {
        let (is_acked, is_lost, is_resent, is_head) = (false, false, false, true);
        Sent { sequence, bytes, control, is_acked, is_lost, is_resent, is_head, resends: 0, at }
    }

    pub(crate) fn end(&self) -> u64 {
        self.sequence + u64::from(self.bytes) + u64::from(self.control)
    }
}

/// Its entries lie next to each other in sequence space, the oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    entries: VecDeque<Sent>,
    /// Of these, those with which a super-segment begins.
    heads: u32,
    /// Of BBR alone: as many, or none.
    flights: VecDeque<Option<Flight>>,
    /// Selectively acknowledged, lost, and sent again, in segments.
    pub(crate) acked: u32,
    pub(crate) lost: u32,
    pub(crate) resent: u32,
    /// Sequence number and time of transmissions in their order; those that are outdated are left out when met.
    order: VecDeque<(u64, Picoseconds)>,
    /// No segment below this waits to be sent again.
    hint: u64,
}

impl Queue {
    pub(crate) fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Super-segments.
    pub(crate) fn parts(&self) -> u32 {
        self.heads + u32::from(self.first().is_some_and(|first| !first.is_head))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn first(&self) -> Option<&Sent> {
        self.entries.front()
    }

    pub(crate) fn last(&self) -> Option<&Sent> {
        self.entries.back()
    }

    pub(crate) fn get(&self, place: usize) -> &Sent {
        &self.entries[place]
    }

    /// Segments under way (RFC 6675's pipe as Linux counts it).
    pub(crate) fn in_flight(&self) -> u32 {
        (self.len() + self.resent).saturating_sub(self.acked + self.lost)
    }

    pub(crate) fn push(&mut self, sent: Sent) {
        self.order.push_back((sent.sequence, sent.at));
        self.heads += u32::from(sent.is_head);
        self.entries.push_back(sent);
    }

    /// The place of the entry that begins with, or has, this number; of the one behind all others its length.
    pub(crate) fn place(&self, sequence: u64) -> usize {
        self.entries.partition_point(|sent| sent.end() <= sequence)
    }

    /// Takes the oldest out.
    pub(crate) fn pop(&mut self) {
        let Some(sent) = self.entries.pop_front() else { return };
        self.flights.pop_front();
        self.heads -= u32::from(sent.is_head);
        self.acked -= u32::from(sent.is_acked);
        self.lost -= u32::from(sent.is_lost);
        self.resent -= u32::from(sent.is_resent);
        if self.entries.is_empty() {
            self.order.clear();
        }
    }

    /// Beside the entry that was pushed last, for rates of delivery.
    pub(crate) fn push_flight(&mut self, flight: Option<Flight>) {
        if flight.is_some() {
            self.flights.resize(self.entries.len() - 1, None);
            self.flights.push_back(flight);
        }
    }

    pub(crate) fn set_flight(&mut self, place: usize, flight: Option<Flight>) {
        if let Some(entry) = self.flights.get_mut(place) {
            *entry = flight;
        }
    }

    /// What was known when an entry was sent; each is asked for once.
    pub(crate) fn take_flight(&mut self, place: usize) -> Option<Flight> {
        self.flights.get_mut(place)?.take()
    }

    /// Marks an entry as selectively acknowledged; returns it as it was if it was not.
    pub(crate) fn acknowledge(&mut self, place: usize) -> Option<Sent> {
        let sent = &mut self.entries[place];
        if sent.is_acked {
            return None;
        }
        let before = *sent;
        sent.is_acked = true;
        self.acked += 1;
        self.lost -= u32::from(std::mem::take(&mut sent.is_lost));
        self.resent -= u32::from(std::mem::take(&mut sent.is_resent));
        Some(before)
    }

    /// Without SACK every duplicate acknowledgement stands for a segment that has left the network (RFC 5681 section 3.2).
    /// Whether there were more than can be, so that segments have overtaken others.
    pub(crate) fn count_duplicate(&mut self) -> bool {
        self.acked += 1;
        self.has_too_many_duplicates()
    }

    /// The first of the segments that duplicates stood for are acknowledged in order; with 0, all are forgotten. Whether
    /// more are left than can be.
    pub(crate) fn forget_duplicates(&mut self, acknowledged: u32) -> bool {
        self.acked = if acknowledged == 0 { 0 } else { self.acked.saturating_sub(acknowledged - 1) };
        self.has_too_many_duplicates()
    }

    /// `tcp_limit_reno_sacked`: a segment at least is not there yet, and none of those that are lost.
    fn has_too_many_duplicates(&mut self) -> bool {
        let most = self.len().saturating_sub(self.lost.max(1));
        let has_more = self.acked > most;
        self.acked = self.acked.min(most);
        has_more
    }

    /// How many entries from this one on are of one super-segment, and in the same state.
    fn part(&self, place: usize) -> usize {
        let state = |sent: &Sent| (sent.is_acked, sent.is_lost, sent.is_resent);
        let first = state(&self.entries[place]);
        let others = self.entries.range(place + 1..);
        1 + others.take_while(|sent| !sent.is_head && state(sent) == first).count()
    }

    /// Marks those super-segments as lost that have larger segments (`tcp_simple_retransmit`); returns how many segments.
    pub(crate) fn lose_larger(&mut self, bytes: u32) -> u32 {
        let (mut place, mut count) = (0, 0);
        while place < self.entries.len() {
            let length = self.part(place);
            let first = self.entries[place];
            if first.bytes > bytes && !first.is_acked {
                (place..place + length).for_each(|index| self.lose(index));
                count += length as u32;
            }
            place += length;
        }
        count
    }

    /// Cuts a super-segment, from this entry on, into segments of so many bytes at most (`tcp_fragment`).
    pub(crate) fn cut(&mut self, place: usize, bytes: u32) {
        let length = self.part(place);
        let (first, last) = (self.entries[place], self.entries[place + length - 1]);
        let data_end = last.sequence + u64::from(last.bytes);
        let mut pieces = Vec::new();
        let mut sequence = first.sequence;
        while sequence < data_end {
            let size = (data_end - sequence).min(u64::from(bytes)) as u32;
            let control = last.control && sequence + u64::from(size) == data_end;
            let is_head = first.is_head && sequence == first.sequence;
            pieces.push(Sent { sequence, bytes: size, control, is_head, ..first });
            sequence += u64::from(size);
        }
        for (count, is_one) in [(&mut self.lost, first.is_lost), (&mut self.resent, first.is_resent)] {
            *count = if is_one { *count + pieces.len() as u32 - length as u32 } else { *count };
        }
        if let Some(flight) = self.flights.get(place).copied() {
            let tail = self.flights.split_off((place + length).min(self.flights.len()));
            self.flights.truncate(place);
            self.flights.extend(std::iter::repeat_n(flight, pieces.len()));
            self.flights.extend(tail);
        }
        let known = (first.sequence..data_end, first.at);
        let start = self.order.iter().position(|(sequence, at)| known.0.contains(sequence) && *at == known.1);
        if let Some(start) = start {
            let mut order: Vec<_> = self.order.drain(start..).collect();
            order.retain(|(sequence, at)| !(known.0.contains(sequence) && *at == known.1));
            self.order.extend(pieces.iter().map(|piece| (piece.sequence, piece.at)));
            self.order.extend(order);
        }
        let tail = self.entries.split_off(place + length);
        self.entries.truncate(place);
        self.entries.extend(pieces);
        self.entries.extend(tail);
    }

    /// Marks an entry as lost, or its repetition.
    pub(crate) fn lose(&mut self, place: usize) {
        let sent = &mut self.entries[place];
        if sent.is_acked {
            return;
        }
        self.resent -= u32::from(std::mem::take(&mut sent.is_resent));
        self.lost += u32::from(!std::mem::replace(&mut sent.is_lost, true));
        self.hint = self.hint.min(sent.sequence);
    }

    /// Everything lost is so no more.
    pub(crate) fn forget_losses(&mut self) {
        self.entries.iter_mut().for_each(|sent| sent.is_lost = false);
        self.lost = 0;
    }

    /// The place of the next lost segment that was not sent again since.
    pub(crate) fn next_lost(&mut self) -> Option<usize> {
        if self.resent >= self.lost {
            return None;
        }
        let from = self.place(self.hint);
        let position = self.entries.range(from..).position(|sent| sent.is_lost && !sent.is_resent);
        let place = position.map(|offset| from + offset);
        self.hint = place.map_or(u64::MAX, |place| self.entries[place].sequence);
        place
    }

    /// Writes down that an entry was sent again.
    pub(crate) fn resend(&mut self, place: usize, at: Picoseconds) {
        self.probe(place, at);
        self.resent += u32::from(!std::mem::replace(&mut self.entries[place].is_resent, true));
    }

    /// The same, without counting it as under way once more.
    pub(crate) fn probe(&mut self, place: usize, at: Picoseconds) {
        let sent = &mut self.entries[place];
        sent.resends = sent.resends.saturating_add(1);
        sent.at = at;
        self.order.push_back((sent.sequence, at));
    }

    /// Calls `judge` with the place of each transmission that is under way, in the order of these, until it stops:
    /// [`Verdict::Lost`] takes it out of the order, [`Verdict::Waits`] keeps it, [`Verdict::Stop`] ends.
    pub(crate) fn judge_in_order(&mut self, mut judge: impl FnMut(&Sent) -> Verdict) {
        let mut index = 0;
        while let Some((sequence, at)) = self.order.get(index).copied() {
            let place = self.place(sequence);
            let current = self.entries.get(place).filter(|sent| {
                sent.sequence == sequence
                    && sent.at == at
                    && !sent.is_acked
                    && (!sent.is_lost || sent.is_resent)
            });
            match current.map(&mut judge) {
                Some(Verdict::Stop) => return,
                Some(Verdict::Waits) => index += 1,
                Some(Verdict::Lost) => {
                    self.take_out(index);
                    self.lose(place);
                }
                None => self.take_out(index),
            }
        }
    }

    fn take_out(&mut self, place: usize) {
        match place {
            0 => drop(self.order.pop_front()),
            _ => drop(self.order.remove(place)),
        }
    }
}

/// What [`Queue::judge_in_order`] is told of a transmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Lost,
    Waits,
    Stop,
}
