//! Which work goes before the rest of this machine: what a rack emulates must not wait for a browser or a compiler.
//!
//! ```text
//!   fabric (SCHED_FIFO 10) > receive paths (SCHED_FIFO 5) > agents and their generators (SCHED_RR 1)
//!       > programs of hosts (nice, a short slice, a group of their own) > the rest of the machine
//! ```
//!
//! Programs get no real time: some take all the CPU that there is, and would keep the machine from everybody else.
//! They inherit real time from the agent that starts them, so they must lay it down ([`give_way`]).

use std::sync::atomic::{AtomicBool, Ordering};

/// Of agents; below the receive paths.
const REAL_TIME_PRIORITY: u32 = 1;
/// Of programs: nine times the share of a program of nice 0 that wants the same CPU, which keeps a tenth.
const NICE: i32 = -10;
/// The slice asked of the scheduler (Linux 6.12: `sched_runtime` of `SCHED_OTHER`). Who asks for less gets its turn
/// sooner; the kernel takes 0.1 to 100 ms, and older kernels ignore it.
const SLICE_NANOSECONDS: u64 = 500_000;

/// What the kernel granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precedence {
    /// Before everything that is not real time.
    RealTime,
    /// A larger share, and sooner.
    Nice,
    /// As everybody else.
    #[default]
    Ordinary,
}

impl Precedence {
    /// Its name on the pipe.
    pub fn name(self) -> &'static str {
        match self {
            Self::RealTime => "real time",
            Self::Nice => "nice",
            Self::Ordinary => "ordinary",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::RealTime, Self::Nice, Self::Ordinary].into_iter().find(|precedence| precedence.name() == name)
    }
}

/// Whether [`take`] was asked for nothing.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// `struct sched_attr` (sched_setattr(2)), as long as every kernel since 3.14 knows it.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

impl Attributes {
    fn real_time() -> Self {
        Self { policy: libc::SCHED_RR as u32, priority: REAL_TIME_PRIORITY, ..Self::default() }
    }

    fn nice() -> Self {
        Self { policy: libc::SCHED_OTHER as u32, nice: NICE, runtime: SLICE_NANOSECONDS, ..Self::default() }
    }

    /// Sets them for the calling thread; async-signal-safe.
    fn set(mut self) -> std::result::Result<(), std::io::Error> {
        self.size = size_of::<Self>() as u32;
        // SAFETY: `self` is valid during the call, and its size is in it.
        match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const self, 0) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}

/// Has the calling thread, and all that it starts from now on, go before the rest of the machine: as far as `most`, and
/// as far as the kernel allows.
pub fn take(most: Precedence) -> Precedence {
    GIVEN_UP.store(most == Precedence::Ordinary, Ordering::Relaxed);
    if most == Precedence::RealTime && Attributes::real_time().set().is_ok() {
        return Precedence::RealTime;
    }
    if most != Precedence::Ordinary && Attributes::nice().set().is_ok() {
        return Precedence::Nice;
    }
    Precedence::Ordinary
}

/// Has the calling thread compete as one that asks for nothing, whatever its starter has asked for.
pub fn take_usual() -> std::io::Result<()> {
    Attributes { policy: libc::SCHED_OTHER as u32, ..Attributes::default() }.set()
}

/// Whether this process lets all others go first: then its fabric and receive paths do, too.
pub fn is_given_up() -> bool {
    GIVEN_UP.load(Ordering::Relaxed)
}

/// What the calling thread has.
pub fn current() -> Precedence {
    // SAFETY: no memory is passed; errno is not looked at, as -1 is a nice value, too.
    match unsafe { (libc::sched_getscheduler(0), libc::getpriority(libc::PRIO_PROCESS, 0)) } {
        (libc::SCHED_RR | libc::SCHED_FIFO, _) => Precedence::RealTime,
        (_, nice) if nice < 0 => Precedence::Nice,
        _ => Precedence::Ordinary,
    }
}

/// In a child that is about to become a program: real time that it has inherited becomes a larger share. Where sessions
/// have a group of their own (`sched_autogroup_enabled`), shares count between groups, so the group gets the same; the
/// child must have its own session. Async-signal-safe.
pub(crate) fn give_way() -> std::io::Result<()> {
    // SAFETY: no memory is passed.
    if unsafe { libc::sched_getscheduler(0) } != libc::SCHED_RR {
        return Ok(());
    }
    Attributes::nice().set()?;
    // SAFETY: the path and the text are constants that end with a zero, or whose length is passed.
    unsafe {
        let file = libc::open(c"/proc/self/autogroup".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file >= 0 {
            // Where it is refused, the child competes as one session with others.
            libc::write(file, c"-10".as_ptr().cast(), 3);
            libc::close(file);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_takes_precedence_and_reads_it_back() {
        std::thread::spawn(|| {
            let granted = take(Precedence::RealTime);
            assert_eq!(current(), granted);
            if crate::process::effective_user() == 0
                && crate::process::is_capable(crate::process::Capability::SysNice)
            {
                assert_ne!(granted, Precedence::Ordinary);
            }
        })
        .join()
        .expect("the thread ends");
    }
}
