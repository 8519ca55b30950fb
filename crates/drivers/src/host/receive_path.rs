//! How a host's kernel takes in what arrives at its interface, set by files under `/sys/class/net`.

use framegauge_linux::Result;
use framegauge_linux::error::Context;
use std::fs;

const FLUSH_TIMEOUT: &str = "gro_flush_timeout";
const DEFER_INTERRUPTS: &str = "napi_defer_hard_irqs";

/// Lets the kernel look at what has arrived at most every `seconds` (`Documentation/networking/napi.rst`, "Software
/// IRQ coalescing"): after a look that found something the next one is that much later, after one that found
/// nothing the first packet interrupts.
pub(crate) fn moderate(interface: &str, seconds: f64) -> Result<()> {
    let nanoseconds = (seconds * 1e9).round() as u64;
    for (name, value) in [(FLUSH_TIMEOUT, nanoseconds), (DEFER_INTERRUPTS, u64::from(nanoseconds > 0))] {
        let path = device_file(interface, name);
        fs::write(&path, value.to_string()).during(format!("write {value} to {path}"))?;
    }
    Ok(())
}

/// Lets one CPU take in what arrives at a veth (receive packet steering). The sending end's token bucket lets packets
/// go from whichever CPU its timer is on, and each has a queue of its own to the stack: packets would overtake
/// each other.
pub(crate) fn receive_on(interface: &str, cpu: usize) -> Result<()> {
    let path = device_file(interface, "queues/rx-0/rps_cpus");
    let mask = format!("{:x}{}", 1u32 << (cpu % 32), ",00000000".repeat(cpu / 32));
    fs::write(&path, &mask).during(format!("write {mask} to {path}"))
}

/// The moderation that is in force on `interface`, in seconds.
pub(crate) fn moderation(interface: &str) -> Result<f64> {
    let read = |name: &str| -> Result<u64> {
        let path = device_file(interface, name);
        let text = fs::read_to_string(&path).during(format!("read {path}"))?;
        text.trim().parse().map_err(std::io::Error::other).during(format!("read {path}"))
    };
    let nanoseconds = if read(DEFER_INTERRUPTS)? > 0 { read(FLUSH_TIMEOUT)? } else { 0 };
    Ok(nanoseconds as f64 * 1e-9)
}

pub(crate) fn device_file(interface: &str, name: &str) -> String {
    format!("/sys/class/net/{interface}/{name}")
}
