//! Reads several capture files, and joins what they say of the same connections.

use crate::captures::{Source as Bytes, unpacked};
use framegauge_diagnosis::joined::{Joined, Joiner, Place};
use framegauge_packets::capture::{Checksums, Decoded, Interface, Reader, Reassembly, Why, decode, outline};
use serde::Deserialize;
use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;

/// More interfaces of a file than these are left out.
const MOST_INTERFACES: usize = 1024;

/// A capture file, and the name of the host that it was captured at.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// What its taps are called.
    pub name: String,
    /// Where it is.
    pub file: PathBuf,
}

/// Joins the captures in these files. `None` if no two taps saw the same connection; an error only if a file cannot be
/// read at all.
pub fn join(sources: &[Source]) -> Result<Option<Joined>, String> {
    let mut joiner = Joiner::default();
    for (number, source) in sources.iter().enumerate() {
        read(&mut joiner, number, source).map_err(|error| format!("{}: {error}", source.file.display()))?;
    }
    let Some(mut joined) = joiner.finish() else { return Ok(None) };
    let mut taps_of: HashMap<usize, usize> = HashMap::new();
    joined.taps.iter().for_each(|tap| *taps_of.entry(tap.file).or_default() += 1);
    for tap in &mut joined.taps {
        let host = &sources[tap.file - 1].name;
        if taps_of[&tap.file] == 1 {
            tap.interface = None;
            tap.name = host.clone();
        } else if !tap.name.contains('>') {
            // The name of a rack's port says where it is.
            tap.name = format!("{host} {}", tap.name);
        }
    }
    Ok(Some(joined))
}

fn read(joiner: &mut Joiner, number: usize, source: &Source) -> Result<(), String> {
    let file: Bytes = Box::new(File::open(&source.file).map_err(|error| error.to_string())?);
    let file = unpacked(file).map_err(|error| error.to_string())?;
    let mut reader = Reader::new(file).map_err(|error| error.to_string())?;
    let mut taps: Vec<Option<usize>> = Vec::new();
    let mut parts = Reassembly::default();
    // Packets of other protocols tell as well how long the capture ran.
    let mut ran: Option<(i64, i64)> = None;
    // Where it breaks is told with the diagnosis of the file.
    while let Ok(Some(record)) = reader.next() {
        let interface = record.interface as usize;
        let at = record.nanoseconds;
        // A simple packet has no time.
        if at != 0 {
            let (begin, end) = ran.unwrap_or((at, at));
            ran = Some((begin.min(at), end.max(at)));
        }
        if interface >= MOST_INTERFACES {
            continue;
        }
        let segment = match decode(&record, Checksums::Ignore) {
            Decoded::Tcp(segment) => segment,
            Decoded::Other(Why::Fragment) => {
                if let Some(part) = outline(&record).fragment {
                    parts.take(&part, record.interface, None, at);
                    take_ready(&mut parts, joiner);
                }
                continue;
            }
            _ => continue,
        };
        let part = segment.fragments.and_then(|_| outline(&record).fragment);
        if taps.len() <= interface {
            taps.resize(interface + 1, None);
        }
        let tap = match taps[interface] {
            Some(tap) => tap,
            None => *taps[interface].insert(open(joiner, number, reader.interfaces(), interface)),
        };
        match part {
            Some(part) => parts.take(&part, interface as u32, Some((segment, tap)), at),
            None if parts.waits() => parts.pass(&segment, interface as u32),
            None => {}
        }
        take_ready(&mut parts, joiner);
        if part.is_none() {
            joiner.take(tap, &segment);
        }
    }
    parts.finish();
    take_ready(&mut parts, joiner);
    if let Some(tap) = taps.into_iter().flatten().next() {
        let by_packets = ran.into_iter().flat_map(|(begin, end)| [begin, end]);
        let by_statistics = reader.interfaces().iter().flat_map(|entry| [entry.begun, entry.ended]).flatten();
        by_packets.chain(by_statistics).for_each(|at| joiner.ran(tap, at));
    }
    Ok(())
}

/// Takes the segments that wait for no IP fragment any more.
fn take_ready(parts: &mut Reassembly<usize>, joiner: &mut Joiner) {
    while let Some((segment, tap)) = parts.next_ready() {
        joiner.take(tap, &segment);
    }
}

fn open(joiner: &mut Joiner, file: usize, interfaces: &[Interface], interface: usize) -> usize {
    let interface_name = interfaces.get(interface).and_then(|interface| interface.name.clone());
    let name = interface_name.unwrap_or_else(|| format!("interface {interface}"));
    // A rack's port has three interfaces, of which the last holds what it dropped (`fabric/watching.rs`).
    let dropped = name.contains('>') && name.ends_with(" dropped");
    let place = if dropped { Place::Dropped } else { Place::Path };
    joiner.tap(name.clone(), Some(name), file, place)
}
