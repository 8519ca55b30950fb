//! Finding the cgroup v2 hierarchy.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Where cgroup v2 is mounted, from `/proc/<pid>/mountinfo` (proc_pid_mountinfo(5)); the last one mounted if
/// there are several, as that one lies on top. Lines that make no sense are passed over.
pub fn parse_cgroup2_mount(mountinfo: &str) -> Option<PathBuf> {
    mountinfo.lines().rev().find_map(cgroup2_mount)
}

/// `36 35 98:0 /root /mount/point options [optional fields…] - type source super-options`
fn cgroup2_mount(line: &str) -> Option<PathBuf> {
    let (before, after) = line.split_once(" - ")?;
    if after.split_whitespace().next()? != "cgroup2" {
        return None;
    }
    let mount_point = before.split(' ').nth(4).filter(|path| path.starts_with('/'))?;
    Some(PathBuf::from(OsString::from_vec(unescape(mount_point))))
}

/// The kernel writes space, tab, newline and backslash as a backslash and three octal digits.
fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match octal(&bytes[at..]) {
            Some(byte) => {
                plain.push(byte);
                at += 4;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    plain
}

fn octal(bytes: &[u8]) -> Option<u8> {
    let [b'\\', digits @ ..] = bytes.get(..4)? else {
        return None;
    };
    digits.iter().try_fold(0u8, |value, digit| {
        let digit = char::from(*digit).to_digit(8)?;
        value.checked_mul(8)?.checked_add(digit as u8)
    })
}
