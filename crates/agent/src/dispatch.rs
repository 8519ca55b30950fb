//! The table of methods and their commands. Each file of a command parses, applies and replies.

use crate::arguments::Role;
use crate::check::{echo, facts, two_ended};
use crate::general::{frames_datagram, frames_rdma, frames_wire, hello, spool};
use crate::generators::{datagrams, incast, quic, rr, streams};
use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Failure};
use crate::{host, rack};

/// Finds the command and runs it.
pub fn dispatch(call: &Call) -> Answer {
    let method = call.request.method.as_str();
    match method {
        "hello" => hello::hello(call),
        "cancel" => hello::cancel(call),
        "shutdown" => hello::shutdown(call),
        "spool.read" => spool::read(call),
        "spool.drop" => spool::forget(call),
        "frames.wire" => frames_wire::run(call),
        "frames.datagram" => frames_datagram::run(call),
        "frames.rdma" => frames_rdma::run(call),
        _ if call.session.role == Role::Rack => of_rack(method, call),
        _ => of_host(method, call),
    }
}

fn of_rack(method: &str, call: &Call) -> Answer {
    match method {
        "requirements" => rack::requirements::run(call),
        "frames.predict" => rack::predict::run(call),
        "rack.up" => rack::up::up(call),
        "rack.bare" => rack::bare::run(call),
        "rack.down" => rack::up::down(call),
        "rack.set" => rack::set::run(call),
        "rack.ports" => rack::measure::ports(call),
        "relay" => rack::relay::run(call),
        "measure.begin" => rack::measure::begin(call),
        "measure.end" => rack::measure::end(call),
        _ => Err(Failure::unknown_method(method, "rack")),
    }
}

fn of_host(method: &str, call: &Call) -> Answer {
    match method {
        "host.adopt" => host::adopt::run(call),
        "host.apply" => host::apply::run(call),
        "host.set" => host::set::run(call),
        "host.names" => host::names::run(call),
        "host.folder" => host::folder::folder(call),
        "host.files" => host::folder::files(call),
        "host.fetch" => host::folder::fetch(call),
        "host.list" => host::folder::list(call),
        "host.clear" => host::folder::clear(call),
        "host.read" => host::read::run(call),
        "host.routes" => host::routes::run(call),
        "check.facts" => facts::run(call),
        "check.routes" => facts::routes(call),
        "host.frames" => host::frames::run(call),
        "host.counters" => host::counters::run(call),
        "host.totals" => host::totals::run(call),
        lease if lease.starts_with("lease.") => of_lease(lease, call),
        "capture.about" => host::capture::about(call),
        "capture.begin" => host::capture::begin(call),
        "capture.state" => host::capture::state(call),
        "capture.end" => host::capture::end(call),
        "estimate.begin" => host::estimate::begin(call),
        "estimate.end" => host::estimate::end(call),
        "cpu.begin" => host::cpu::begin(call),
        "cpu.read" => host::cpu::read(call),
        "cpu.end" => host::cpu::end(call),
        "held.begin" => host::held::begin(call),
        "held.end" => host::held::end(call),
        "check.serve" => two_ended::serve(call),
        "check.run" => two_ended::run(call),
        "check.echo" => echo::run(call),
        "check.trace" => two_ended::trace(call),
        "check.close" => two_ended::close(call),
        "wire.begin" => host::handshakes::begin(call),
        "wire.end" => host::handshakes::end(call),
        "stream.serve" => streams::serve(call),
        "stream.close" => streams::close(call),
        "stream.run" => streams::run(call),
        "rr.serve" => rr::serve(call),
        "rr.close" => rr::close(call),
        "rr.run" => rr::run(call),
        "incast.run" => incast::run(call),
        "datagrams.serve" => datagrams::serve(call),
        "datagrams.close" => datagrams::close(call),
        "datagrams.run" => datagrams::run(call),
        "quic.serve" => quic::serve(call),
        "quic.close" => quic::close(call),
        "quic.run" => quic::run(call),
        _ => of_programs(method, call),
    }
}

/// Programs that run in a host, and their sockets.
fn of_programs(method: &str, call: &Call) -> Answer {
    match method {
        "sockets.read" => host::sockets::read(call),
        "sockets.listening" => host::sockets::listening(call),
        "sockets.watch" => host::sockets::watch(call),
        "sockets.watched" => host::sockets::watched(call),
        "process.spawn" => host::processes::spawn(call),
        "process.wait" => host::processes::wait(call),
        "process.ready" => host::ready::run(call),
        "process.signal" => host::processes::signal(call),
        "process.kill" => host::processes::kill(call),
        "process.output" => host::processes::output(call),
        _ => Err(Failure::unknown_method(method, "host")),
    }
}

fn of_lease(method: &str, call: &Call) -> Answer {
    match method {
        "lease.begin" => host::lease::begin(call),
        "lease.set" => host::lease::set(call),
        "lease.renew" => host::lease::renew(call),
        "lease.back" => host::lease::back(call),
        "lease.keep" => host::lease::keep(call),
        "lease.reopen" => host::lease::reopen(call),
        "lease.end" => host::lease::end(call),
        _ => Err(Failure::unknown_method(method, "host")),
    }
}
