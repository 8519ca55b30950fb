//! Silences in which the path, or the other end, was away for a while: what was sent again several times in a row had no answer,
//! nothing else of the other end came, and then it answered.
//!
//! Each repeat waits twice as long as the one before (RFC 6298 section 5.5), so that such a silence lasts as long as what
//! was away, and up to as long again: no least timer would have made it shorter by more.

use crate::connection::{Connection, Side};
use crate::findings::Tally;
use crate::kinds::Kind;
use crate::silences::Episode;
use crate::words::duration;

/// Fewer repeats may be lost by chance.
const ENOUGH: u32 = 3;

/// Those of a connection.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outages {
    lost: i64,
    longest: i64,
    /// Repeats in the longest.
    resends: u32,
}

impl Outages {
    /// What helps where most of the time was theirs.
    pub(crate) const REMEDY: &'static str = "Find what was away at that time: a link, a route or a bundle that changed, a host that stood still or moved. No timer is to blame: each repeat waits twice as long as the one before, so that a lower minimum RTO would have changed little. Where large packets alone were lost, framegauge check shows from which size on.";
}

impl Connection {
    /// A silence that a timer ended has its name. `is_answered`: not the connection's end has ended it.
    pub(crate) fn keep_outage(&mut self, episode: &Episode, sender: Side, is_answered: bool) {
        let other = self.half(sender.other());
        let may_answer = other.counts.segments() > 0 && !other.way.lacks_oldest();
        // The answer is what was heard.
        let is_silent = episode.hearings <= 1 && !episode.revealed && episode.by_timeout;
        if is_answered && episode.resends >= ENOUGH && may_answer && is_silent {
            self.outages.lost += episode.lost;
            if episode.lost > self.outages.longest {
                (self.outages.longest, self.outages.resends) = (episode.lost, episode.resends);
            }
        }
    }

    /// Whether most of these silences was that of outages, where no size explains them.
    pub(crate) fn is_outage(&self, tally: &Tally) -> bool {
        let has_size = self.sizes.is_some_and(|sizes| sizes.is_of(tally.kind));
        let of_it = tally.kind == Kind::RtoStall && (1..=tally.lost).contains(&self.outages.lost);
        of_it && !has_size && self.outages.lost >= tally.lost / 2
    }

    /// The longest as a sentence, behind that of all silences if there are more: whether more was waiting, nobody knows.
    pub(crate) fn outage_in_words(&self, sentence: Option<String>) -> String {
        let longest = duration(self.outages.longest);
        let which =
            sentence.map_or("The sender".to_owned(), |all| format!("{all} In the longest of them it"));
        format!(
            "{which} sent the same again {} times in {longest}, and nothing of the other end came; then it was answered: the path, or \
             the other end, had been away.",
            self.outages.resends
        )
    }
}
