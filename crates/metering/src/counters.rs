//! The protocol counters of the kernel, named as `nstat` names them.

use std::collections::BTreeMap;

use crate::ParseError;
use crate::error::number;

/// Counters by the name that `nstat` gives them: `TcpOutSegs`, `IpExtInOctets`, `Ip6InReceives`.
pub type Counters = BTreeMap<String, i64>;

/// Parses `/proc/net/snmp`: pairs of lines `Tcp: names…` and `Tcp: values…` (proc_net(5), RFC 1213).
pub fn parse_snmp(text: &str) -> Result<Counters, ParseError> {
    let mut counters = Counters::new();
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    while let Some((index, header)) = lines.next() {
        let (prefix, names) = split_prefix(index, header)?;
        let Some((value_index, values)) = lines.next() else {
            return Err(ParseError::new(index + 1, "", "a line of values after a line of names"));
        };
        let (value_prefix, values) = split_prefix(value_index, values)?;
        if value_prefix != prefix {
            return Err(ParseError::new(value_index, value_prefix, "the prefix of the line before"));
        }
        let mut values = values.split_whitespace();
        for name in names.split_whitespace() {
            let value = number(value_index, values.next(), "as many 64-bit numbers as there are names")?;
            counters.insert(format!("{prefix}{name}"), value);
        }
        if let Some(surplus) = values.next() {
            return Err(ParseError::new(value_index, surplus, "as many 64-bit numbers as there are names"));
        }
    }
    Ok(counters)
}

/// Parses `/proc/net/netstat`: the same form as `/proc/net/snmp`, with the prefixes `TcpExt` and `IpExt`.
pub fn parse_netstat(text: &str) -> Result<Counters, ParseError> {
    parse_snmp(text)
}

/// Parses `/proc/net/snmp6`: one name and one value a line.
pub fn parse_snmp6(text: &str) -> Result<Counters, ParseError> {
    let mut counters = Counters::new();
    for (index, line) in text.lines().enumerate() {
        let mut fields = line.split_whitespace();
        let Some(name) = fields.next() else { continue };
        let value = number(index, fields.next(), "a name and a 64-bit number")?;
        if let Some(surplus) = fields.next() {
            return Err(ParseError::new(index, surplus, "nothing after the number"));
        }
        counters.insert(name.to_owned(), value);
    }
    Ok(counters)
}

/// What was counted between two readings: every name of either, `after − before`; an absent name counts as 0,
/// since the kernel leaves lines out that have never counted. Saturates at the ends of 64 bits.
pub fn difference(before: &Counters, after: &Counters) -> Counters {
    let names = before.keys().chain(after.keys());
    let of = |counters: &Counters, name: &str| counters.get(name).copied().unwrap_or(0);
    names.map(|name| (name.clone(), of(after, name).saturating_sub(of(before, name)))).collect()
}

fn split_prefix(index: usize, line: &str) -> Result<(&str, &str), ParseError> {
    let Some((prefix, rest)) = line.split_once(':') else {
        return Err(ParseError::new(index, line, "a prefix and a colon"));
    };
    Ok((prefix.trim(), rest))
}
