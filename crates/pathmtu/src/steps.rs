//! What flows want, and what they know of each other.

use crate::random::Random;
use crate::verdict::Controls;
use std::collections::HashMap;
use std::time::Duration;

/// A size to send, so long from now; of which round, if it is of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) after: Duration,
    pub(crate) bytes: u32,
    pub(crate) round: Option<u32>,
}

/// What a flow wants.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send these, and ask again when all are answered or given up.
    Send(Vec<Planned>),
    /// A sibling is searching: what it finds is worth waiting for.
    Await,
    /// Nothing was ever answered on the path: one flow asks alone, slowly ([`alone()`]), and the others wait for it.
    Alone,
    /// What was taken to fail arrived, or much else is lost as well: the path must be asked more slowly.
    Doubt,
    /// Nothing more.
    Done,
}

/// What the flows of a path know of each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Siblings {
    /// Path MTUs that were found.
    pub(crate) hints: Vec<u32>,
    /// One searches for the first path MTU.
    pub(crate) searching: bool,
    /// Something was answered.
    pub(crate) answered: bool,
    /// A flow has asked alone, and nothing came.
    pub(crate) asked_alone: bool,
    /// A control was lost.
    pub(crate) lossy: bool,
    /// Of all flows of the path.
    pub(crate) controls: Controls,
    /// The path was asked more slowly: there is nothing left to doubt.
    pub(crate) asked_slowly: bool,
    /// By size, the logarithm of the chance that its flows have lost that size by chance alone, while one byte less passed.
    pub(crate) chances: HashMap<u32, f64>,
}

/// Controls of a flow that asks alone.
const ALONE_CONTROLS: u32 = 10;
/// They lie so far apart in the mean, and half as much at least: a limit of some packets per second lets one pass, unless
/// it keeps step with them.
const ALONE_GAP: Duration = Duration::from_millis(250);

/// Controls of one flow, slowly.
pub(crate) fn alone(control: u32, random: &mut Random) -> Vec<Planned> {
    let mut after = Duration::ZERO;
    let gap = ALONE_GAP.as_nanos() as u64;
    let mut next = || {
        after += ALONE_GAP / 2 + Duration::from_nanos(random.below(gap));
        Planned { after, bytes: control, round: None }
    };
    (0..ALONE_CONTROLS).map(|_| next()).collect()
}

/// All of them now, and none of a round.
pub(crate) fn send(sizes: impl IntoIterator<Item = u32>) -> Step {
    let now = |bytes| Planned { after: Duration::ZERO, bytes, round: None };
    Step::Send(sizes.into_iter().map(now).collect())
}
