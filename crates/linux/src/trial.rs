//! A TAP to try things on, for tests.

use crate::error::{OsError, Result};
use crate::namespace::Network;
use crate::rtnetlink::{LinkChange, add_address, add_neighbours, change_link, set_route};
use crate::sysctl;
use crate::tap::Tap;
use std::net::{Ipv4Addr, UdpSocket};

/// The socket's address.
pub const HERE: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
/// Where it sends, and of whom it hears: a station beyond the TAP, at port 9.
pub const THERE: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 2);

const NAME: &str = "fgtrial0";

/// A TAP in a network of its own and a socket there. Where nobody may make them it says so, and fails in CI.
pub fn tap() -> Option<(Tap, UdpSocket)> {
    match Network::fresh().and_then(|network| network.run(make)) {
        Ok(pair) => Some(pair),
        Err(error) => not_run("network namespaces and TAP devices", &error),
    }
}

/// Says that a test needs what is not there; fails in CI.
pub fn not_run<T>(needs: &str, error: &OsError) -> Option<T> {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{error}");
    eprintln!("not run: needs {needs}: {error}");
    None
}

fn make() -> Result<(Tap, UdpSocket)> {
    let tap = Tap::create(NAME, false, false)?;
    // With IPv6 the kernel would send by itself.
    sysctl::write(&format!("net.ipv6.conf.{NAME}.disable_ipv6"), "1")?;
    change_link(NAME, LinkChange { up: Some(true), ..LinkChange::default() })?;
    add_address(NAME, HERE.into(), 24)?;
    set_route(NAME, Ipv4Addr::new(10, 79, 0, 0).into(), 24, None, "reno")?;
    add_neighbours(NAME, &[(THERE.into(), [2, 0, 0, 0, 0, 2])])?;
    let socket = UdpSocket::bind((HERE, 0)).expect("a port");
    socket.connect((THERE, 9)).expect("there is a route");
    Ok((tap, socket))
}
