//! Who holds a socket, and what only its holder can ask of it.

use super::Trees;
use framegauge_linux::pidfd::Process;
use framegauge_linux::{Result, tcp};
use framegauge_metering::connections::{Holder, Owner};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

/// `EBADF`, `ESRCH`, `ENOTSOCK`: it has let go of the socket, or has ended.
const GONE: [i32; 3] = [9, 3, 88];

/// Where a socket was found.
#[derive(Clone, Copy)]
struct Place {
    pid: u32,
    descriptor: RawFd,
    /// The tree's number; `None`: the agent itself.
    process: Option<u64>,
}

/// The holders of sockets, as the last search found them.
pub(super) struct Holders {
    trees: Trees,
    places: HashMap<u32, Place>,
    /// Processes that were asked since the last search.
    asked: HashMap<u32, Process>,
    refused: HashSet<Arc<str>>,
    unread: BTreeMap<Arc<str>, String>,
}

impl Holders {
    pub(super) fn new(trees: Trees) -> Self {
        Self {
            trees,
            places: HashMap::new(),
            asked: HashMap::new(),
            refused: HashSet::new(),
            unread: BTreeMap::new(),
        }
    }

    /// Looks through the descriptors of every process of the trees, and of this one.
    pub(super) fn search(&mut self) {
        self.places.clear();
        self.asked.clear();
        for (process, pids) in (self.trees)() {
            for pid in pids {
                self.search_process(pid, Some(process));
            }
        }
        self.search_process(std::process::id(), None);
    }

    fn search_process(&mut self, pid: u32, process: Option<u64>) {
        let folder = format!("/proc/{pid}/fd");
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => return self.note_refusal(pid, &folder, &error),
        };
        for entry in entries.flatten() {
            let target = match fs::read_link(entry.path()) {
                Ok(target) => target,
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    return self.note_refusal(pid, &folder, &error);
                }
                // It has been closed.
                Err(_) => continue,
            };
            let inode = target.to_str().and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']'));
            let descriptor = entry.file_name().to_str().and_then(|text| text.parse().ok());
            if let (Some(Ok(inode)), Some(descriptor)) = (inode.map(str::parse), descriptor) {
                self.places.entry(inode).or_insert(Place { pid, descriptor, process });
            }
        }
    }

    /// Notes a process that does not let itself be looked at; one that has ended is none.
    fn note_refusal(&mut self, pid: u32, folder: &str, error: &std::io::Error) {
        if let (ErrorKind::PermissionDenied, Some(name)) = (error.kind(), name(pid)) {
            self.unread.entry(name).or_insert(format!("read {folder}: {error}"));
        }
    }

    pub(super) fn knows(&self, inode: u32) -> bool {
        self.places.contains_key(&inode)
    }

    pub(super) fn holder(&self, inode: u32) -> Option<Holder> {
        let place = self.places.get(&inode)?;
        Some(match place.process {
            None => Holder::Agent,
            Some(process) => Holder::Program(Owner { process, program: name(place.pid)? }),
        })
    }

    pub(super) fn program(&self, inode: u32) -> Option<Owner> {
        match self.holder(inode)? {
            Holder::Program(owner) => Some(owner),
            Holder::Agent => None,
        }
    }

    /// TCP_NODELAY of a socket; `None` where it cannot be read, or not now. For a few microseconds the agent holds the
    /// socket as well.
    pub(super) fn nodelay(&mut self, inode: u32, cookie: u64, program: &Arc<str>) -> Option<bool> {
        let place = *self.places.get(&inode)?;
        if self.refused.contains(program) {
            return None;
        }
        match self.read(place, cookie) {
            Ok(nodelay) => {
                if nodelay.is_none() {
                    self.places.remove(&inode);
                }
                nodelay
            }
            Err(error) if GONE.contains(&error.code()) => {
                self.places.remove(&inode);
                None
            }
            Err(error) => {
                self.refused.insert(program.clone());
                self.unread.entry(program.clone()).or_insert(error.to_string());
                None
            }
        }
    }

    /// `None`: another socket has come to its place.
    fn read(&mut self, place: Place, cookie: u64) -> Result<Option<bool>> {
        let process = match self.asked.entry(place.pid) {
            std::collections::hash_map::Entry::Occupied(slot) => slot.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => new.insert(Process::open(place.pid)?),
        };
        let socket = process.descriptor(place.descriptor)?;
        if tcp::cookie(socket.as_raw_fd())? != cookie {
            return Ok(None);
        }
        tcp::nodelay(socket.as_raw_fd()).map(Some)
    }

    pub(super) fn into_unread(self) -> BTreeMap<Arc<str>, String> {
        self.unread
    }
}

/// A program's name, as the kernel keeps it (15 characters); `None`: it has ended.
fn name(pid: u32) -> Option<Arc<str>> {
    let text = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(text.trim_end().into())
}
