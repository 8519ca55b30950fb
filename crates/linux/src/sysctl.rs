//! Settings under `/proc/sys`, of the calling process's namespaces.

use crate::error::{Context, OsError, Result};
use std::fs;

fn path(name: &str) -> Result<String> {
    if name.is_empty() || name.contains('/') || name.split('.').any(|part| part.is_empty()) {
        return Err(OsError::errno(format!("find the sysctl {name:?}"), libc::EINVAL));
    }
    Ok(format!("/proc/sys/{}", name.replace('.', "/")))
}

/// Reads a setting; white space is folded to single blanks.
pub fn read(name: &str) -> Result<String> {
    let text = fs::read_to_string(path(name)?).during(format!("read the sysctl {name}"))?;
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Writes a setting.
pub fn write(name: &str, value: &str) -> Result<()> {
    fs::write(path(name)?, value).during(format!("set the sysctl {name} to {value:?}"))
}
