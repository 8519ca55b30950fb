//! One command a file: parse, apply, reply.

mod basics;
mod check;
mod check_echo;
mod check_facts;
mod cpu;
mod fields;
mod frames_wire;
mod host_adopt;
mod host_apply;
mod host_counters;
mod host_frames;
mod host_read;
mod host_set;
mod host_state;
mod lease;
mod measure;
mod processes;
mod rack_bare;
mod rack_members;
mod rack_network;
mod rack_params;
mod rack_relay;
mod rack_set;
mod rack_speed;
mod rack_up;
mod requirements;
mod rr;
mod sockets;
mod spool;
mod streams;
mod wire;

pub use check::Check;
pub use cpu::Meter;
pub use host_state::HostState;

use crate::arguments::Role;
use crate::message::{Answer, Failure};
use crate::session::Call;

/// Finds the command and runs it.
pub fn dispatch(call: &Call) -> Answer {
    let method = call.request.method.as_str();
    match method {
        "hello" => basics::hello(call),
        "cancel" => basics::cancel(call),
        "shutdown" => basics::shutdown(call),
        "spool.read" => spool::read(call),
        "spool.drop" => spool::forget(call),
        "frames.wire" => frames_wire::run(call),
        _ if call.session.role == Role::Rack => rack(method, call),
        _ => host(method, call),
    }
}

fn rack(method: &str, call: &Call) -> Answer {
    match method {
        "requirements" => requirements::run(call),
        "frames.predict" => basics::predict(call),
        "rack.up" => rack_up::up(call),
        "rack.bare" => rack_bare::run(call),
        "rack.down" => rack_up::down(call),
        "rack.set" => rack_set::run(call),
        "rack.ports" => measure::ports(call),
        "relay" => rack_relay::run(call),
        "measure.begin" => measure::begin(call),
        "measure.end" => measure::end(call),
        _ => Err(Failure::unknown_method(method, "rack")),
    }
}

fn host(method: &str, call: &Call) -> Answer {
    match method {
        "host.adopt" => host_adopt::run(call),
        "host.apply" => host_apply::run(call),
        "host.set" => host_set::run(call),
        "host.read" => host_read::run(call),
        "check.facts" => check_facts::run(call),
        "check.routes" => check_facts::routes(call),
        "host.frames" => host_frames::run(call),
        "host.counters" => host_counters::run(call),
        "lease.begin" => lease::begin(call),
        "lease.renew" => lease::renew(call),
        "lease.end" => lease::end(call),
        "cpu.begin" => cpu::begin(call),
        "cpu.end" => cpu::end(call),
        "check.serve" => check::serve(call),
        "check.run" => check::run(call),
        "check.echo" => check_echo::run(call),
        "check.trace" => check::trace(call),
        "check.close" => check::close(call),
        "wire.begin" => wire::begin(call),
        "wire.end" => wire::end(call),
        "stream.serve" => streams::serve(call),
        "stream.close" => streams::close(call),
        "stream.run" => streams::run(call),
        "rr.serve" => rr::serve(call),
        "rr.close" => rr::close(call),
        "rr.run" => rr::run(call),
        "sockets.read" => sockets::read(call),
        "process.spawn" => processes::spawn(call),
        "process.wait" => processes::wait(call),
        "process.signal" => processes::signal(call),
        "process.kill" => processes::kill(call),
        "process.output" => processes::output(call),
        _ => Err(Failure::unknown_method(method, "host")),
    }
}
