//! Reads capture files, packed or not, and diagnoses them.

pub mod evidence;
mod packed;
pub mod pictures;

pub use packed::needs_program;
pub(crate) use packed::{Source, unpacked};

use framegauge_diagnosis::{Cut, Diagnosis, Table, Thresholds};
use framegauge_packets::capture::{Checksums, Decoded, Interface, Reader, Segment, Why, decode};
use serde::Serialize;
use std::fs::File;
use std::io;
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

/// A tap while its capture is read.
#[derive(Debug)]
struct Reading {
    name: String,
    begin: Option<f64>,
    table: Table,
}

/// The taps of a capture, by the numbers of their interfaces.
#[derive(Debug, Default)]
struct Taps {
    taps: Vec<Reading>,
    of_interface: Vec<Option<usize>>,
    /// The connections that are drawn, each with the place of its tap.
    drawn: Vec<(usize, u64)>,
}

/// More interfaces than these share the last tap.
const MOST_TAPS: usize = 64;

impl Reading {
    fn take(&mut self, segment: &Segment, is_cut: bool) {
        self.begin.get_or_insert(segment.nanoseconds as f64 / 1e9);
        self.table.take(segment);
        if segment.options_are_cut {
            self.table.take_cut(Cut::Options, segment.number);
        } else if is_cut {
            self.table.take_cut(Cut::Payload, segment.number);
        }
    }
}

impl Taps {
    /// The tap of an interface.
    fn at(&mut self, interface: u32, interfaces: &[Interface], limits: Thresholds) -> &mut Reading {
        let number = interface as usize;
        if self.of_interface.len() <= number {
            self.of_interface.resize(number + 1, None);
        }
        let place = self.of_interface[number].unwrap_or_else(|| self.open(number, interfaces, limits));
        &mut self.taps[place]
    }

    fn open(&mut self, number: usize, interfaces: &[Interface], limits: Thresholds) -> usize {
        let given = interfaces.get(number).and_then(|interface| interface.name.clone());
        let name = given.unwrap_or_else(|| format!("interface {number}"));
        // A port of a rack has three interfaces; each direction of a connection passes a port of its own.
        let side = PORT_SIDES.into_iter().find(|side| name.contains('>') && name.ends_with(*side));
        let name = side.map_or(name, |side| format!("switch ports,{side}"));
        let place = match self.taps.iter().position(|tap| tap.name == name) {
            Some(place) => place,
            None if self.taps.len() == MOST_TAPS => MOST_TAPS - 1,
            None => {
                let mut table = Table::new(limits);
                let tap = self.taps.len();
                table.draw(&pictures::of_tap(&self.drawn, tap));
                self.taps.push(Reading { name, begin: None, table });
                tap
            }
        };
        self.of_interface[number] = Some(place);
        place
    }

    fn finish(mut self, is_lacking: bool) -> Vec<Tap> {
        if is_lacking {
            self.taps.iter_mut().for_each(|tap| tap.table.lacks_packets());
        }
        let only = self.taps.len() == 1;
        let finish = |tap: Reading| Tap {
            interface: (!only).then_some(tap.name),
            begin_seconds: tap.begin,
            diagnosis: tap.table.finish(),
        };
        self.taps.into_iter().map(finish).collect()
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
    fn count(&mut self, why: Why) {
        *match why {
            Why::NotIp { .. } => &mut self.not_ip,
            Why::NotTcp { .. } => &mut self.not_tcp,
            Why::Encrypted => &mut self.encrypted,
            Why::Fragment => &mut self.fragments,
            Why::Cut => &mut self.cut,
            Why::Malformed | Why::TooDeep => &mut self.malformed,
        } += 1;
    }
}

/// Reads and diagnoses a file, or standard input for "-". An error only if nothing can be read.
pub fn diagnose(path: &Path, limits: Thresholds) -> Result<Captured, String> {
    read(path, limits, Taps::default())
}

fn read(path: &Path, limits: Thresholds, mut taps: Taps) -> Result<Captured, String> {
    let (named, mut reader) = open(path)?;
    let mut others = Others::default();
    let (mut packets, mut broken) = (0, None);
    loop {
        let record = match reader.next() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            Err(error) => {
                broken = Some(error.to_string());
                break;
            }
        };
        packets += 1;
        let (interface, number) = (record.interface, record.number);
        // Checksums of what was cut cannot be verified, and cost nothing.
        let captured_bytes = record.captured.len();
        let is_cut = captured_bytes < record.original_bytes as usize;
        // Looked at in its place: a copy would take as long as the decoding.
        match &decode(&record, Checksums::Verify) {
            Decoded::Tcp(segment) => {
                // Tools that cut packets may overwrite their length on the wire: then the IP header tells.
                let is_cut = is_cut || captured_bytes < segment.ip_bytes as usize;
                taps.at(interface, reader.interfaces(), limits).take(segment, is_cut);
            }
            Decoded::Icmp(note) => {
                others.icmp += 1;
                taps.at(interface, reader.interfaces(), limits).table.take_note(note);
            }
            Decoded::Other(why) => {
                others.count(*why);
                if *why == Why::Cut {
                    taps.at(interface, reader.interfaces(), limits).table.take_cut(Cut::Headers, number);
                }
            }
        }
    }
    if packets == 0
        && let Some(why) = broken
    {
        return Err(format!("{named}: {why}"));
    }
    let missed_packets = reader.loss().packets();
    let taps = taps.finish(missed_packets.is_some_and(|missed| missed > 0));
    Ok(Captured { file: named, packets, missed_packets, others, broken, taps })
}

/// The file's name, and what reads it.
fn open(path: &Path) -> Result<(String, Reader<Source>), String> {
    let named = path.display().to_string();
    let source: Source = match path.as_os_str().as_encoded_bytes() {
        b"-" => Box::new(io::stdin()),
        _ => Box::new(File::open(path).map_err(|error| format!("{named}: {error}"))?),
    };
    let source = unpacked(source).map_err(|error| format!("{named}: {error}"))?;
    let reader = Reader::new(source).map_err(|error| format!("{named}: {error}"))?;
    Ok((named, reader))
}
