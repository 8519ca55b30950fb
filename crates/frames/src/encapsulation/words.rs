//! Encapsulations as people write them: `vxlan,ipv6`, `gre:key`, `mpls:2`.

use super::{
    Encapsulation, EncapsulationError, EspCipher, EspSuite, GreOptions, Hmac, InUdp, Layer, OpenVpnSuite,
    Stack,
};
use crate::Family;

/// Every encapsulation with the options that it takes, as people write them.
pub const WORDS: [(&str, &[&str]); 30] = [
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
    ("esp-tunnel", ESP_OPTIONS),
    ("esp-transport", ESP_OPTIONS),
    ("ah-tunnel", AH_OPTIONS),
    ("ah-transport", AH_OPTIONS),
    ("l2tp", &["length", "sequence"]),
    ("l2tpv3", &["udp", "COOKIE_BYTES", "no-sublayer"]),
    ("pptp", &[]),
    ("openvpn", &["tap", "cbc", "md5", "sha1", "sha256", "sha384", "sha512"]),
    ("stt", &[]),
    ("gtp-u", &["sequence", "pdu-session"]),
    ("srv6", &["SEGMENTS", "reduced", "l2"]),
    ("fou", &[]),
    ("gue", &[]),
    ("464xlat", &["fragment"]),
    ("nat64", &["fragment"]),
];

const GRE_OPTIONS: &[&str] = &["key", "checksum", "sequence", "encap-limit", "fou", "gue"];
const AH_OPTIONS: &[&str] = &["md5", "sha1", "sha256", "sha384", "sha512", "align8"];
const ESP_OPTIONS: &[&str] = &[
    "nat-t",
    "aes-gcm",
    "aes-gcm-12",
    "aes-gcm-8",
    "chacha20",
    "aes-cbc",
    "3des-cbc",
    "aes-ctr",
    "null",
    "md5",
    "sha1",
    "sha256",
    "sha384",
    "sha512",
];
const IN_UDP: [(&str, InUdp); 2] = [("fou", InUdp::Fou), ("gue", InUdp::Gue)];

/// What a number behind a colon means, where the encapsulation takes one: the rule, and the rule in words.
fn number_rule(name: &str) -> Option<NumberRule> {
    match name {
        "mpls" => Some((|labels| (1..=16).contains(&labels), "1 to 16 labels")),
        "geneve" => Some((
            |bytes| bytes <= 252 && bytes.is_multiple_of(4),
            "bytes of options: a multiple of 4 up to 252",
        )),
        "l2tpv3" => Some((|bytes| [0, 4, 8].contains(&bytes), "bytes of the cookie: 0, 4 or 8")),
        "srv6" => Some((|segments| (1..=16).contains(&segments), "1 to 16 segments")),
        _ => None,
    }
}

type NumberRule = (fn(u8) -> bool, &'static str);
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
fn layer(word: &str, outer: Option<Family>) -> Outcome<Layer> {
    let (name, rest) = word.split_once(':').unwrap_or((word, ""));
    let Some((_, known)) = WORDS.iter().find(|(known, _)| *known == name) else {
        return Err(EncapsulationError::new("encapsulations", format!("{name:?}"), expected_word(name)));
    };
    let mut options = Options { name, words: vec![], number: None };
    for option in rest.split(':').filter(|_| word.contains(':')) {
        options.take(known, option)?;
    }
    let encapsulation = encapsulation(name, &options, outer)?;
    if options.has("encap-limit") && encapsulation.underlay() != Some(Family::V6) {
        return Err(EncapsulationError::new(
            word,
            "encap-limit over ipv4",
            "ipv6 as its underlay: IPv4 has no such option",
        ));
    }
    Ok(Layer { encapsulation, within_mtu: options.has("in-mtu") })
}

fn encapsulation(name: &str, options: &Options, outer: Option<Family>) -> Outcome<Encapsulation> {
    let underlay = outer.unwrap_or(Family::V4);
    let encapsulation_limit = options.has("encap-limit");
    let ip = |underlay, inner| Encapsulation::Ip { underlay, inner, encapsulation_limit };
    let fixed = |encapsulation: Encapsulation| match (outer, encapsulation.underlay()) {
        (Some(outer), own) if own != Some(outer) => {
            let expected = own.map_or("no underlay: it has no IP header".into(), |own| format!("{own}"));
            Err(EncapsulationError::new(name, format!("{outer} as its underlay"), expected))
        }
        _ => Ok(encapsulation),
    };
    match name {
        "vlan" => fixed(Encapsulation::Vlan),
        "qinq" => fixed(Encapsulation::Qinq),
        "macsec" => fixed(Encapsulation::Macsec { sci: !options.has("no-sci") }),
        "mpls" => fixed(Encapsulation::Mpls { labels: options.number.unwrap_or(1) }),
        "pppoe" => fixed(Encapsulation::Pppoe),
        "6in4" => fixed(ip(Family::V4, Family::V6)),
        "4in6" => fixed(ip(Family::V6, Family::V4)),
        "ip6ip6" => fixed(ip(Family::V6, Family::V6)),
        "pptp" => fixed(Encapsulation::Pptp),
        "464xlat" | "nat64" => fixed(Encapsulation::Nat64 { fragment_header: options.has("fragment") }),
        "srv6" => fixed(Encapsulation::Srv6 {
            segments: options.number.unwrap_or(1),
            reduced: options.has("reduced"),
            l2: options.has("l2"),
        }),
        "ipip" => Ok(ip(underlay, Family::V4)),
        "vxlan" => Ok(Encapsulation::Vxlan { underlay, gpe: options.has("gpe") }),
        "geneve" => Ok(Encapsulation::Geneve { underlay, options_bytes: options.number.unwrap_or(0) }),
        "gre" => Ok(Encapsulation::Gre { underlay, options: options.gre()? }),
        "gretap" => Ok(Encapsulation::Gretap { underlay, options: options.gre()? }),
        "nvgre" => Ok(Encapsulation::Nvgre { underlay }),
        "wireguard" => Ok(Encapsulation::WireGuard { underlay }),
        "fou" => Ok(Encapsulation::Fou { underlay, kind: InUdp::Fou }),
        "gue" => Ok(Encapsulation::Fou { underlay, kind: InUdp::Gue }),
        "stt" => Ok(Encapsulation::Stt { underlay }),
        _ => protected(name, options, outer),
    }
}

/// Those with a cipher or a check value, and those of telephone networks.
fn protected(name: &str, options: &Options, outer: Option<Family>) -> Outcome<Encapsulation> {
    let underlay = outer.unwrap_or(Family::V4);
    let nat_traversal = options.has("nat-t");
    let hmac = options.one_of(&Hmac::WORDS)?.unwrap_or(Hmac::Sha256);
    match name {
        "l2tp" => {
            let (length, sequence) = (options.has("length"), options.has("sequence"));
            Ok(Encapsulation::L2tp { underlay, length, sequence })
        }
        "l2tpv3" => Ok(Encapsulation::L2tpV3 {
            underlay,
            udp: options.has("udp"),
            cookie_bytes: options.number.unwrap_or(0),
            sublayer: !options.has("no-sublayer"),
        }),
        "gtp-u" => Ok(Encapsulation::GtpU {
            underlay,
            sequence: options.has("sequence"),
            pdu_session: options.has("pdu-session"),
        }),
        "openvpn" => {
            Ok(Encapsulation::OpenVpn { underlay, tap: options.has("tap"), suite: options.openvpn()? })
        }
        "ah-tunnel" | "ah-transport" => Ok(Encapsulation::Ah {
            family: underlay,
            tunnel: name == "ah-tunnel",
            hmac,
            align8: options.has("align8") && underlay == Family::V4,
        }),
        "esp-tunnel" => Ok(Encapsulation::EspTunnel { underlay, nat_traversal, suite: options.esp()? }),
        _ => {
            let suite = options.esp()?;
            // How such a cipher pads depends on the length of the IP header before it.
            let family = if suite.cipher.alignment_bytes() > 4 { Some(underlay) } else { outer };
            Ok(Encapsulation::EspTransport { family, nat_traversal, suite })
        }
    }
}

/// The options that were chosen, and the number where there is one.
struct Options<'a> {
    name: &'a str,
    words: Vec<&'a str>,
    number: Option<u8>,
}

impl<'a> Options<'a> {
    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    fn wrong<T>(&self, actual: impl Into<String>, expected: impl Into<String>) -> Outcome<T> {
        Err(EncapsulationError::new(self.name, actual, expected))
    }

    fn take(&mut self, known: &[&str], option: &'a str) -> Outcome<()> {
        let rule = number_rule(self.name);
        if option.starts_with(|first: char| first.is_ascii_digit()) && !known.contains(&option) {
            self.number = option.parse().ok().filter(|number| rule.is_some_and(|(fits, _)| fits(*number)));
            return match (self.number, rule) {
                (Some(_), _) => Ok(()),
                (None, Some((_, expected))) => self.wrong(format!("{option:?}"), expected),
                (None, None) => self.wrong(format!("{option:?}"), expected_options(known)),
            };
        }
        if !known.contains(&option) {
            return self.wrong(format!("{option:?}"), expected_options(known));
        }
        if option.contains(|letter: char| letter.is_ascii_uppercase()) {
            return self.wrong(format!("{option:?}"), format!("a number in the place of {option}"));
        }
        self.words.push(option);
        Ok(())
    }

    /// Which of these was chosen; an error if several were.
    fn one_of<T: Copy + PartialEq>(&self, table: &[(&str, T)]) -> Outcome<Option<T>> {
        let mut chosen = table.iter().filter(|(word, _)| self.has(word));
        let first = chosen.next();
        if let (Some((one, _)), Some((other, _))) = (first, chosen.next()) {
            return self.wrong(format!("{one} and {other}"), "one of them");
        }
        Ok(first.map(|(_, value)| *value))
    }

    fn gre(&self) -> Outcome<GreOptions> {
        Ok(GreOptions {
            key: self.has("key"),
            checksum: self.has("checksum"),
            sequence: self.has("sequence"),
            encapsulation_limit: self.has("encap-limit"),
            in_udp: self.one_of(&IN_UDP)?,
        })
    }

    fn esp(&self) -> Outcome<EspSuite> {
        let usual = EspSuite::default();
        let cipher = self.one_of(&EspCipher::WORDS)?.unwrap_or(usual.cipher);
        match self.one_of(&Hmac::WORDS)? {
            Some(hmac) if cipher.authenticates() => {
                let actual = format!("{} with {}", hmac.word(), cipher.word());
                self.wrong(actual, "aes-cbc or another cipher that does not authenticate by itself")
            }
            hmac => Ok(EspSuite { cipher, hmac: hmac.unwrap_or(usual.hmac) }),
        }
    }

    fn openvpn(&self) -> Outcome<OpenVpnSuite> {
        match self.one_of(&Hmac::WORDS)? {
            Some(hmac) if !self.has("cbc") => {
                self.wrong(format!("{} without cbc", hmac.word()), "cbc with it: GCM authenticates by itself")
            }
            hmac if self.has("cbc") => Ok(OpenVpnSuite::Cbc(hmac.unwrap_or(Hmac::Sha1))),
            _ => Ok(OpenVpnSuite::Aead),
        }
    }
}

fn expected_options(known: &[&str]) -> String {
    if known.is_empty() { "no option".into() } else { format!("one of {}", known.join(", ")) }
}

/// All words, the nearest to what was written first.
fn expected_word(word: &str) -> String {
    let names = || WORDS.iter().map(|(name, _)| *name).chain(["ipv4", "ipv6"]);
    let near = names().map(|name| (distance(word, name), name)).min();
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
        for (place, target) in other.bytes().enumerate() {
            let exchanged = corner + usize::from(letter != target);
            corner = row[place + 1];
            row[place + 1] = exchanged.min(corner + 1).min(row[place] + 1);
        }
    }
    row[other.len()]
}
