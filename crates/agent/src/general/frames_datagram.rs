//! `frames.datagram`: how a UDP datagram is cut into packets, and what these occupy on several links.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Failure, params};
use framegauge_frames::{Datagram, Family, Medium, Mtu, Part};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    bytes: u64,
    nfs_read: bool,
    family: u8,
    links: Vec<Link>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    medium: String,
    mtu: Option<u32>,
}

/// Does the sum.
pub fn run(call: &Call) -> Answer {
    let request: Ask = params(&call.request)?;
    let failure = |problem: String| Failure::invalid_params("frames.datagram", problem);
    let family = match request.family {
        4 => Family::V4,
        6 => Family::V6,
        version => return Err(failure(format!("family: found {version}, expected 4 or 6"))),
    };
    let datagram = if request.nfs_read {
        Datagram::nfs_read(request.bytes, family)
    } else {
        Datagram::new(request.bytes, family)
    };
    let datagram = datagram.map_err(|error| failure(format!("bytes: {error}")))?;
    let mut links = Vec::with_capacity(request.links.len());
    for link in &request.links {
        links.push(on_link(&datagram, link).map_err(failure)?);
    }
    Ok(json!({
        "bytes": request.bytes,
        "nfs_read": request.nfs_read,
        "family": request.family,
        "payload_bytes": datagram.payload_bytes,
        "packet_bytes": datagram.packet_bytes(),
        "headers": datagram.headers.iter().map(part).collect::<Vec<Value>>(),
        "links": links,
    }))
}

fn on_link(datagram: &Datagram, link: &Link) -> Result<Value, String> {
    let names = Medium::ALL.map(Medium::name).join(", ");
    let medium = Medium::ALL
        .into_iter()
        .find(|medium| medium.name() == link.medium)
        .ok_or_else(|| format!("medium: found {:?}, expected one of {names}", link.medium))?;
    let (standard, source) = medium.standard_mtu();
    let bytes = link.mtu.unwrap_or(standard);
    let least = datagram.family.minimum_mtu_bytes();
    let mtu = Mtu::new(bytes)
        .and_then(|mtu| mtu.check(datagram.family))
        .map_err(|_| format!("mtu: found {bytes}, expected {least} to {} bytes", u16::MAX))?;
    let packets = datagram.packets(mtu);
    let cells: Option<u32> = packets.iter().map(|packet| medium.cells(*packet)).sum();
    Ok(json!({
        "medium": medium.name(),
        "mtu": bytes,
        "mtu_source": (bytes == standard).then_some(source),
        "packets_bytes": packets,
        "cells": cells,
        "wire_bytes": packets.iter().map(|packet| u64::from(medium.wire_bytes(*packet))).sum::<u64>(),
        "parts": medium.parts().iter().map(part).collect::<Vec<Value>>(),
    }))
}

fn part(part: &Part) -> Value {
    json!({"name": part.name, "bytes": part.bytes, "source": part.source})
}
