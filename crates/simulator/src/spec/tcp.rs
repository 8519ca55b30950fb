//! The hosts' TCP as a scenario tells it.

use framegauge_frames::{Family, Mtu, Picoseconds};
use serde::Deserialize;

use super::span;
use crate::{Algorithm, Hystart, Nagle, Probing, TcpSettings};

/// The hosts' TCP; what is left out is as in Linux 6.18.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub struct TcpSpec {
    pub congestion_control: Option<String>,
    pub family: Option<u8>,
    pub initial_window_segments: Option<u32>,
    pub slow_start_threshold_segments: Option<u32>,
    pub sack: Option<bool>,
    pub timestamps: Option<bool>,
    pub ecn: Option<bool>,
    pub nagle: Option<String>,
    pub minimum_rto_seconds: Option<f64>,
    pub initial_rto_seconds: Option<f64>,
    pub delayed_ack_seconds: Option<f64>,
    pub quick_acks: Option<u32>,
    pub hystart: Option<HystartSpec>,
    pub slow_start_after_idle: Option<bool>,
    pub gso_bytes: Option<u32>,
    pub tso_rtt_log: Option<u32>,
    pub header_room_bytes: Option<u32>,
    pub output_limit_bytes: Option<u64>,
    pub pacing_percent: Option<(u32, u32)>,
    pub receive_window_bytes: Option<(u32, u32)>,
    pub initial_receive_window_segments: Option<u32>,
    pub tick_seconds: Option<f64>,
    pub mtu_probing: Option<u8>,
    pub path_mtu_expires_seconds: Option<f64>,
}

/// Whether there is HyStart, or `plus`.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub enum HystartSpec {
    Linux(bool),
    Other(String),
}

/// No kernel has more.
const MOST_ROOM_BYTES: u32 = 1024;

fn segments(name: &str, value: Option<u32>) -> Result<Option<u32>, String> {
    match value.filter(|count| !(1..=1000).contains(count)) {
        Some(actual) => Err(format!("tcp.{name}: found {actual}, expected 1 to 1000")),
        None => Ok(value),
    }
}

impl TcpSpec {
    pub(super) fn family(&self) -> Result<Family, String> {
        match self.family {
            None | Some(4) => Ok(Family::V4),
            Some(6) => Ok(Family::V6),
            Some(actual) => Err(format!("tcp.family: found {actual}, expected 4 or 6")),
        }
    }

    /// `smallest` is the smallest MTU, `uncut_bytes` what a host's shaper lets through in one piece.
    pub(super) fn settings(
        &self,
        coalesces: bool,
        seed: u64,
        smallest: Option<Mtu>,
        uncut_bytes: u64,
    ) -> Result<TcpSettings, String> {
        let usual = TcpSettings::default();
        let time = |name: &str, asked: Option<f64>, usual: Picoseconds| {
            asked.map_or(Ok(usual), |seconds| span(&format!("tcp.{name}"), seconds))
        };
        let initial = segments("initial_window_segments", self.initial_window_segments)?;
        let threshold = segments("slow_start_threshold_segments", self.slow_start_threshold_segments)?;
        Ok(TcpSettings {
            algorithm: self.algorithm()?,
            initial_window_segments: initial.unwrap_or(usual.initial_window_segments),
            slow_start_threshold_segments: threshold,
            sack: self.sack.unwrap_or(usual.sack),
            timestamps: self.timestamps.unwrap_or(usual.timestamps),
            ecn: self.ecn.unwrap_or(usual.ecn),
            nagle: self.nagle()?,
            minimum_rto: time("minimum_rto_seconds", self.minimum_rto_seconds, usual.minimum_rto)?,
            initial_rto: time("initial_rto_seconds", self.initial_rto_seconds, usual.initial_rto)?,
            delayed_ack: time("delayed_ack_seconds", self.delayed_ack_seconds, usual.delayed_ack)?,
            quick_acks: self.quick_acks.unwrap_or(usual.quick_acks),
            hystart: self.hystart()?,
            slow_start_after_idle: self.slow_start_after_idle.unwrap_or(usual.slow_start_after_idle),
            gso_bytes: self.gso_bytes.unwrap_or(usual.gso_bytes),
            tso_rtt_log: self.tso_rtt_log.unwrap_or(usual.tso_rtt_log),
            header_room_bytes: self.header_room_bytes.unwrap_or(usual.header_room_bytes).min(MOST_ROOM_BYTES),
            uncut_bytes,
            output_limit_bytes: self.output_limit_bytes.unwrap_or(usual.output_limit_bytes),
            pacing_percent: self.pacing_percent()?,
            coalesces,
            receive_window_bytes: self.receive_window(smallest)?,
            tick: time("tick_seconds", self.tick_seconds, usual.tick)?,
            probing: self.probing()?,
            path_mtu_expires: time(
                "path_mtu_expires_seconds",
                self.path_mtu_expires_seconds,
                usual.path_mtu_expires,
            )?,
            family: self.family()?,
            seed,
        })
    }

    fn pacing_percent(&self) -> Result<(u32, u32), String> {
        let (slow_start, otherwise) = self.pacing_percent.unwrap_or(TcpSettings::default().pacing_percent);
        let unfit = [slow_start, otherwise].into_iter().find(|percent| *percent > 1000);
        match unfit {
            Some(actual) => Err(format!("tcp.pacing_percent: found {actual}, expected 0 to 1000")),
            None => Ok((slow_start, otherwise)),
        }
    }

    /// At first and at most.
    fn receive_window(&self, smallest: Option<Mtu>) -> Result<(u32, u32), String> {
        let (first, most) = self.receive_window_bytes.unwrap_or(TcpSettings::default().receive_window_bytes);
        let (Some(segments), Some(mtu)) = (self.initial_receive_window_segments, smallest) else {
            return Ok((first, most));
        };
        Ok((segments.saturating_mul(mtu.mss(self.family()?)).min(most), most))
    }

    fn probing(&self) -> Result<Probing, String> {
        match self.mtu_probing {
            None | Some(0) => Ok(Probing::Off),
            Some(1) => Ok(Probing::AfterBlackHole),
            Some(2) => Ok(Probing::Always),
            Some(actual) => Err(format!("tcp.mtu_probing: found {actual}, expected 0, 1 or 2")),
        }
    }

    fn algorithm(&self) -> Result<Algorithm, String> {
        self.congestion_control.as_deref().map_or(Ok(Algorithm::default()), Algorithm::named)
    }

    fn hystart(&self) -> Result<Hystart, String> {
        match &self.hystart {
            None | Some(HystartSpec::Linux(true)) => Ok(Hystart::Linux),
            Some(HystartSpec::Linux(false)) => Ok(Hystart::Off),
            Some(HystartSpec::Other(name)) if name == "plus" => Ok(Hystart::Plus),
            Some(HystartSpec::Other(actual)) => {
                Err(format!("tcp.hystart: found {actual:?}, expected true, false or \"plus\""))
            }
        }
    }

    fn nagle(&self) -> Result<Nagle, String> {
        match self.nagle.as_deref() {
            Some("off") => Ok(Nagle::Off),
            None | Some("on") => Ok(Nagle::Minshall),
            Some("classic") => Ok(Nagle::Classic),
            Some(actual) => Err(format!("tcp.nagle: found {actual:?}, expected on, off or classic")),
        }
    }
}
