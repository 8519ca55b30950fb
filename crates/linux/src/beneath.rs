//! Files below a folder. No symbolic link is followed on the way, so that nothing outside is ever touched, whatever the
//! programs that write there do meanwhile.
//!
//! Each step opens one name in the folder that the step before has opened (`O_NOFOLLOW`), through `/proc/self/fd`: that
//! leads to the open folder itself, wherever it has been moved. This needs no kernel of a certain age.

use crate::error::{Context, OsError, Result};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// How often a folder is emptied in which others make new files meanwhile.
const ATTEMPTS: usize = 100;
/// Folders in folders that a listing goes into.
const DEEPEST: usize = 100;

/// An open folder, by which what is below it is reached.
pub struct Folder(File);

/// A regular file of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Below the folder.
    pub path: PathBuf,
    /// Its size.
    pub size_bytes: u64,
}

/// Whether a path is one below a folder: names only. The empty one is the folder itself.
pub fn is_beneath(path: &Path) -> bool {
    path.components().all(|component| matches!(component, Component::Normal(_)))
}

impl Folder {
    /// Opens the folder at `path`, which the caller trusts.
    pub fn open(path: &Path) -> Result<Self> {
        open_folder(path, 0).map(Self).during(format!("open {}", path.display()))
    }

    /// Writes a whole file with this mode, instead of one that is there. Folders on the way are made.
    pub fn write(&self, path: &Path, data: &[u8], mode: u32) -> Result<()> {
        let operation = format!("write {}", path.display());
        let (folder, name) = self.parent(path, true, &operation)?;
        let new = folder.within(OsStr::new(&format!(".framegauge-{}", new_number())));
        let write = || {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
            file.write_all(data)?;
            file.set_permissions(Permissions::from_mode(mode))?;
            // A link of that name is replaced, not followed.
            fs::rename(&new, folder.within(name))
        };
        write().inspect_err(|_| drop(fs::remove_file(&new))).during(operation)
    }

    /// Reads up to `length` bytes of a regular file at `offset`, and its size.
    pub fn read(&self, path: &Path, offset: u64, length: usize) -> Result<(Vec<u8>, u64)> {
        let operation = format!("read {}", path.display());
        let (folder, name) = self.parent(path, false, &operation)?;
        let place = folder.within(name);
        let file = OpenOptions::new()
            .read(true)
            // One that is no regular file must not keep us waiting.
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(&place)
            .map_err(|error| refuse_link(&place, error, &operation))?;
        let metadata = file.metadata().during(&*operation)?;
        if !metadata.is_file() {
            let source = io::Error::other("found no regular file");
            return Err(OsError { operation, source });
        }
        let mut bytes = vec![0; length.min(metadata.len().saturating_sub(offset) as usize)];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], offset + filled as u64).during(&*operation)? {
                // It has become shorter meanwhile.
                0 => break,
                count => filled += count,
            }
        }
        bytes.truncate(filled);
        Ok((bytes, metadata.len()))
    }

    /// The regular files at and below `path` in order, at most so many; true if there are more.
    pub fn list(&self, path: &Path, most: usize) -> Result<(Vec<Listed>, bool)> {
        let operation = format!("list {}", path.display());
        let folder = self.enter(path, false, &operation)?;
        let mut files = Vec::new();
        let more = folder.collect(path, most, DEEPEST, &mut files).during(operation)?;
        Ok((files, more))
    }

    /// Removes what is at `path`, with everything below it; with an empty path what is in the folder.
    pub fn clear(&self, path: &Path) -> Result<()> {
        let operation = format!("remove {}", path.display());
        if path.as_os_str().is_empty() {
            return self.empty().during(operation);
        }
        match self.parent(path, false, &operation) {
            Ok((folder, name)) => folder.remove(name).during(operation),
            Err(error) if error.code() == libc::ENOENT => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Makes a folder with that mode, whatever the umask is; one that is there gets the mode.
    pub fn make_folder(&self, path: &Path, mode: u32) -> Result<()> {
        let operation = format!("make the folder {}", path.display());
        let folder = self.enter(path, true, &operation)?;
        fs::set_permissions(folder.itself(), Permissions::from_mode(mode)).during(operation)
    }

    /// The folder of what `path` names, and its last name.
    fn parent<'a>(&self, path: &'a Path, make: bool, operation: &str) -> Result<(Self, &'a OsStr)> {
        let name = path.file_name().filter(|_| is_beneath(path));
        let name = name.ok_or_else(|| OsError::errno(operation, libc::EINVAL))?;
        Ok((self.enter(path.parent().unwrap_or(Path::new("")), make, operation)?, name))
    }

    /// The folder at `path`, a name at a time.
    fn enter(&self, path: &Path, make: bool, operation: &str) -> Result<Self> {
        if !is_beneath(path) {
            return Err(OsError::errno(operation, libc::EINVAL));
        }
        let mut folder = Self(self.0.try_clone().during(operation)?);
        for name in path {
            let place = folder.within(name);
            let is_new = make && folder.make(name).during(operation)?;
            let opened = open_folder(&place, libc::O_NOFOLLOW);
            folder = Self(opened.map_err(|error| refuse_link(&place, error, operation))?);
            if is_new {
                // Whatever the umask is.
                fs::set_permissions(folder.itself(), Permissions::from_mode(0o755)).during(operation)?;
            }
        }
        Ok(folder)
    }

    /// Makes a folder; false if there is something of that name.
    fn make(&self, name: &OsStr) -> io::Result<bool> {
        match DirBuilder::new().mode(0o700).create(self.within(name)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn within(&self, name: &OsStr) -> PathBuf {
        self.itself().join(name)
    }

    fn itself(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// Adds the files below; true if there are more than may be added.
    fn collect(&self, path: &Path, most: usize, deeper: usize, files: &mut Vec<Listed>) -> io::Result<bool> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.itself())? {
            let entry = entry?;
            // What has gone meanwhile is left out, as are links and devices.
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() || kind.is_file() {
                names.push((sorted_as(&entry.file_name(), kind.is_dir()), entry.file_name(), kind.is_dir()));
            }
        }
        names.sort();
        for (_, name, is_folder) in names {
            let (place, path) = (self.within(&name), path.join(&name));
            if is_folder {
                let Ok(folder) = open_folder(&place, libc::O_NOFOLLOW) else { continue };
                let below = match deeper.checked_sub(1) {
                    Some(deeper) => Self(folder).collect(&path, most, deeper, files),
                    None => Ok(true),
                };
                match below {
                    Ok(false) => {}
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    other => return other,
                }
            } else if let Ok(metadata) = fs::symlink_metadata(&place)
                && metadata.is_file()
            {
                if files.len() == most {
                    return Ok(true);
                }
                files.push(Listed { path, size_bytes: metadata.len() });
            }
        }
        Ok(false)
    }

    /// Removes what has this name, whatever it is.
    fn remove(&self, name: &OsStr) -> io::Result<()> {
        let place = self.within(name);
        for _ in 0..ATTEMPTS {
            let outcome = match open_folder(&place, libc::O_NOFOLLOW) {
                Ok(folder) => Self(folder).empty().and_then(|()| fs::remove_dir(&place)),
                Err(_) => fs::remove_file(&place),
            };
            match outcome {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                // Somebody has made a new file meanwhile.
                Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
                other => return other,
            }
        }
        Err(io::Error::from_raw_os_error(libc::ENOTEMPTY))
    }

    fn empty(&self) -> io::Result<()> {
        let own = self.itself();
        if fs::metadata(&own).is_ok_and(|metadata| metadata.permissions().mode() & 0o700 != 0o700) {
            // Where it is another's, whether this fails is seen next.
            let _ = fs::set_permissions(&own, Permissions::from_mode(0o700));
        }
        for entry in fs::read_dir(&own)? {
            self.remove(&entry?.file_name())?;
        }
        Ok(())
    }
}

fn open_folder(path: &Path, flags: i32) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY | flags).open(path)
}

/// An error that says so where a link was in the way: for a folder the kernel's is only that it is none.
fn refuse_link(place: &Path, error: io::Error, operation: &str) -> OsError {
    if fs::symlink_metadata(place).is_ok_and(|metadata| metadata.is_symlink()) {
        let name = place.file_name().unwrap_or_default().display();
        let operation = format!("{operation}: found the symbolic link {name}, which is not followed");
        return OsError::errno(operation, libc::ELOOP);
    }
    OsError { operation: operation.into(), source: error }
}

/// By what paths through this name are in order.
fn sorted_as(name: &OsStr, is_folder: bool) -> OsString {
    let mut name = name.to_os_string();
    if is_folder {
        name.push("/");
    }
    name
}

/// Of a file that is being written: another for each, in this process.
fn new_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed) << 32 | u64::from(std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, symlink};

    /// A folder with a neighbour that nobody may touch, and both are gone at the end.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("framegauge-beneath-{name}-{}", std::process::id()));
            fs::create_dir_all(path.join("inside")).expect("a folder");
            fs::create_dir(path.join("outside")).expect("a folder");
            fs::write(path.join("outside/secret"), "secret").expect("a file");
            Self(path)
        }

        fn inside(&self) -> PathBuf {
            self.0.join("inside")
        }

        fn folder(&self) -> Folder {
            Folder::open(&self.inside()).expect("it is there")
        }

        fn outside(&self) -> Vec<(OsString, Vec<u8>)> {
            let entries = fs::read_dir(self.0.join("outside")).expect("it is there");
            entries
                .map(|entry| entry.expect("an entry"))
                .map(|entry| (entry.file_name(), fs::read(entry.path()).expect("a file")))
                .collect()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).expect("it is there");
        }
    }

    fn files(folder: &Folder, path: &str, most: usize) -> (Vec<String>, bool) {
        let (listing, more) = folder.list(Path::new(path), most).expect("a folder");
        (listing.iter().map(|file| format!("{} {}", file.path.display(), file.size_bytes)).collect(), more)
    }

    #[test]
    fn a_folder_is_made_with_its_mode() {
        let place = Place::new("folder");
        place.folder().make_folder(Path::new("a/run"), 0o1777).expect("a folder");
        let mode = fs::metadata(place.inside().join("a/run")).expect("a folder").permissions().mode();
        assert_eq!(mode & 0o7777, 0o1777);
        place.folder().make_folder(Path::new("a/run"), 0o700).expect("a folder");
        let mode = fs::metadata(place.inside().join("a/run")).expect("a folder").permissions().mode();
        assert_eq!(mode & 0o7777, 0o700);
    }

    #[test]
    fn what_is_written_is_read_listed_and_removed() {
        let place = Place::new("all");
        let folder = place.folder();
        for (path, mode) in [("conf/site.xml", 0o640), ("conf.d", 0o600), ("conf-b", 0o444), ("a/b/c", 0o755)]
        {
            folder.write(Path::new(path), path.as_bytes(), mode).expect("it is written");
            let metadata = fs::metadata(place.inside().join(path)).expect("it is there");
            assert_eq!(metadata.permissions().mode() & 0o7777, mode);
        }
        let mode = fs::metadata(place.inside().join("a/b")).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
        folder.write(Path::new("conf-b"), b"again", 0o400).expect("it is replaced");
        assert_eq!(folder.read(Path::new("conf-b"), 0, 99).expect("a file"), (b"again".to_vec(), 5));
        assert_eq!(folder.read(Path::new("conf-b"), 3, 1).expect("a file"), (b"i".to_vec(), 5));
        assert_eq!(folder.read(Path::new("conf-b"), 9, 1).expect("a file"), (vec![], 5));
        let all = ["a/b/c 5", "conf-b 5", "conf.d 6", "conf/site.xml 13"].map(String::from);
        assert_eq!(files(&folder, "", 4), (all.to_vec(), false));
        assert_eq!(files(&folder, "", 3), (all[..3].to_vec(), true));
        assert_eq!(files(&folder, "a/b", 9), (vec![all[0].clone()], false));
        folder.clear(Path::new("a")).expect("it is removed");
        folder.clear(Path::new("a/b")).expect("it is not there");
        folder.clear(Path::new("conf.d")).expect("a file is removed too");
        assert_eq!(
            files(&folder, "", 9).0,
            all[1..].iter().filter(|file| !file.contains("conf.d")).cloned().collect::<Vec<_>>()
        );
        folder.clear(Path::new("")).expect("it is emptied");
        assert_eq!(fs::read_dir(place.inside()).expect("it stays").count(), 0);
    }

    #[test]
    fn nothing_outside_is_touched() {
        let place = Place::new("outside");
        let (folder, before) = (place.folder(), place.outside());
        symlink("../outside", place.inside().join("folder")).expect("a link");
        symlink("../outside/secret", place.inside().join("file")).expect("a link");
        symlink(place.0.join("outside/new"), place.inside().join("new")).expect("a link");
        for path in ["folder/secret", "folder/new"] {
            for error in [
                folder.read(Path::new(path), 0, 9).map(drop).expect_err("a link"),
                folder.write(Path::new(path), b"x", 0o600).expect_err("a link"),
                folder.clear(Path::new(path)).expect_err("a link"),
                folder.list(Path::new("folder"), 9).map(drop).expect_err("a link"),
            ] {
                assert_eq!(error.code(), libc::ELOOP, "{error}");
                assert!(error.to_string().contains("found the symbolic link folder"), "{error}");
            }
        }
        assert_eq!(folder.read(Path::new("file"), 0, 9).map(drop).expect_err("a link").code(), libc::ELOOP);
        for path in ["..", "../outside/secret", "a/../../outside/secret", "/etc/hostname", "."] {
            let path = Path::new(path);
            assert_eq!(folder.read(path, 0, 9).map(drop).expect_err("not beneath").code(), libc::EINVAL);
            assert_eq!(folder.write(path, b"x", 0o600).expect_err("not beneath").code(), libc::EINVAL);
            assert_eq!(folder.list(path, 9).map(drop).expect_err("not beneath").code(), libc::EINVAL);
            assert_eq!(folder.clear(path).expect_err("not beneath").code(), libc::EINVAL);
        }
        assert_eq!(files(&folder, "", 9), (vec![], false));
        // Links themselves are replaced and removed.
        for path in ["file", "new"] {
            folder.write(Path::new(path), b"own", 0o600).expect("it is replaced");
        }
        assert_eq!(files(&folder, "", 9).0, ["file 3", "new 3"]);
        folder.clear(Path::new("folder")).expect("the link is removed");
        folder.clear(Path::new("")).expect("it is emptied");
        assert_eq!(place.outside(), before);
    }

    #[test]
    fn what_is_no_file_is_not_read_and_read_only_folders_are_removed() {
        let place = Place::new("odd");
        let folder = place.folder();
        let pipe = place.inside().join("deep/pipe");
        folder.write(Path::new("deep/down/file"), b"x", 0o400).expect("it is written");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("a program").success());
        assert!(fs::metadata(&pipe).expect("it is there").file_type().is_fifo());
        let error = folder.read(Path::new("deep/pipe"), 0, 9).map(drop).expect_err("no file");
        assert!(error.to_string().contains("found no regular file"), "{error}");
        assert!(folder.read(Path::new("deep"), 0, 9).is_err());
        assert_eq!(files(&folder, "", 9).0, ["deep/down/file 1"]);
        for path in ["deep/down", "deep"] {
            fs::set_permissions(place.inside().join(path), Permissions::from_mode(0o000)).expect("its mode");
        }
        folder.clear(Path::new("deep")).expect("it is removed");
        assert!(!place.inside().join("deep").exists());
    }
}
