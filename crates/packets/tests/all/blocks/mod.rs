//! Blocks of pcapng as other programs would write them, by hand from draft-ietf-opsawg-pcapng.

use framegauge_packets::pcapng::LINK_ETHERNET;

/// Numbers in one byte order, for files as another program would write them.
#[derive(Debug, Clone, Copy)]
pub enum Order {
    Little,
    Big,
}

impl Order {
    pub fn long(self, value: u32) -> [u8; 4] {
        match self {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        }
    }

    pub fn word(self, value: u16) -> [u8; 2] {
        match self {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        }
    }

    pub fn longer(self, value: u64) -> [u8; 8] {
        match self {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        }
    }

    pub fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let body = pad(body);
        let length = self.long(body.len() as u32 + 12);
        [&self.long(kind)[..], &length, &body, &length].concat()
    }

    pub fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        [&self.word(code)[..], &self.word(value.len() as u16), &pad(value)].concat()
    }

    pub fn section(self, length: u64, options: &[u8]) -> Vec<u8> {
        let version = [self.word(1), self.word(0)].concat();
        let body = [&self.long(0x1a2b_3c4d)[..], &version, &self.longer(length), options].concat();
        self.block(0x0a0d_0d0a, &body)
    }

    pub fn interface(self, snap_bytes: u32, options: &[u8]) -> Vec<u8> {
        self.interface_of(LINK_ETHERNET, snap_bytes, options)
    }

    pub fn interface_of(self, link_type: u16, snap_bytes: u32, options: &[u8]) -> Vec<u8> {
        let link = [self.word(link_type), [0; 2]].concat();
        self.block(1, &[&link[..], &self.long(snap_bytes), options].concat())
    }

    pub fn packet(self, ticks: u64, bytes: &[u8], original_bytes: u32, options: &[u8]) -> Vec<u8> {
        self.packet_of(0, ticks, bytes, original_bytes, options)
    }

    pub fn packet_of(
        self,
        interface: u32,
        ticks: u64,
        bytes: &[u8],
        original_bytes: u32,
        options: &[u8],
    ) -> Vec<u8> {
        let numbers = [interface, (ticks >> 32) as u32, ticks as u32, bytes.len() as u32, original_bytes];
        let head: Vec<u8> = numbers.into_iter().flat_map(|number| self.long(number)).collect();
        self.block(6, &[&head[..], &pad(bytes), options].concat())
    }
}

pub fn pad(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(4), 0);
    padded
}
