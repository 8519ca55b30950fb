//! `spool.read` and `spool.drop`: bulk records, fetched after a run.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Failure, params};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use framegauge_drivers::spool::read_at;
use serde::Deserialize;
use serde_json::json;

/// The most that one answer carries.
pub const MOST_BYTES: u64 = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    spool: u64,
    offset_bytes: u64,
    length_bytes: u64,
}

/// Reads a part of a spool.
pub fn read(call: &Call) -> Answer {
    let Read { spool, offset_bytes, length_bytes } = params(&call.request)?;
    let file = call.session.spools.get(spool).ok_or_else(|| unknown(spool))?;
    let (data, size) = read_at(&file, offset_bytes, length_bytes.min(MOST_BYTES) as usize)?;
    Ok(json!({"data": STANDARD.encode(data), "size_bytes": size}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Forget {
    spool: u64,
}

/// Forgets a spool.
pub fn forget(call: &Call) -> Answer {
    let Forget { spool } = params(&call.request)?;
    if call.session.spools.forget(spool) { Ok(json!({})) } else { Err(unknown(spool)) }
}

fn unknown(spool: u64) -> Failure {
    Failure::state(format!("there is no spool {spool}"))
}
