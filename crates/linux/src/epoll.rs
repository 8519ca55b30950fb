//! Waiting for many descriptors at a cost that does not grow with their number (`epoll`).

use crate::error::{OsError, Result, check};
use crate::poll::PollSet;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

const EVENTS: usize = 64;

/// Descriptors that are watched until they are closed.
pub struct Epoll {
    descriptor: OwnedFd,
    events: [libc::epoll_event; EVENTS],
    ready: usize,
    /// `epoll_pwait2` is there (Linux 5.11); without it the time-out would have whole milliseconds.
    precise: bool,
}

/// What a descriptor is ready for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The number it was added with.
    pub key: u64,
    /// It can be read, or has ended or failed.
    pub readable: bool,
    /// It can be written, or has failed.
    pub writable: bool,
}

impl Epoll {
    /// Watches nothing yet.
    pub fn new() -> Result<Self> {
        // SAFETY: no memory is passed.
        let raw = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }, "create an epoll")?;
        // SAFETY: `raw` is a descriptor that this function just opened.
        let descriptor = unsafe { OwnedFd::from_raw_fd(raw) };
        let events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        Ok(Self { descriptor, events, ready: 0, precise: true })
    }

    /// Watches a descriptor; `key` tells it from the others.
    pub fn add(&self, descriptor: RawFd, key: u64, readable: bool, writable: bool) -> Result<()> {
        self.control(libc::EPOLL_CTL_ADD, descriptor, key, wanted(readable, writable))
    }

    /// Changes what a descriptor is watched for.
    pub fn change(&self, descriptor: RawFd, key: u64, readable: bool, writable: bool) -> Result<()> {
        self.control(libc::EPOLL_CTL_MOD, descriptor, key, wanted(readable, writable))
    }

    /// Watches a descriptor until it was readable once; [`Epoll::once_more`] watches it again.
    pub fn add_once(&self, descriptor: RawFd, key: u64) -> Result<()> {
        self.control(libc::EPOLL_CTL_ADD, descriptor, key, libc::EPOLLIN | libc::EPOLLONESHOT)
    }

    /// Watches a descriptor that was told of for one more time.
    pub fn once_more(&self, descriptor: RawFd, key: u64) -> Result<()> {
        self.control(libc::EPOLL_CTL_MOD, descriptor, key, libc::EPOLLIN | libc::EPOLLONESHOT)
    }

    /// Watches a descriptor no longer; closing its last duplicate does the same.
    pub fn remove(&self, descriptor: RawFd) -> Result<()> {
        self.control(libc::EPOLL_CTL_DEL, descriptor, 0, 0)
    }

    fn control(&self, operation: i32, descriptor: RawFd, key: u64, events: i32) -> Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: key };
        // SAFETY: `event` is valid during the call.
        check(
            unsafe { libc::epoll_ctl(self.descriptor.as_raw_fd(), operation, descriptor, &mut event) },
            "watch a descriptor",
        )
        .map(drop)
    }

    /// Waits until one is ready or `timeout` nanoseconds have passed (`None`: for ever); returns how many are.
    pub fn wait(&mut self, timeout: Option<u64>) -> Result<usize> {
        self.ready = 0;
        if !self.precise {
            let mut poll = PollSet::default();
            poll.add(self.descriptor.as_raw_fd(), true, false);
            poll.wait(timeout)?;
        }
        let time = if self.precise { timeout } else { Some(0) };
        let time = time.map(|nanoseconds| libc::timespec {
            tv_sec: (nanoseconds / 1_000_000_000) as libc::time_t,
            tv_nsec: (nanoseconds % 1_000_000_000) as libc::c_long,
        });
        let pointer = time.as_ref().map_or(std::ptr::null(), |time| time as *const libc::timespec);
        let count = if self.precise {
            // SAFETY: the events and their number describe `self.events`; `time` outlives the call; no signal mask.
            unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    self.descriptor.as_raw_fd(),
                    self.events.as_mut_ptr(),
                    EVENTS as libc::c_int,
                    pointer,
                    std::ptr::null::<libc::sigset_t>(),
                    0usize,
                )
            }
        } else {
            // SAFETY: as above.
            i64::from(unsafe {
                libc::epoll_wait(self.descriptor.as_raw_fd(), self.events.as_mut_ptr(), EVENTS as i32, 0)
            })
        };
        if count < 0 {
            let source = io::Error::last_os_error();
            return match source.raw_os_error() {
                Some(libc::EINTR) => Ok(0),
                Some(libc::ENOSYS) if self.precise => {
                    self.precise = false;
                    self.wait(timeout)
                }
                _ => Err(OsError { operation: "wait for descriptors".into(), source }),
            };
        }
        self.ready = count as usize;
        Ok(self.ready)
    }

    /// One of those that the last wait found, by its place among them.
    pub fn ready(&self, place: usize) -> Ready {
        let libc::epoll_event { events, u64: key } = self.events[..self.ready][place];
        let any = |flags: i32| events & flags as u32 != 0;
        let failed = libc::EPOLLERR | libc::EPOLLHUP;
        Ready { key, readable: any(libc::EPOLLIN | failed), writable: any(libc::EPOLLOUT | failed) }
    }
}

fn wanted(readable: bool, writable: bool) -> i32 {
    let when = |is_set, event| if is_set { event } else { 0 };
    when(readable, libc::EPOLLIN) | when(writable, libc::EPOLLOUT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::Waker;

    /// With `epoll_pwait2`, and the way for kernels without it.
    #[test]
    fn tells_what_is_ready_and_keeps_the_time() {
        for precise in [true, false] {
            let (quiet, loud) = (Waker::new().expect("a waker"), Waker::new().expect("a waker"));
            let mut epoll = Epoll::new().expect("an epoll");
            epoll.precise = precise;
            epoll.add(quiet.raw(), 7, true, false).expect("it can be watched");
            epoll.add(loud.raw(), 8, true, false).expect("it can be watched");
            let before = crate::clock::monotonic_nanoseconds();
            assert_eq!(epoll.wait(Some(300_000)).expect("it waits"), 0);
            assert!(crate::clock::monotonic_nanoseconds() - before >= 300_000);
            loud.wake();
            assert_eq!(epoll.wait(None).expect("it waits"), 1);
            assert_eq!(epoll.ready(0), Ready { key: 8, readable: true, writable: false });
            epoll.change(loud.raw(), 9, false, true).expect("it can be changed");
            assert_eq!(epoll.wait(None).expect("it waits"), 1);
            assert_eq!(epoll.ready(0), Ready { key: 9, readable: false, writable: true });
        }
    }

    #[test]
    fn what_is_watched_once_is_told_once_until_it_is_asked_for_again() {
        let waker = Waker::new().expect("a waker");
        let mut epoll = Epoll::new().expect("an epoll");
        epoll.add_once(waker.raw(), 3).expect("it can be watched");
        waker.wake();
        assert_eq!(epoll.wait(None).expect("it waits"), 1);
        assert_eq!(epoll.wait(Some(1000)).expect("it waits"), 0);
        epoll.once_more(waker.raw(), 3).expect("it can be watched");
        assert_eq!(epoll.wait(None).expect("it waits"), 1);
        assert_eq!(epoll.ready(0), Ready { key: 3, readable: true, writable: false });
    }
}
