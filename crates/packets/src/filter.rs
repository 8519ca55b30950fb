//! The packets that bear on TCP, as a program of the classic BPF (McCanne and Jacobson, USENIX 1993; Linux'
//! `networking/filter.rst`): TCP, what ICMP says, what tunnels carry. The kernel runs it for each packet.
//!
//! What cannot be told without reading further (later fragments, IPv6 extension headers) is taken.

use std::net::{IpAddr, SocketAddr};

/// An instruction: code, jump if true, jump if false, and a value.
pub type Instruction = (u16, u8, u8, u32);

/// Ports that may be asked for at once.
pub const MOST_PORTS: usize = 64;
/// Connections that may be left out at once.
pub const MOST_LEFT_OUT: usize = 32;

/// What to take.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Packets begin with an Ethernet header, and not with another or with that of IP.
    pub ethernet: bool,
    /// TCP from or to one of these ports, and not what tunnels carry; empty: all.
    pub ports: Vec<u16>,
    /// Connections that are not taken, both ways. Both ends are of one IP version.
    pub left_out: Vec<(SocketAddr, SocketAddr)>,
    /// Bytes of a packet that are kept.
    pub snap_bytes: u32,
}

const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_WORD_AT_X: u16 = 0x40;
const LOAD_HALF_AT_X: u16 = 0x48;
const X_IS_HEADER_LENGTH: u16 = 0xb1;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// `SKF_AD_OFF + SKF_AD_PROTOCOL`: the ethertype, also of packets without a link header.
const ETHERTYPE: u32 = 0xffff_f000;
/// `SKF_NET_OFF`: from here on the kernel counts from the network header, however long the link's is.
const NETWORK_HEADER: u32 = 0xfff0_0000;
const ETHERNET_HEADER_BYTES: u32 = 14;
const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
const VLANS: [u32; 2] = [0x8100, 0x88a8];
const ICMP: u32 = 1;
const ICMP_V6: u32 = 58;
const TCP: u32 = 6;
const UDP: u32 = 17;
/// IPv4, IPv6 and GRE inside.
const TUNNELS: [u32; 3] = [4, 41, 47];
/// Hop-by-hop, routing, fragment and destination headers.
const EXTENSIONS: [u32; 4] = [0, 43, 44, 60];
/// VXLAN (RFC 7348, and Linux' default), Geneve (RFC 8926), GRE in UDP (RFC 8086).
const TUNNEL_PORTS: [u32; 4] = [4789, 8472, 6081, 4754];
const FRAGMENT_OFFSET: u32 = 0x1fff;
const IPV6_HEADER_BYTES: u32 = 40;

/// Places that are jumped to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    Four,
    Six,
    TcpFour,
    TcpSix,
    UdpFour,
    UdpSix,
    Take,
    Leave,
    /// Behind the comparison of this number.
    Next(usize),
}

enum Step {
    Do(Instruction),
    GoTo(Label),
    Here(Label),
}

struct Program {
    steps: Vec<Step>,
    comparisons: usize,
}

impl Filter {
    /// The program.
    pub fn program(&self) -> Vec<Instruction> {
        let mut program = Program { steps: Vec::new(), comparisons: 0 };
        let base = if self.ethernet { ETHERNET_HEADER_BYTES } else { NETWORK_HEADER };
        self.by_version(&mut program);
        self.four(&mut program, base);
        self.six(&mut program, base);
        program.here(Label::Leave);
        program.run(RETURN, 0);
        program.here(Label::Take);
        program.run(RETURN, self.snap_bytes);
        program.assembled()
    }

    fn by_version(&self, program: &mut Program) {
        match self.ethernet {
            true => program.run(LOAD_HALF, 12),
            false => program.run(LOAD_WORD, ETHERTYPE),
        }
        program.if_equal(IPV4, Label::Four);
        program.if_equal(IPV6, Label::Six);
        if self.ports.is_empty() {
            VLANS.into_iter().for_each(|kind| program.if_equal(kind, Label::Take));
        }
        program.go_to(Label::Leave);
    }

    fn four(&self, program: &mut Program, base: u32) {
        program.here(Label::Four);
        program.run(LOAD_BYTE, base + 9);
        self.by_protocol(program, ICMP, Label::TcpFour, Label::UdpFour);
        program.here(Label::TcpFour);
        program.run(LOAD_HALF, base + 6);
        program.if_any_bit(FRAGMENT_OFFSET, Label::Take);
        program.run(X_IS_HEADER_LENGTH, base);
        for (one, other) in self.left_out.iter().filter(|(one, _)| one.is_ipv4()) {
            for (source, destination) in [(one, other), (other, one)] {
                let next = program.new_label();
                program.unless_words(base + 12, source.ip(), next);
                program.unless_words(base + 16, destination.ip(), next);
                program.run(LOAD_WORD_AT_X, base);
                program.if_equal(ports(*source, *destination), Label::Leave);
                program.here(next);
            }
        }
        for place in [base, base + 2] {
            program.wanted(LOAD_HALF_AT_X, place, &self.ports);
        }
        program.go_to(if self.ports.is_empty() { Label::Take } else { Label::Leave });
        program.here(Label::UdpFour);
        program.run(X_IS_HEADER_LENGTH, base);
        program.run(LOAD_HALF_AT_X, base + 2);
        TUNNEL_PORTS.into_iter().for_each(|port| program.if_equal(port, Label::Take));
        program.go_to(Label::Leave);
    }

    fn six(&self, program: &mut Program, base: u32) {
        program.here(Label::Six);
        program.run(LOAD_BYTE, base + 6);
        EXTENSIONS.into_iter().for_each(|kind| program.if_equal(kind, Label::Take));
        self.by_protocol(program, ICMP_V6, Label::TcpSix, Label::UdpSix);
        program.here(Label::TcpSix);
        let behind = base + IPV6_HEADER_BYTES;
        for (one, other) in self.left_out.iter().filter(|(one, _)| one.is_ipv6()) {
            for (source, destination) in [(one, other), (other, one)] {
                let next = program.new_label();
                program.unless_words(base + 8, source.ip(), next);
                program.unless_words(base + 24, destination.ip(), next);
                program.run(LOAD_WORD, behind);
                program.if_equal(ports(*source, *destination), Label::Leave);
                program.here(next);
            }
        }
        for place in [behind, behind + 2] {
            program.wanted(LOAD_HALF, place, &self.ports);
        }
        program.go_to(if self.ports.is_empty() { Label::Take } else { Label::Leave });
        program.here(Label::UdpSix);
        program.run(LOAD_HALF, behind + 2);
        TUNNEL_PORTS.into_iter().for_each(|port| program.if_equal(port, Label::Take));
        program.go_to(Label::Leave);
    }

    /// The protocol has been loaded.
    fn by_protocol(&self, program: &mut Program, icmp: u32, tcp: Label, udp: Label) {
        program.if_equal(TCP, tcp);
        program.if_equal(icmp, Label::Take);
        if self.ports.is_empty() {
            program.if_equal(UDP, udp);
            TUNNELS.into_iter().for_each(|kind| program.if_equal(kind, Label::Take));
        }
        program.go_to(Label::Leave);
    }
}

fn ports(source: SocketAddr, destination: SocketAddr) -> u32 {
    u32::from(source.port()) << 16 | u32::from(destination.port())
}

impl Program {
    fn run(&mut self, code: u16, value: u32) {
        self.steps.push(Step::Do((code, 0, 0, value)));
    }

    fn go_to(&mut self, label: Label) {
        self.steps.push(Step::GoTo(label));
    }

    fn here(&mut self, label: Label) {
        self.steps.push(Step::Here(label));
    }

    fn new_label(&mut self) -> Label {
        self.comparisons += 1;
        Label::Next(self.comparisons)
    }

    // A conditional jump reaches 255 instructions, a jump any place: so the former leads round the latter.

    fn if_equal(&mut self, value: u32, label: Label) {
        self.steps.push(Step::Do((JUMP_IF_EQUAL, 0, 1, value)));
        self.go_to(label);
    }

    fn unless_equal(&mut self, value: u32, label: Label) {
        self.steps.push(Step::Do((JUMP_IF_EQUAL, 1, 0, value)));
        self.go_to(label);
    }

    fn if_any_bit(&mut self, bits: u32, label: Label) {
        self.steps.push(Step::Do((JUMP_IF_ANY_BIT, 0, 1, bits)));
        self.go_to(label);
    }

    fn unless_words(&mut self, place: u32, address: IpAddr, label: Label) {
        let octets = match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        for (number, octets) in octets.chunks_exact(4).enumerate() {
            self.run(LOAD_WORD, place + 4 * number as u32);
            self.unless_equal(u32::from_be_bytes(octets.try_into().unwrap_or_default()), label);
        }
    }

    fn wanted(&mut self, code: u16, place: u32, ports: &[u16]) {
        if !ports.is_empty() {
            self.run(code, place);
            ports.iter().for_each(|port| self.if_equal(u32::from(*port), Label::Take));
        }
    }

    fn assembled(&self) -> Vec<Instruction> {
        let (mut places, mut place) = (Vec::new(), 0u32);
        for step in &self.steps {
            match step {
                Step::Here(label) => places.push((*label, place)),
                _ => place += 1,
            }
        }
        let mut program = Vec::with_capacity(place as usize);
        for step in &self.steps {
            match step {
                Step::Do(instruction) => program.push(*instruction),
                Step::GoTo(label) => {
                    let target =
                        places.iter().find(|(known, _)| known == label).map_or(0, |(_, place)| *place);
                    // All of them lead forwards.
                    program.push((JUMP, 0, 0, target.saturating_sub(program.len() as u32 + 1)));
                }
                Step::Here(_) => {}
            }
        }
        program
    }
}
