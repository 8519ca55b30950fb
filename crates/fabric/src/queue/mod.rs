//! Queue disciplines: one file each, registered in [`Queue`] and [`QueueConfig`].

mod blackout;
mod codel;
mod config;
mod fifo;
mod fq_codel;
mod priority;
mod random_drop;
mod red;
mod sfq;
mod step;
mod taildrop;

use framegauge_frames::Picoseconds;

use crate::{Frame, Reason};

pub use blackout::Blackout;
pub use codel::CoDel;
pub use config::{BlackoutConfig, CoDelConfig, FqCoDelConfig, Limit, QueueConfig, RedConfig, SfqConfig};
pub use fq_codel::FqCoDel;
pub use priority::Priority;
pub use random_drop::RandomDrop;
pub use red::Red;
pub use sfq::Sfq;
pub use step::Step;
pub use taildrop::Taildrop;

/// What a discipline did to a frame besides keeping it or refusing it on arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fate {
    /// When.
    pub time: Picoseconds,
    /// To which; as it is after.
    pub frame: Frame,
    /// Why.
    pub reason: Reason,
    /// Whether it was marked, and stays; else it is dropped.
    pub marked: bool,
    /// What the queue held then, in `frame_bytes`, without the frame being sent.
    pub queue_bytes: u64,
}

/// What decides which waiting frame leaves next, and which frame never does.
///
/// A port calls with times that never go back. The frame being sent is no longer in the queue, but in the
/// buffer: its bytes are handed in where the limit counts (0: nothing is being sent).
pub trait Discipline {
    /// Takes a frame in, or says why not; what else becomes of frames is added to `fates`.
    fn offer(
        &mut self,
        now: Picoseconds,
        frame: Frame,
        transmitting_bytes: u64,
        fates: &mut Vec<Fate>,
    ) -> Result<(), Reason>;
    /// Gives the next frame to send. A port asks when it becomes idle, and not again before the next frame comes.
    fn take(&mut self, now: Picoseconds, fates: &mut Vec<Fate>) -> Option<Frame>;
    /// Takes out all that waits, in the order in which it came: nothing is dropped or marked.
    fn drain(&mut self) -> Vec<Frame>;
    /// `frame_bytes` of what waits.
    fn bytes(&self) -> u64;
    /// Frames that wait.
    fn frames(&self) -> u64;
}

/// Defines [`Queue`]: for each discipline a variant, how it is made from its configuration, and its calls. All but the
/// commonest are boxed: a port that is twice as large is slower whatever its discipline.
macro_rules! disciplines {
    ($($name:ident($kept:ty): $config:pat => $new:expr, $what:literal;)*) => {
        /// The discipline of a port: an enum, because a call through a pointer for every frame costs more.
        #[derive(Debug, Clone)]
        pub enum Queue {
            $(#[doc = $what] $name($kept),)*
        }

        impl From<QueueConfig> for Queue {
            fn from(config: QueueConfig) -> Queue {
                match config {
                    $($config => Queue::$name($new),)*
                }
            }
        }

        impl Discipline for Queue {
            fn offer(
                &mut self,
                now: Picoseconds,
                frame: Frame,
                transmitting_bytes: u64,
                fates: &mut Vec<Fate>,
            ) -> Result<(), Reason> {
                match self {
                    $(Queue::$name(queue) => queue.offer(now, frame, transmitting_bytes, fates),)*
                }
            }

            fn take(&mut self, now: Picoseconds, fates: &mut Vec<Fate>) -> Option<Frame> {
                match self {
                    $(Queue::$name(queue) => queue.take(now, fates),)*
                }
            }

            fn drain(&mut self) -> Vec<Frame> {
                match self {
                    $(Queue::$name(queue) => queue.drain(),)*
                }
            }

            fn bytes(&self) -> u64 {
                match self {
                    $(Queue::$name(queue) => queue.bytes(),)*
                }
            }

            fn frames(&self) -> u64 {
                match self {
                    $(Queue::$name(queue) => queue.frames(),)*
                }
            }
        }
    };
}

disciplines! {
    Taildrop(Taildrop): QueueConfig::Taildrop { limit } => Taildrop::new(limit), "First in, first out.";
    RandomDrop(Box<RandomDrop>): QueueConfig::RandomDrop { limit, seed } => Box::new(RandomDrop::new(limit, seed)),
        "First in, first out; a full buffer drops at random.";
    Step(Box<Step>): QueueConfig::Step { limit_bytes, threshold_bytes } => Box::new(Step::new(limit_bytes, threshold_bytes)),
        "First in, first out, with marks over a step.";
    Red(Box<Red>): QueueConfig::Red(config) => Box::new(Red::new(config)), "Random early detection.";
    Sfq(Box<Sfq>): QueueConfig::Sfq(config) => Box::new(Sfq::new(config)), "Stochastic fairness queueing.";
    CoDel(Box<CoDel>): QueueConfig::CoDel(config) => Box::new(CoDel::new(config)), "Controlled delay.";
    FqCoDel(Box<FqCoDel>): QueueConfig::FqCoDel(config) => Box::new(FqCoDel::new(config)), "Flow queues with controlled delay.";
    Priority(Box<Priority>): QueueConfig::Priority { limit, bands } => Box::new(Priority::new(limit, bands)), "Strict priority.";
    Blackout(Box<Blackout>): QueueConfig::Blackout(config) => Box::new(Blackout::new(config)), "Taildrop with blackouts.";
}

impl Queue {
    /// A queue that begins at `now`.
    pub(crate) fn beginning(now: Picoseconds, config: QueueConfig) -> Queue {
        let mut queue = Queue::from(config);
        if let Queue::Blackout(blackout) = &mut queue {
            blackout.switch_off(now);
        }
        queue
    }
}
