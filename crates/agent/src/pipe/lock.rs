//! Locks that outlive a thread that died holding them.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock whose data stays usable though a thread died holding it: cleaning up must go on.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
