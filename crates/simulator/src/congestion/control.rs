//! The table of congestion controls, and what one of them decides.
//!
//! A new one is a file beside this one with a struct that implements [`CongestionControl`], and its row in `controls!`: by its
//! name there studies ask for it, and Python learns of it (`framegauge-agent simulate --algorithms`).

use framegauge_frames::Picoseconds;
use serde::Serialize;

use super::{Acked, Bbr, State, Window, bbr, cubic, dctcp, reno};
use crate::TcpSettings;

/// What a sender asks its congestion control (`tcp_congestion_ops`); what one does not say is as NewReno has it.
pub(crate) trait CongestionControl {
    /// cwnd and pacing follow from a model of the path (`cong_control`), and not from losses.
    const IS_MODEL: bool = false;
    /// ECN is asked for by itself, and receivers tell every mark by itself (RFC 8257 section 3.2).
    const TELLS_EVERY_MARK: bool = false;

    /// Before the connection is opened.
    fn new(settings: &TcpSettings) -> Self;

    /// The threshold after a loss or a mark, in segments; what it learns from that, it learns here.
    fn threshold(&mut self, window: &Window) -> u32 {
        (window.cwnd >> 1).max(2)
    }

    /// The threshold after a loss that no mark came before; `threshold` is what was said before.
    fn threshold_of_loss(&self, _cwnd: u32, threshold: u32) -> u32 {
        threshold
    }

    /// The connection has come into another state.
    fn enter(&mut self, _state: State, _acked: &Acked) {}

    /// Every acknowledgement, before cwnd grows.
    fn note(&mut self, _window: &mut Window, _acked: &Acked) {}

    /// How many acknowledged segments make cwnd grow by one where it is not slow start: `count` were acknowledged, and cwnd
    /// was what limited the sender.
    fn growth(&mut self, window: &Window, _count: u32, _now: Picoseconds) -> u32 {
        window.cwnd
    }

    /// The sender begins to send again after it had nothing to send since `last_sent`.
    fn begin_again(&mut self, _now: Picoseconds, _last_sent: Picoseconds) {}

    /// cwnd that the sender gets back when it learns that nothing was lost.
    fn undone(&self, cwnd: u32, prior: u32) -> u32 {
        cwnd.max(prior)
    }

    /// The place of the model of the path, empty before the handshake has ended.
    fn model(&self) -> Option<&Option<Bbr>> {
        None
    }

    /// The same, to change it.
    fn model_mut(&mut self) -> Option<&mut Option<Bbr>> {
        None
    }
}

/// Defines [`Algorithm`] and [`Control`]: for each row a variant, its name, what it is, and its calls.
macro_rules! controls {
    ($($variant:ident($kept:ty) $name:literal, $what:literal;)*) => {
        /// How cwnd grows and shrinks.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Algorithm {
            $(#[doc = $what] $variant,)*
        }

        impl Algorithm {
            /// All of them.
            pub const ALL: &[Algorithm] = &[$(Algorithm::$variant,)*];

            /// Its word in a scenario, which is Linux' name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Algorithm::$variant => $name,)*
                }
            }

            /// What it is.
            pub const fn what(self) -> &'static str {
                match self {
                    $(Algorithm::$variant => $what,)*
                }
            }

            /// Hosts ask for ECN by themselves, and tell every mark by itself.
            pub(crate) const fn tells_every_mark(self) -> bool {
                match self {
                    $(Algorithm::$variant => <$kept>::TELLS_EVERY_MARK,)*
                }
            }
        }

        /// One of them with its state: an enum, because a call through a pointer for every acknowledgement costs more.
        #[derive(Debug, Clone)]
        pub(crate) enum Control {
            $($variant(Box<$kept>),)*
        }

        impl Control {
            pub(crate) fn new(settings: &TcpSettings) -> Control {
                match settings.algorithm {
                    $(Algorithm::$variant => Control::$variant(Box::new(<$kept>::new(settings))),)*
                }
            }

            pub(crate) const fn is_model(&self) -> bool {
                match self {
                    $(Control::$variant(_) => <$kept>::IS_MODEL,)*
                }
            }

            pub(crate) fn threshold(&mut self, window: &Window) -> u32 {
                match self {
                    $(Control::$variant(control) => control.threshold(window),)*
                }
            }

            pub(crate) fn threshold_of_loss(&self, cwnd: u32, threshold: u32) -> u32 {
                match self {
                    $(Control::$variant(control) => control.threshold_of_loss(cwnd, threshold),)*
                }
            }

            pub(crate) fn enter(&mut self, state: State, acked: &Acked) {
                match self {
                    $(Control::$variant(control) => control.enter(state, acked),)*
                }
            }

            pub(crate) fn note(&mut self, window: &mut Window, acked: &Acked) {
                window.note(acked);
                match self {
                    $(Control::$variant(control) => control.note(window, acked),)*
                }
            }

            fn growth(&mut self, window: &Window, count: u32, now: Picoseconds) -> u32 {
                match self {
                    $(Control::$variant(control) => control.growth(window, count, now),)*
                }
            }

            pub(crate) fn begin_again(&mut self, now: Picoseconds, last_sent: Picoseconds) {
                match self {
                    $(Control::$variant(control) => control.begin_again(now, last_sent),)*
                }
            }

            pub(crate) fn undone(&self, cwnd: u32, prior: u32) -> u32 {
                match self {
                    $(Control::$variant(control) => control.undone(cwnd, prior),)*
                }
            }

            pub(crate) fn model(&self) -> Option<&Bbr> {
                match self {
                    $(Control::$variant(control) => control.model()?.as_ref(),)*
                }
            }

            pub(crate) fn model_mut(&mut self) -> Option<&mut Bbr> {
                self.place_of_model()?.as_mut()
            }

            pub(crate) fn place_of_model(&mut self) -> Option<&mut Option<Bbr>> {
                match self {
                    $(Control::$variant(control) => control.model_mut(),)*
                }
            }
        }
    };
}

controls! {
    Reno(reno::Reno) "reno", "NewReno (RFC 5681, RFC 6582), as Linux' tcp_cong.c";
    Cubic(cubic::Cubic) "cubic", "CUBIC (RFC 9438) with HyStart, as Linux' tcp_cubic.c";
    Dctcp(dctcp::Dctcp) "dctcp", "DCTCP (RFC 8257), as Linux' tcp_dctcp.c";
    Bbr(bbr::Modelled) "bbr", "BBR, version 1, as Linux' tcp_bbr.c: it paces itself";
}

#[allow(clippy::derivable_impls, reason = "the variants are those of the table")]
impl Default for Algorithm {
    /// As Linux has it.
    fn default() -> Algorithm {
        Algorithm::Cubic
    }
}

impl Algorithm {
    /// The one with this word; the message lists all.
    pub(crate) fn named(word: &str) -> Result<Algorithm, String> {
        let choice = Algorithm::ALL.iter().copied().find(|algorithm| algorithm.name() == word);
        choice.ok_or_else(|| {
            let names: Vec<&str> = Algorithm::ALL.iter().map(|algorithm| algorithm.name()).collect();
            let (last, others) = names.split_last().unwrap_or((&"none", &[]));
            format!("tcp.congestion_control: found {word:?}, expected {} or {last}", others.join(", "))
        })
    }
}

/// A row of the table as others read it.
impl Serialize for Algorithm {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut row = serializer.serialize_struct("Algorithm", 2)?;
        row.serialize_field("name", self.name())?;
        row.serialize_field("what", self.what())?;
        row.end()
    }
}

impl Control {
    /// `count` segments were acknowledged, and cwnd was what limited the sender.
    pub(crate) fn grow(&mut self, window: &mut Window, count: u32, acked: &Acked) {
        let mut count = count;
        if window.is_slow_start() {
            count = window.grow_exponentially(count);
            if count == 0 {
                return;
            }
        }
        let every = self.growth(window, count, acked.now);
        window.grow_linearly(every.max(1), count);
    }
}
