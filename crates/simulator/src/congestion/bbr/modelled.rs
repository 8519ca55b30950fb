//! BBR as one of the table of congestion controls.

use super::Bbr;
use crate::TcpSettings;
use crate::congestion::Window;
use crate::congestion::control::CongestionControl;

/// BBR, which has no model of the path before the handshake has ended.
#[derive(Debug, Clone)]
pub(crate) struct Modelled(Option<Bbr>);

impl CongestionControl for Modelled {
    const IS_MODEL: bool = true;

    fn new(_: &TcpSettings) -> Modelled {
        Modelled(None)
    }

    fn threshold(&mut self, window: &Window) -> u32 {
        self.0.iter_mut().for_each(|bbr| bbr.keep_window(window.cwnd));
        window.ssthresh
    }

    fn undone(&self, cwnd: u32, _prior: u32) -> u32 {
        cwnd
    }

    fn model(&self) -> Option<&Option<Bbr>> {
        Some(&self.0)
    }

    fn model_mut(&mut self) -> Option<&mut Option<Bbr>> {
        Some(&mut self.0)
    }
}
