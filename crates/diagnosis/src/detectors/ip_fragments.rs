//! Segments that came in IP fragments.

use super::{Detector, Seen};
use crate::Thresholds;
use crate::account::Account;
use crate::connection::Connection;
use crate::findings::Tally;
use crate::kinds::Kind;

/// Those of both directions.
#[derive(Debug, Clone, Default)]
pub(crate) struct IpFragments {
    all: Option<Box<Tally>>,
    /// Of how many the file has the first fragment alone.
    alone: u64,
    /// The bytes of the largest first fragment, with its IP header.
    largest: u32,
    is_v6: bool,
}

impl Detector for IpFragments {
    fn segment(&mut self, _: &Connection, packet: &Seen, _: &mut Account) {
        let Some(fragments) = packet.segment.fragments else { return };
        let (now, number) = (packet.now, packet.segment.number);
        let first = || Box::new(Tally::new(Kind::IpFragments, now, now, &[]).times(0));
        let all = self.all.get_or_insert_with(first);
        (all.end, all.count) = (now, all.count + 1);
        all.add_packet(number);
        self.alone += u64::from(!fragments.are_whole);
        self.largest = self.largest.max(fragments.first_bytes.into());
        self.is_v6 = packet.segment.source.is_ipv6();
    }

    fn end(&mut self, _: &Connection, _: &Thresholds, account: &mut Account) {
        if let Some(all) = self.all.take() {
            account.tell(*all);
        }
    }
}

impl IpFragments {
    /// Who cut them, as far as that is known, and how large the link is.
    pub(crate) fn in_words(&self, tally: &Tally) -> String {
        let count = match tally.count {
            1 => "1 segment".to_owned(),
            count => format!("{count} segments"),
        };
        // Offsets count eight bytes each, so that the last bytes of a link may not be used (RFC 791 section 3.2).
        let (least, most) = (self.largest, self.largest + 7);
        let who = if self.is_v6 {
            "no router cuts IPv6 packets (RFC 8200 section 5), so that their sender did, or a tunnel or translator"
        } else {
            "a router on the way cut packets that were too large for its next link, or their sender did"
        };
        format!(
            "{count} came in IP fragments: {who}. The largest first one has {least} bytes: if it fills that link, its MTU is {least} to {most}."
        )
    }

    /// Of how many segments the file has the first fragment only, as a sentence; empty if there are none.
    pub(crate) fn alone_in_words(&self) -> String {
        if self.alone == 0 {
            return String::new();
        }
        let whose = if self.alone == 1 { "1 segment".to_owned() } else { format!("{} segments", self.alone) };
        format!(
            " Of {whose} it has the first IP fragment only: the others have no ports, so that a filter by ports leaves them out."
        )
    }
}
