//! `rack.bare`: hosts without any link, for networks that are built by the kernel's own tools.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Failure, params};
use crate::rack::members;
use crate::rack::names::check_names;
use crate::rack::state::Rack;
use framegauge_drivers::rack::bare;
use framegauge_drivers::rack::cpus::plan_cpus;
use serde::Deserialize;
use serde_json::{Value, json};

/// As many as a rack has at most; each is a process.
const MOST_HOSTS: usize = 250;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bare {
    hosts: Vec<String>,
}

/// Starts the hosts.
pub fn run(call: &Call) -> Answer {
    let Bare { hosts } = params(&call.request)?;
    check_names("rack.bare", &hosts)?;
    if !(1..=MOST_HOSTS).contains(&hosts.len()) {
        return Err(Failure::refused("hosts without links", hosts.len(), format!("1 to {MOST_HOSTS}")));
    }
    let mut current = call.session.rack.vacant(false, false)?;
    let mut rack = Rack::empty(plan_cpus(false));
    match start(call, &hosts, &mut rack) {
        Ok(answer) => {
            *current = Some(rack);
            Ok(answer)
        }
        Err(failure) => {
            let _ = call.session.rack.take_down(rack);
            Err(failure)
        }
    }
}

fn start(call: &Call, hosts: &[String], rack: &mut Rack) -> Answer {
    let threads = members::start(call, hosts, rack, false)?;
    let mut described: Vec<Value> = Vec::with_capacity(threads.len());
    for (name, thread) in threads {
        bare::raise_loopback(thread)?;
        described.push(json!({"name": name, "pid": rack.hosts[&name].pid(), "thread": thread}));
    }
    Ok(json!({"hosts": described}))
}
