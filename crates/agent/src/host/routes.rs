//! `host.routes`: the MTU of an interface, and the path MTUs that the routes through it ask for.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Failure, params};
use framegauge_drivers::host::settings::{Setting, around, held_routes};
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    interface: String,
}

/// Reads them; `settings` are what a lease would put back, `along` the interfaces whose MTU may change with it.
pub fn run(call: &Call) -> Answer {
    let request: Ask = params(&call.request)?;
    let mut settings = Map::new();
    for kind in ["mtu", "routes4", "routes6"] {
        let name = format!("{kind}:{}", request.interface);
        let setting =
            Setting::parse(&name).map_err(|reason| Failure::invalid_params("host.routes", &reason))?;
        settings.insert(name, setting.read()?.into());
    }
    // An interface without IPv6 has none.
    let ipv6 = Setting::Ipv6Mtu(request.interface.clone());
    if let Ok(mtu) = ipv6.read() {
        settings.insert(ipv6.to_string(), mtu.into());
    }
    let mut routes: Vec<Value> = Vec::new();
    for family in [4, 6] {
        routes.extend(held_routes::read(&request.interface, family)?.iter().map(|route| {
            json!({"family": family, "route": route.key.to_string(), "connected": route.connected,
                   "mtu": route.held.mtu, "locked": route.held.locked})
        }));
    }
    Ok(json!({"settings": settings, "routes": routes, "along": around::along(&request.interface)?}))
}
