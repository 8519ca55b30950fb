//! `requirements`: what this machine lacks for a rack.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, params, requirement};
use crate::rack::speed;
use framegauge_drivers::host::aggregates::Asked;
use framegauge_drivers::own;
use framegauge_drivers::rack::requirements::probe;
use serde::Deserialize;
use serde_json::{Value, json};

/// Who joins the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Testbed {
    /// Our fabric.
    Fabric,
    /// The kernel's veth.
    Kernel,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    testbed: Testbed,
    bits_per_second: Option<u64>,
    gso_bytes: Option<u32>,
    gro_bytes: Option<u32>,
}

/// Tries what the rack would do.
pub fn run(call: &Call) -> Answer {
    let Ask { testbed, bits_per_second, gso_bytes, gro_bytes } = params(&call.request)?;
    let fabric = testbed == Testbed::Fabric;
    let mut requirements = probe(fabric, bits_per_second.is_some(), Asked { gso_bytes, gro_bytes });
    if let Some(rate) = bits_per_second.filter(|_| fabric && requirements.missing.is_empty()) {
        requirements.missing.extend(speed::lacking(rate, call.session.rack.most_bits_per_second()));
    }
    let list = |all: &[_]| all.iter().map(requirement).collect::<Vec<Value>>();
    Ok(json!({"missing": list(&requirements.missing), "degraded": list(&requirements.degraded),
              "precedence": own::precedence().name()}))
}
