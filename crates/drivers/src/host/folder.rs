//! The folder that a host has for the files of its programs.
//!
//! A host of a rack has a file system in memory, mounted in its own mount namespace, with which it goes whoever is
//! killed. It is mounted below `/dev/shm`, which every machine has; what that shows of the machine is hidden by another
//! such file system, so that hosts do not share memory by it either, and the machine keeps no folder. A host of its own
//! has a fresh folder on a disk, or where there is most space.

use framegauge_linux::error::Context;
use framegauge_linux::namespace::mount_memory;
use framegauge_linux::{OsError, Result, files, process};
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use framegauge_linux::beneath::{Folder, is_beneath};

const MEMORY: &str = "/dev/shm";
const NAME: &str = "framegauge";
/// How long a folder is emptied in which programs that are being ended still write.
const PATIENCE: Duration = Duration::from_secs(10);

/// Makes the folder of a host of a rack, of at most so many bytes (`None`: half of the memory). The caller works in the
/// host's mount namespace.
pub fn mount(limit_bytes: Option<u64>) -> Result<PathBuf> {
    let shared =
        fs::canonicalize(MEMORY).during(format!("find {MEMORY}, on which a host's folder is mounted"))?;
    mount_memory(&shared, 0o1777, None, false)?;
    let path = shared.join(NAME);
    DirBuilder::new().mode(0o755).create(&path).during(format!("make {}", path.display()))?;
    mount_memory(&path, 0o755, limit_bytes, false)?;
    Ok(path)
}

/// Changes how large the folder of a host of a rack may become.
pub fn limit(path: &Path, limit_bytes: u64) -> Result<()> {
    mount_memory(path, 0o755, Some(limit_bytes), true)
}

/// Makes the folder of a host of its own: of the folders for such things the one with most space. Other users cannot
/// look into it; but they get to what is named to them if programs may run as others, which root's may.
pub fn make() -> Result<PathBuf> {
    let folders = ["XDG_RUNTIME_DIR", "TMPDIR"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    let mut places: Vec<(u64, PathBuf)> = folders
        .chain([PathBuf::from("/tmp")])
        .filter(|place| place.is_absolute())
        .filter_map(|place| Some((files::free_bytes(&place).ok()?, place)))
        .collect();
    // The first of equals, which are mostly one file system.
    places.sort_by_key(|(free, _)| std::cmp::Reverse(*free));
    places.dedup_by(|one, other| one.1 == other.1);
    let mode = if process::effective_user() == 0 { 0o711 } else { 0o700 };
    let mut failed = OsError::errno("make a folder: found none in XDG_RUNTIME_DIR, TMPDIR and /tmp", 2);
    for (_, place) in places {
        match make_in(&place, mode) {
            Ok(path) => return Ok(path),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn make_in(place: &Path, mode: u32) -> Result<PathBuf> {
    let pid = std::process::id();
    let started = process::start_ticks(pid).unwrap_or(0);
    for number in 0u32.. {
        let path = place.join(format!("{NAME}-{pid}-{started}-{number}"));
        match DirBuilder::new().mode(mode).create(&path) {
            Ok(()) => {
                // Whatever the umask is.
                let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
                fs::set_permissions(&path, mode).during(format!("make {}", path.display()))?;
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(source) => {
                return Err(OsError { operation: format!("make a folder in {}", place.display()), source });
            }
        }
    }
    Err(OsError::errno(format!("make a folder in {}", place.display()), 17))
}

/// Removes the folder of a host of its own with all that is in it.
pub fn remove(path: &Path) -> Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(OsError::errno(format!("remove {}", path.display()), 22));
    };
    let until = Instant::now() + PATIENCE;
    loop {
        let removed = Folder::open(parent)?.clear(Path::new(name));
        if removed.is_ok() || Instant::now() >= until {
            return removed;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
