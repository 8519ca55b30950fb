//! `frames.rdma`: which path MTU of RDMA (RoCEv2) an interface carries, and what each needs.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Failure, params};
use framegauge_frames::{Family, Mtu, rdma_headers, rdma_linux_path_mtu, rdma_path_mtu, rdma_paths};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    mtu: u32,
    family: u8,
}

/// Does the sum.
pub fn run(call: &Call) -> Answer {
    let request: Ask = params(&call.request)?;
    let failure = |problem: String| Failure::invalid_params("frames.rdma", problem);
    let family = match request.family {
        4 => Family::V4,
        6 => Family::V6,
        version => return Err(failure(format!("family: found {version}, expected 4 or 6"))),
    };
    let least = Family::V4.minimum_mtu_bytes();
    let mtu = Mtu::new(request.mtu).map_err(|_| {
        failure(format!("mtu: found {}, expected {least} to {} bytes", request.mtu, u16::MAX))
    })?;
    let parts = rdma_headers(family)
        .map(|part| json!({"name": part.name, "bytes": part.bytes, "source": part.source}));
    let levels: Vec<Value> = rdma_paths(family)
        .iter()
        .map(|path| {
            json!({
                "path_mtu": path.path_mtu_bytes,
                "packet_bytes": path.packet_bytes,
                "linux_mtu": path.linux_mtu_bytes,
                "wire_bytes": path.wire_bytes,
                "payload_share": path.payload_share,
            })
        })
        .collect();
    Ok(json!({
        "mtu": request.mtu,
        "family": request.family,
        "path_mtu": rdma_path_mtu(mtu, family),
        "linux_path_mtu": rdma_linux_path_mtu(mtu),
        "parts": parts,
        "levels": levels,
    }))
}
