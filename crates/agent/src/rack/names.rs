//! What hosts and routers may be called.

use crate::pipe::message::Failure;
use std::collections::BTreeSet;

/// Of a host name in Linux.
const LONGEST_NAME: usize = 64;

/// Names become host names, cgroups, and words on command lines.
pub fn check_names(method: &str, names: &[String]) -> Result<(), Failure> {
    let different: BTreeSet<&String> = names.iter().collect();
    let plain =
        |name: &String| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if different.len() != names.len() || !names.iter().all(plain) {
        let message = "hosts and routers need different names of letters, digits and hyphens";
        return Err(Failure::invalid_params(method, message));
    }
    if let Some(long) = names.iter().find(|name| name.len() > LONGEST_NAME) {
        let message =
            format!("found the name {long:?} of {} letters, expected at most {LONGEST_NAME}", long.len());
        return Err(Failure::invalid_params(method, message));
    }
    Ok(())
}
