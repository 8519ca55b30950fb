//! A file read by several threads, each of which reads all of it, and decodes the packets of its own connections.
//!
//! ```text
//!   file ──> thread 1 ──> packets of share 1 ──> rows      each sees all packets in order, and looks at no more of
//!      └───> thread 2 ──> packets of share 2 ──> rows      those of others than the ends of their connections
//! ```
//!
//! Nothing is handed from one to another: to read a packet's head again takes less than to copy the packet into another core's
//! cache. What comes through a pipe, or is unpacked, cannot be read twice (`threads.rs`).

use super::front::{Front, Steps, Summary};
use super::packed::is_packed;
use super::shares::{Found, Share};
use framegauge_diagnosis::Thresholds;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::thread;

/// The bytes of a file that each thread can read for itself.
pub(super) fn bytes(path: &Path) -> io::Result<Option<u64>> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Ok(None);
    }
    Ok((!is_packed(&mut file.take(about.len()))?).then_some(about.len()))
}

/// Reads so many bytes of a file, which may grow meanwhile, with so many threads. At most `room` connections live in memory.
pub(super) fn read(
    path: &Path,
    bytes: u64,
    limits: Thresholds,
    room: usize,
    threads: usize,
    steps: Option<&Steps>,
) -> Result<(Summary, Vec<Found>), String> {
    let fronts: Result<Vec<Front>, String> =
        (0..threads).map(|_| Ok(Front::open_to(path, bytes, steps)?.divided(threads))).collect();
    let work = |(own, mut front): (usize, Front)| {
        let mut share = Share::new(limits, (room / threads).max(1));
        front.read_share(own, |decoded, seen| share.take(decoded, seen));
        (front, share.finish())
    };
    let mut read = Vec::with_capacity(threads);
    thread::scope(|scope| {
        let others: Vec<_> =
            fronts?.into_iter().enumerate().map(|numbered| scope.spawn(move || work(numbered))).collect();
        read.extend(others.into_iter().map(|thread| thread.join().expect("no thread panics")));
        Ok::<(), String>(())
    })?;
    let (fronts, results): (Vec<Front>, Vec<Result<Found, String>>) = read.into_iter().unzip();
    // All have read the same.
    let summary = fronts.into_iter().next().expect("one thread or more").finish()?;
    Ok((summary, results.into_iter().collect::<Result<_, _>>()?))
}
