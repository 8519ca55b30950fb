//! Reads capture files, packed or not, and diagnoses them.

mod apart;
mod division;
mod document;
pub mod evidence;
mod front;
mod packed;
pub mod pictures;
mod rows;
mod shares;
mod spills;
mod threads;

pub use document::{Failed, Form};
pub use packed::needs_program;
pub(crate) use packed::{Source, unpacked};

use framegauge_diagnosis::{Diagnosis, Finding, Table, Thresholds};
use framegauge_packets::capture::{Decoded, Interface, Reader, Why};
use front::{Front, Steps, Summary};
use serde::Serialize;
use shares::{Found, Seen, Share};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// What one capture file holds.
#[derive(Debug, Serialize)]
pub struct Captured {
    /// The file as it was named.
    pub file: String,
    /// Packets that were read.
    pub packets: u64,
    /// Packets that the capture says it lacks.
    pub missed_packets: Option<u64>,
    /// Packets that are no TCP, by reason.
    pub others: Others,
    /// What most of them carry, by number.
    pub unread: Unread,
    /// Where and why reading ended early.
    pub broken: Option<String>,
    /// What each place of the capture saw.
    pub taps: Vec<Tap>,
}

/// A place where packets were captured. A packet that passed several interfaces is seen at each.
#[derive(Debug, Serialize)]
pub struct Tap {
    /// The interface; `None` for a capture that has one only.
    pub interface: Option<String>,
    /// Its first packet with TCP, in seconds since 1970.
    pub begin_seconds: Option<f64>,
    /// What was found.
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
}

/// The taps of a capture, by the numbers of their interfaces.
#[derive(Debug, Default)]
struct Taps {
    names: Vec<String>,
    of_interface: Vec<Option<usize>>,
}

/// More interfaces than these share the last tap; a byte holds its number.
const MOST_TAPS: usize = 64;

impl Taps {
    /// The tap of an interface.
    #[inline]
    fn at(&mut self, interface: u32, interfaces: &[Interface]) -> usize {
        let number = interface as usize;
        let place = self.of_interface.get(number).copied().flatten();
        place.unwrap_or_else(|| self.open(number, interfaces))
    }

    #[cold]
    fn open(&mut self, number: usize, interfaces: &[Interface]) -> usize {
        if self.of_interface.len() <= number {
            self.of_interface.resize(number + 1, None);
        }
        let interface_name = interfaces.get(number).and_then(|interface| interface.name.clone());
        let name = interface_name.unwrap_or_else(|| format!("interface {number}"));
        // A port of a rack has three interfaces; each direction of a connection passes a port of its own.
        let side = PORT_SIDES.into_iter().find(|side| name.contains('>') && name.ends_with(*side));
        let name = side.map_or(name, |side| format!("switch ports,{side}"));
        let place = match self.names.iter().position(|tap| *tap == name) {
            Some(place) => place,
            None if self.names.len() == MOST_TAPS => MOST_TAPS - 1,
            None => {
                self.names.push(name);
                self.names.len() - 1
            }
        };
        self.of_interface[number] = Some(place);
        place
    }
}

/// Arrived at a port, left it, and dropped there (`drivers/fabric/capture.rs`).
const PORT_SIDES: [&str; 3] = [" in", " out", " dropped"];

/// Packets that give no TCP segment.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Others {
    /// No IP.
    pub not_ip: u64,
    /// IP with another protocol.
    pub not_tcp: u64,
    /// ICMP errors.
    pub icmp: u64,
    /// Encrypted on their link.
    pub encrypted: u64,
    /// Fragments without a TCP header.
    pub fragments: u64,
    /// Cut before the end of their headers.
    pub cut: u64,
    /// Headers that contradict themselves, or are nested too deep.
    pub malformed: u64,
}

impl Others {
    fn count(&mut self, reason: Why) {
        *match reason {
            Why::NotIp { .. } => &mut self.not_ip,
            Why::NotTcp { .. } => &mut self.not_tcp,
            Why::Encrypted => &mut self.encrypted,
            Why::Fragment => &mut self.fragments,
            Why::Cut => &mut self.cut,
            Why::Malformed | Why::TooDeep => &mut self.malformed,
        } += 1;
    }
}

impl Others {
    fn add(&mut self, other: &Others) {
        self.not_ip += other.not_ip;
        self.not_tcp += other.not_tcp;
        self.icmp += other.icmp;
        self.encrypted += other.encrypted;
        self.fragments += other.fragments;
        self.cut += other.cut;
        self.malformed += other.malformed;
    }
}

/// What packets carry that is not read, by its number, with how many carry it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// Other than IP: EtherTypes, and whatever else of their links tells them (`Why::NotIp`).
    pub not_ip: BTreeMap<u16, u64>,
    /// Protocols of IP.
    pub not_tcp: BTreeMap<u16, u64>,
}

/// Numbers that are named; those of fewer packets are counted only.
const MOST_NUMBERS: usize = 8;

impl Unread {
    fn count(&mut self, reason: Why) {
        let (numbers, number) = match reason {
            Why::NotIp { ethertype } => (&mut self.not_ip, ethertype),
            Why::NotTcp { protocol } => (&mut self.not_tcp, protocol.into()),
            _ => return,
        };
        *numbers.entry(number).or_default() += 1;
    }

    fn add(&mut self, other: &Unread) {
        for (numbers, more) in [(&mut self.not_ip, &other.not_ip), (&mut self.not_tcp, &other.not_tcp)] {
            more.iter().for_each(|(number, packets)| *numbers.entry(*number).or_default() += packets);
        }
    }

    /// Those that most packets carry.
    fn most(mut self) -> Unread {
        for numbers in [&mut self.not_ip, &mut self.not_tcp] {
            let mut counts: Vec<(u16, u64)> = std::mem::take(numbers).into_iter().collect();
            counts.sort_by_key(|(_, packets)| std::cmp::Reverse(*packets));
            numbers.extend(counts.into_iter().take(MOST_NUMBERS));
        }
        self
    }
}

/// What a diagnosis may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Connections that live in memory at a time; the segments of others wait in files.
    pub connections: usize,
    /// Threads that read and decode.
    pub threads: usize,
}

impl Default for Room {
    /// One thread, and some hundreds of megabytes.
    fn default() -> Room {
        Room { connections: 1 << 15, threads: 1 }
    }
}

/// Reads and diagnoses a file, or standard input for "-", and writes what it tells. An error of reading only if nothing can
/// be read, or if what was found cannot be kept; then nothing is written.
pub fn write(
    path: &Path,
    limits: Thresholds,
    room: Room,
    form: Form,
    out: &mut impl io::Write,
) -> Result<(), Failed> {
    let (summary, results) = found(path, limits, room)?;
    document::write(&summary, results, &limits, form, out)
}

/// Where its clock was set, a file is read once more, without that.
fn found(path: &Path, limits: Thresholds, room: Room) -> Result<(Summary, Vec<Found>), String> {
    let (summary, results) = found_once(path, limits, room, None)?;
    let witnesses =
        |tap: usize| results.iter().filter_map(|of| Some(of.taps.get(tap)?.part.witnesses())).collect();
    match summary.steps(witnesses).filter(|_| path.is_file()) {
        Some(steps) => found_once(path, limits, room, Some(&steps)),
        None => Ok((summary, results)),
    }
}

fn found_once(
    path: &Path,
    limits: Thresholds,
    room: Room,
    steps: Option<&Steps>,
) -> Result<(Summary, Vec<Found>), String> {
    let Room { connections, threads } = room;
    let failure = |reason: &dyn std::fmt::Display| format!("{}: {reason}", path.display());
    let is_piped = path.as_os_str() == "-";
    if threads > 1
        && !is_piped
        && let Some(bytes) = apart::bytes(path).map_err(|reason| failure(&reason))?
    {
        return apart::read(path, bytes, limits, connections, threads, steps);
    }
    let mut front = Front::open(path, steps)?;
    if threads > 1 {
        return threads::read(front, limits, connections, threads);
    }
    let mut share = Share::new(limits, connections);
    front.read(|decoded, seen| share.take(decoded, seen));
    Ok((front.finish()?, vec![share.finish().map_err(|reason| failure(&reason))?]))
}

/// Reads and diagnoses a file, or standard input for "-", with all that it tells in memory. An error only if nothing can be
/// read.
pub fn diagnose(path: &Path, limits: Thresholds) -> Result<Captured, String> {
    read(path, limits, &[])
}

/// Draws connections, each named by the place of its tap and its number there.
fn read(path: &Path, limits: Thresholds, drawn: &[(usize, u64)]) -> Result<Captured, String> {
    let (captured, summary) = read_once(path, limits, drawn, None)?;
    let witnesses = |tap: usize| vec![&captured.taps[tap].diagnosis.witnesses[..]];
    match summary.steps(witnesses).filter(|_| path.is_file()) {
        Some(steps) => Ok(read_once(path, limits, drawn, Some(&steps))?.0),
        None => Ok(captured),
    }
}

fn read_once(
    path: &Path,
    limits: Thresholds,
    drawn: &[(usize, u64)],
    steps: Option<&Steps>,
) -> Result<(Captured, Summary), String> {
    let mut front = Front::open(path, steps)?;
    let mut tables: Vec<Table> = Vec::new();
    let (mut others, mut unread) = (Others::default(), Unread::default());
    front.read(|decoded, seen| {
        if let Some(tap) = seen.tap {
            while tables.len() <= tap {
                let mut table = Table::new(limits);
                table.draw(&pictures::of_tap(drawn, tables.len()));
                tables.push(table);
            }
            take(&mut tables[tap], decoded, seen);
        }
        match decoded {
            Decoded::Tcp(_) => {}
            Decoded::Icmp(_) => others.icmp += 1,
            Decoded::Other(reason) => {
                others.count(*reason);
                unread.count(*reason);
            }
        }
    });
    let summary = front.finish()?;
    let only = summary.taps.len() == 1;
    let is_lacking = summary.missed_packets.is_some_and(|missed| missed > 0);
    let finish = |(place, ((name, begin), mut table)): (usize, (&(String, Option<i64>), Table))| {
        if is_lacking {
            table.lacks_packets();
        }
        let mut diagnosis = table.finish();
        diagnosis.findings.extend(summary.told(place));
        diagnosis.findings.sort_by_key(Finding::rank);
        Tap {
            interface: (!only).then(|| name.clone()),
            begin_seconds: begin.map(|begin| begin as f64 / 1e9),
            diagnosis,
        }
    };
    let captured = Captured {
        file: summary.file.clone(),
        packets: summary.packets,
        missed_packets: summary.missed_packets,
        others,
        unread: unread.most(),
        broken: summary.broken.clone(),
        taps: summary.taps.iter().zip(tables).enumerate().map(finish).collect(),
    };
    Ok((captured, summary))
}

/// Takes a packet with a table that has room for all.
fn take(table: &mut Table, decoded: &Decoded, seen: Seen) {
    match decoded {
        Decoded::Tcp(segment) => {
            table.offer(segment, seen.clock, usize::MAX);
        }
        Decoded::Icmp(note) => {
            table.offer_note(note, seen.clock.now);
        }
        Decoded::Other(_) => {}
    }
    if let Some(cut) = seen.cut(decoded) {
        table.take_cut(cut, seen.number);
    }
}

/// The file's name, and what reads so many bytes of it.
fn open(path: &Path, bytes: u64) -> Result<(String, Reader<Source>), String> {
    let source_name = path.display().to_string();
    let source: Source = match path.as_os_str().as_encoded_bytes() {
        b"-" => Box::new(io::stdin()),
        _ => Box::new(File::open(path).map_err(|error| format!("{source_name}: {error}"))?.take(bytes)),
    };
    let source = unpacked(source).map_err(|error| format!("{source_name}: {error}"))?;
    let reader = Reader::new(source).map_err(|error| format!("{source_name}: {error}"))?;
    Ok((source_name, reader))
}
