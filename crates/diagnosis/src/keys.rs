//! Connections by their ends, and how they are divided.

use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::net::SocketAddr;

/// Which of so many shares has the connection between two ends, whichever of them sent. Another `salt` is another division.
#[inline]
pub fn share(one: SocketAddr, other: SocketAddr, shares: usize, salt: u64) -> usize {
    let salted = Key::between(one, other).hash() ^ salt.wrapping_mul(0xd6e8_feb8_6659_fd93);
    // The upper bits of the product depend on all of the hash.
    let mixed = salted.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (mixed as usize * shares) >> 32
}

/// In which of so many buckets, a power of two, the connection between two ends belongs, whichever of them sent: for what
/// looks at every packet, as it neither orders the ends nor keeps them.
#[inline]
pub fn bucket(one: SocketAddr, other: SocketAddr, buckets: usize) -> usize {
    let mixed = |end: SocketAddr| {
        let (address, port) = Key::end(end);
        let folded = address as u64 ^ ((address >> 64) as u64).rotate_left(17);
        let word = (folded ^ u64::from(port).rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word ^ word >> 32
    };
    let both = mixed(one).wrapping_add(mixed(other)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (both >> 40) as usize & (buckets - 1)
}

/// Bits of a set of keys: some hundreds of thousands leave it half empty.
const BITS: usize = 1 << 20;

/// A set of keys that may take others for its own, and never forgets one, in little memory (Bloom 1970, with one hash).
#[derive(Debug, Default)]
pub(crate) struct Elsewhere(Vec<u64>);

impl Elsewhere {
    pub(crate) fn add(&mut self, key: Key) {
        if self.0.is_empty() {
            self.0.resize(BITS / 64, 0);
        }
        let bit = Elsewhere::bit(key);
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    pub(crate) fn may_have(&self, key: Key) -> bool {
        let bit = Elsewhere::bit(key);
        self.0.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    fn bit(key: Key) -> usize {
        (key.hash().wrapping_mul(0xff51_afd7_ed55_8ccd) >> 44) as usize % BITS
    }
}

/// Both ends of a connection, the smaller first: addresses as those of IPv6 (RFC 4291 section 2.5.5.2), and ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    addresses: [u128; 2],
    ports: [u16; 2],
}

impl Key {
    /// An address as one of IPv6, and the port.
    #[inline]
    fn end(end: SocketAddr) -> (u128, u16) {
        match end {
            SocketAddr::V4(end) => (0xffff << 32 | u128::from(end.ip().to_bits()), end.port()),
            SocketAddr::V6(end) => (end.ip().to_bits(), end.port()),
        }
    }

    #[inline]
    pub(crate) fn between(one: SocketAddr, other: SocketAddr) -> Key {
        let (one, other) = (Key::end(one), Key::end(other));
        let (low, high) = if one <= other { (one, other) } else { (other, one) };
        Key { addresses: [low.0, high.0], ports: [low.1, high.1] }
    }
}

impl Key {
    fn hash(self) -> u64 {
        BuildHasherDefault::<Mix>::default().hash_one(self)
    }
}

impl Hash for Key {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        for address in self.addresses {
            // The upper half is the network of IPv6, and the same for all of IPv4.
            state.write_u64(address as u64 ^ ((address >> 64) as u64).rotate_left(17));
        }
        state.write_u64(u64::from(self.ports[0]) << 16 | u64::from(self.ports[1]));
    }
}

/// A quick hash: keys of a capture are not chosen against this table by anybody whom more than time would cost.
#[derive(Debug, Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}
