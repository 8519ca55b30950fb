//! The receive path of a host as a kernel thread of its own (threaded NAPI).

use crate::host::receive_path::device_file;
use framegauge_linux::error::Context;
use framegauge_linux::{Result, sched};
use std::fs;

/// A packet that arrives interrupts programs on a real host, so the thread that stands for that interrupt
/// goes before them; it stays below the fabric.
const RECEIVE_PRIORITY: i32 = 5;
const NO_SUCH_PROCESS: i32 = 3;

/// Moves the receive path of `interface` to a kernel thread and binds that to `cpus`; the thread's id.
pub(crate) fn thread_napi(interface: &str, cpus: &[usize]) -> Result<Vec<i32>> {
    let path = device_file(interface, "threaded");
    // Another rack may have an interface of this name, or the kernel may still be taking one down.
    let others = napi_threads(interface);
    fs::write(&path, "1").during(format!("write {path}"))?;
    let mut ours = Vec::new();
    for thread in napi_threads(interface).into_iter().filter(|thread| !others.contains(thread)) {
        match sched::bind(thread, cpus) {
            // Not ours, then.
            Err(error) if error.code() == NO_SUCH_PROCESS => continue,
            other => other?,
        }
        // Where this is refused the receive path waits for a slice like any program; lateness then tells.
        let _ = sched::real_time(thread, RECEIVE_PRIORITY);
        ours.push(thread);
    }
    Ok(ours)
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
