//! The receive path of a host as a kernel thread of its own (threaded NAPI).

use crate::host::receive_path::device_file;
use framegauge_linux::clock::sleep;
use framegauge_linux::error::Context;
use framegauge_linux::lock::{Attempt, Lock, folder};
use framegauge_linux::{Result, precedence, sched};
use std::fs;

/// A packet that arrives interrupts programs on a real host, so the thread that stands for that interrupt
/// goes before them; it stays below the fabric.
const RECEIVE_PRIORITY: i32 = 5;
const NO_SUCH_PROCESS: i32 = 3;
const TRIES: u32 = 1_000;
const BETWEEN_TRIES_NANOSECONDS: u64 = 5_000_000;

/// Moves the receive path of `interface` to a kernel thread and binds that to `cpus`; the thread's id.
pub(crate) fn thread_napi(interface: &str, cpus: &[usize]) -> Result<Vec<i32>> {
    let path = device_file(interface, "threaded");
    let _alone = alone(interface);
    // Another rack may have an interface of this name, or the kernel may still be taking one down.
    let others = napi_threads(interface);
    fs::write(&path, "1").during(format!("write {path}"))?;
    let mut threads = Vec::new();
    for thread in napi_threads(interface).into_iter().filter(|thread| !others.contains(thread)) {
        match sched::bind(thread, cpus) {
            // Not ours, then.
            Err(error) if error.code() == NO_SUCH_PROCESS => continue,
            other => other?,
        }
        // Where this is refused the receive path waits for a slice like any program; lateness then tells.
        if !precedence::is_given_up() {
            let _ = sched::real_time(thread, RECEIVE_PRIORITY);
        }
        threads.push(thread);
    }
    Ok(threads)
}

/// Keeps the hosts of other racks waiting that have an interface of this name. A thread has no other mark than that
/// name, so if two appear between two looks at the list, each host takes both. None where locks cannot be had, or
/// after 5 s: then a rack is no worse than without one.
fn alone(interface: &str) -> Option<Lock> {
    let name = format!("framegauge-napi-{interface}");
    for _ in 0..TRIES {
        match Lock::take(&folder(), &name).ok()? {
            Attempt::Ours(lock) => return Some(lock),
            Attempt::Theirs => sleep(BETWEEN_TRIES_NANOSECONDS),
        }
    }
    None
}

/// The kernel threads that poll `interface`.
fn napi_threads(interface: &str) -> Vec<i32> {
    let prefix = format!("napi/{interface}-");
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with(&prefix))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use framegauge_linux::namespace::Network;
    use framegauge_linux::rtnetlink::{LinkChange, change_link};
    use framegauge_linux::tap::Tap;
    use std::collections::BTreeSet;
    use std::sync::Barrier;

    /// Racks that come up at the same time have interfaces of the same names.
    #[test]
    fn hosts_of_several_racks_have_threads_of_their_own() {
        const RACKS: usize = 4;
        if let Err(error) = Network::fresh() {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{error}");
            eprintln!("not run: needs network namespaces: {error}");
            return;
        }
        let barrier = Barrier::new(RACKS);
        let work = || {
            framegauge_linux::namespace::apart(None, || {
                let tap = Tap::create("fgtest", false, false)?;
                change_link("fgtest", LinkChange { up: Some(true), ..LinkChange::default() })?;
                barrier.wait();
                let pids = thread_napi("fgtest", &sched::allowed_cpus())?;
                // Whoever takes the threads of others would find them as long as these are there.
                barrier.wait();
                drop(tap);
                Ok(pids)
            })
            .expect("a host")
        };
        for _ in 0..5 {
            let pids: Vec<Vec<i32>> = std::thread::scope(|scope| {
                let started: Vec<_> = (0..RACKS).map(|_| scope.spawn(work)).collect();
                started.into_iter().map(|host| host.join().expect("a host")).collect()
            });
            assert!(pids.iter().all(|threads| threads.len() == 1), "{pids:?}");
            assert_eq!(pids.concat().into_iter().collect::<BTreeSet<_>>().len(), RACKS, "{pids:?}");
        }
    }
}
