//! What is told of captures: the problems in one, its pictures, the packets that prove it, and what two captures tell
//! together.

use framegauge_diagnosis::joined::{Hop, Joined};
use framegauge_diagnosis::{Diagnosis, Thresholds};
use framegauge_drivers::captures::evidence::{self, Comments};
use framegauge_drivers::captures::{self, Captured, Form, Room, pictures};
use framegauge_drivers::joins;
use framegauge_linux::files;
use framegauge_packets::{capture, pcapng};
use serde_json::{Value, to_value};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// Between two captures in one input: it is found wherever a fuzzer moves it.
const SEPARATOR: &[u8] = b"<tap>";
/// Connections that are drawn.
const MOST_DRAWN: usize = 8;

/// A file that has these bytes for as long as its value lives.
struct Kept {
    file: File,
}

impl Kept {
    fn new(bytes: &[u8]) -> Kept {
        let mut file = files::in_memory().expect("there is memory");
        file.write_all(bytes).expect("there is memory");
        Kept { file }
    }

    /// Opened anew, it is read from its begin.
    fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }
}

/// A capture of any form, compressed or not: its connections' times add up, its findings name its packets, and drawing
/// changes nothing.
pub fn capture_diagnosis(bytes: &[u8]) {
    // Programs would take far longer than what is tested.
    if captures::needs_program(bytes) {
        return;
    }
    let file = Kept::new(bytes);
    let limits = Thresholds::default();
    let Ok(captured) = captures::diagnose(&file.path(), limits) else { return };
    let whole = serde_json::to_string(&captured).expect("only words and finite numbers");
    for room in [Room { connections: 2, threads: 1 }, Room { connections: 8, threads: 2 }] {
        let mut written = Vec::new();
        let done = captures::write(&file.path(), limits, room, Form::Document, &mut written);
        assert!(done.is_ok(), "it was read before");
        assert_eq!(String::from_utf8_lossy(&written).trim_end(), whole, "{room:?}");
    }
    let segments: u64 = captured.taps.iter().map(|tap| tap.diagnosis.segments).sum();
    let others = to_value(captured.others).expect("numbers");
    let others: u64 = others.as_object().expect("numbers by name").values().filter_map(Value::as_u64).sum();
    assert_eq!(segments + others, captured.packets, "every packet is counted once");
    captured.taps.iter().for_each(|tap| hold(&tap.diagnosis, captured.packets));
    let keys = captured.taps.iter().enumerate().flat_map(|(place, tap)| {
        tap.diagnosis.connections.iter().map(move |entry| (place, entry.connection))
    });
    let keys: Vec<(usize, u64)> = keys.take(MOST_DRAWN).collect();
    let pictures = pictures::draw(&file.path(), limits, &keys).expect("it was read before");
    for (place, (tap, pictures)) in captured.taps.iter().zip(pictures.taps).enumerate() {
        let numbers: Vec<u64> = keys.iter().filter(|entry| entry.0 == place).map(|entry| entry.1).collect();
        assert_eq!(pictures.iter().map(|entry| entry.connection).collect::<Vec<_>>(), numbers);
        for picture in pictures {
            let report = &tap.diagnosis.connections[picture.connection as usize - 1];
            assert_eq!((picture.ends, picture.begin_seconds), (report.ends, report.begin_seconds));
            let life = report.end_seconds - report.begin_seconds;
            let picture = to_value(picture).expect("only words and numbers");
            for side in 0..2 {
                drawn_whole(&picture["directions"][side], report.data_segments[side], (life, segments));
            }
        }
    }
}

/// What holds for every diagnosis of a capture with so many packets.
fn hold(diagnosis: &Diagnosis, packets: u64) {
    assert!((0.0..f64::MAX).contains(&diagnosis.seconds));
    for (place, entry) in diagnosis.connections.iter().enumerate() {
        assert_eq!(entry.connection, place as u64 + 1);
        let life = entry.end_seconds - entry.begin_seconds;
        let causes: f64 = entry.time.values().sum();
        // Sums of seconds, so that digits get lost in lives of centuries.
        assert!((life - causes).abs() <= 1e-6 + life * 1e-9, "{causes} of {life}: {:?}", entry.time);
        assert!(entry.time.values().all(|time| *time > 0.0), "{:?}", entry.time);
        assert!(entry.rtt_seconds.is_finite() && entry.rto_seconds.iter().all(|rto| rto.is_finite()));
        assert!(
            entry.resent_segments.iter().zip(entry.data_segments).all(|(resent, all)| *resent <= all + 2)
        );
    }
    for entry in &diagnosis.findings {
        assert!(entry.begin_seconds <= entry.end_seconds, "{entry:?}");
        assert!(entry.lost_seconds >= 0.0 && entry.lost_seconds.is_finite(), "{entry:?}");
        assert!(entry.packets.iter().all(|number| (1..=packets).contains(number)), "{entry:?}");
        assert!(entry.connection.is_none_or(|number| number <= diagnosis.connections.len() as u64));
    }
}

/// One direction of a picture: all segments with data are in it, in the order of time and within the connection's life.
fn drawn_whole(direction: &Value, data_segments: u64, (life, segments): (f64, u64)) {
    let column = |kind: &str, name: &str| -> Vec<i64> {
        let mut value = 0i64;
        let differences = direction[kind][name].as_array().expect("a list");
        let add = |difference: &Value| {
            value = value.wrapping_add(difference.as_i64().expect("a number"));
            value
        };
        differences.iter().map(add).collect()
    };
    let count: i64 = column("segments", "count").iter().sum();
    assert!((data_segments..=segments).contains(&(count as u64)), "{count} of {data_segments}");
    assert_eq!(direction["left_out"], 0, "there is room for all");
    assert!(column("segments", "number").is_sorted());
    for kind in ["segments", "acks", "sacks", "flight", "rtt"] {
        let times = column(kind, "time");
        assert!(times.is_sorted() && times.first().is_none_or(|first| *first >= 0), "{kind}: {times:?}");
        assert!(
            times.last().is_none_or(|last| *last as f64 / 1e9 <= life + 1e-6),
            "{kind}: {times:?} of {life}"
        );
    }
    assert!(column("flight", "value").iter().all(|bytes| *bytes >= 0));
}

/// A capture whose odd packets there is something to say of: they are copied as they were captured, with what is said.
pub fn capture_evidence(bytes: &[u8]) {
    if captures::needs_program(bytes) {
        return;
    }
    let file = Kept::new(bytes);
    let Ok(Captured { packets, .. }) = captures::diagnose(&file.path(), Thresholds::default()) else {
        return;
    };
    let remark = |number| (number, format!("packet {number}\nrto_stall: 0.4 s lost"));
    let odd: Comments = (1..=packets + 2).step_by(2).map(remark).collect();
    let last: Comments = [remark(packets)].into();
    // What is packed was tested by the diagnosis; here it is compared with what was read without it.
    let Ok(mut reader) = capture::Reader::new(bytes) else { return };
    let mut expected = Vec::new();
    while let Ok(Some(record)) = reader.next() {
        expected.push((
            record.number,
            record.captured.to_vec(),
            record.original_bytes,
            record.nanoseconds.max(0) as u64,
            record.interface,
        ));
    }
    assert_eq!(expected.len() as u64, packets);
    let commented = |comments: &Comments| {
        let chosen: Vec<_> =
            expected.iter().filter(|packet| comments.contains_key(&packet.0)).cloned().collect();
        chosen
    };
    let chosen = [commented(&odd), commented(&last)].concat();
    let mut out = Vec::new();
    let written = evidence::write(&[(file.path(), odd), (file.path(), last)], &mut out);
    assert_eq!(written.expect("it was read before"), chosen.len() as u64);
    let mut copies = pcapng::Reader::new(&out).expect("a section");
    let mut rows = Vec::new();
    for copy in copies.by_ref() {
        let copy = copy.expect("it was just written");
        rows.push((copy.bytes, copy.original_bytes, copy.time_nanoseconds, copy.interface, copy.comment));
    }
    assert_eq!(rows.len(), chosen.len());
    let mut links = BTreeMap::new();
    for ((captured, length, time, interface, comment), packet) in rows.into_iter().zip(&chosen) {
        assert_eq!((captured, length, time), (&packet.1[..], packet.2, packet.3));
        assert_eq!(comment, Some(remark(packet.0).1.as_str()));
        let link = reader.interfaces()[packet.4 as usize].link_type;
        assert_eq!(copies.interfaces()[interface as usize].link_type, link);
        // An interface of the copy has packets of one of the capture.
        assert_eq!(*links.entry(interface).or_insert(packet.4), packet.4);
    }
}

/// Two captures with a separator between them, or one that two taps have: the same is told each time, what was lost adds
/// up and is of the first tap, and nothing is lost between a tap and itself.
pub fn capture_joined(bytes: &[u8]) {
    let place = bytes.windows(SEPARATOR.len()).position(|window| window == SEPARATOR);
    let (one, two) =
        place.map_or((bytes, bytes), |place| (&bytes[..place], &bytes[place + SEPARATOR.len()..]));
    let capture = [Kept::new(one), Kept::new(two)];
    let source = |(number, capture): (usize, &Kept)| joins::Source {
        name: format!("h{number}"),
        file: capture.path(),
    };
    let sources: Vec<_> = capture.iter().enumerate().map(source).collect();
    let Ok(Some(joined)) = joins::join(&sources) else { return };
    assert_eq!(joins::join(&sources), Ok(Some(joined.clone())), "whatever the order of its tables is");
    assert!(to_value(&joined).is_ok());
    for connection in &joined.connections {
        assert!(connection.seen.len() > 1);
        for direction in &connection.directions {
            assert_eq!(direction.hops.len() + 1, direction.taps.len().max(1));
            for (hop, taps) in direction.hops.iter().zip(direction.taps.windows(2)) {
                assert_eq!(hop.between, taps);
                hop_holds(hop, &joined);
                let absent =
                    hop.lost_packets + hop.missed_packets + hop.unseen_packets + hop.unjudged_packets;
                assert!(place.is_some() || joined.taps.len() > 2 || absent == 0, "{hop:?}");
            }
            if let Some(wait) = &direction.wait {
                assert!(
                    0.0 <= wait.held_seconds + 1e-6 && wait.held_seconds <= wait.waited_seconds + 1e-6,
                    "{wait:?}"
                );
                assert!(wait.longest_held_seconds <= wait.held_seconds + 1e-6, "{wait:?}");
            }
        }
    }
}

fn hop_holds(hop: &Hop, joined: &Joined) {
    let [here, there] = hop.between.map(|tap| &joined.taps[tap - 1]);
    assert!(hop.arrived_packets <= there.segments - there.copies, "{hop:?}");
    assert!(hop.unseen_packets <= there.segments - there.copies, "{hop:?}");
    assert_eq!(hop.drops.iter().map(|drop| drop.packets).sum::<u64>(), hop.lost_packets);
    let bytes = |drop: &framegauge_diagnosis::joined::Drop| u64::from(drop.end.wrapping_sub(drop.begin));
    assert_eq!(hop.drops.iter().map(bytes).sum::<u64>(), hop.lost_bytes);
    assert!(hop.drops.iter().all(|drop| drop.packet > 0 && drop.at_seconds.is_finite()));
    assert!(here.segments > 0);
    if let Some(delay) = &hop.delay {
        let order = [delay.least_seconds, delay.median_seconds, delay.p99_seconds, delay.most_seconds];
        assert!(order.is_sorted() && delay.uncertainty_seconds >= 0.0, "{delay:?}");
        assert!(delay.series.iter().all(|part| part.begin_seconds <= part.end_seconds));
    }
}
