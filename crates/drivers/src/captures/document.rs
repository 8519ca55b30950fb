//! What a capture tells, written as JSON while it is put together: no more of it is in memory than a row.

use super::front::Summary;
use super::rows::Place;
use super::shares::{AtTap, Found};
use framegauge_diagnosis::{Conclusion, Finding, Numbers, Part, Rank, Thresholds};
use serde::Serialize;
use std::io::{self, Write};

/// How it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One object, in one line.
    Document,
    /// An object for each row: `{"capture": ...}`, then for each tap `{"tap": ...}`, `{"connection": ...}` for each of its
    /// connections and `{"finding": ...}` for each of its findings.
    Rows,
}

/// Why nothing more was written.
#[derive(Debug)]
pub enum Failed {
    /// The capture cannot be read, or what was found cannot be kept.
    Read(String),
    /// The output takes no more.
    Write(io::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Write(error)
    }
}

impl From<String> for Failed {
    fn from(reason: String) -> Failed {
        Failed::Read(reason)
    }
}

/// The capture's own words.
#[derive(Debug, Serialize)]
struct Head<'a> {
    file: &'a str,
    packets: u64,
    missed_packets: Option<u64>,
    others: super::Others,
    unread: super::Unread,
    broken: &'a Option<String>,
}

/// The words of a tap. In a document its totals come last.
#[derive(Debug, Serialize)]
struct TapHead<'a> {
    interface: Option<&'a str>,
    begin_seconds: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Totals {
    segments: u64,
    seconds: f64,
}

/// A finding of a tap: a row of a share, or one of several connections.
#[derive(Debug, Clone, Copy)]
enum Where {
    Row(usize, Place),
    Whole(usize),
}

/// What all shares have of one tap.
struct Tap<'a> {
    founds: &'a [Found],
    numbers: Numbers,
    connections: Vec<(u64, usize, Place)>,
    findings: Vec<(Rank, Where)>,
    whole: Conclusion,
    row: Vec<u8>,
}

/// Writes what was found, of all shares.
pub(super) fn write(
    summary: &Summary,
    mut results: Vec<Found>,
    limits: &Thresholds,
    form: Form,
    out: &mut impl Write,
) -> Result<(), Failed> {
    let (mut others, mut unread) = (super::Others::default(), super::Unread::default());
    for result in &results {
        others.add(&result.others);
        unread.add(&result.unread);
    }
    let missed_packets = summary.missed_packets;
    let head = Head {
        file: &summary.file,
        packets: summary.packets,
        missed_packets,
        others,
        unread: unread.most(),
        broken: &summary.broken,
    };
    match form {
        Form::Document => open(&head, "\"taps\":[", out)?,
        Form::Rows => labelled("capture", &head, out)?,
    }
    let only = summary.taps.len() == 1;
    for (place, (name, begin)) in summary.taps.iter().enumerate() {
        let at_tap: Vec<AtTap> = results
            .iter_mut()
            .map(|result| result.taps.get_mut(place).map(std::mem::take).unwrap_or_default())
            .collect();
        let head = TapHead {
            interface: (!only).then_some(name),
            begin_seconds: begin.map(|begin| begin as f64 / 1e9),
        };
        if form == Form::Document && place > 0 {
            out.write_all(b",")?;
        }
        let is_lacking = missed_packets.is_some_and(|missed| missed > 0);
        Tap::new(&results, at_tap, (is_lacking, summary.told(place)), limits).write(&head, form, out)?;
    }
    if form == Form::Document {
        out.write_all(b"]}\n")?;
    }
    Ok(())
}

impl<'a> Tap<'a> {
    fn new(
        results: &'a [Found],
        at_tap: Vec<AtTap>,
        (is_lacking, of_clock): (bool, Option<Finding>),
        limits: &Thresholds,
    ) -> Tap<'a> {
        let (mut connections, mut rows, mut part) = (Vec::new(), Vec::new(), Part::default());
        for (share, at) in at_tap.into_iter().enumerate() {
            connections.extend(at.connections.into_iter().map(|(first, place)| (first, share, place)));
            rows.extend(at.findings.into_iter().map(|(rank, place)| (rank, Where::Row(share, place))));
            part.add(at.part);
        }
        if is_lacking {
            part.lacks_packets();
        }
        connections.sort_unstable_by_key(|(first, _, _)| *first);
        let numbers = Numbers::new(connections.iter().map(|(first, _, _)| *first).collect());
        let mut whole = part.conclude(&numbers, limits);
        whole.findings.extend(of_clock);
        rows.retain(|(rank, _)| whole.keeps(rank.kind));
        rows.iter_mut().for_each(|(rank, _)| *rank = rank.numbered(&numbers));
        rows.extend(whole.findings.iter().map(Finding::rank).zip((0..).map(Where::Whole)));
        rows.sort_by_key(|(rank, _)| *rank);
        Tap { founds: results, numbers, connections, findings: rows, whole, row: Vec::new() }
    }

    fn write(mut self, head: &TapHead<'_>, form: Form, out: &mut impl Write) -> Result<(), Failed> {
        let totals = Totals { segments: self.whole.segments, seconds: self.whole.seconds };
        match form {
            Form::Document => open(head, "\"connections\":[", out)?,
            Form::Rows => {
                out.write_all(b"{\"tap\":")?;
                open(head, &json(&totals)[1..], out)?;
                out.write_all(b"}\n")?;
            }
        }
        for place in 0..self.connections.len() {
            let (first, share, row) = self.connections[place];
            self.founds[share].rows.get(row, &mut self.row)?;
            renumber(&mut self.row, first, &self.numbers);
            between("connection", form, place, &self.row, out)?;
        }
        if form == Form::Document {
            out.write_all(b"],\"findings\":[")?;
        }
        for place in 0..self.findings.len() {
            match self.findings[place].1 {
                Where::Row(share, row) => {
                    self.founds[share].rows.get(row, &mut self.row)?;
                    let first = number(&self.row);
                    renumber(&mut self.row, first, &self.numbers);
                }
                Where::Whole(number) => self.row = json(&self.whole.findings[number]).into_bytes(),
            }
            between("finding", form, place, &self.row, out)?;
        }
        if form == Form::Document {
            write!(out, "],{}", &json(&totals)[1..])?;
        }
        Ok(())
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("what was found has only words and finite numbers")
}

/// An object that goes on with what follows.
fn open(head: &impl Serialize, follows: &str, out: &mut impl Write) -> io::Result<()> {
    let head = json(head);
    write!(out, "{},{follows}", &head[..head.len() - 1])
}

fn labelled(label: &str, value: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{{\"{label}\":{}}}", json(value))
}

/// A row among others.
fn between(label: &str, form: Form, place: usize, row: &[u8], out: &mut impl Write) -> io::Result<()> {
    match form {
        Form::Document => {
            out.write_all(if place > 0 { b"," } else { b"" })?;
            out.write_all(row)
        }
        Form::Rows => {
            write!(out, "{{\"{label}\":")?;
            out.write_all(row)?;
            out.write_all(b"}\n")
        }
    }
}

/// The key of the connection's number. Before it stand the names of kinds at most.
const NUMBER: &[u8] = b"\"connection\":";

/// Where the digits of the connection's number are.
fn digits(row: &[u8]) -> std::ops::Range<usize> {
    let key = row.windows(NUMBER.len()).position(|some| some == NUMBER).expect("it has a number");
    let begin = key + NUMBER.len();
    let end = row[begin..].iter().position(|byte| !byte.is_ascii_digit()).expect("more follows");
    begin..begin + end
}

fn number(row: &[u8]) -> u64 {
    row[digits(row)].iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))
}

/// Puts the connection's number in the place of what the share calls it.
fn renumber(row: &mut Vec<u8>, first: u64, numbers: &Numbers) {
    let number = numbers.of(first).to_string().into_bytes();
    row.splice(digits(row), number);
}
