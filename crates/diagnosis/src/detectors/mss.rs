//! Ends that announce different MSSs.

use super::Detector;
use crate::Thresholds;
use crate::account::Account;
use crate::connection::Connection;
use crate::findings::Tally;
use crate::kinds::Kind;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mss;

impl Detector for Mss {
    fn end(&mut self, of: &Connection, _: &Thresholds, account: &mut Account) {
        let Some([client, server]) = of.syns() else { return };
        if let (Some(one), Some(other)) = (client.mss, server.mss)
            && one != other
        {
            account.tell(Tally::new(Kind::MssMismatch, of.first, of.first, &[]));
        }
    }
}
