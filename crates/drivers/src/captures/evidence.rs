//! The packets that prove what was found, copied out of their captures, with comments that Wireshark shows.

use super::open;
use framegauge_packets::capture::Interface;
use framegauge_packets::pcapng::{Captured, SNAP_BYTES_MAXIMUM, Section};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What is to be said of the packets of a file, by their numbers.
pub type Comments = BTreeMap<u64, String>;

/// Why nothing more was written.
#[derive(Debug)]
pub enum Failed {
    /// A capture cannot be read.
    Read(String),
    /// The output takes no more.
    Write(io::Error),
}

/// Writes the packets that there is something to say of as one pcapng section, file by file, as they were captured: their
/// bytes, stamps, link types and lengths. Each interface that has any is described, with its file if there are several
/// files. How many packets were written.
pub fn write(files: &[(PathBuf, Comments)], out: &mut impl Write) -> Result<u64, Failed> {
    let mut bytes = Vec::new();
    let mut section = Section::begin(&mut bytes);
    let mut written = 0;
    for (path, comments) in files {
        let (_, mut reader) = open(path, u64::MAX).map_err(Failed::Read)?;
        let prefix = (files.len() > 1).then(|| file_name(path));
        // By their numbers in the capture; apart for packets that are longer than their interface says.
        let mut described = BTreeMap::new();
        let mut pending = comments.range(1..).peekable();
        while let Some((number, comment)) = pending.peek() {
            // Where it breaks, the diagnosis has said.
            let Ok(Some(record)) = reader.next() else { break };
            if record.number < **number {
                continue;
            }
            let (number, time) = (record.interface, record.nanoseconds);
            let (captured, original_bytes) = (record.captured.to_vec(), record.original_bytes);
            let origin = &reader.interfaces()[number as usize];
            let is_long = captured.len() > origin.snap_bytes as usize;
            let interface = *described.entry((number, is_long)).or_insert_with(|| {
                let name = name(origin, number, prefix.as_deref());
                let snap_bytes = if is_long { SNAP_BYTES_MAXIMUM } else { origin.snap_bytes };
                section.interface_with(&mut bytes, &name, snap_bytes, origin.link_type)
            });
            let packet = Captured {
                interface,
                // The format has no times before 1970.
                time_nanoseconds: time.max(0) as u64,
                original_bytes,
                bytes: &captured,
                direction: None,
                comment: Some(comment.as_str()),
            };
            section.packet(&mut bytes, &packet).expect("its interface was described");
            out.write_all(&bytes).map_err(Failed::Write)?;
            bytes.clear();
            written += 1;
            pending.next();
        }
    }
    out.write_all(&bytes).map_err(Failed::Write)?;
    Ok(written)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The name of an interface, or what takes its place.
fn name(interface: &Interface, number: u32, file: Option<&str>) -> String {
    let own = interface.name.clone().unwrap_or_else(|| format!("interface {number}"));
    file.map_or(own.clone(), |file| format!("{file}: {own}"))
}
