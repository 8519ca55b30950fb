//! `cpu.begin`, `cpu.read` and `cpu.end`: what this host's work costs.

use crate::host::meter::{Counts, Meter};
use crate::host::state::HostState;
use crate::pipe::call::Call;
use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Failure, Nothing, params};
use crate::tools::helper::Helper;
use framegauge_drivers::meters;
use framegauge_drivers::meters::cpu::{CpuMeter, CpuUse, HostCpu, WholeMeter};
use serde_json::{Value, json};

/// Begins the interval.
pub fn begin(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let host = &call.session.host;
    let meter = host.with_applied(|applied| match applied.is_adopted() {
        true => WholeMeter::begin().map(|meter| Meter::Whole(meter, counts(host))),
        false => CpuMeter::begin(applied.pollers(), &host.processes).map(Meter::Parts),
    })?;
    *lock(&host.meter) = Some(meter);
    Ok(json!({}))
}

/// Reports what was used so far, and the packets that the interfaces carried; the interval goes on.
pub fn read(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let host = &call.session.host;
    let interface = host.with_applied(|applied| meters::host(&applied.interfaces()))?.interface;
    let mut meter = lock(&host.meter);
    let mut answer = report(host, meter.as_mut().ok_or_else(absent)?)?;
    answer["packets"] = json!(interface.rx_packets + interface.tx_packets);
    Ok(answer)
}

/// Ends it and reports.
pub fn end(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let meter = lock(&call.session.host.meter).take();
    report(&call.session.host, &mut meter.ok_or_else(absent)?)
}

fn absent() -> Failure {
    Failure::state("cpu.begin comes first")
}

fn report(host: &HostState, meter: &mut Meter) -> Answer {
    let before = match meter {
        Meter::Whole(_, before) => Some(before.clone()),
        Meter::Parts(_) => None,
    };
    let mut used = meter.read(&host.processes)?;
    if let Some(before) = before {
        let counted = before.and_then(|before| Ok(Counted { before, after: counts(host)? }));
        add_counts(&mut used, counted);
    }
    Ok(json!({
        "elapsed_seconds": used.elapsed_seconds,
        "programs": describe(&used.programs),
        "receive_path": used.receive_path.as_ref().map(describe),
        "polls": used.polls,
        "meter_seconds": used.meter_seconds,
        "not_measured": used.not_measured,
    }))
}

fn counts(host: &HostState) -> Counts {
    let mut counters = lock(&host.counters);
    let Some(started) = counters.as_mut() else {
        return Err("not counted, as nobody asked for it".into());
    };
    let counts = started.as_mut().map_err(|reason| reason.clone()).and_then(ask);
    if let Err(reason) = &counts {
        *started = Err(reason.clone());
    }
    counts
}

fn ask(counter: &mut Helper) -> Counts {
    counter.tell("read\n");
    let answer = counter.hear().map_err(|failure| failure.message)?;
    let number = |name: &str| answer[name].as_u64().ok_or(format!("the counter said {answer}"));
    Ok((number("instructions")?, number("cycles")?))
}

struct Counted {
    before: (u64, u64),
    after: (u64, u64),
}

/// What was counted in between; the receive path's share is in the programs'.
fn add_counts(used: &mut HostCpu, counts: Result<Counted, String>) {
    match counts {
        Ok(Counted { before, after }) => {
            used.programs.instructions = Some(after.0.saturating_sub(before.0));
            used.programs.cycles = Some(after.1.saturating_sub(before.1));
            let nothing = CpuUse { instructions: Some(0), cycles: Some(0), ..CpuUse::default() };
            used.receive_path = Some(nothing);
        }
        Err(reason) => used
            .not_measured
            .extend(["instructions", "cycles"].map(|quantity| format!("{quantity}: {reason}"))),
    }
}

fn describe(used: &CpuUse) -> Value {
    json!({"cpu_seconds": used.cpu_seconds, "instructions": used.instructions, "cycles": used.cycles})
}
