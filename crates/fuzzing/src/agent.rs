//! What an agent is asked for.

use framegauge_agent::arguments::{self, Arguments, Role};
use framegauge_agent::pipe::fields;
use framegauge_agent::pipe::message::{self, Request};
use framegauge_agent::rack::params::Up;
use framegauge_agent::tools::{exec, lease, permitted};
use framegauge_drivers::host::settings::Setting;
use framegauge_drivers::spool;
use framegauge_fabric::{Fabric, HostIndex, Sink};
use framegauge_frames::Picoseconds;
use framegauge_linux::files;
use serde_json::{Value, json};
use std::io::Write;

/// The words of a command line, one a line.
pub fn arguments(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let words = || text.split('\n').map(String::from);
    if let Ok(Arguments::Run(Role::Host { fresh, network, patience, .. })) = arguments::parse(words()) {
        assert!(!fresh || network.is_none());
        assert!(patience.is_none_or(|patience| (1..=86_400).contains(&patience.as_secs())));
    }
    let _ = exec::parse(words().map(Into::into));
    if let Ok(request) = lease::parse(words()) {
        assert!(request.seconds > 0.0 && request.seconds <= 3600.0 && !request.values.is_empty());
    }
}

/// A setting of a host: what is accepted is written back as it came, and names no file outside its folder.
pub fn settings(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(setting) = Setting::parse(text) {
        assert_eq!(setting.to_string(), text);
        assert!(!text.contains('/') && text.is_ascii());
    }
}

/// A line of the pipe: what is accepted says the same when it is written again, and every refusal has its code.
pub fn pipe_message(bytes: &[u8]) {
    match message::read(bytes) {
        Ok(Request { jsonrpc, id, method, params }) => {
            let again = json!({"jsonrpc": jsonrpc, "id": id, "method": method, "params": params}).to_string();
            let read = message::read(again.as_bytes()).expect("it was accepted before");
            assert_eq!(
                (read.jsonrpc.as_str(), read.id, read.method, read.params),
                ("2.0", id, method, params)
            );
        }
        Err((_, failure)) => assert!(matches!(failure.code, -32700 | -32600)),
    }
    let Ok(line) = str::from_utf8(bytes) else { return };
    if let Ok(token) = fields::token("hello", line) {
        let hex: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, line.to_ascii_lowercase());
    }
}

/// How many times a fabric is woken.
const STEPS: usize = 100;

/// Takes what arrives.
struct Nobody;

impl Sink for Nobody {
    fn deliver(&mut self, _: HostIndex, _: &[(u32, u16)], _: Picoseconds) {}
    fn discard(&mut self, _: u32, _: u16) {}
}

/// The parameters of `rack.up`: whatever passes the checks can be described and becomes a fabric, whose time never goes
/// back under the load that it makes itself; and every end has a rate.
pub fn rack_up(bytes: &[u8]) {
    let Ok(params) = serde_json::from_slice::<Value>(bytes) else { return };
    let request = Request { jsonrpc: "2.0".into(), id: 1, method: "rack.up".into(), params };
    let Ok(up) = message::params::<Up>(&request) else { return };
    if up.check().is_err() {
        return;
    }
    let Ok((_, network)) = up.network() else { return };
    let _ = network.describe();
    assert_eq!(network.hosts(), up.names());
    let mut fabric = Fabric::new(&network.config).expect("its checks have passed");
    let mut now = Picoseconds::ZERO;
    for deadline in (0..STEPS).map_while(|_| {
        let deadline = fabric.next_deadline()?;
        fabric.advance(deadline, &mut Nobody);
        Some(deadline)
    }) {
        assert!(deadline >= now, "{deadline:?} after {now:?}");
        now = deadline;
    }
    assert!((0..network.ends.len()).all(|end| network.link_rate(end).bits_per_second() > 0));
}

/// Where to begin (8 bytes) and how much of a spool to read (4), then the spool.
pub fn spool_read(bytes: &[u8]) {
    let Some((offset, rest)) =
        bytes.split_first_chunk().map(|(first, rest)| (u64::from_be_bytes(*first), rest))
    else {
        return;
    };
    let Some((length, data)) =
        rest.split_first_chunk().map(|(first, rest)| (u32::from_be_bytes(*first), rest))
    else {
        return;
    };
    let mut file = files::unnamed().expect("a file without a name");
    file.write_all(data).expect("it has room");
    let (content, size) = spool::read_at(&file, offset, length as usize).expect("it can be read");
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(data.len());
    let end = start.saturating_add(length as usize).min(data.len());
    assert_eq!((content.as_slice(), size), (&data[start..end], data.len() as u64));
}

/// `/etc/framegauge/lease`: what is accepted is written back as it was meant, and a file that is cut off anywhere permits
/// no more than the whole.
pub fn lease_list(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(lines) = permitted::parse(text) else { return };
    let written: String = lines
        .iter()
        .map(|(setting, small)| format!("{setting}{}\n", if *small { " below-1280" } else { "" }))
        .collect();
    assert_eq!(permitted::parse(&written), Ok(lines.clone()));
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        if let Ok(left) = permitted::parse(&text[..end]) {
            assert!(lines.starts_with(&left), "{:?} permits {left:?}", &text[..end]);
        }
    }
}
