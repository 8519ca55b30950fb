//! Packets per second, read and decoded on one core: `cargo run --release -p framegauge-packets --example captures`.
//!
//! With the name of a file it prints what is in that, one line a packet, to be compared with other programs.
#![allow(clippy::disallowed_methods, reason = "a measurement needs a clock; the crate itself has none")]

use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::time::Instant;

use framegauge_packets::TcpFlags;
use framegauge_packets::build::{Addresses, TcpFields, tcp_frame, timestamp_options, udp_frame};
use framegauge_packets::capture::{Checksums, Decoded, LinkType, Reader, Record, decode};

const PACKETS: u32 = 1_000_000;
const SNAP_BYTES: usize = 96;
const ROUNDS: usize = 5;

/// A pcap file of full-sized segments, cut, every second one through VXLAN if asked for.
fn synthetic(v6: bool, through_vxlan: bool) -> Vec<u8> {
    let (source, destination) = if v6 {
        (([0xfd; 16], 40_000).into(), ([0xfe; 16], 5_201).into())
    } else {
        (([10, 77, 0, 1], 40_000).into(), ([10, 77, 0, 2], 5_201).into())
    };
    let addresses = Addresses { source_mac: [2; 6], destination_mac: [4; 6], source, destination };
    let outside = Addresses { destination: (addresses.destination.ip(), 4_789).into(), ..addresses };
    let mut file = Vec::with_capacity(PACKETS as usize * (16 + SNAP_BYTES));
    let numbers = [0xa1b2_3c4du32, 4 << 16 | 2, 0, 0, SNAP_BYTES as u32, 1];
    file.extend(numbers.into_iter().flat_map(u32::to_le_bytes));
    let fields = TcpFields { flags: TcpFlags::ACK, options: timestamp_options(1, 2), ..TcpFields::default() };
    let mut frame = tcp_frame(&addresses, &fields, &[0; 1_448]);
    if through_vxlan {
        frame = udp_frame(&outside, &[&[8, 0, 0, 0, 0, 0, 77, 0], &frame[..]].concat());
    }
    let kept = &frame[..frame.len().min(if through_vxlan { 146 } else { SNAP_BYTES })];
    for number in 0..PACKETS {
        let head = [1_700_000_000, number, kept.len() as u32, frame.len() as u32];
        file.extend(head.into_iter().flat_map(u32::to_le_bytes));
        file.extend(kept);
    }
    file
}

/// Millions a second of reading alone, and of reading and decoding; the best of some rounds.
fn measure(file: &[u8]) -> Result<[f64; 2], Box<dyn Error>> {
    let mut best = [f64::INFINITY; 2];
    for round in 0..2 * ROUNDS {
        let is_decoding = round % 2 == 1;
        let began = Instant::now();
        let (mut reader, mut payload_bytes) = (Reader::new(file)?, 0u64);
        while let Some(record) = reader.next()? {
            if !is_decoding {
                black_box(&record);
            } else if let Decoded::Tcp(segment) = black_box(decode(&record, Checksums::Ignore)) {
                payload_bytes += u64::from(segment.payload_bytes);
            }
        }
        if is_decoding && payload_bytes != u64::from(PACKETS) * 1_448 {
            return Err(format!("found {payload_bytes} bytes of payload").into());
        }
        best[usize::from(is_decoding)] = best[usize::from(is_decoding)].min(began.elapsed().as_secs_f64());
    }
    Ok(best.map(|seconds| f64::from(PACKETS) / seconds / 1e6))
}

/// Millions of packets a second of decoding alone, the best of some rounds.
fn measure_decode(file: &[u8]) -> Result<f64, Box<dyn Error>> {
    let mut reader = Reader::new(file)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next()? {
        records.push((record.number, record.captured.len(), record.original_bytes));
    }
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let mut at = 24;
        for &(number, length, original_bytes) in &records {
            let captured = &file[at + 16..at + 16 + length];
            at += 16 + length;
            let link = LinkType::Ethernet;
            let record = Record { number, nanoseconds: 0, link, interface: 0, captured, original_bytes };
            black_box(decode(black_box(&record), Checksums::Ignore));
        }
        best = best.min(began.elapsed().as_secs_f64());
    }
    Ok(f64::from(PACKETS) / best / 1e6)
}

/// One line a packet: number, time, addresses, numbers and lengths.
fn print(name: &str) -> Result<(), Box<dyn Error>> {
    let mut reader = Reader::new(File::open(name)?)?;
    while let Some(record) = reader.next()? {
        println!("{} {} {:?}", record.number, record.nanoseconds, decode(&record, Checksums::Verify));
    }
    println!("{:?}", reader.loss());
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(name) = std::env::args().nth(1) {
        return print(&name);
    }
    for (what, v6, through_vxlan) in
        [("IPv4", false, false), ("IPv6", true, false), ("IPv4 through VXLAN", false, true)]
    {
        let file = synthetic(v6, through_vxlan);
        let [read, both] = measure(&file)?;
        let decoded = measure_decode(&file)?;
        println!(
            "{what}: {read:.1} million packets/s read, {decoded:.1} decoded, {both:.1} read and decoded"
        );
    }
    Ok(())
}
