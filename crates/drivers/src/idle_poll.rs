//! Keeping a CPU from idling while it matters: what `idle=poll` does for a whole machine (kernel-parameters).

use framegauge_linux::{OsError, Result, clock, sched};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Above all other programs of ordinary scheduling, below all of real-time scheduling.
const NICE: i32 = -20;

#[derive(Default)]
struct Wish {
    poll: AtomicBool,
    over: AtomicBool,
}

/// A thread that spins on a CPU whenever no real-time thread wants it.
///
/// A CPU that idles is where the kernel puts whatever wakes up next, and where PREEMPT_NONE lets that finish what it does
/// inside the kernel, however long it takes: a real-time thread has to wait. A CPU that is busy is passed over. And in a
/// virtual machine an idle CPU takes some 10 µs to wake.
///
/// Not real-time itself: the kernel stalls such threads when they leave the others less than 5 % of a second
/// (`sched_rt_runtime_us`).
pub struct IdlePoll {
    wish: Arc<Wish>,
    thread: Option<JoinHandle<()>>,
}

impl IdlePoll {
    /// On `cpu`, at rest.
    pub fn new(cpu: usize) -> Result<Self> {
        let wish = Arc::new(Wish::default());
        let asked = wish.clone();
        let thread = std::thread::Builder::new()
            .name("idle-poll".into())
            .spawn(move || {
                let able = sched::bind(0, &[cpu]).is_ok() && sched::nice(0, NICE).is_ok();
                while !asked.over.load(Ordering::Acquire) {
                    if able && asked.poll.load(Ordering::Acquire) {
                        std::hint::spin_loop();
                    } else {
                        std::thread::park();
                    }
                }
            })
            .map_err(|source| OsError { operation: "start the thread that polls idle".into(), source })?;
        Ok(Self { wish, thread: Some(thread) })
    }

    /// From now on the CPU is kept busy.
    pub fn begin(&self) {
        self.set(&self.wish.poll, true);
    }

    /// And from now on it is not.
    pub fn end(&self) {
        self.set(&self.wish.poll, false);
    }

    /// Nanoseconds that it has spun so far: time that was idle.
    pub fn nanoseconds(&self) -> u64 {
        self.thread.as_ref().map_or(0, clock::cpu_nanoseconds_of)
    }

    fn set(&self, flag: &AtomicBool, value: bool) {
        flag.store(value, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for IdlePoll {
    fn drop(&mut self) {
        self.set(&self.wish.over, true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn spins_only_when_asked() {
        let poll = IdlePoll::new(sched::allowed_cpus()[0]).expect("a thread can be started");
        let spun = |poll: &IdlePoll| {
            let (before, start) = (poll.nanoseconds(), Instant::now());
            while poll.nanoseconds() < before + 5_000_000 && start.elapsed() < Duration::from_millis(500) {
                std::thread::sleep(Duration::from_millis(1));
            }
            poll.nanoseconds() - before
        };
        assert!(spun(&poll) < 1_000_000, "at rest");
        if framegauge_linux::process::effective_user() == 0 {
            poll.begin();
            assert!(spun(&poll) >= 5_000_000, "asked");
            poll.end();
            std::thread::sleep(Duration::from_millis(5));
            assert!(spun(&poll) < 1_000_000, "at rest again");
        }
    }
}
