//! Closing a fabric: its TAP devices are closed at the same time.

use crate::fabric::edge::Edge;
use std::thread;

/// Devices that are closed at the same time, at most.
const TOGETHER: usize = 64;

impl Drop for Edge {
    /// For each device that goes, the kernel waits until every CPU has let go of it (`rcu_barrier`), some 30 ms.
    /// One after the other sixteen take half a second; waits that overlap share one.
    fn drop(&mut self) {
        let per_thread = self.attachments.len().div_ceil(TOGETHER).max(1);
        thread::scope(|scope| {
            while !self.attachments.is_empty() {
                let rest = self.attachments.len().saturating_sub(per_thread);
                let some = self.attachments.split_off(rest);
                // Without a thread they go here and now: what was handed over is dropped with the error.
                let _ = thread::Builder::new().spawn_scoped(scope, move || drop(some));
            }
        });
    }
}
