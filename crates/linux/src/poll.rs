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
    // SAFETY: sigset_t is filled by sigemptyset before use; numbers otherwise.
    let raw = unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaddset(&mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    let raw = check(raw, "watch for signals")?;
    // SAFETY: `raw` is a descriptor that this function just opened.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
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

/// Many descriptors, each waited for until it is readable once and then not again before it is asked for
/// (epoll with `EPOLLONESHOT`): a wait costs by what happens, not by how many there are.
pub struct Watch {
    descriptor: OwnedFd,
    events: Vec<libc::epoll_event>,
    ready: usize,
}

const MOST_EVENTS: usize = 64;

impl Watch {
    /// Watches nothing yet.
    pub fn new() -> Result<Self> {
        // SAFETY: no memory is passed.
        let raw = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }, "create an epoll instance")?;
        // SAFETY: `raw` is a descriptor that this function just opened.
        let descriptor = unsafe { OwnedFd::from_raw_fd(raw) };
        Ok(Self { descriptor, events: vec![libc::epoll_event { events: 0, u64: 0 }; MOST_EVENTS], ready: 0 })
    }

    /// Watches `descriptor`, once, under the name `number`.
    pub fn add(&self, descriptor: RawFd, number: u64) -> Result<()> {
        self.control(libc::EPOLL_CTL_ADD, descriptor, number)
    }

    /// Watches a descriptor that was seen readable once more.
    pub fn again(&self, descriptor: RawFd, number: u64) -> Result<()> {
        self.control(libc::EPOLL_CTL_MOD, descriptor, number)
    }

    fn control(&self, operation: libc::c_int, descriptor: RawFd, number: u64) -> Result<()> {
        let events = (libc::EPOLLIN | libc::EPOLLONESHOT) as u32;
        let mut event = libc::epoll_event { events, u64: number };
        // SAFETY: the event is alive during the call, the descriptors are numbers.
        let done = unsafe { libc::epoll_ctl(self.descriptor.as_raw_fd(), operation, descriptor, &mut event) };
        check(done, "watch a descriptor").map(drop)
    }

    /// Waits until one is readable or `timeout` nanoseconds have passed (`None`: for ever).
    pub fn wait(&mut self, timeout: Option<u64>) -> Result<()> {
        let time = timeout.map(|nanoseconds| libc::timespec {
            tv_sec: (nanoseconds / 1_000_000_000) as libc::time_t,
            tv_nsec: (nanoseconds % 1_000_000_000) as libc::c_long,
        });
        let pointer = time.as_ref().map_or(std::ptr::null(), |time| time as *const libc::timespec);
        // SAFETY: pointer and length describe the events; `time` outlives the call; no signal mask.
        let ready = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.descriptor.as_raw_fd(),
                self.events.as_mut_ptr(),
                MOST_EVENTS as libc::c_int,
                pointer,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        self.ready = 0;
        if ready >= 0 {
            self.ready = ready as usize;
            return Ok(());
        }
        let source = io::Error::last_os_error();
        match source.raw_os_error() {
            Some(libc::EINTR) => Ok(()),
            // Before Linux 5.11 only poll waits for less than a millisecond.
            Some(libc::ENOSYS) => self.wait_by_poll(timeout),
            _ => Err(OsError { operation: "wait for descriptors".into(), source }),
        }
    }

    fn wait_by_poll(&mut self, timeout: Option<u64>) -> Result<()> {
        let mut set = PollSet::default();
        set.add(self.descriptor.as_raw_fd(), true, false);
        set.wait(timeout)?;
        // SAFETY: pointer and length describe the events.
        let ready = unsafe {
            libc::epoll_wait(
                self.descriptor.as_raw_fd(),
                self.events.as_mut_ptr(),
                MOST_EVENTS as libc::c_int,
                0,
            )
        };
        self.ready = check(ready, "wait for descriptors")? as usize;
        Ok(())
    }

    /// The names of those that are readable (or have ended), each told once.
    pub fn readable(&self) -> impl Iterator<Item = u64> + '_ {
        self.events[..self.ready].iter().map(|event| event.u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(watch: &Watch) -> Vec<u64> {
        watch.readable().collect()
    }

    #[test]
    fn each_is_told_once_until_it_is_asked_for_again() {
        let (first, second) = (Waker::new().expect("eventfd"), Waker::new().expect("eventfd"));
        let mut watch = Watch::new().expect("epoll");
        watch.add(first.raw(), 1).expect("a descriptor");
        watch.add(second.raw(), 2).expect("a descriptor");
        for wait in [Watch::wait, Watch::wait_by_poll] {
            wait(&mut watch, Some(1000)).expect("a wait");
            assert_eq!(names(&watch), []);
            second.wake();
            wait(&mut watch, None).expect("a wait");
            assert_eq!(names(&watch), [2]);
            wait(&mut watch, Some(1000)).expect("a wait");
            assert_eq!(names(&watch), []);
            watch.again(second.raw(), 2).expect("a descriptor");
            wait(&mut watch, None).expect("a wait");
            assert_eq!(names(&watch), [2]);
            second.drain();
            watch.again(second.raw(), 2).expect("a descriptor");
        }
    }
}
