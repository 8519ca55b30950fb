//! Waiting for descriptors with a deadline in nanoseconds, and waking another thread.

use crate::error::{Context, OsError, Result, check};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A set of descriptors to wait for.
#[derive(Default)]
pub struct PollSet {
    entries: Vec<libc::pollfd>,
}

impl PollSet {
    /// Forgets every descriptor.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Adds a descriptor; returns its place.
    pub fn add(&mut self, descriptor: RawFd, readable: bool, writable: bool) -> usize {
        let events = if readable { libc::POLLIN } else { 0 } | if writable { libc::POLLOUT } else { 0 };
        self.entries.push(libc::pollfd { fd: descriptor, events, revents: 0 });
        self.entries.len() - 1
    }

    /// Waits until one is ready or `timeout` nanoseconds have passed (`None`: for ever).
    pub fn wait(&mut self, timeout: Option<u64>) -> Result<()> {
        let time = timeout.map(|nanoseconds| libc::timespec {
            tv_sec: (nanoseconds / 1_000_000_000) as libc::time_t,
            tv_nsec: (nanoseconds % 1_000_000_000) as libc::c_long,
        });
        let pointer = time.as_ref().map_or(std::ptr::null(), |time| time as *const libc::timespec);
        // SAFETY: pointer and length describe the entries; `time` outlives the call.
        let ready = unsafe {
            libc::ppoll(
                self.entries.as_mut_ptr(),
                self.entries.len() as libc::nfds_t,
                pointer,
                std::ptr::null(),
            )
        };
        if ready < 0 {
            let source = io::Error::last_os_error();
            if source.kind() == io::ErrorKind::Interrupted {
                self.entries.iter_mut().for_each(|entry| entry.revents = 0);
                return Ok(());
            }
            return Err(OsError { operation: "wait for descriptors".into(), source });
        }
        Ok(())
    }

    /// Whether the descriptor at `place` can be read (or has ended).
    pub fn readable(&self, place: usize) -> bool {
        self.entries[place].revents & (libc::POLLIN | libc::POLLHUP | libc::POLLERR) != 0
    }

    /// Whether the descriptor at `place` can be written (or has failed).
    pub fn writable(&self, place: usize) -> bool {
        self.entries[place].revents & (libc::POLLOUT | libc::POLLERR | libc::POLLHUP) != 0
    }
}

/// Wakes a thread that waits in a [`PollSet`].
pub struct Waker {
    descriptor: OwnedFd,
}

impl Waker {
    /// Creates a waker.
    pub fn new() -> Result<Self> {
        // SAFETY: no memory is passed.
        let raw =
            check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }, "create an eventfd")?;
        // SAFETY: `raw` is a descriptor that this function just opened.
        Ok(Self { descriptor: unsafe { OwnedFd::from_raw_fd(raw) } })
    }

    /// The descriptor to wait for.
    pub fn raw(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Wakes whoever waits.
    pub fn wake(&self) {
        let one = 1u64;
        // SAFETY: writes eight valid bytes; a full counter still wakes.
        unsafe { libc::write(self.raw(), (&raw const one).cast(), 8) };
    }

    /// Forgets earlier wakes.
    pub fn drain(&self) {
        let mut count = 0u64;
        // SAFETY: reads at most eight bytes into `count`.
        unsafe { libc::read(self.raw(), (&raw mut count).cast(), 8) };
    }
}

/// SIGINT, SIGTERM and SIGHUP as a readable descriptor; SIGPIPE is ignored. Call before any thread starts.
pub fn termination_signals() -> Result<OwnedFd> {
    signals(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP])
}

/// The same, and SIGCHLD: a child has ended.
pub fn keepers_signals() -> Result<OwnedFd> {
    signals(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGCHLD])
}

fn signals(numbers: &[i32]) -> Result<OwnedFd> {
    // SAFETY: sigset_t is filled by sigemptyset before use; numbers otherwise.
    let raw = unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in numbers {
            libc::sigaddset(&mut set, *signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    let raw = check(raw, "watch for signals")?;
    // SAFETY: `raw` is a descriptor that this function just opened.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Takes the signals that have come; whether one of them says that everything is to end.
pub fn told_to_end(signals: &OwnedFd) -> bool {
    let mut end = false;
    loop {
        // SAFETY: all-zero is a valid signalfd_siginfo, of which the call fills exactly as many bytes.
        let (count, number) = unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let size = size_of::<libc::signalfd_siginfo>();
            let count = libc::read(signals.as_raw_fd(), (&raw mut info).cast(), size);
            (count, info.ssi_signo as i32)
        };
        if count <= 0 {
            return end;
        }
        end |= number != libc::SIGCHLD;
    }
}

/// Waits until nobody is left to read what is written to one of these pipes; for ever where they are something else.
pub fn await_no_reader(descriptors: &[RawFd]) -> Result<()> {
    let mut set = PollSet::default();
    // Without a wish the kernel still tells of a pipe without readers (POLLERR), and of a terminal that has hung up.
    let places: Vec<_> = descriptors.iter().map(|descriptor| set.add(*descriptor, false, false)).collect();
    while !places.iter().any(|place| set.writable(*place)) {
        set.wait(None).map_err(|error| error.source).during("wait for the end of a reader")?;
    }
    Ok(())
}

/// Waits for one of the signals of [`termination_signals`]; for a thread of its own.
pub fn await_signal(signals: &OwnedFd) -> Result<()> {
    let mut set = PollSet::default();
    let place = set.add(signals.as_raw_fd(), true, false);
    while !set.readable(place) {
        set.wait(None).map_err(|error| error.source).during("wait for a signal")?;
    }
    Ok(())
}
