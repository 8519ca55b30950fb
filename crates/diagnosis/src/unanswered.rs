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
}

impl Connection {
    /// A silence goes on until the end.
    pub(crate) fn keep_unanswered(&mut self, episode: &Episode, sender: Side) {
        let other = self.half(sender.other());
        // Where the file has nothing of the other end, or lacks some of it, it may lack answers as well.
        let may_answer = other.counts.segments() > 0 && !other.way.lacks_oldest();
        let is_silent = !episode.heard && self.reset_by != Some(sender.other());
        if episode.resends >= ENOUGH && may_answer && is_silent {
            self.unanswered = Some(Unanswered { resends: episode.resends, lost: episode.lost });
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
        let whom = "and nothing of the other end came any more: it had gone, or the path to it.";
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
