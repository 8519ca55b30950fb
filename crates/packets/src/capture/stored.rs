//! Segments and ICMP errors as bytes, for those who cannot keep all of them in memory: a format of this program alone, which
//! no other reads.

use super::{Fragments, IcmpNote, Quoted, SackBlocks, Segment};
use crate::{SynOptions, TcpFlags};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const V6: u8 = 1;
const TIMESTAMPS: u8 = 2;
const SYN: u8 = 4;
const MULTIPATH: u8 = 8;
const FAST_OPEN: u8 = 16;
const IDENTIFICATION: u8 = 32;
const CUT: u8 = 64;
const FRAGMENTS: u8 = 128;
/// Of the byte that has the checksum: all fragments are there.
const WHOLE: u8 = 4;

/// Bytes that were stored, from front to back.
#[derive(Debug, Clone, Copy)]
struct Stored<'a>(&'a [u8]);

impl Stored<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    fn word(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn long(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn address(&mut self, is_v6: bool) -> Option<IpAddr> {
        Some(match is_v6 {
            true => IpAddr::V6(Ipv6Addr::from(self.take::<16>()?)),
            false => IpAddr::V4(Ipv4Addr::from(self.take::<4>()?)),
        })
    }

    fn end(&mut self, is_v6: bool) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.address(is_v6)?, self.word()?))
    }
}

fn store_address(address: IpAddr, to: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => to.extend(address.octets()),
        IpAddr::V6(address) => to.extend(address.octets()),
    }
}

fn store_end(end: SocketAddr, to: &mut Vec<u8>) {
    store_address(end.ip(), to);
    to.extend(end.port().to_le_bytes());
}

/// A value that may be missing, in a byte more.
fn store_option<const N: usize>(value: Option<[u8; N]>, to: &mut Vec<u8>) {
    to.push(u8::from(value.is_some()));
    to.extend(value.unwrap_or([0; N]));
}

impl Segment {
    fn is_whole_again(&self) -> bool {
        self.fragments.is_some_and(|fragments| fragments.are_whole)
    }

    /// Adds it to some bytes.
    pub fn store(&self, to: &mut Vec<u8>) {
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        to.push(
            bit(self.source.is_ipv6(), V6)
                | bit(self.timestamps.is_some(), TIMESTAMPS)
                | bit(self.syn.is_some(), SYN)
                | bit(self.multipath, MULTIPATH)
                | bit(self.fast_open, FAST_OPEN)
                | bit(self.identification.is_some(), IDENTIFICATION)
                | bit(self.options_are_cut, CUT)
                | bit(self.fragments.is_some(), FRAGMENTS),
        );
        to.extend([
            self.flags.0,
            self.hops,
            self.ecn,
            self.checksum_is_right.map_or(2, u8::from) | bit(self.is_whole_again(), WHOLE),
            self.sack.as_slice().len() as u8,
            self.option_bytes,
        ]);
        to.extend(self.nanoseconds.to_le_bytes());
        to.extend(self.number.to_le_bytes());
        store_end(self.source, to);
        store_end(self.destination, to);
        to.extend(self.window.to_le_bytes());
        [self.seq, self.ack, self.payload_bytes, self.ip_bytes]
            .iter()
            .for_each(|value| to.extend(value.to_le_bytes()));
        if let Some((value, echo)) = self.timestamps {
            to.extend(value.to_le_bytes());
            to.extend(echo.to_le_bytes());
        }
        if let Some(identification) = self.identification {
            to.extend(identification.to_le_bytes());
        }
        if let Some(fragments) = self.fragments {
            to.extend(fragments.first_bytes.to_le_bytes());
        }
        for (begin, end) in self.sack.as_slice() {
            to.extend(begin.to_le_bytes());
            to.extend(end.to_le_bytes());
        }
        if let Some(syn) = self.syn {
            store_option(syn.mss.map(u16::to_le_bytes), to);
            store_option(syn.window_scale.map(u8::to_le_bytes), to);
            to.push(u8::from(syn.timestamps) | u8::from(syn.sack_permitted) << 1);
        }
    }

    /// What was stored in these bytes; `None` if none was.
    pub fn stored(bytes: &[u8]) -> Option<Segment> {
        let mut from = Stored(bytes);
        let bits = from.byte()?;
        let has = |bit: u8| bits & bit != 0;
        let [flags, hops, ecn, checksum, blocks, option_bytes] = from.take()?;
        let (nanoseconds, number) = (i64::from_le_bytes(from.take()?), u64::from_le_bytes(from.take()?));
        let (source, destination) = (from.end(has(V6))?, from.end(has(V6))?);
        let window = from.word()?;
        let [seq, ack, payload_bytes, ip_bytes] = [from.long()?, from.long()?, from.long()?, from.long()?];
        let timestamps = if has(TIMESTAMPS) { Some((from.long()?, from.long()?)) } else { None };
        let identification = if has(IDENTIFICATION) { Some(from.word()?) } else { None };
        let fragments = match has(FRAGMENTS) {
            true => Some(Fragments { first_bytes: from.word()?, are_whole: checksum & WHOLE != 0 }),
            false => None,
        };
        let mut sack = SackBlocks { count: blocks, ..SackBlocks::default() };
        for block in sack.blocks.get_mut(..usize::from(blocks))? {
            *block = (from.long()?, from.long()?);
        }
        let syn = if has(SYN) { Some(syn_options(&mut from)?) } else { None };
        Some(Segment {
            nanoseconds,
            number,
            source,
            destination,
            seq,
            ack,
            flags: TcpFlags(flags),
            window,
            payload_bytes,
            ip_bytes,
            timestamps,
            sack,
            syn,
            multipath: has(MULTIPATH),
            fast_open: has(FAST_OPEN),
            identification,
            hops,
            ecn,
            checksum_is_right: (checksum & 2 == 0).then_some(checksum & 1 == 1),
            option_bytes,
            options_are_cut: has(CUT),
            fragments,
        })
    }
}

fn syn_options(from: &mut Stored<'_>) -> Option<SynOptions> {
    let (has_mss, mss) = (from.byte()?, from.word()?);
    let (has_scale, scale, bits) = (from.byte()?, from.byte()?, from.byte()?);
    Some(SynOptions {
        mss: (has_mss == 1).then_some(mss),
        window_scale: (has_scale == 1).then_some(scale),
        timestamps: bits & 1 == 1,
        sack_permitted: bits & 2 == 2,
    })
}

impl IcmpNote {
    /// Adds it to some bytes.
    pub fn store(&self, to: &mut Vec<u8>) {
        let quotes_v6 = self.quoted.is_some_and(|quoted| quoted.source.is_ipv6());
        to.extend([
            u8::from(self.source.is_ipv6()),
            u8::from(quotes_v6),
            u8::from(self.quoted.is_some()),
            self.kind,
            self.code,
        ]);
        to.extend(self.nanoseconds.to_le_bytes());
        to.extend(self.number.to_le_bytes());
        store_address(self.source, to);
        store_address(self.destination, to);
        store_option(self.mtu.map(u32::to_le_bytes), to);
        if let Some(quoted) = self.quoted {
            store_end(quoted.source, to);
            store_end(quoted.destination, to);
            to.extend(quoted.seq.to_le_bytes());
            to.extend(quoted.ip_bytes.to_le_bytes());
        }
    }

    /// What was stored in these bytes; `None` if none was.
    pub fn stored(bytes: &[u8]) -> Option<IcmpNote> {
        let mut from = Stored(bytes);
        let [is_v6, quotes_v6, quotes, kind, code] = from.take()?;
        let (nanoseconds, number) = (i64::from_le_bytes(from.take()?), u64::from_le_bytes(from.take()?));
        let (source, destination) = (from.address(is_v6 == 1)?, from.address(is_v6 == 1)?);
        let (has_mtu, mtu) = (from.byte()?, from.long()?);
        let quoted = if quotes == 1 {
            let (source, destination) = (from.end(quotes_v6 == 1)?, from.end(quotes_v6 == 1)?);
            Some(Quoted { source, destination, seq: from.long()?, ip_bytes: from.long()? })
        } else {
            None
        };
        let mtu = (has_mtu == 1).then_some(mtu);
        Some(IcmpNote { nanoseconds, number, source, destination, kind, code, mtu, quoted })
    }
}
