//! The namespace in which TAPs are made, before they move to their hosts.

use framegauge_linux::{Result, namespace};
use std::sync::Mutex;

/// Where TAPs are made, one namespace for as long as this process lives.
///
/// A TAP's descriptor holds the namespace in which it was opened, for ever if GRO has merged packets of it (Linux 6.18:
/// what GRO frees of merged packets is never given back to the socket that they are charged to). Opened in a host's own,
/// every run would leave namespaces behind, some hundred a minute on a busy rack, until the machine is slow.
pub(super) fn workshop() -> Result<&'static namespace::Network> {
    static WORKSHOP: Mutex<Option<&'static namespace::Network>> = Mutex::new(None);
    let mut shared = WORKSHOP.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match *shared {
        Some(network) => Ok(network),
        None => Ok(*shared.insert(Box::leak(Box::new(namespace::Network::fresh()?)))),
    }
}
