//! The serving end of the short TCP connections (`handshake`): all of them on one thread, and few without the token.

use super::handshake::BULK_BYTES;
use crate::door::Door;
use framegauge_linux::Result;
use framegauge_linux::clock::monotonic_nanoseconds;
use framegauge_linux::epoll::Epoll;
use framegauge_linux::tcp::{self, Moved};
use framegauge_pathmtu::{TOKEN_BYTES, Token, same_token};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

/// Connections that have not shown the token. When there are so many, the oldest has to go: whoever knows the token
/// shows it at once.
const MOST_STRANGERS: usize = 256;
/// All connections.
const MOST_VISITORS: usize = 2048;
/// From the first packet to the last.
const VISIT_NANOSECONDS: u64 = 3_000_000_000;
/// Between two looks at the clock while anybody is here.
const LOOK_NANOSECONDS: u64 = 100_000_000;
/// Listeners are numbered from here on, visitors from `VISITORS`.
const LISTENERS: u64 = 1 << 32;
const VISITORS: u64 = 1 << 33;

struct Visitor {
    socket: TcpStream,
    shown: Token,
    received: usize,
    until: u64,
}

impl Visitor {
    fn is_stranger(&self) -> bool {
        self.received < TOKEN_BYTES
    }

    /// Takes what has come; false when the visit is over.
    fn step(&mut self, token: &Token, buffer: &mut [u8]) -> Result<bool> {
        let raw = self.socket.as_raw_fd();
        while self.received < BULK_BYTES {
            let moved = if self.is_stranger() {
                tcp::receive(raw, &mut self.shown[self.received..])?
            } else {
                let room = buffer.len().min(BULK_BYTES - self.received);
                tcp::receive(raw, &mut buffer[..room])?
            };
            match moved {
                Moved::Bytes(count) => self.received += count,
                Moved::Nothing => return Ok(true),
                Moved::End => return Ok(false),
            }
            if self.received == TOKEN_BYTES && !same_token(&self.shown, token) {
                return Ok(false);
            }
        }
        let announced = tcp::info(raw).map_or(0, |info| info.announced_mss_bytes);
        // A new connection's buffer always holds the answer.
        tcp::send(raw, &announced.to_be_bytes())?;
        Ok(false)
    }
}

/// Listeners and the connections that came to them.
pub(super) struct Visitors {
    doors: Vec<(Door, bool)>,
    /// By the key that epoll knows them by; `free` holds the places that are empty.
    visitors: Vec<Option<Visitor>>,
    free: Vec<usize>,
    buffer: Vec<u8>,
}

impl Visitors {
    pub(super) fn new(listeners: Vec<TcpListener>) -> Self {
        let doors = listeners.into_iter().map(|listener| (Door::new(listener), true)).collect();
        Self { doors, visitors: Vec::new(), free: Vec::new(), buffer: vec![0; 16 * 1024] }
    }

    /// Watches the listeners.
    pub(super) fn begin(&self, epoll: &Epoll) -> Result<()> {
        let mut doors = self.doors.iter().enumerate();
        doors.try_for_each(|(index, (door, _))| epoll.add(door.raw(), LISTENERS + index as u64, true, false))
    }

    /// Whether what epoll has found is theirs.
    pub(super) fn knows(key: u64) -> bool {
        (LISTENERS..u64::MAX).contains(&key)
    }

    /// How long a wait may last.
    pub(super) fn patience(&self) -> Option<u64> {
        let idle = self.here() == 0 && self.doors.iter().all(|(_, watched)| *watched);
        (!idle).then_some(LOOK_NANOSECONDS)
    }

    fn here(&self) -> usize {
        self.visitors.len() - self.free.len()
    }

    /// Serves what epoll has found; how many were turned away.
    pub(super) fn serve(&mut self, key: u64, token: &Token, epoll: &Epoll) -> u64 {
        if key < VISITORS {
            return self.let_in((key - LISTENERS) as usize, epoll);
        }
        let place = (key - VISITORS) as usize;
        let Some(mut visitor) = self.visitors.get_mut(place).and_then(Option::take) else { return 0 };
        if visitor.step(token, &mut self.buffer).unwrap_or(false) {
            self.visitors[place] = Some(visitor);
            return 0;
        }
        self.free.push(place);
        u64::from(visitor.received <= TOKEN_BYTES)
    }

    fn let_in(&mut self, index: usize, epoll: &Epoll) -> u64 {
        let mut refused = 0;
        while self.here() < MOST_VISITORS {
            let Some(socket) = self.doors[index].0.accept() else { break };
            refused += self.make_room();
            let place = self.free.pop().unwrap_or_else(|| {
                self.visitors.push(None);
                self.visitors.len() - 1
            });
            let key = VISITORS + place as u64;
            if socket.set_nonblocking(true).is_ok() && epoll.add(socket.as_raw_fd(), key, true, false).is_ok()
            {
                let until = monotonic_nanoseconds() + VISIT_NANOSECONDS;
                self.visitors[place] = Some(Visitor { socket, shown: [0; TOKEN_BYTES], received: 0, until });
            } else {
                self.free.push(place);
            }
        }
        refused
    }

    /// Sends the oldest stranger away if there are too many.
    fn make_room(&mut self) -> u64 {
        let strangers = || {
            let all = self.visitors.iter().enumerate();
            all.filter_map(|(place, visitor)| {
                visitor.as_ref().filter(|visitor| visitor.is_stranger()).map(|visitor| (visitor.until, place))
            })
        };
        if strangers().count() < MOST_STRANGERS {
            return 0;
        }
        let Some((_, place)) = strangers().min() else { return 0 };
        self.end(place)
    }

    fn end(&mut self, place: usize) -> u64 {
        self.visitors[place] = None;
        self.free.push(place);
        1
    }

    /// Sends away whose time is over, and watches the listeners as long as there is room; how many were sent away.
    pub(super) fn look(&mut self, epoll: &Epoll) -> Result<u64> {
        let mut refused = 0;
        if self.here() > 0 {
            let now = monotonic_nanoseconds();
            for place in 0..self.visitors.len() {
                if self.visitors[place].as_ref().is_some_and(|visitor| now >= visitor.until) {
                    refused += self.end(place);
                }
            }
        }
        let room = self.here() < MOST_VISITORS;
        for (index, (door, watched)) in self.doors.iter_mut().enumerate() {
            let is_watched = room && door.is_open();
            if *watched != is_watched {
                epoll.change(door.raw(), LISTENERS + index as u64, is_watched, false)?;
                *watched = is_watched;
            }
        }
        Ok(refused)
    }
}
