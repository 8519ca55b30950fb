//! What detectors tell of a connection, added up with what it knows itself.

use crate::connection::{Connection, Side};
use crate::detectors::Detectors;
use crate::findings::{Tally, merge};
use crate::kinds::Kind;
use crate::sizes::Sizes;
use crate::steps::Witness;

/// What detectors tell of one event.
#[derive(Debug, Clone, Default)]
pub(crate) struct Account(Vec<Entry>);

/// The detectors of a connection, and the account that is handed to them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observers {
    pub(crate) detectors: Detectors,
    account: Account,
}

#[derive(Debug, Clone)]
enum Entry {
    Told(Tally),
    Instead(Tally, Kind),
    Withdrawn(Kind),
    Renamed(Kind, Kind),
    Recounted(Kind, u64),
    Corrected(&'static [Kind], Tally, Side),
    Sized(Sizes),
    Witnessed(Witness),
}

impl Account {
    /// It happened.
    #[cold]
    pub(crate) fn tell(&mut self, tally: Tally) {
        self.0.push(Entry::Told(tally));
    }

    /// It happened, and its time was taken for that of another kind: as much of it moves as the other has.
    pub(crate) fn tell_instead(&mut self, tally: Tally, of: Kind) {
        self.0.push(Entry::Instead(tally, of));
    }

    /// It happened too seldom to have its name.
    pub(crate) fn withdraw(&mut self, kind: Kind) {
        self.0.push(Entry::Withdrawn(kind));
    }

    /// All that was told as one kind is another.
    pub(crate) fn rename(&mut self, kind: Kind, other: Kind) {
        self.0.push(Entry::Renamed(kind, other));
    }

    /// It happened so often, if it did.
    pub(crate) fn recount(&mut self, kind: Kind, count: u64) {
        self.0.push(Entry::Recounted(kind, count));
    }

    /// These sizes passed, and these did not.
    pub(crate) fn size(&mut self, sizes: Sizes) {
        self.0.push(Entry::Sized(sizes));
    }

    /// It tells whether time went by.
    pub(crate) fn witness(&mut self, witness: Witness) {
        self.0.push(Entry::Witnessed(witness));
    }

    /// Of what a sender was told to have as one kind, the first of these that has so much, this was another.
    pub(crate) fn correct(&mut self, former: &'static [Kind], tally: Tally, sender: Side) {
        self.0.push(Entry::Corrected(former, tally, sender));
    }
}

impl Connection {
    /// Shows an event to the detectors, and adds up what they tell. Whether they told anything.
    #[inline]
    pub(crate) fn show(&mut self, event: impl FnOnce(&mut Detectors, &Connection, &mut Account)) -> bool {
        let Some(mut observers) = self.observers.take() else { return false };
        event(&mut observers.detectors, self, &mut observers.account);
        // Most packets are nothing new to any of them.
        let has_told = !observers.account.0.is_empty();
        // Nothing is there to drop: to look for it would cost as much as most events do.
        std::mem::forget(self.observers.replace(observers));
        has_told && self.enter_all()
    }

    #[cold]
    fn enter_all(&mut self) -> bool {
        let account = self.observers.as_mut().map(|observers| std::mem::take(&mut observers.account));
        self.enter_account(account.unwrap_or_default());
        true
    }

    /// Adds up what an account has.
    pub(crate) fn enter_account(&mut self, account: Account) {
        account.0.into_iter().for_each(|entry| self.enter(entry));
    }

    fn enter(&mut self, entry: Entry) {
        match entry {
            Entry::Told(tally) => self.add(&tally),
            Entry::Withdrawn(kind) => self.tallies.retain(|tally| tally.kind != kind),
            Entry::Renamed(kind, other) => self.rename(kind, other),
            Entry::Recounted(kind, count) => {
                let tally = self.tallies.iter_mut().find(|tally| tally.kind == kind);
                tally.into_iter().for_each(|tally| tally.count = count);
            }
            Entry::Sized(sizes) => self.keep_sizes(sizes),
            Entry::Witnessed(witness) => self.witnesses.add(witness),
            Entry::Corrected(kinds, tally, sender) => self.correct(kinds, &tally, sender),
            Entry::Instead(mut tally, of) => {
                let other = self.tallies.iter_mut().find(|other| other.kind == of);
                tally.lost = other.map_or(0, |other| {
                    let lost = tally.lost.min(other.lost);
                    other.lost -= lost;
                    lost
                });
                self.add(&tally);
            }
        }
    }

    fn correct(&mut self, former: &[Kind], right: &Tally, sender: Side) {
        let has_it = |tally: &Tally, kind| {
            tally.kind == kind && tally.lost >= right.lost && tally.count >= right.count
        };
        let place = |kind: &Kind| self.tallies.iter().position(|tally| has_it(tally, *kind));
        let Some(place) = former.iter().find_map(place) else { return };
        let tally = &mut self.tallies[place];
        let former = tally.kind;
        tally.lost -= right.lost;
        tally.count -= right.count;
        tally.packets.retain(|number| !right.packets.contains(number));
        self.tallies.retain(|tally| tally.kind != former || tally.count > 0);
        self.add(right);
        if right.kind == Kind::SpuriousRetransmit {
            self.stalls.retain(|stall| *stall != (right.begin, sender));
        }
        if right.kind == Kind::RtoStall {
            self.stalls.push((right.begin, sender));
        }
    }

    pub(crate) fn add(&mut self, tally: &Tally) {
        if let Some(picture) = &mut self.picture {
            picture.note(tally.kind, tally.begin, tally.end);
        }
        merge(&mut self.tallies, tally);
    }
}
