//! The fabric's edge: packets in from the hosts' TAPs, frames out to them.

use crate::fabric::outbox::{Hosts, Outbox};
use crate::fabric::parcel::{Attachment, Parcel};
use crate::fabric::ports::HostMeasurement;
use crate::fabric::record::Record;
use crate::fabric::send_times::SendTimes;
use crate::fabric::waits::Waits;
use crate::fabric::watching::{SNAP_BYTES, Watching};
use framegauge_fabric::{Aggregate, Ecn, HostIndex, PortEvent, PortIndex, Sink};
use framegauge_frames::Picoseconds;
use framegauge_linux::Result;
use framegauge_linux::clock::monotonic_nanoseconds;
use framegauge_linux::tap::VNET_HEADER_BYTES;
use framegauge_metering::Delays;
use framegauge_packets::{
    Coalescer, EcnCodepoint, MAX_HEADER_BYTES, Segmentation, TrafficClass, VirtioNetHeader,
};
use std::collections::HashMap;

/// Room for the largest aggregate with its headers.
const BUFFER_BYTES: usize = VNET_HEADER_BYTES + 65_536 + 256;
/// Packets up to this are kept close together: hundreds of them, each at the start of a large buffer, fall out of the cache.
const SMALL_BYTES: usize = 2048;

/// Packets with this differentiated services codepoint or a higher one go first where queues have bands: class
/// selector 5, expedited forwarding and network control (RFC 2474, RFC 4594).
const FIRST_BAND_DSCP: u8 = 40;

/// The hosts' ends and the packets under way; what the model tells is done here.
pub(crate) struct Edge {
    pub(crate) attachments: Vec<Attachment>,
    is_timed: bool,
    /// One per end.
    pub(crate) send_times: Vec<SendTimes>,
    by_address: HashMap<[u8; 6], HostIndex>,
    parcels: Vec<Option<Parcel>>,
    outbox: Outbox,
    free: Vec<u32>,
    /// Buffers of `BUFFER_BYTES`, and of `SMALL_BYTES`.
    spare: Vec<Box<[u8]>>,
    spare_small: Vec<Box<[u8]>>,
    pub(crate) counts: Vec<HostMeasurement>,
    pub(crate) lateness: Delays,
    pub(crate) waits: Waits,
    /// Large receive offload; empty between interrupts.
    coalescer: Option<Coalescer>,
    /// What goes in and comes out, if somebody wants to know.
    pub(crate) record: Option<Record>,
    /// What happens at watched ports, if there are any.
    pub(crate) watching: Option<Watching>,
    /// The names of all ports; empty while none is watched.
    pub(crate) port_names: Vec<String>,
    /// The segment of each end: frames reach only ends of the same number.
    pub(crate) segments: Vec<usize>,
    epoch: u64,
}

impl Edge {
    pub(crate) fn new(
        attachments: Vec<Attachment>,
        segments: Vec<usize>,
        large_receive: bool,
        epoch: u64,
    ) -> Self {
        let times = |attachment: &Attachment| match attachment.is_timed {
            true => SendTimes::of(&attachment.tap, epoch),
            false => SendTimes::unknown(),
        };
        let send_times: Vec<SendTimes> = attachments.iter().map(times).collect();
        Self {
            is_timed: send_times.iter().all(SendTimes::are_known),
            send_times,
            coalescer: large_receive.then(Coalescer::default),
            by_address: attachments
                .iter()
                .enumerate()
                .map(|(place, attachment)| (attachment.hardware, HostIndex(place as u16)))
                .collect(),
            counts: vec![HostMeasurement::default(); attachments.len()],
            attachments,
            parcels: Vec::new(),
            outbox: Outbox::new(),
            free: Vec::new(),
            spare: Vec::new(),
            spare_small: Vec::new(),
            lateness: Delays::new(),
            waits: Waits::default(),
            record: None,
            watching: None,
            port_names: Vec::new(),
            segments,
            epoch,
        }
    }

    pub(crate) fn now(&self) -> Picoseconds {
        Picoseconds::from_nanoseconds(monotonic_nanoseconds() - self.epoch)
    }

    /// Whether it is known of every end when it sends.
    pub(crate) fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// Reads one packet of a host, with the time at which it was sent: `Ok(None)` when there is none, no aggregate when it
    /// goes nowhere.
    pub(crate) fn read(
        &mut self,
        host: usize,
        now: Picoseconds,
    ) -> Result<Option<(Picoseconds, Option<Aggregate>)>> {
        let mut bytes = self.spare.pop().unwrap_or_else(|| buffer(BUFFER_BYTES));
        let Some(length) = self.attachments[host].tap.read(&mut bytes)? else {
            self.spare.push(bytes);
            self.send_times[host].none_left(now);
            return Ok(None);
        };
        if length <= SMALL_BYTES {
            let mut small = self.spare_small.pop().unwrap_or_else(|| buffer(SMALL_BYTES));
            small[..length].copy_from_slice(&bytes[..length]);
            self.spare.push(std::mem::replace(&mut bytes, small));
        }
        Ok(Some((self.send_times[host].next(now), self.take_in(host, bytes, length))))
    }

    /// Makes a parcel of a host's packet: the first `length` bytes, of which the first are the virtio header.
    fn take_in(&mut self, host: usize, bytes: Box<[u8]>, length: usize) -> Option<Aggregate> {
        let counts = &mut self.counts[host];
        counts.read_packets += 1;
        let Some(frame) = bytes.get(VNET_HEADER_BYTES..length) else {
            counts.unroutable_packets += 1;
            return None;
        };
        counts.read_bytes += frame.len() as u64;
        counts.unfinished_checksums += u64::from(bytes[0] & VirtioNetHeader::NEEDS_CSUM != 0);
        counts.largest_packet_bytes = counts.largest_packet_bytes.max(frame.len() as u64);
        let destination = frame.get(..6).and_then(|address| self.by_address.get(address)).copied();
        let destination = destination.filter(|to| self.segments[usize::from(to.0)] == self.segments[host]);
        // Only a router's are asked for, by links that filter them.
        let icmp_error = self.attachments.get(host).is_some_and(|attachment| attachment.forwards)
            && framegauge_packets::parse(frame).is_ok_and(|packet| packet.is_icmp_error());
        let plan = VirtioNetHeader::parse(&bytes).and_then(|header| Segmentation::plan(&header, frame));
        let frames = plan.as_ref().map_or(1, Segmentation::frames);
        counts.read_frames += u64::from(frames);
        let (Some(destination), Ok(plan)) = (destination, plan) else {
            counts.unroutable_packets += 1;
            self.reuse(bytes);
            return None;
        };
        counts.aggregates += u64::from(frames > 1);
        let data = plan.tcp_payload_bytes(0) > 0;
        let (first, last) = (plan.captured_bytes(0), plan.captured_bytes(frames - 1));
        if data {
            let sizes = [first, last].map(framegauge_frames::frame_bytes).map(u64::from);
            counts.data_frames += u64::from(frames);
            counts.data_frame_bytes += u64::from(frames - 1) * sizes[0] + sizes[1];
            counts.largest_frame_bytes = counts.largest_frame_bytes.max(sizes[0]);
        }
        let (flow, class) = (plan.flow(), plan.traffic_class());
        let id = self.keep(Parcel::new(bytes, plan, length));
        Some(Aggregate {
            id,
            frames,
            captured_bytes: first,
            last_captured_bytes: last,
            destination,
            flow,
            data,
            icmp_error,
            ecn: ecn_of(class),
            band: band_of(class),
        })
    }

    fn keep(&mut self, parcel: Parcel) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.parcels.push(None);
            self.parcels.len() as u32 - 1
        });
        self.parcels[id as usize] = Some(parcel);
        id
    }

    /// Hands over what still waits for that.
    pub(crate) fn hand_over(&mut self) {
        if self.outbox.frames.is_empty() {
            return;
        }
        self.outbox.flush(&mut Hosts {
            attachments: &self.attachments,
            parcels: &self.parcels,
            counts: &mut self.counts,
        });
        // One look at the clock for all, after the last of them.
        let now = self.now().as_nanoseconds();
        let mut frames = std::mem::take(&mut self.outbox.frames);
        for (id, due) in frames.drain(..) {
            self.lateness.record(now.abs_diff(due.as_nanoseconds()));
            self.release(id);
        }
        self.outbox.frames = frames;
    }

    fn release(&mut self, id: u32) {
        let place = &mut self.parcels[id as usize];
        if let Some(parcel) = place {
            parcel.frames_left -= 1;
            if parcel.frames_left == 0 {
                if let Some(parcel) = place.take() {
                    self.reuse(parcel.bytes);
                }
                self.free.push(id);
            }
        }
    }

    fn reuse(&mut self, bytes: Box<[u8]>) {
        if bytes.len() == SMALL_BYTES { self.spare_small.push(bytes) } else { self.spare.push(bytes) }
    }
}

fn buffer(bytes: usize) -> Box<[u8]> {
    vec![0; bytes].into_boxed_slice()
}

/// Whether a queue may mark packets of this class.
fn ecn_of(class: TrafficClass) -> Ecn {
    match class.ecn() {
        EcnCodepoint::NotEct => Ecn::NOT_CAPABLE,
        EcnCodepoint::Ect0 | EcnCodepoint::Ect1 => Ecn::CAPABLE,
        EcnCodepoint::Ce => Ecn::MARKED,
    }
}

fn band_of(class: TrafficClass) -> u8 {
    u8::from(class.dscp() < FIRST_BAND_DSCP)
}

impl Sink for Edge {
    fn deliver(&mut self, host: HostIndex, frames: &[(u32, u16)], due: Picoseconds) {
        if let Some(record) = &mut self.record {
            record.delivered.extend(frames.iter().map(|&(aggregate, frame)| (due, host, aggregate, frame)));
        }
        let host = usize::from(host.0);
        let merges = frames.len() > 1 && !self.attachments[host].forwards;
        let mut hosts =
            Hosts { attachments: &self.attachments, parcels: &self.parcels, counts: &mut self.counts };
        let outbox = &mut self.outbox;
        let mut scratch = [0; MAX_HEADER_BYTES];
        for &(id, index) in frames {
            let Some(parcel) = &self.parcels[id as usize] else { continue };
            match &mut self.coalescer {
                Some(coalescer) if merges => {
                    let frame = parcel.frame(id, index, &mut scratch);
                    coalescer.push(&frame, &mut |packet| outbox.write(host, packet, &mut hosts));
                }
                _ if parcel.plan.frames() == 1 => outbox.add(host, id, &mut hosts),
                _ => outbox.write(host, &parcel.frame(id, index, &mut scratch).alone(), &mut hosts),
            }
        }
        if let Some(coalescer) = &mut self.coalescer {
            coalescer.flush(&mut |packet| outbox.write(host, packet, &mut hosts));
        }
        outbox.frames.extend(frames.iter().map(|&(id, _)| (id, due)));
        if outbox.is_due() {
            self.hand_over();
        }
    }

    fn discard(&mut self, aggregate: u32, frame: u16) {
        if let Some(record) = &mut self.record {
            record.discarded.push((aggregate, frame));
        }
        self.release(aggregate);
    }

    fn mark(&mut self, aggregate: u32, frame: u16) {
        if let Some(record) = &mut self.record {
            record.marked.push((aggregate, frame));
        }
        if let Some(parcel) = &mut self.parcels[aggregate as usize] {
            parcel.mark(frame);
        }
    }

    /// Writes down what happened at a watched port.
    fn seen(&mut self, event: &PortEvent) {
        let Some(watching) = &mut self.watching else { return };
        let input = self.port_names.get(usize::from(event.frame.input_port.0)).map_or("", String::as_str);
        let mut first = [0; SNAP_BYTES];
        let mut length = 0;
        // What the fabric makes itself has no bytes.
        if watching.captures() && event.frame.background().is_none() {
            let parcel = self.parcels.get(event.frame.aggregate as usize).and_then(Option::as_ref);
            length = parcel.map_or(0, |parcel| parcel.first_bytes(event.frame, &mut first));
        }
        watching.note(event, &first[..length], input);
    }

    fn waited(&mut self, port: PortIndex, input_port: PortIndex, wait: Picoseconds) {
        self.waits.record(port, input_port, wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use framegauge_packets::build::{Addresses, TcpFields, tcp_frame, udp_frame};
    use framegauge_packets::{checksum, parse};

    const TARGET: [u8; 6] = [2, 0x66, 0x67, 0, 0, 2];
    const ECT1: u8 = 0b01;
    const ECT0: u8 = 0b10;
    const CE: u8 = 0b11;

    /// An edge of two hosts without TAPs.
    fn edge() -> Edge {
        let mut edge = Edge::new(Vec::new(), vec![0; 2], false, 0);
        edge.counts = vec![HostMeasurement::default(); 2];
        edge.by_address.insert(TARGET, HostIndex(1));
        edge
    }

    /// What a TAP hands over of an IPv4 packet of this class with so many bytes of TCP payload, in frames of 1000.
    fn packet(class: u8, payload_bytes: usize) -> Vec<u8> {
        let addresses = Addresses {
            source_mac: [2, 0x66, 0x67, 0, 0, 1],
            destination_mac: TARGET,
            source: "10.77.0.1:40000".parse().unwrap(),
            destination: "10.77.0.2:5201".parse().unwrap(),
        };
        let mut frame = tcp_frame(&addresses, &TcpFields::default(), &vec![7; payload_bytes]);
        frame[15] = class;
        frame[24..26].fill(0);
        let sum = checksum::internet_checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        let aggregate = payload_bytes > 1000;
        let vnet = VirtioNetHeader {
            flags: VirtioNetHeader::NEEDS_CSUM,
            gso_type: if aggregate { VirtioNetHeader::GSO_TCPV4 } else { VirtioNetHeader::GSO_NONE },
            header_bytes: 54,
            gso_bytes: if aggregate { 1000 } else { 0 },
            checksum_start: 34,
            checksum_offset: 16,
        };
        [&vnet.to_bytes()[..], &frame].concat()
    }

    fn take_in(edge: &mut Edge, packet: &[u8]) -> Aggregate {
        let mut bytes = vec![0; BUFFER_BYTES].into_boxed_slice();
        bytes[..packet.len()].copy_from_slice(packet);
        edge.take_in(0, bytes, packet.len()).expect("it is for a host of this edge")
    }

    /// The class of each frame as it would go up; every header's checksum must be right.
    fn classes(edge: &Edge, aggregate: &Aggregate) -> Vec<u8> {
        let parcel = edge.parcels[aggregate.id as usize].as_ref().unwrap();
        let class = |index| {
            let mut scratch = [0; MAX_HEADER_BYTES];
            let header = parcel.frame(aggregate.id, index, &mut scratch).header;
            assert_eq!(checksum::internet_checksum(&header[14..34]), 0);
            header[15]
        };
        (0..aggregate.frames).map(class).collect()
    }

    #[test]
    fn queues_are_told_what_the_header_says() {
        let mut edge = edge();
        let mut queueing = |class| {
            let aggregate = take_in(&mut edge, &packet(class, 100));
            (aggregate.ecn, aggregate.band)
        };
        assert_eq!(queueing(0), (Ecn::NOT_CAPABLE, 1));
        assert_eq!(queueing(ECT1), (Ecn::CAPABLE, 1));
        assert_eq!(queueing(ECT0), (Ecn::CAPABLE, 1));
        assert_eq!(queueing(CE), (Ecn::MARKED, 1));
        // Class selector 5 is 40.
        assert_eq!(queueing(39 << 2 | CE), (Ecn::MARKED, 1));
        assert_eq!(queueing(40 << 2), (Ecn::NOT_CAPABLE, 0));
        assert_eq!(queueing(46 << 2 | ECT0), (Ecn::CAPABLE, 0));
        assert_eq!(queueing(63 << 2), (Ecn::NOT_CAPABLE, 0));
    }

    #[test]
    fn what_is_not_ip_goes_last_and_is_not_marked() {
        let arp = [&[0; VNET_HEADER_BYTES][..], &TARGET, &[2; 6], &[0x08, 0x06], &[0xff; 28]].concat();
        let mut edge = edge();
        let aggregate = take_in(&mut edge, &arp);
        assert_eq!((aggregate.ecn, aggregate.band), (Ecn::NOT_CAPABLE, 1));
    }

    #[test]
    fn a_packet_is_marked_where_it_lies() {
        let mut edge = edge();
        let sent = packet(ECT0, 100);
        let aggregate = take_in(&mut edge, &sent);
        edge.mark(aggregate.id, 0);
        edge.mark(aggregate.id, 0);
        let parcel = edge.parcels[aggregate.id as usize].as_ref().unwrap();
        let bytes = &parcel.bytes[..parcel.length];
        // Virtio header 10, Ethernet 14: the class is byte 25, the checksum bytes 34 and 35.
        let changed: Vec<usize> = (0..sent.len()).filter(|at| sent[*at] != bytes[*at]).collect();
        assert_eq!((changed.first(), bytes[25]), (Some(&25), CE));
        assert!(changed[1..].iter().all(|at| [34, 35].contains(at)), "{changed:?}");
        assert!(parcel.marks.is_empty());
        assert_eq!(classes(&edge, &aggregate), [CE]);
        assert_eq!(parse(&bytes[VNET_HEADER_BYTES..]).unwrap().payload_bytes(), 100);
    }

    /// 64,500 bytes are 65 frames: the last of them has its mark in a second word.
    #[test]
    fn of_an_aggregate_one_frame_is_marked() {
        let mut edge = edge();
        let aggregate = take_in(&mut edge, &packet(ECT0, 64_500));
        assert_eq!((aggregate.frames, aggregate.ecn), (65, Ecn::CAPABLE));
        assert_eq!(classes(&edge, &aggregate), [ECT0; 65]);
        for marked in [0, 7, 63, 64] {
            edge.mark(aggregate.id, marked);
            edge.mark(aggregate.id, marked);
        }
        let classes = classes(&edge, &aggregate);
        let marked: Vec<usize> = (0..65).filter(|index| classes[*index] == CE).collect();
        assert_eq!(marked, [0, 7, 63, 64]);
        assert!(classes.iter().all(|class| [ECT0, CE].contains(class)));
    }

    /// What a packet leaves behind is no mark on the next that lies in its place.
    #[test]
    fn marks_end_with_their_packet() {
        let mut edge = edge();
        let first = take_in(&mut edge, &packet(ECT0, 2_000));
        edge.mark(first.id, 1);
        for frame in 0..2 {
            edge.discard(first.id, frame);
        }
        let second = take_in(&mut edge, &packet(ECT0, 2_000));
        assert_eq!(second.id, first.id);
        assert_eq!(classes(&edge, &second), [ECT0; 2]);
    }

    /// The first waits for the call that writes many, the two of one interrupt are looked through for what can be merged and
    /// written at once, the last waits again.
    #[test]
    fn what_waits_is_not_overtaken() {
        let Some((tap, socket)) = framegauge_linux::trial::tap() else { return };
        socket.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        let addresses = Addresses {
            source_mac: [2, 0, 0, 0, 0, 2],
            destination_mac: [0xff; 6],
            source: (framegauge_linux::trial::THERE, 9).into(),
            destination: socket.local_addr().unwrap(),
        };
        let (host, due) = (HostIndex(0), Picoseconds::ZERO);
        let attachment =
            Attachment { tap, hardware: [0xff; 6], host: "h1".into(), forwards: false, is_timed: false };
        let mut edge = Edge::new(vec![attachment], vec![0], true, 0);
        let ids = [1, 2, 3, 4].map(|number| {
            let packet = [&[0; VNET_HEADER_BYTES][..], &udp_frame(&addresses, &[number])].concat();
            take_in(&mut edge, &packet).id
        });
        edge.deliver(host, &[(ids[0], 0)], due);
        edge.deliver(host, &[(ids[1], 0), (ids[2], 0)], due);
        edge.deliver(host, &[(ids[3], 0)], due);
        edge.hand_over();
        let mut buffer = [0; 16];
        let received_ids = ids.map(|_| socket.recv(&mut buffer).map(|_| buffer[0]).unwrap());
        assert_eq!(received_ids, [1, 2, 3, 4]);
        let counts = &edge.counts[0];
        assert_eq!((counts.written_packets, counts.written_frames, counts.write_errors), (4, 4, 0));
        assert_eq!((edge.lateness.count(), edge.free.len()), (4, 4));
    }
}
