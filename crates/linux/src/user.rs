//! Giving up the rights of root for those of a user.

use crate::error::{Result, check};

/// A user as the kernel knows one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// User id.
    pub user: u32,
    /// Group id.
    pub group: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

impl User {
    /// Makes the calling (single-threaded) process this user's, for good: real, effective and saved ids.
    pub fn become_it(&self) -> Result<()> {
        // SAFETY: pointer and length describe `groups`.
        let grouped = unsafe { libc::setgroups(self.groups.len(), self.groups.as_ptr()) };
        check(grouped, "take on the user's groups")?;
        // SAFETY: no memory is passed. The group first: without root's rights it could not be changed any more.
        check(unsafe { libc::setresgid(self.group, self.group, self.group) }, "take on the user's group")?;
        // SAFETY: no memory is passed.
        check(unsafe { libc::setresuid(self.user, self.user, self.user) }, "take on the user's id").map(drop)
    }
}
