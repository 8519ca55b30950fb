//! Giving up the rights of root for those of a user, and the machine's list of users.

use crate::error::{Context, OsError, Result, check};
use std::fs;
use std::io;
use std::path::PathBuf;

const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";

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
    /// The same between fork and exec, where nothing may be allocated.
    pub(crate) fn become_it_in_child(&self) -> io::Result<()> {
        // SAFETY: pointer and length describe `groups`; the rest are numbers. The user comes last, as above.
        let done = unsafe {
            libc::setgroups(self.groups.len(), self.groups.as_ptr()) == 0
                && libc::setresgid(self.group, self.group, self.group) == 0
                && libc::setresuid(self.user, self.user, self.user) == 0
        };
        if done { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// A user whom the machine knows by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The name.
    pub name: String,
    /// Its ids, with the groups that it is listed in.
    pub user: User,
    /// Its home folder.
    pub home: PathBuf,
}

impl Account {
    /// The user `name` of `/etc/passwd`, with its groups of `/etc/group`. The files themselves are read: a static program
    /// cannot load the machine's modules for other sources of names.
    pub fn named(name: &str) -> Result<Self> {
        let read = |path| fs::read(path).during(format!("read {path}"));
        let (users, groups) = (read(USERS)?, read(GROUPS)?);
        Self::parse(name, &String::from_utf8_lossy(&users), &String::from_utf8_lossy(&groups)).ok_or_else(
            || {
                let operation = format!("find the user {name:?}, whom {USERS} does not name");
                OsError::errno(operation, libc::ENOENT)
            },
        )
    }

    /// The user `name` by the contents of the two files; lines that are not as they should be are left out.
    pub fn parse(name: &str, users: &str, groups: &str) -> Option<Self> {
        let (user, group, home) = users.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let [user_name, _, user, group, _, home, _] = fields[..] else { return None };
            let ids = (user_name == name).then(|| Some((user.parse().ok()?, group.parse().ok()?)));
            ids.flatten().map(|(user, group)| (user, group, PathBuf::from(home)))
        })?;
        let more_groups = groups.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let [_, _, id, members] = fields[..] else { return None };
            members.split(',').any(|member| member == name).then(|| id.parse::<u32>().ok()).flatten()
        });
        let mut all: Vec<u32> = std::iter::once(group).chain(more_groups).collect();
        all.sort_unstable();
        all.dedup();
        Some(Self { name: name.into(), user: User { user, group, groups: all }, home })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "\
root:x:0:0:root:/root:/bin/bash
broken:x:7
odd:x:minus:1::/:/bin/sh
# comment
postgres:x:113:120:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash
";
    const GROUP: &str = "root:x:0:\nssl-cert:x:116:postgres\nadm:x:4:syslog,postgres,postgres2\nodd:x:y:postgres\n\
                         postgres:x:120:\nother:x:5:postgres2\n";

    #[test]
    fn a_user_has_its_own_group_and_those_that_list_it() {
        let account = Account::parse("postgres", PASSWD, GROUP).expect("it is there");
        assert_eq!(account.user, User { user: 113, group: 120, groups: vec![4, 116, 120] });
        assert_eq!(account.home, PathBuf::from("/var/lib/postgresql"));
        assert_eq!(Account::parse("root", PASSWD, GROUP).expect("it is there").user.groups, [0]);
        for name in ["", "broken", "odd", "# comment", "postgres2", "113", "root:x"] {
            assert_eq!(Account::parse(name, PASSWD, GROUP), None, "{name:?}");
        }
    }

    #[test]
    fn the_machine_knows_root_and_no_stranger() {
        assert_eq!(Account::named("root").expect("every machine has it").user.user, 0);
        let error = Account::named("framegauge-nobody-of-that-name").expect_err("no such user");
        assert_eq!(error.code(), libc::ENOENT);
        assert!(error.to_string().contains("/etc/passwd does not name"), "{error}");
    }
}
