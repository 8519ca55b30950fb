//! `host.folder`, `.files`, `.fetch`, `.list` and `.clear`: the folder that a host has for the files of its programs.

use crate::arguments::Role;
use crate::general::spool::MOST_BYTES;
use crate::pipe::call::Call;
use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Failure, params};
use crate::tools::helper::Helper;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use framegauge_drivers::host::folder::{self, Folder, is_beneath};
use framegauge_drivers::{OsError, own};
use serde::Deserialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MOST_LISTED: usize = 10_000;
const MOST_MODE: u32 = 0o7777;
const USUAL_MODE: u32 = 0o644;
const FOLDER_MODE: u32 = 0o755;

/// A host's folder.
pub struct HostFolder {
    path: PathBuf,
    /// Open from the beginning: by its path another may be found later.
    open: Arc<Folder>,
    /// Removes it at the end; none where it goes with the host's mounts.
    keeper: Option<Helper>,
}

impl HostFolder {
    fn make(call: &Call, limit_bytes: Option<u64>) -> Result<Self, Failure> {
        let (path, keeper) = if is_racks(call) {
            (folder::mount(limit_bytes)?, None)
        } else {
            let mut keeper = Helper::of("keeper of the folder", own::spawn_agent(&["keep", "folder"])?)?;
            (told(&mut keeper)?, Some(keeper))
        };
        let open = Arc::new(Folder::open(&path)?);
        Ok(Self { path, open, keeper })
    }

    /// Removes it.
    pub fn end(mut self) {
        let Some(mut keeper) = self.keeper.take() else { return };
        keeper.stop();
        // The keeper may have been killed.
        if let Err(error) = folder::remove(&self.path) {
            eprintln!("framegauge-agent: {error}");
        }
    }
}

fn is_racks(call: &Call) -> bool {
    matches!(call.session.role, Role::Host { fresh: true, .. })
}

fn told(keeper: &mut Helper) -> Result<PathBuf, Failure> {
    let answer = keeper.hear()?;
    match answer["path"].as_str() {
        Some(path) => Ok(PathBuf::from(path)),
        None => {
            let operation = answer["operation"].as_str().unwrap_or("make a folder");
            let errno = answer["errno"].as_i64().and_then(|errno| i32::try_from(errno).ok());
            Err(OsError::errno(operation, errno.unwrap_or(0)).into())
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    limit_bytes: Option<u64>,
}

/// Where it is; makes it the first time.
pub fn folder(call: &Call) -> Answer {
    let Asked { limit_bytes } = params(&call.request)?;
    if limit_bytes == Some(0) {
        // To the kernel this means no limit.
        return Err(Failure::invalid_params("host.folder", "limit_bytes: found 0, expected 1 or more"));
    }
    if limit_bytes.is_some() && !is_racks(call) {
        return Err(Failure::state("this host is not a rack's: its folder has no limit"));
    }
    let path = of_folder(call, limit_bytes, |folder| folder.path.clone())?;
    if let Some(limit_bytes) = limit_bytes {
        folder::limit(&path, limit_bytes)?;
    }
    Ok(json!({"path": path}))
}

/// Something of the folder, which is made if there is none yet.
fn of_folder<T>(
    call: &Call,
    limit: Option<u64>,
    action: impl FnOnce(&HostFolder) -> T,
) -> Result<T, Failure> {
    let mut folder = lock(&call.session.host.folder);
    match folder.as_ref() {
        Some(folder) => Ok(action(folder)),
        None => Ok(action(folder.insert(HostFolder::make(call, limit)?))),
    }
}

fn open(call: &Call) -> Result<Arc<Folder>, Failure> {
    of_folder(call, None, |folder| folder.open.clone())
}

/// The path of the folder.
pub(super) fn path(call: &Call) -> Result<PathBuf, Failure> {
    of_folder(call, None, |folder| folder.path.clone())
}

/// A path of a request, which must be one below the folder.
fn beneath(call: &Call, path: &Path, empty: bool) -> Result<(), Failure> {
    if is_beneath(path) && (empty || path.file_name().is_some()) {
        return Ok(());
    }
    let problem =
        format!("path: found {path:?}, expected names below the host's folder, such as conf/site.xml");
    Err(Failure::invalid_params(&call.request.method, problem))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Files {
    files: Vec<OneFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneFile {
    path: PathBuf,
    data: Option<String>,
    mode: Option<u32>,
}

/// Writes files; all are looked at before the first is written.
pub fn files(call: &Call) -> Answer {
    let Files { files } = params(&call.request)?;
    let mut contents = Vec::with_capacity(files.len());
    for OneFile { path, data, mode } in &files {
        beneath(call, path, false)?;
        let failure = |problem: String| {
            let path = path.display();
            Failure::invalid_params("host.files", format!("{path}: {problem}"))
        };
        let mode = mode.unwrap_or(if data.is_some() { USUAL_MODE } else { FOLDER_MODE });
        if mode > MOST_MODE {
            return Err(failure(format!("mode: found {mode}, expected at most {MOST_MODE} (07777)")));
        }
        let data = data.as_ref().map(|data| STANDARD.decode(data)).transpose();
        contents.push((data.map_err(|error| failure(format!("data: expected base64: {error}")))?, mode));
    }
    let folder = open(call)?;
    for (OneFile { path, .. }, (data, mode)) in files.iter().zip(contents) {
        match data {
            Some(data) => folder.write(path, &data, mode)?,
            None => folder.make_folder(path, mode)?,
        }
    }
    Ok(json!({}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fetch {
    path: PathBuf,
    offset_bytes: u64,
    length_bytes: u64,
}

/// Reads a part of a file.
pub fn fetch(call: &Call) -> Answer {
    let request: Fetch = params(&call.request)?;
    beneath(call, &request.path, false)?;
    let length = request.length_bytes.min(MOST_BYTES) as usize;
    let (data, size) = open(call)?.read(&request.path, request.offset_bytes, length)?;
    Ok(json!({"data": STANDARD.encode(data), "size_bytes": size}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Below {
    path: PathBuf,
}

/// Lists the regular files.
pub fn list(call: &Call) -> Answer {
    let Below { path } = params(&call.request)?;
    beneath(call, &path, true)?;
    let (files, more) = open(call)?.list(&path, MOST_LISTED)?;
    let files: Vec<_> = files
        .iter()
        .map(|file| json!({"path": file.path.to_string_lossy(), "size_bytes": file.size_bytes}))
        .collect();
    Ok(json!({"files": files, "more": more}))
}

/// Removes a file or a folder with all that is in it.
pub fn clear(call: &Call) -> Answer {
    let Below { path } = params(&call.request)?;
    beneath(call, &path, true)?;
    open(call)?.clear(&path)?;
    Ok(json!({}))
}
