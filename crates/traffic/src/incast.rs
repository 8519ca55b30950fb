//! Rounds in which a client asks many servers at once, and asks again when all have answered: synchronized reads.
//!
//! A. Phanishayee et al., "Measurement and Analysis of TCP Throughput Collapse in Cluster-based Storage Systems", FAST
//! 2008. The barrier is what makes one slow server everybody's delay: nothing is asked while an answer is missing.

/// What to run.
#[derive(Debug, Clone, Copy)]
pub struct IncastSpec {
    /// Servers, each with a connection that is open before the first round.
    pub servers: u32,
    /// Rounds, one at least.
    pub rounds: u32,
    /// A server that owes an answer and sends nothing for so long has failed.
    pub silence_nanoseconds: u64,
}

/// A stretch of time, in nanoseconds since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// Just before the first byte of a request was written.
    pub start: u64,
    /// Just after the last byte of an answer was read.
    pub end: u64,
}

/// A server that has been silent for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// Which server, from 0.
    pub server: u32,
    /// The round of which its answer is missing, from 0.
    pub round: u32,
}

/// The client's side of the rounds, as decisions.
#[derive(Debug, Clone)]
pub struct Incast {
    spec: IncastSpec,
    started: u64,
    round: u32,
    /// Servers asked in this round, in their order, and answers that are missing in it.
    asked: u32,
    missing: u32,
    /// When a server that owes an answer was last heard of.
    heard: Vec<Option<u64>>,
    /// By server, and then by round.
    answers: Vec<Span>,
}

impl Incast {
    /// Answers that one run may have: what it keeps of them in memory stays below a gigabyte.
    pub const MOST_ANSWERS: u64 = 20_000_000;

    /// Rounds that start at `now`, when all connections are open.
    pub fn new(spec: IncastSpec, now: u64) -> Self {
        Self {
            spec,
            started: now,
            round: 0,
            asked: 0,
            missing: spec.servers,
            heard: vec![None; spec.servers as usize],
            answers: vec![Span::default(); spec.servers as usize * spec.rounds as usize],
        }
    }

    /// The server that is to be asked at `now`, if any; `now` is taken as when its request is sent.
    pub fn next_request(&mut self, now: u64) -> Option<u32> {
        if self.ended() || self.asked == self.spec.servers {
            return None;
        }
        let server = self.asked;
        self.asked += 1;
        self.heard[server as usize] = Some(now);
        let place = self.place(server);
        self.answers[place].start = now - self.started;
        Some(server)
    }

    /// Something has gone on between the client and a server: part of a request or of an answer.
    pub fn heard(&mut self, server: u32, now: u64) {
        if let Some(last) = &mut self.heard[server as usize] {
            *last = now;
        }
    }

    /// The answer of a server is complete. Nothing happens if it owed none.
    pub fn answered(&mut self, server: u32, now: u64) {
        if self.heard[server as usize].take().is_none() {
            return;
        }
        let place = self.place(server);
        self.answers[place].end = now - self.started;
        self.missing -= 1;
        if self.missing == 0 {
            self.round += 1;
            (self.asked, self.missing) = (0, self.spec.servers);
        }
    }

    /// When `silent` has to be asked though nothing happened.
    pub fn deadline(&self) -> Option<u64> {
        let earliest = self.heard.iter().flatten().min()?;
        Some(earliest.saturating_add(self.spec.silence_nanoseconds))
    }

    /// The server that has been silent for too long at `now`, if any: that which was heard of the longest ago.
    pub fn silent(&self, now: u64) -> Option<Silence> {
        let last = |server: &u32| self.heard[*server as usize];
        let server = (0..self.spec.servers).filter(|server| last(server).is_some()).min_by_key(last)?;
        let since = now.saturating_sub(last(&server)?);
        (since >= self.spec.silence_nanoseconds).then_some(Silence { server, round: self.round })
    }

    /// Whether all rounds are over.
    pub fn ended(&self) -> bool {
        self.round == self.spec.rounds
    }

    /// Rounds that are over.
    pub fn rounds_done(&self) -> u32 {
        self.round
    }

    /// The start, on the driver's clock.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// When each answer was asked for and complete, by server, and then by round; zeros for what is missing.
    pub fn answers(&self) -> &[Span] {
        &self.answers
    }

    /// Each round, from its first request to its last answer.
    pub fn rounds(&self) -> Vec<Span> {
        let of =
            |round: u32| {
                self.answers.iter().skip(round as usize).step_by(self.spec.rounds as usize).copied().reduce(
                    |whole, one| Span { start: whole.start.min(one.start), end: whole.end.max(one.end) },
                )
            };
        (0..self.round).filter_map(of).collect()
    }

    fn place(&self, server: u32) -> usize {
        server as usize * self.spec.rounds as usize + self.round as usize
    }
}
