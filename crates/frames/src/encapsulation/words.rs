//! Encapsulations as people write them: `vxlan,ipv6`, `gre:key`, `mpls:2`.

use super::{Encapsulation, EncapsulationError, GreOptions, Layer, Stack};
use crate::Family;
use std::fmt;

/// Every encapsulation with the options that it takes, as people write them.
pub const WORDS: [(&str, &[&str]); 17] = [
    ("vlan", &["in-mtu"]),
    ("qinq", &["in-mtu"]),
    ("macsec", &["no-sci", "in-mtu"]),
    ("mpls", &["LABELS", "in-mtu"]),
    ("pppoe", &[]),
    ("vxlan", &["gpe"]),
    ("geneve", &["OPTION_BYTES"]),
    ("gre", GRE_OPTIONS),
    ("gretap", GRE_OPTIONS),
    ("nvgre", &[]),
    ("ipip", &["encap-limit"]),
    ("6in4", &[]),
    ("4in6", &["encap-limit"]),
    ("ip6ip6", &["encap-limit"]),
    ("wireguard", &[]),
    ("esp-tunnel", &["nat-t"]),
    ("esp-transport", &["nat-t"]),
];

const GRE_OPTIONS: &[&str] = &["key", "checksum", "sequence", "encap-limit"];
const MOST_LABELS: u8 = 16;
const MOST_GENEVE_OPTION_BYTES: u8 = 252;

type Outcome<T> = Result<T, EncapsulationError>;

impl Stack {
    /// Reads words from outermost to innermost. `ipv4` or `ipv6` after an encapsulation is its underlay (IPv4 if none
    /// is given); options follow a colon: `geneve:8`, `gre:key:sequence`, `macsec:in-mtu`.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Outcome<Stack> {
        let mut layers: Vec<Layer> = Vec::new();
        let mut pending: Option<&str> = None;
        for word in words.into_iter().map(str::trim) {
            let Some(underlay) = underlay(word) else {
                layers.extend(pending.replace(word).map(|word| layer(word, None)).transpose()?);
                continue;
            };
            let Some(around) = pending.take() else {
                let expected = "an encapsulation before it whose underlay it is";
                return Err(EncapsulationError::new(word, "nothing that it could belong to", expected));
            };
            layers.push(layer(around, Some(underlay))?);
        }
        layers.extend(pending.map(|word| layer(word, None)).transpose()?);
        Stack::new(layers)
    }
}

fn underlay(word: &str) -> Option<Family> {
    match word {
        "ipv4" => Some(Family::V4),
        "ipv6" => Some(Family::V6),
        _ => None,
    }
}

/// One word with its underlay, where one was given.
fn layer(word: &str, given: Option<Family>) -> Outcome<Layer> {
    let (name, rest) = word.split_once(':').unwrap_or((word, ""));
    let Some((_, known)) = WORDS.iter().find(|(known, _)| *known == name) else {
        return Err(EncapsulationError::new("encapsulations", format!("{name:?}"), expected_word(name)));
    };
    let mut options = Options::default();
    for option in rest.split(':').filter(|_| word.contains(':')) {
        options.take(name, known, option)?;
    }
    let encapsulation = encapsulation(name, &options, given)?;
    if options.gre.encapsulation_limit && encapsulation.underlay() != Some(Family::V6) {
        return Err(EncapsulationError::new(
            word,
            "encap-limit over ipv4",
            "ipv6 as its underlay: IPv4 has no such option",
        ));
    }
    Ok(Layer { encapsulation, within_mtu: options.in_mtu })
}

fn encapsulation(name: &str, options: &Options, given: Option<Family>) -> Outcome<Encapsulation> {
    let underlay = given.unwrap_or(Family::V4);
    let encapsulation_limit = options.gre.encapsulation_limit;
    let ip = |underlay, inner| Encapsulation::Ip { underlay, inner, encapsulation_limit };
    let fixed = |encapsulation: Encapsulation| match (given, encapsulation.underlay()) {
        (Some(given), own) if own != Some(given) => {
            let expected = own.map_or("no underlay: it has no IP header".into(), |own| format!("{own}"));
            Err(EncapsulationError::new(name, format!("{given} as its underlay"), expected))
        }
        _ => Ok(encapsulation),
    };
    match name {
        "vlan" => fixed(Encapsulation::Vlan),
        "qinq" => fixed(Encapsulation::Qinq),
        "macsec" => fixed(Encapsulation::Macsec { sci: !options.no_sci }),
        "mpls" => fixed(Encapsulation::Mpls { labels: options.number.unwrap_or(1) }),
        "pppoe" => fixed(Encapsulation::Pppoe),
        "6in4" => fixed(ip(Family::V4, Family::V6)),
        "4in6" => fixed(ip(Family::V6, Family::V4)),
        "ip6ip6" => fixed(ip(Family::V6, Family::V6)),
        "ipip" => Ok(ip(underlay, Family::V4)),
        "vxlan" => Ok(Encapsulation::Vxlan { underlay, gpe: options.gpe }),
        "geneve" => Ok(Encapsulation::Geneve { underlay, options_bytes: options.number.unwrap_or(0) }),
        "gre" => Ok(Encapsulation::Gre { underlay, options: options.gre }),
        "gretap" => Ok(Encapsulation::Gretap { underlay, options: options.gre }),
        "nvgre" => Ok(Encapsulation::Nvgre { underlay }),
        "wireguard" => Ok(Encapsulation::WireGuard { underlay }),
        "esp-tunnel" => Ok(Encapsulation::EspTunnel { underlay, nat_traversal: options.nat_t }),
        _ => Ok(Encapsulation::EspTransport { family: given, nat_traversal: options.nat_t }),
    }
}

/// Every option of every encapsulation; each takes its own.
#[derive(Default)]
struct Options {
    gre: GreOptions,
    number: Option<u8>,
    gpe: bool,
    nat_t: bool,
    no_sci: bool,
    in_mtu: bool,
}

impl Options {
    fn take(&mut self, name: &str, known: &[&str], option: &str) -> Outcome<()> {
        let wrong = |expected: &str| Err(EncapsulationError::new(name, format!("{option:?}"), expected));
        if option.starts_with(|first: char| first.is_ascii_digit()) {
            let fits = |number: &u8| match name {
                "mpls" => (1..=MOST_LABELS).contains(number),
                "geneve" => *number <= MOST_GENEVE_OPTION_BYTES && number.is_multiple_of(4),
                _ => false,
            };
            self.number = option.parse().ok().filter(fits);
            return match (self.number, name) {
                (Some(_), _) => Ok(()),
                (None, "mpls") => wrong("1 to 16 labels"),
                (None, "geneve") => wrong("bytes of options: a multiple of 4 up to 252"),
                (None, _) => wrong(&expected_options(known)),
            };
        }
        if !known.contains(&option) {
            return wrong(&expected_options(known));
        }
        match option {
            "key" => self.gre.key = true,
            "checksum" => self.gre.checksum = true,
            "sequence" => self.gre.sequence = true,
            "encap-limit" => self.gre.encapsulation_limit = true,
            "gpe" => self.gpe = true,
            "nat-t" => self.nat_t = true,
            "no-sci" => self.no_sci = true,
            "in-mtu" => self.in_mtu = true,
            _ => return wrong(&format!("a number in the place of {option}")),
        }
        Ok(())
    }
}

fn expected_options(known: &[&str]) -> String {
    if known.is_empty() { "no option".into() } else { format!("one of {}", known.join(", ")) }
}

/// All words, the nearest to what was written first.
fn expected_word(found: &str) -> String {
    let names = || WORDS.iter().map(|(name, _)| *name).chain(["ipv4", "ipv6"]);
    let near = names().map(|name| (distance(found, name), name)).min();
    let nearest = near.filter(|(distance, name)| *distance * 2 <= name.len()).map(|(_, name)| name);
    let all = names().collect::<Vec<_>>().join(", ");
    nearest.map_or(format!("one of {all}"), |nearest| format!("{nearest}, or another of {all}"))
}

/// How many letters must be put in, left out or exchanged (Levenshtein). A long word is near to nothing.
fn distance(one: &str, other: &str) -> usize {
    const LONG: usize = 32;
    if one.len() > LONG {
        return LONG;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.bytes().enumerate() {
        let mut corner = line;
        row[0] = line + 1;
        for (place, wanted) in other.bytes().enumerate() {
            let exchanged = corner + usize::from(letter != wanted);
            corner = row[place + 1];
            row[place + 1] = exchanged.min(corner + 1).min(row[place] + 1);
        }
    }
    row[other.len()]
}

impl fmt::Display for Layer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.encapsulation)?;
        if self.within_mtu { out.write_str(":in-mtu") } else { Ok(()) }
    }
}

/// The word without its underlay, options included, as [`Stack::parse`] reads it.
impl fmt::Display for Encapsulation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, options): (&str, Vec<(&str, bool)>) = match self {
            Self::Vlan => ("vlan", vec![]),
            Self::Qinq => ("qinq", vec![]),
            Self::Macsec { sci } => ("macsec", vec![("no-sci", !sci)]),
            Self::Mpls { labels } => return write!(out, "mpls:{labels}"),
            Self::Pppoe => ("pppoe", vec![]),
            Self::Vxlan { gpe, .. } => ("vxlan", vec![("gpe", *gpe)]),
            Self::Geneve { options_bytes: 0, .. } => ("geneve", vec![]),
            Self::Geneve { options_bytes, .. } => return write!(out, "geneve:{options_bytes}"),
            Self::Gre { options, .. } => ("gre", options.words()),
            Self::Gretap { options, .. } => ("gretap", options.words()),
            Self::Nvgre { .. } => ("nvgre", vec![]),
            Self::Ip { underlay, inner, encapsulation_limit } => {
                let name = match (underlay, inner) {
                    (Family::V4, Family::V4) => "ipip",
                    (Family::V4, Family::V6) => "6in4",
                    (Family::V6, Family::V4) => "4in6",
                    (Family::V6, Family::V6) => "ip6ip6",
                };
                (name, vec![("encap-limit", *encapsulation_limit)])
            }
            Self::WireGuard { .. } => ("wireguard", vec![]),
            Self::EspTunnel { nat_traversal, .. } => ("esp-tunnel", vec![("nat-t", *nat_traversal)]),
            Self::EspTransport { nat_traversal, .. } => ("esp-transport", vec![("nat-t", *nat_traversal)]),
        };
        out.write_str(name)?;
        options.iter().filter(|(_, on)| *on).try_for_each(|(word, _)| write!(out, ":{word}"))
    }
}

impl GreOptions {
    fn words(&self) -> Vec<(&'static str, bool)> {
        vec![
            ("key", self.key),
            ("checksum", self.checksum),
            ("sequence", self.sequence),
            ("encap-limit", self.encapsulation_limit),
        ]
    }
}
