//! What connections are for: who opens one to whom and when, and what goes over it.

use framegauge_fabric::HostIndex;
use framegauge_frames::Picoseconds;

/// One message over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// From the client to the server, or back.
    pub from_client: bool,
    /// Payload; none: without end.
    pub bytes: Option<u64>,
    /// The first call writes so many bytes, such as a header; 0: as many as the others.
    pub first_write_bytes: u64,
    /// It is written in calls of so many bytes, the last maybe smaller; 0: in one.
    pub write_bytes: u64,
    /// Between two such calls.
    pub write_gap: Picoseconds,
    /// The sender waits so long before it writes, since it received the message before or the connection was there.
    pub think: Picoseconds,
    /// The reader reads nothing for so long, since the message was begun and its end of the connection was there.
    pub reader_waits: Picoseconds,
    /// The sender writes nothing after it and says so at once (`shutdown`): a FIN follows the last byte.
    pub closes: bool,
}

impl Step {
    /// All at once, from the client or to it.
    pub const fn whole(from_client: bool, bytes: Option<u64>) -> Step {
        Step {
            from_client,
            bytes,
            first_write_bytes: 0,
            write_bytes: 0,
            write_gap: Picoseconds::ZERO,
            think: Picoseconds::ZERO,
            reader_waits: Picoseconds::ZERO,
            closes: false,
        }
    }
}

/// How often the messages of a connection are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Repeat {
    /// Not at all.
    #[default]
    Never,
    /// So many rounds in all, over the same connection.
    Rounds(u64),
    /// Over the same connection, as long as a round begins before that time.
    Until(Picoseconds),
    /// Each round over a new connection, as long as it begins before that time.
    NewUntil(Picoseconds),
    /// Over the same connection, whenever a request of the client with that number is due ([`crate::Requests`]).
    Requests(u32),
}

/// The work of one connection, or of several one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Opens the connection.
    pub client: HostIndex,
    /// Accepts it.
    pub server: HostIndex,
    /// The earliest time at which it begins.
    pub begin: Picoseconds,
    /// Flows, by their position, that must have ended before.
    pub after: Vec<u32>,
    /// A flow before it, by its position: when that has ended, this one goes on over its connection.
    pub over: Option<u32>,
    /// In this order.
    pub steps: Vec<Step>,
    /// How often.
    pub repeat: Repeat,
    /// Flows of the same barrier begin every round together: when all of them have ended the one before.
    pub barrier: Option<u32>,
    /// The most that each end sends, in bits per second of payload (`SO_MAX_PACING_RATE`).
    pub pacing_bits_per_second: Option<u64>,
}

impl Flow {
    /// One transfer from the client, once, at the beginning.
    pub fn transfer(client: HostIndex, server: HostIndex, bytes: Option<u64>) -> Flow {
        Flow {
            client,
            server,
            begin: Picoseconds::ZERO,
            after: Vec::new(),
            over: None,
            steps: vec![Step::whole(true, bytes)],
            repeat: Repeat::Never,
            barrier: None,
            pacing_bits_per_second: None,
        }
    }

    /// The flows that must have ended before it begins.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = u32> + '_ {
        self.after.iter().chain(&self.over).copied()
    }

    /// Whether it can go on over the other's connection: the same ends, and each does its work once.
    pub(crate) fn can_follow(&self, before: &Flow) -> bool {
        let is_single = |flow: &Flow| flow.repeat == Repeat::Never && flow.barrier.is_none();
        let is_left_open = !before.steps.iter().any(|step| step.closes);
        (self.client, self.server) == (before.client, before.server)
            && is_single(self)
            && is_single(before)
            && is_left_open
    }
}

/// A message that was carried, or part of it if the simulation ended first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// The flow, by its position, and which round and step of it.
    pub flow: u32,
    /// From 0.
    pub round: u32,
    /// From 0.
    pub step: u32,
    /// When the connection was begun to be opened, or the message was due: over one that was open, or at a rate.
    pub begun: Picoseconds,
    /// When the first byte could be written.
    pub connected: Picoseconds,
    /// When the receiver had all of it; the end of the simulation if it had not.
    pub ended: Picoseconds,
    /// Bytes that the receiver read.
    pub bytes: u64,
    /// Segments that the client and the server have sent again in this round, until then; the first has the SYNs.
    pub resends: [u64; 2],
    /// Whether that was all.
    pub is_complete: bool,
}
