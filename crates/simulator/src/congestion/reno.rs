//! NewReno (RFC 5681, RFC 6582), as Linux' `net/ipv4/tcp_cong.c`: what every other does where it says nothing else.

use super::control::CongestionControl;
use crate::TcpSettings;

/// It has no state of its own.
#[derive(Debug, Clone)]
pub(crate) struct Reno;

impl CongestionControl for Reno {
    fn new(_: &TcpSettings) -> Reno {
        Reno
    }
}
