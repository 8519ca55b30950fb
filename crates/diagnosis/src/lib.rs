//! Names what makes TCP connections slow, from captured segments.
//!
//! A [`Table`] takes [`Segment`](framegauge_packets::capture::Segment)s in the order of their capture, one at a time, and
//! in the end tells the connections and the named problems of each, with the packets that prove them. Nothing here
//! captures, opens a file or looks at a clock: the time is that of the stamps.
//!
//! Every nanosecond of a connection's life belongs to exactly one cause ([`ConnectionReport::time`]): the gap between two
//! packets is judged by what was under way, what the receiver allowed, and what ended it.

mod account;
mod acknowledgements;
mod cause;
mod checksums;
mod closing;
mod connection;
mod copies;
mod counts;
mod data;
mod detectors;
mod discarded;
mod doubtful;
mod echoes;
mod findings;
mod flight;
mod flows;
mod foreign;
mod gap;
mod half;
mod handshake;
mod hearing;
mod hidden;
mod holes;
mod identities;
mod in_vain;
pub mod joined;
mod keys;
mod kinds;
mod lag;
mod level;
mod marks;
mod mended;
mod notes;
mod numbers;
mod opening;
mod outage;
mod outcast;
mod peers;
mod picture;
mod progress;
mod quality;
mod reordering_timer;
mod repairs;
mod repeated;
mod resends;
mod resets;
mod room;
mod rounds;
mod rtt;
mod sent;
mod sequence;
mod silence;
mod silences;
mod size_probes;
mod sizes;
mod steps;
mod stretches;
mod table;
mod testimony;
mod thresholds;
mod together;
mod too_big;
mod tracking;
mod unanswered;
mod unfilled;
mod unheard;
mod unseen;
mod vantage;
mod violations;
mod way;
mod whole;
mod windows;
mod words;

pub use closing::ConnectionReport;
pub use findings::{Ends, Finding};
pub use keys::{bucket, share};
pub use kinds::{About, Group, Kind, Kinds, Row, kinds};
pub use marks::MOST_MARKS;
pub use picture::Picture;
pub use quality::Cut;
pub use repairs::Reasons;
pub use steps::{Righted, Stamps, Step, Witness};
pub use table::{Clock, Table};
pub use thresholds::Thresholds;
pub use whole::{Conclusion, Diagnosis, Numbers, Part, Rank, Told};
