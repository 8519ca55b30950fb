//! What a sender repeated until the end, while nothing of the other end came any more: that had gone, or the path to it.
//!
//! No timer and no tail explains such a silence, and whether more was waiting nobody knows.

use crate::connection::{Connection, Side};
use crate::findings::Tally;
use crate::kinds::Kind;
use crate::silences::Episode;
use crate::words::duration;

/// Fewer repeats may be lost by chance.
const ENOUGH: u32 = 3;

/// What was not answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unanswered {
    resends: u32,
    lost: i64,
    /// The file has nothing of the other end: the sender tells by what it repeats.
    is_unseen: bool,
}

impl Connection {
    /// A silence goes on until the end.
    pub(crate) fn keep_unanswered(&mut self, episode: &Episode, sender: Side) {
        let other = self.half(sender.other());
        // Where the file lacks some of the other end, it may lack answers as well. Where it has nothing of that, a sender that was
        // answered goes on behind what it had repeated.
        let is_unseen = other.counts.segments() == 0;
        let may_answer = if is_unseen { !episode.is_elsewhere } else { !other.way.lacks_oldest() };
        let is_silent = !episode.heard && self.reset_by != Some(sender.other());
        if episode.resends >= ENOUGH && may_answer && is_silent {
            self.unanswered = Some(Unanswered { resends: episode.resends, lost: episode.lost, is_unseen });
        }
    }

    /// What was not answered, if that is one of these silences, or all of them; not where a size may explain it.
    pub(crate) fn unanswered_of(&self, tally: &Tally) -> Option<Unanswered> {
        let has_size = self.sizes.is_some_and(|sizes| sizes.is_of(tally.kind));
        self.unanswered.filter(|_| tally.kind == Kind::RtoStall && !has_size)
    }
}

impl Unanswered {
    /// As a sentence. `sentence`: that of all silences, if there are more.
    pub(crate) fn in_words(self, sentence: Option<String>) -> String {
        let lost = duration(self.lost);
        let whom = if self.is_unseen {
            "so that no answer came to its sender: the other end had gone, or the path to it, or packets of this size vanish on the \
             way (`framegauge check` tells)."
        } else {
            "and nothing of the other end came any more: it had gone, or the path to it."
        };
        match sentence {
            None => format!(
                "What nobody answered was sent again {} times in {lost}, until the end, {whom}",
                self.resends
            ),
            Some(sentence) => {
                format!("{sentence} The last of them, {lost}, goes on until the end, {whom}")
            }
        }
    }
}
