//! Captures that are kept in memory, and read as files.

use flate2::Compression;
use flate2::read::GzEncoder;
use framegauge_linux::files;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

pub fn file(bytes: &[u8]) -> File {
    let mut file = files::in_memory().expect("there is memory");
    file.write_all(bytes).expect("there is memory");
    file
}

/// The same, packed: each thread could not read it for itself.
pub fn packed(whole: &File) -> File {
    let mut bytes = Vec::new();
    let mut whole = File::open(path_of(whole)).expect("it is there");
    GzEncoder::new(&mut whole, Compression::fast()).read_to_end(&mut bytes).expect("there is memory");
    file(&bytes)
}

pub fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
