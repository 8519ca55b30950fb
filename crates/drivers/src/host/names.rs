//! The hosts file of a rack's host: the others by name, and below them what the machine's own file says.

use framegauge_linux::Result;
use framegauge_linux::error::Context;
use framegauge_linux::namespace::show_file;
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where programs look for names.
const HOSTS: &str = "/etc/hosts";

/// The names that a host knows, as its hosts file shows them.
pub struct Names {
    /// The file that is shown. By its path another may be found.
    file: File,
    machine: Vec<u8>,
}

impl Names {
    /// Shows a hosts file with these names to all programs of the caller's own mount namespace, in memory only.
    pub fn show(entries: &[(String, Vec<IpAddr>)]) -> Result<Self> {
        let path = place()?;
        let machine = fs::read(&path).during(format!("read {HOSTS}"))?;
        let file = show_file(&path, &contents(entries, &machine))?;
        Ok(Self { file, machine })
    }

    /// Shows others instead.
    pub fn replace(&mut self, entries: &[(String, Vec<IpAddr>)]) -> Result<()> {
        let contents = contents(entries, &self.machine);
        let write = |file: &mut File| {
            file.rewind()?;
            file.write_all(&contents)?;
            file.set_len(contents.len() as u64)
        };
        write(&mut self.file).during("write the hosts file")
    }
}

/// Whether names can be shown on this machine: a mount needs a file that it hides.
pub fn can_be_shown() -> bool {
    Path::new(HOSTS).is_file()
}

/// The hosts file itself: where `/etc/hosts` is a symbolic link, what it leads to.
fn place() -> Result<PathBuf> {
    fs::canonicalize(HOSTS).during(format!("find {HOSTS}, which is where names are shown"))
}

/// The lines of the rack, then the machine's own.
fn contents(entries: &[(String, Vec<IpAddr>)], machine: &[u8]) -> Vec<u8> {
    let lines = entries
        .iter()
        .flat_map(|(name, addresses)| addresses.iter().map(move |address| format!("{address}\t{name}\n")));
    let mut all = lines.collect::<String>().into_bytes();
    all.extend_from_slice(machine);
    all
}

/// A hosts file that another host shows, to be shown here too.
pub struct Shown {
    path: PathBuf,
    contents: Vec<u8>,
}

impl Shown {
    /// What the mount namespace of thread `id` shows; `None` where it shows the same file as the caller's.
    pub fn by_thread(id: u32) -> Result<Option<Self>> {
        let Ok(path) = place() else { return Ok(None) };
        let other_path = Path::new("/proc")
            .join(id.to_string())
            .join("root")
            .join(path.strip_prefix("/").unwrap_or(&path));
        let file = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino()));
        let (Ok(own), Ok(other)) = (file(&path), file(&other_path)) else { return Ok(None) };
        if own == other {
            return Ok(None);
        }
        let contents = fs::read(&other_path).during(format!("read {}", other_path.display()))?;
        Ok(Some(Self { path, contents }))
    }

    /// Shows it in the mount namespace of the caller.
    pub fn show_here(&self) -> Result<()> {
        show_file(&self.path, &self.contents).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_racks_lines_come_before_the_machines() {
        let addresses = ["10.77.0.2", "fd77::2"].map(|text| text.parse().expect("an address")).to_vec();
        let hosts_file = contents(&[("h2".into(), addresses)], b"127.0.0.1 localhost\n10.0.0.9 h2\n");
        let expected = "10.77.0.2\th2\nfd77::2\th2\n127.0.0.1 localhost\n10.0.0.9 h2\n";
        assert_eq!(String::from_utf8(hosts_file).expect("text"), expected);
    }
}
