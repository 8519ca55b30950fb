//! What was found, in plain words: the sentence of its kind (`kinds/table.rs`), and what else is known of it.

use crate::connection::Connection;
use crate::findings::Tally;

/// A finding of a connection that is to be told.
pub(crate) struct Told<'a> {
    connection: &'a Connection,
    tally: &'a Tally,
}

/// One paragraph about what happened.
pub(crate) fn text(connection: &Connection, tally: &Tally) -> String {
    let finding = Told { connection, tally };
    let unfilled = connection.unfilled.filter(|of| tally.count == 1 && of.kind == tally.kind);
    let unanswered = connection.unanswered_of(tally);
    let sentence = match (unfilled, unanswered) {
        (Some(unfilled), _) => connection.unfilled_in_words(unfilled, tally),
        (None, Some(unanswered)) => {
            unanswered.in_words((tally.count > 1).then(|| tally.kind.sentence(&finding)))
        }
        (None, None) if connection.is_outage(tally) => {
            connection.outage_in_words((tally.count > 1).then(|| tally.kind.sentence(&finding)))
        }
        (None, None) => tally.kind.sentence(&finding),
    };
    if tally.kind.is_quality() {
        return sentence;
    }
    sentence + &finding.sizes(unfilled.is_some()) + &connection.notes.sentence(tally.kind)
}

impl Connection {
    /// Whether the server answered the SYN with a closed window, and closed it never again.
    pub(crate) fn answered_shut(&self) -> bool {
        self.observers.as_ref().is_some_and(|all| all.detectors.closed_window.only_answered_shut())
    }

    /// Who did not read.
    pub(crate) fn closings_in_words(&self, tally: &Tally) -> String {
        let lost = duration(tally.lost);
        if self.answered_shut() {
            return format!(
                "The SYN was answered with a closed window, which opened {lost} later: nothing had been sent yet that an application \
                 could read, so that who answered had no connection to the server yet, or no room for one."
            );
        }
        let times = times(tally);
        format!("The receiver closed its window {times}, {lost} in all: its application did not read.")
    }

    /// Which segments came in IP fragments.
    pub(crate) fn fragments_in_words(&self, tally: &Tally) -> String {
        self.observers.as_ref().map_or(String::new(), |all| all.detectors.ip_fragments.in_words(tally))
    }

    /// What the capture lacks.
    pub(crate) fn uncaptured_in_words(&self, tally: &Tally) -> String {
        let fragments = self.observers.as_ref().map(|all| all.detectors.ip_fragments.alone_in_words());
        let times = times(tally);
        format!("Data was acknowledged that the capture has not ({times}).{}", fragments.unwrap_or_default())
    }

    /// What nobody answered, as sentences.
    pub(crate) fn dead_in_words(&self, tally: &Tally) -> String {
        self.observers.as_ref().map_or(String::new(), |all| all.detectors.keepalive.in_words(tally))
    }
}

impl Told<'_> {
    /// How often: "once", "3 times".
    pub(crate) fn times(&self) -> String {
        times(self.tally)
    }

    /// What its detector says of it.
    pub(crate) fn detail(&self, says: fn(&Connection, &Tally) -> String) -> String {
        says(self.connection, self.tally)
    }

    /// A path that another took the place of.
    pub(crate) fn change(&self) -> String {
        self.connection.change_in_words()
    }

    /// How often, as a number.
    pub(crate) fn count(&self) -> u64 {
        self.tally.count
    }

    /// The time that was lost.
    pub(crate) fn lost(&self) -> String {
        duration(self.tally.lost)
    }

    /// The time that was lost, if any was, as that of a timer.
    pub(crate) fn waited(&self) -> String {
        if self.tally.lost > 0 {
            format!(", for which its sender waited {}", self.lost())
        } else {
            String::new()
        }
    }

    /// The RTT from end to end, in nanoseconds.
    pub(crate) fn rtt(&self) -> i64 {
        self.connection.path_rtt()
    }

    /// The MSS that an end announced: 0 the client, 1 the server.
    pub(crate) fn mss(&self, side: usize) -> String {
        let mss = self.connection.halves[side].opening.options().and_then(|syn| syn.mss);
        mss.map_or("none".to_owned(), |mss| mss.to_string())
    }

    /// What its kind is, of those whose detector has more to say.
    pub(crate) fn headline(&self) -> String {
        format!("{}.", self.tally.kind.headline())
    }

    /// Who refused it.
    pub(crate) fn refusal(&self) -> String {
        match self.connection.notes.refusal() {
            Some(message) => format!("Nobody answered the SYN but the network: {message}."),
            None => "The server answered the SYN with a reset.".to_owned(),
        }
    }

    /// Which rules were broken.
    pub(crate) fn breaches(&self) -> String {
        self.connection.breaches_in_words()
    }

    /// What else is known of SYNs that were repeated.
    pub(crate) fn syns(&self) -> String {
        self.connection.syns_in_words()
    }

    /// Which payloads passed and which never did, where a size may be the reason.
    fn sizes(&self, is_unfilled: bool) -> String {
        let sizes = self.connection.sizes.filter(|sizes| sizes.is_of(self.tally.kind));
        sizes.map_or(String::new(), |sizes| sizes.in_words(is_unfilled))
    }
}

/// How often: "once", "3 times".
pub(crate) fn times(tally: &Tally) -> String {
    if tally.count == 1 { "once".to_owned() } else { format!("{} times", tally.count) }
}

/// A time in words: "1.20 s", "40.0 ms", "12 us".
pub(crate) fn duration(nanoseconds: i64) -> String {
    let seconds = nanoseconds as f64 / 1e9;
    if seconds >= 1.0 {
        format!("{seconds:.2} s")
    } else if seconds >= 1e-3 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{:.0} us", seconds * 1e6)
    }
}
