//! How large a packet fits into a stack of encapsulations, and what it occupies on the wire.

use super::headers::Part;
use super::padding::Range;
use super::{Cargo, EncapsulationError, Layer, Stack};
use crate::{BitRate, Ceiling, ETHERNET_HEADER_BYTES, Family, Mtu, frame_bytes, wire_bytes};

const BITS_PER_BYTE: f64 = 8.0;

/// A stack on a link: the largest packet inside, and what it costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fit {
    /// The link's MTU.
    pub mtu: Mtu,
    /// The largest packet that fits inside of everything.
    pub inner_mtu: Mtu,
    /// The layers, outermost first.
    pub layers: Vec<FittedLayer>,
    /// The frame of an inner packet of that size, header, tags and FCS included.
    pub frame_bytes: u32,
    /// What that frame occupies on the wire.
    pub wire_bytes: u32,
    cargo: Cargo,
}

/// What one layer of a stack takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FittedLayer {
    /// The layer.
    pub layer: Layer,
    /// It takes from the MTU; else it only lengthens the frame.
    pub within_mtu: bool,
    /// All it takes, in bytes: the sum of its parts.
    pub overhead_bytes: u32,
    /// The MTU inside of it.
    pub inner_mtu: Mtu,
    /// Its headers, trailers and what padding leaves unused.
    pub parts: Vec<Part>,
    /// Between which lengths the overhead is, where it depends on the packet.
    pub range: Option<Range>,
}

/// What TCP inside of a stack can have at best; see [`crate::ceiling`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InnerCeiling {
    /// The inner IP version.
    pub family: Family,
    /// The MSS as announced, before options, in bytes.
    pub mss_bytes: u32,
    /// TCP payload of a full segment (timestamps on), in bytes.
    pub segment_payload_bytes: u32,
    /// Application bits delivered per second.
    pub goodput_bits_per_second: Option<f64>,
    /// Full-size packets per second.
    pub packets_per_second: Option<f64>,
}

impl Stack {
    /// How large a packet fits on a link with this MTU; an error if a layer has too little room.
    pub fn fit(&self, mtu: Mtu) -> Result<Fit, EncapsulationError> {
        let mut inner_mtu = mtu;
        let mut enclosed = false;
        let mut layers = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            let encapsulation = layer.encapsulation;
            enclosed |= !encapsulation.is_frame_only();
            let within_mtu = enclosed || layer.within_mtu;
            let mut parts = encapsulation.parts();
            if within_mtu {
                let outside = inner_mtu;
                inner_mtu = inside(layer, outside)?;
                let unused = outside.bytes() - inner_mtu.bytes() - encapsulation.overhead_bytes();
                if unused > 0 {
                    let (name, source) = encapsulation.unused();
                    parts.push(Part { name, bytes: unused, source });
                }
            }
            let overhead_bytes = parts.iter().map(|part| part.bytes).sum();
            let range = encapsulation.range();
            layers.push(FittedLayer { layer: *layer, within_mtu, overhead_bytes, inner_mtu, parts, range });
        }
        let captured = ETHERNET_HEADER_BYTES + occupied_bytes(&layers, inner_mtu.bytes());
        let frame = frame_bytes(captured);
        Ok(Fit {
            mtu,
            inner_mtu,
            layers,
            frame_bytes: frame,
            wire_bytes: wire_bytes(frame),
            cargo: self.cargo,
        })
    }
}

impl Fit {
    /// What all layers take from the MTU, in bytes.
    pub fn overhead_bytes(&self) -> u32 {
        self.mtu.bytes() - self.inner_mtu.bytes()
    }

    /// What the link's frames have in addition, beyond its MTU, in bytes.
    pub fn frame_overhead_bytes(&self) -> u32 {
        self.layers.iter().filter(|layer| !layer.within_mtu).map(|layer| layer.overhead_bytes).sum()
    }

    /// What a link of that rate delivers at best to TCP inside, as [`crate::ceiling`] says it of a link without layers.
    pub fn ceiling(&self, family: Family, timestamps: bool, rate: BitRate) -> Ceiling {
        let segment_payload_bytes = self.inner_mtu.segment_payload(family, timestamps);
        let share = f64::from(segment_payload_bytes) / f64::from(self.wire_bytes);
        Ceiling {
            mtu: self.inner_mtu,
            frame_bytes: self.frame_bytes,
            wire_bytes: self.wire_bytes,
            mss_bytes: self.inner_mtu.mss(family),
            segment_payload_bytes,
            goodput_bits_per_second: rate.bits_per_second() as f64 * share,
        }
    }

    /// What TCP has inside, for every IP version that the innermost layer carries and the inner MTU allows.
    pub fn ceilings(&self, rate: Option<BitRate>) -> Vec<InnerCeiling> {
        let carried = |family: &Family| match self.cargo {
            Cargo::Ip(Some(only)) => only == *family,
            Cargo::Ip(None) | Cargo::Ethernet => true,
        };
        let frames =
            rate.map(|rate| rate.bits_per_second() as f64 / (f64::from(self.wire_bytes) * BITS_PER_BYTE));
        [Family::V4, Family::V6]
            .into_iter()
            .filter(carried)
            .filter(|family| self.inner_mtu.check(*family).is_ok())
            .map(|family| {
                let segment_payload_bytes = self.inner_mtu.segment_payload(family, true);
                InnerCeiling {
                    family,
                    mss_bytes: self.inner_mtu.mss(family),
                    segment_payload_bytes,
                    goodput_bits_per_second: frames
                        .map(|frames| frames * f64::from(segment_payload_bytes) * BITS_PER_BYTE),
                    packets_per_second: frames,
                }
            })
            .collect()
    }
}

/// The largest packet inside of a layer that may fill `outside`.
fn inside(layer: &Layer, outside: Mtu) -> Result<Mtu, EncapsulationError> {
    let encapsulation = layer.encapsulation;
    let place = layer.to_string();
    if let Some(underlay) = encapsulation.underlay()
        && outside.check(underlay).is_err()
    {
        let least = underlay.minimum_mtu_bytes();
        let actual = format!("an MTU of {} bytes around it", outside.bytes());
        return Err(EncapsulationError::new(place, actual, format!("at least {least} for {underlay}")));
    }
    let room = encapsulation.padding().largest(outside.bytes(), encapsulation.overhead_bytes());
    Mtu::new(room).map_err(|_| {
        let actual = format!("room for packets of {room} bytes inside of it");
        EncapsulationError::new(
            place,
            actual,
            format!("at least {} for ipv4", Family::V4.minimum_mtu_bytes()),
        )
    })
}

/// What follows the Ethernet header of the link's frame: the packet with every layer around it, padding as it falls.
fn occupied_bytes(layers: &[FittedLayer], packet: u32) -> u32 {
    layers.iter().rev().fold(packet, |bytes, fitted| {
        let encapsulation = fitted.layer.encapsulation;
        encapsulation.padding().filled(bytes, fitted.inner_mtu.bytes()) + encapsulation.overhead_bytes()
    })
}
