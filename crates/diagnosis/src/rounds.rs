//! Rounds of one sender: each is as long as an RTT.

/// How the bytes under way grow from RTT to RTT.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rounds {
    /// The round ends when this place is acknowledged; 0: none has begun.
    end: u64,
    /// What had been acknowledged when it began: all that is sent until the next acknowledgement belongs to it.
    begin: u64,
    count: u32,
    growing: u32,
    /// Rounds since the last that grew.
    steady: u32,
    /// Rounds that grew, and since, when the last new data left; with the round that goes on.
    at_data: (u32, u32),
    peak: u64,
    last_peak: u64,
    largest_peak: u64,
    /// The most in a round that has ended.
    ceiling: u64,
    /// The most since the last pause.
    busy_peak: u64,
    /// The most before anything of the round was acknowledged.
    opening: u64,
    /// The least that the window left.
    room: u64,
    /// Both of the last round, and what had been acknowledged when that began.
    last_opening: u64,
    last_room: u64,
    last_begin: u64,
    /// When it began, and how fast the last one was answered, in bytes and nanoseconds.
    since: i64,
    pace: (u64, i64),
    /// It was answered faster than the one before, by half or more: nothing on the path was full.
    gains: bool,
}

impl Rounds {
    /// Whether more is under way than in any round before: an application that sends now less and now more does not grow.
    fn has_grown(&self) -> bool {
        self.ceiling > 0 && self.peak * 2 >= self.ceiling * 3
    }

    /// Whether so much is under way that the congestion window must be the limit, wherever the other end's window ends: in slow
    /// start it grows by what is acknowledged (RFC 5681 section 3.1), and Linux asks it first. Not where something else had been
    /// the limit before: the application, or the other end's window, which then left less than `slack`.
    pub(crate) fn fills_slow_start(&self, una: u64, slack: u64, mss: u64) -> bool {
        let grown = self.last_opening + una.saturating_sub(self.last_begin);
        self.last_opening > 0 && self.peak.abs_diff(grown) <= 2 * mss && self.last_room >= slack
    }

    /// The most bytes under way in the last round.
    pub(crate) fn last_peak(&self) -> u64 {
        self.last_peak
    }

    /// The most in the last round, or in that which goes on.
    pub(crate) fn recent_peak(&self) -> u64 {
        self.peak.max(self.last_peak)
    }

    /// The most of all.
    pub(crate) fn largest_peak(&self) -> u64 {
        self.largest_peak
    }

    /// Rounds that grew, and since, when the last new data left; with the round that goes on.
    pub(crate) fn at_data(&self) -> (u32, u32) {
        self.at_data
    }

    /// How fast the last round was answered: so many bytes in so many nanoseconds.
    pub(crate) fn pace(&self) -> (u64, i64) {
        self.pace
    }

    /// The same of the round that goes on, which is as much faster as more is under way, unless something on the path is full.
    pub(crate) fn pace_now(&self) -> (u64, i64) {
        let (bytes, took) = self.pace;
        let is_faster = self.gains && self.last_peak > 0 && self.peak > self.last_peak;
        let more = u128::from(bytes) * u128::from(self.peak) / u128::from(self.last_peak.max(1));
        (if is_faster { u64::try_from(more).unwrap_or(u64::MAX) } else { bytes }, took)
    }

    /// The sender has rested: the most bytes under way since it did before.
    pub(crate) fn rest(&mut self) -> u64 {
        std::mem::take(&mut self.busy_peak)
    }

    /// New data has left: what comes after the last of it is no round of growth.
    pub(crate) fn note_data(&mut self) {
        let grown = self.has_grown();
        self.at_data = (self.growing + u32::from(grown), if grown { 0 } else { self.steady });
    }

    /// Takes the bytes under way after data left or was acknowledged, and those that the other end's window leaves. Whether a
    /// round has ended, of which `last_peak` tells.
    pub(crate) fn take(&mut self, flight: u64, (una, high): (u64, u64), room: u64, now: i64) -> bool {
        self.room = self.room.min(room);
        self.largest_peak = self.largest_peak.max(flight);
        self.busy_peak = self.busy_peak.max(flight);
        self.peak = self.peak.max(flight);
        let has_ended = self.end > 0 && una >= self.end;
        if has_ended {
            self.count += 1;
            self.growing += u32::from(self.has_grown());
            if self.peak * 2 < self.last_peak {
                self.growing = 0; // the sender had less to send: its window was not the limit
            }
            self.steady = if self.has_grown() { 0 } else { self.steady + 1 };
            self.last_peak = self.peak;
            (self.last_opening, self.last_room, self.last_begin) = (self.opening, self.room, self.begin);
            self.ceiling = self.ceiling.max(self.peak);
            let pace = (una.saturating_sub(self.begin), now - self.since);
            self.gains = self.pace.1 > 0 && is_as_fast(pace, self.pace, (3, 2));
            self.pace = pace;
            self.end = 0;
        }
        if self.end == 0 {
            (self.peak, self.room) = (flight, room);
            (self.begin, self.since) = (una, now);
        }
        if self.begin == una {
            self.opening = self.peak;
            self.end = if flight > 0 { high } else { 0 };
        }
        has_ended
    }
}

/// Whether so many bytes in so many nanoseconds are as fast as others, times a share.
pub(crate) fn is_as_fast(pace: (u64, i64), other: (u64, i64), share: (i128, i128)) -> bool {
    let product = |bytes: u64, nanoseconds: i64| i128::from(bytes) * i128::from(nanoseconds);
    product(pace.0, other.1) * share.1 >= product(other.0, pace.1) * share.0
}
