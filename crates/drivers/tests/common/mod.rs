//! Two hosts with real TCP stacks, for a fabric between them.

use framegauge_drivers::fabric::Attachment;
use framegauge_drivers::{Result, rack::addresses as rack};
use framegauge_linux::namespace::Network;
use framegauge_linux::rtnetlink::{self, LinkChange};
use framegauge_linux::{sysctl, tap::Tap};

/// A host's network, and its end of the fabric.
pub type Host = (Network, Attachment);

/// `None` where nobody may make hosts.
pub fn pair(version: u8, tso: bool) -> Option<(Host, Host)> {
    let made = Network::fresh()
        .and_then(|workshop| Ok((host(0, version, tso, &workshop)?, host(1, version, tso, &workshop)?)));
    match made {
        Ok(hosts) => Some(hosts),
        Err(error) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{error}");
            eprintln!("not run: needs network namespaces and TAP devices: {error}");
            None
        }
    }
}

/// A host of its own network, with a TAP that was made in `workshop`.
fn host(index: usize, version: u8, tso: bool, workshop: &Network) -> Result<(Network, Attachment)> {
    let network = Network::fresh()?;
    let name = rack::interface(index);
    let tap = network.run(|| {
        let here = std::fs::read_link("/proc/thread-self").expect("a thread knows itself");
        let thread: u32 = here.file_name().and_then(|name| name.to_str()?.parse().ok()).expect("a number");
        let tap = workshop.run(|| {
            let tap = Tap::create(&name, true, tso)?;
            rtnetlink::move_link(&name, thread)?;
            Ok(tap)
        })?;
        // RFC 3168 from both ends; "2" would only answer.
        sysctl::write("net.ipv4.tcp_ecn", "1")?;
        let up = LinkChange { up: Some(true), address: Some(rack::hardware(index)), ..LinkChange::default() };
        rtnetlink::change_link(&name, up)?;
        let (bits, net) = if version == 4 { (24, "10.77.0.0") } else { (64, "fd77::") };
        rtnetlink::add_address(&name, rack::address(index, version), bits)?;
        rtnetlink::set_route(&name, net.parse().expect("an address"), bits, None, "reno")?;
        rtnetlink::add_neighbours(&name, &[(rack::address(1 - index, version), rack::hardware(1 - index))])?;
        Ok(tap)
    })?;
    let host = format!("h{}", index + 1);
    Ok((network, Attachment { tap, hardware: rack::hardware(index), host, forwards: false, is_timed: true }))
}
