//! What a receiver asks for by SACK, in a file that has nothing of the sender: no hole is seen there.

use super::{Acknowledgement, Detector};
use crate::account::Account;
use crate::connection::{Connection, Side};
use crate::findings::Tally;
use crate::kinds::Kind;
use crate::unfilled::Before;

/// By sender.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked([Option<Box<Request>>; 2]);

/// What was asked for until now.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    place: u64,
    bytes: u64,
    /// When first and last, and by which packets.
    times: [i64; 2],
    packets: [u64; 2],
    before: Before,
}

impl Asked {
    /// What is asked for of this sender.
    pub(crate) fn of(&self, sender: Side) -> Option<&Request> {
        self.0[sender as usize].as_deref()
    }
}

impl Request {
    /// From the first time until the last.
    pub(crate) fn waited(&self) -> i64 {
        self.times[1] - self.times[0]
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What had been told when it was asked for first.
    pub(crate) fn before(&self) -> &Before {
        &self.before
    }

    pub(crate) fn tally(&self) -> Tally {
        Tally::new(Kind::RtoStall, self.times[0], self.times[1], &self.packets)
    }
}

impl Detector for Asked {
    #[inline]
    fn acknowledgement(&mut self, of: &Connection, ack: &Acknowledgement, _: &mut Account) {
        if self.0[ack.sender as usize].is_some() || ack.segment.sack.count > 0 {
            self.take(of, ack);
        }
    }
}

impl Asked {
    #[cold]
    fn take(&mut self, of: &Connection, ack: &Acknowledgement) {
        let request = &mut self.0[ack.sender as usize];
        let way = &of.half(ack.sender).way;
        if way.is_seen() || request.as_ref().is_some_and(|request| request.place != way.una()) {
            *request = None;
        }
        let blocks = ack.segment.sack.as_slice().iter().map(|(begin, _)| way.near(*begin));
        let behind = blocks.filter(|begin| *begin > way.una()).min();
        match (request, behind) {
            (Some(request), _) => (request.times[1], request.packets[1]) = (of.last, ack.segment.number),
            (request, Some(behind)) if !way.is_seen() => {
                *request = Some(Box::new(Request {
                    place: way.una(),
                    bytes: behind - way.una(),
                    times: [of.last; 2],
                    packets: [ack.segment.number; 2],
                    before: Before::new(&of.tallies, of.last, ack.segment.number),
                }));
            }
            _ => {}
        }
    }
}
