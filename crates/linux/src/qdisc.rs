//! Queue disciplines (`tc(8)`), and the token bucket filter (`tc-tbf(8)`) with a size table (`tc-stab(8)`).

use crate::error::Result;
use crate::netlink::{CREATE, DUMP, Message, REPLACE, Socket, attribute, attribute_text, attribute_u32};
use crate::rtnetlink;
use framegauge_frames::SizeTable;
use std::collections::BTreeMap;

const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const RTM_GETQDISC: u16 = 38;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STAB: u16 = 8;
const RTM_GETTFILTER: u16 = 46;
const ROOT: u32 = 0xffff_ffff;
/// `TC_H_CLSACT`, which is `TC_H_INGRESS` as well, and what its filters see (`linux/pkt_sched.h`).
const HOOKS: u32 = 0xffff_fff1;
const SEES_INCOMING: u32 = 0xffff_fff2;
const SEES_OUTGOING: u32 = 0xffff_fff3;
/// Interfaces that are asked for their filters: a host of containers may have thousands.
const MOST_HOOKED: usize = 64;

/// A token bucket.
#[derive(Debug, Clone)]
pub struct TokenBucket {
    /// Rate in bits per second, in the bytes that `sizes` yields.
    pub bits_per_second: u64,
    /// Burst in bytes; an aggregate larger than this is segmented in software first.
    pub burst_bytes: u32,
    /// Bytes that may wait before the tail is dropped.
    pub limit_bytes: u32,
    /// What a packet costs: its bytes on the wire, aggregates cut into frames.
    pub sizes: SizeTable,
}

/// What the kernel says of the root queue discipline of an interface.
#[derive(Debug, Clone, Default)]
pub struct QdiscReading {
    /// "tbf", "noqueue", …
    pub kind: String,
    /// Whether the kernel put it there by itself: such a one has no handle.
    pub default: bool,
    /// The token bucket's rate, where it is one.
    pub bits_per_second: Option<u64>,
    /// The token bucket's burst, where it is one.
    pub burst_bytes: Option<u64>,
    /// The token bucket's limit, where it is one.
    pub limit_bytes: Option<u64>,
    /// Bytes sent, as the size table counts them.
    pub sent_bytes: u64,
    /// Packets sent, each frame of an aggregate counted.
    pub sent_packets: u32,
    /// Packets dropped.
    pub drops: u32,
    /// Times a packet had to wait.
    pub overlimits: u32,
    /// Bytes waiting now.
    pub backlog_bytes: u32,
}

fn header(index: i32, parent: u32) -> [u8; 20] {
    let mut header = [0u8; 20];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[12..16].copy_from_slice(&parent.to_ne_bytes());
    header
}

fn rate_specification(bytes_per_second: u64) -> [u8; 12] {
    const ETHERNET: u8 = 1;
    let mut bytes = [0u8; 12];
    bytes[1] = ETHERNET;
    bytes[8..12].copy_from_slice(&u32::try_from(bytes_per_second).unwrap_or(u32::MAX).to_ne_bytes());
    bytes
}

/// Makes `bucket` the root queue discipline of `interface`.
pub fn set_token_bucket(interface: &str, bucket: &TokenBucket) -> Result<()> {
    let bytes_per_second = bucket.bits_per_second / 8;
    let mut parameters = Vec::with_capacity(36);
    parameters.extend(rate_specification(bytes_per_second));
    parameters.extend([0u8; 12]);
    parameters.extend(bucket.limit_bytes.to_ne_bytes());
    parameters.extend(0u32.to_ne_bytes());
    parameters.extend(0u32.to_ne_bytes());
    let mut sizes = Vec::with_capacity(24);
    sizes.extend([bucket.sizes.cell_log, bucket.sizes.size_log]);
    sizes.extend(0i16.to_ne_bytes());
    sizes.extend(0i32.to_ne_bytes());
    sizes.extend(1u32.to_ne_bytes());
    sizes.extend(0u32.to_ne_bytes());
    sizes.extend(0u32.to_ne_bytes());
    sizes.extend((bucket.sizes.data.len() as u32).to_ne_bytes());
    let data: Vec<u8> = bucket.sizes.data.iter().flat_map(|value| value.to_ne_bytes()).collect();

    let index = rtnetlink::link(interface)?.index;
    let mut message = Message::new(RTM_NEWQDISC, CREATE | REPLACE, &header(index, ROOT));
    message
        .text(TCA_KIND, "tbf")
        .nest(TCA_OPTIONS, |options| {
            options.attribute(1, &parameters).u32(6, bucket.burst_bytes);
            if bytes_per_second > u64::from(u32::MAX) {
                options.attribute(4, &bytes_per_second.to_ne_bytes());
            }
        })
        .nest(TCA_STAB, |stab| {
            stab.attribute(1, &sizes).attribute(2, &data);
        });
    let operation = format!("shape {interface} to {} bit/s with tbf", bucket.bits_per_second);
    Socket::route()?.request(message, &operation).map(drop)
}

/// Makes a queue discipline of this kind, as the kernel sets it up, the root of `interface`.
pub fn set(interface: &str, kind: &str) -> Result<()> {
    let index = rtnetlink::link(interface)?.index;
    let mut message = Message::new(RTM_NEWQDISC, CREATE | REPLACE, &header(index, ROOT));
    message.text(TCA_KIND, kind);
    Socket::route()?.request(message, &format!("set the queue discipline of {interface} to {kind}")).map(drop)
}

/// Removes the root queue discipline; the kernel's default takes its place.
pub fn clear(interface: &str) -> Result<()> {
    let index = rtnetlink::link(interface)?.index;
    let message = Message::new(RTM_DELQDISC, 0, &header(index, ROOT));
    match Socket::route()?.request(message, &format!("remove the queue discipline of {interface}")) {
        Err(error) if error.code() == libc::ENOENT || error.code() == libc::EINVAL => Ok(()),
        other => other.map(drop),
    }
}

/// Reads the root queue discipline of `interface`.
pub fn read(interface: &str) -> Result<QdiscReading> {
    let index = rtnetlink::link(interface)?.index;
    let qdisc = read_all(index, &format!("read the queue discipline of {interface}"))?.remove(&index);
    Ok(qdisc.unwrap_or_else(|| QdiscReading {
        kind: "noqueue".into(),
        default: true,
        ..QdiscReading::default()
    }))
}

/// Reads the root queue discipline of every interface of the calling thread's network namespace that has one,
/// by the interface's index.
pub fn read_every() -> Result<BTreeMap<i32, QdiscReading>> {
    read_all(0, "read the queue disciplines")
}

fn read_all(index: i32, operation: &str) -> Result<BTreeMap<i32, QdiscReading>> {
    let answers = Socket::route()?.request(Message::new(RTM_GETQDISC, DUMP, &header(index, 0)), operation)?;
    let root = |body: &&Vec<u8>| body.get(12..16) == Some(&ROOT.to_ne_bytes());
    let reading = |body: &Vec<u8>| {
        let index = body.get(4..8)?.try_into().ok().map(i32::from_ne_bytes)?;
        Some((index, parse(body)?))
    };
    Ok(answers.iter().filter(root).filter_map(reading).collect())
}

/// Which interfaces have filters of tc that see all packets (`tc-ingress(8)`, clsact), by index: those that come in, and
/// those that leave.
pub fn filtered() -> Result<BTreeMap<i32, (bool, bool)>> {
    let socket = Socket::route()?;
    let listing = "read the queue disciplines";
    let answers = socket.request(Message::new(RTM_GETQDISC, DUMP, &header(0, 0)), listing)?;
    let hooked = answers.iter().filter(|body| body.get(12..16) == Some(&HOOKS.to_ne_bytes()));
    let mut filtered = BTreeMap::new();
    for body in hooked.take(MOST_HOOKED) {
        let place = body.get(4..8).and_then(|place| place.try_into().ok());
        let Some(index) = place.map(i32::from_ne_bytes) else { continue };
        let has = |parent| {
            let request = Message::new(RTM_GETTFILTER, DUMP, &header(index, parent));
            socket.request(request, "read the filters of tc").is_ok_and(|answers| !answers.is_empty())
        };
        let kind = body.get(20..).and_then(|attributes| attribute_text(attributes, TCA_KIND));
        filtered.insert(index, (has(SEES_INCOMING), kind.as_deref() == Some("clsact") && has(SEES_OUTGOING)));
    }
    Ok(filtered)
}

/// Reads one answer of the listing; none if it is no queue discipline.
pub fn parse(body: &[u8]) -> Option<QdiscReading> {
    let attributes = body.get(20..)?;
    let kind = attribute_text(attributes, TCA_KIND)?;
    let mut reading = QdiscReading { kind, default: word(body, 8)? == 0, ..QdiscReading::default() };
    if let Some(statistics) = attribute(attributes, TCA_STATS2) {
        if let Some(basic) = attribute(statistics, 1) {
            reading.sent_bytes = basic.get(..8)?.try_into().ok().map(u64::from_ne_bytes)?;
            reading.sent_packets = word(basic, 8)?;
        }
        if let Some(queue) = attribute(statistics, 3) {
            reading.backlog_bytes = word(queue, 4)?;
            reading.drops = word(queue, 8)?;
            reading.overlimits = word(queue, 16)?;
        }
    }
    if reading.kind == "tbf"
        && let Some(options) = attribute(attributes, TCA_OPTIONS)
    {
        let parameters = attribute(options, 1)?;
        let bytes_per_second = attribute(options, 4)
            .and_then(|bytes| bytes.try_into().ok())
            .map(u64::from_ne_bytes)
            .or(word(parameters, 8).map(u64::from))?;
        reading.bits_per_second = Some(bytes_per_second.saturating_mul(8));
        reading.limit_bytes = word(parameters, 24).map(u64::from);
        // The kernel reports the burst as time at the rate, in units of 64 ns (PSCHED_SHIFT).
        let ticks = u64::from(word(parameters, 28)?);
        reading.burst_bytes = attribute_u32(options, 6)
            .map(u64::from)
            .or(Some((u128::from(ticks) * 64 * u128::from(bytes_per_second) / 1_000_000_000) as u64));
    }
    Some(reading)
}

fn word(bytes: &[u8], place: usize) -> Option<u32> {
    bytes.get(place..place + 4)?.try_into().ok().map(u32::from_ne_bytes)
}
