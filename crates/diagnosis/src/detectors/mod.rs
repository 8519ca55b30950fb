//! Detectors: one file each, registered in `detectors!`.
//!
//! A detector sees what happens in a connection, keeps what it needs to know of that, and tells what it makes of it. It changes
//! nothing of the connection, which adds up what it tells (`account.rs`).
//!
//! ```text
//!   pause ─▶ segment ─▶ data ─▶ acknowledgement ─▶ close   of each packet, as far as it has them; acknowledgements when
//!                                                        their sender has them
//!   end                                                  of the connection
//! ```

mod asked;
mod capture;
mod clock_jump;
mod closed_window;
mod ip_fragments;
mod keepalive;
mod late_answers;
mod mss;
mod shrunk;
mod silly_window;
mod slow_start;
mod standstill;
mod storm;
mod unheeded_reset;
mod unpushed;
mod window_scaling;
mod writes;

use crate::Thresholds;
use crate::account::Account;
use crate::cause::Cause;
use crate::connection::{Connection, Side};
use crate::gap::Gap;
use asked::Asked;
use capture::Capture;
use clock_jump::ClockJump;
pub(crate) use closed_window::ClosedWindow;
use framegauge_packets::capture::Segment;
use ip_fragments::IpFragments;
use keepalive::Keepalive;
use late_answers::LateAnswers;
use mss::Mss;
use shrunk::Shrunk;
use silly_window::SillyWindow;
use slow_start::SlowStart;
use standstill::Standstill;
use storm::Storm;
use unheeded_reset::UnheededReset;
use unpushed::Unpushed;
use window_scaling::WindowScaling;
use writes::Writes;

/// A packet, and the end that sent it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) from: Side,
    /// When, in nanoseconds; never before the last packet.
    pub(crate) now: i64,
}

/// Data that was taken in, or a FIN.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Data<'a> {
    pub(crate) seen: Seen<'a>,
    /// The place after it.
    pub(crate) end: u64,
    /// Some of it was not seen before.
    pub(crate) is_new: bool,
    /// The MSS that counted when it came.
    pub(crate) mss: u32,
    pub(crate) limits: &'a Thresholds,
}

/// An acknowledgement that has reached the sender of what it acknowledges, and was taken in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acknowledgement<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) sender: Side,
}

/// What sees the events of one connection. `of` is its state: after what happened, but before a segment is taken in.
pub(crate) trait Detector {
    /// A pause between two packets, given to its cause.
    fn pause(&mut self, _of: &Connection, _gap: &Gap, _cause: Cause, _account: &mut Account) {}

    /// A packet that is no copy, before it is taken in; the gap before it has its cause.
    fn segment(&mut self, _of: &Connection, _packet: &Seen, _account: &mut Account) {}

    /// Data, or a FIN, that was taken in.
    fn data(&mut self, _of: &Connection, _data: &Data, _account: &mut Account) {}

    /// An acknowledgement that was taken in.
    fn acknowledgement(&mut self, _of: &Connection, _ack: &Acknowledgement, _account: &mut Account) {}

    /// A reset cuts the connection off, before both ends have finished or after. What is told of it explains it: it is no
    /// `reset` then.
    fn close(&mut self, _of: &Connection, _packet: &Seen, _account: &mut Account) {}

    /// Nothing follows.
    fn end(&mut self, _of: &Connection, _limits: &Thresholds, _account: &mut Account) {}
}

/// Defines [`Detectors`], which shows each event to all of them in this order.
macro_rules! detectors {
    ($($name:ident: $detector:ty;)*) => {
        /// The detectors of one connection.
        #[derive(Debug, Clone, Default)]
        pub(crate) struct Detectors {
            $(pub(crate) $name: $detector,)*
        }

        impl Detector for Detectors {
            fn pause(&mut self, of: &Connection, gap: &Gap, cause: Cause, account: &mut Account) {
                $(self.$name.pause(of, gap, cause, account);)*
            }

            fn segment(&mut self, of: &Connection, packet: &Seen, account: &mut Account) {
                $(self.$name.segment(of, packet, account);)*
            }

            fn data(&mut self, of: &Connection, data: &Data, account: &mut Account) {
                $(self.$name.data(of, data, account);)*
            }

            fn acknowledgement(&mut self, of: &Connection, ack: &Acknowledgement, account: &mut Account) {
                $(self.$name.acknowledgement(of, ack, account);)*
            }

            fn close(&mut self, of: &Connection, packet: &Seen, account: &mut Account) {
                $(self.$name.close(of, packet, account);)*
            }

            fn end(&mut self, of: &Connection, limits: &Thresholds, account: &mut Account) {
                $(self.$name.end(of, limits, account);)*
            }
        }
    };
}

detectors! {
    clock_jump: ClockJump;
    standstill: Standstill;
    unpushed: Unpushed;
    writes: Writes;
    shrunk: Shrunk;
    asked: Asked;
    keepalive: Keepalive;
    late_answers: LateAnswers;
    storm: Storm;
    unheeded_reset: UnheededReset;
    silly_window: SillyWindow;
    closed_window: ClosedWindow;
    window_scaling: WindowScaling;
    mss: Mss;
    ip_fragments: IpFragments;
    slow_start: SlowStart;
    capture: Capture;
}
