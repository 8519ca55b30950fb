//! `host.names`: the names by which a rack's host knows the others.

use crate::arguments::Role;
use crate::pipe::call::Call;
use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Failure, params};
use framegauge_drivers::host::names::Names;
use serde::Deserialize;
use serde_json::json;
use std::net::IpAddr;

const METHOD: &str = "host.names";
/// A rack has at most 254 hosts and routers, and each may have several NICs.
const MOST_ENTRIES: usize = 2500;
const MOST_ADDRESSES: usize = 64;
/// Of a name in the DNS.
const LONGEST_NAME: usize = 253;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    addresses: Vec<IpAddr>,
}

/// Shows them in a hosts file. Nothing is put back: only this host's own mounts change, which end with it.
pub fn run(call: &Call) -> Answer {
    let request: Asked = params(&call.request)?;
    if !matches!(call.session.role, Role::Host { fresh: true, .. }) {
        return Err(Failure::state("this host is not a rack's: its names stay as they are"));
    }
    let entries = checked(request)?;
    let mut shown = lock(&call.session.host.names);
    match shown.as_mut() {
        Some(names) => names.replace(&entries)?,
        None => *shown = Some(Names::show(&entries)?),
    }
    Ok(json!({}))
}

/// The entries, if they can be lines of a hosts file.
fn checked(request: Asked) -> Result<Vec<(String, Vec<IpAddr>)>, Failure> {
    let failure = |problem: String| Err(Failure::invalid_params(METHOD, problem));
    if request.entries.len() > MOST_ENTRIES {
        return failure(format!("entries: found {}, expected at most {MOST_ENTRIES}", request.entries.len()));
    }
    for Entry { name, addresses } in &request.entries {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if !(1..=LONGEST_NAME).contains(&name.len()) || !name.chars().all(plain) {
            return failure(format!(
                "name: found {name:?}, expected 1 to {LONGEST_NAME} letters, digits, dots, hyphens and underscores"
            ));
        }
        if !(1..=MOST_ADDRESSES).contains(&addresses.len()) {
            let count = addresses.len();
            return failure(format!("addresses of {name}: found {count}, expected 1 to {MOST_ADDRESSES}"));
        }
    }
    Ok(request.entries.into_iter().map(|entry| (entry.name, entry.addresses)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn check(entries: Value) -> Result<Vec<(String, Vec<IpAddr>)>, String> {
        let request: Asked =
            serde_json::from_value(json!({"entries": entries})).map_err(|error| error.to_string())?;
        checked(request).map_err(|failure| failure.message)
    }

    #[test]
    fn names_and_addresses_are_checked() {
        let entries = check(json!([{"name": "h-2_x.1", "addresses": ["10.77.0.2", "fd77::2"]}]))
            .expect("they are good");
        assert_eq!(
            entries[0].1,
            ["10.77.0.2", "fd77::2"].map(|text| text.parse::<IpAddr>().expect("an address"))
        );
        assert!(check(json!([])).is_ok());
        for name in ["", "a b", "a\nb", "#", "h\u{e4}", &"a".repeat(254)] {
            let message = check(json!([{"name": name, "addresses": ["10.77.0.2"]}])).expect_err(name);
            assert!(message.starts_with("host.names: name: found"), "{message}");
        }
        assert!(check(json!([{"name": "h1", "addresses": []}])).expect_err("none").contains("found 0"));
        assert!(check(json!([{"name": "h1", "addresses": ["10.77.0"]}])).is_err());
        assert!(
            check(json!([{"name": "h1", "addresses": vec!["::1"; 65]}]))
                .expect_err("many")
                .contains("found 65")
        );
        let many = vec![json!({"name": "h1", "addresses": ["::1"]}); 2501];
        assert!(check(many.into()).expect_err("many").contains("found 2501"));
    }
}
