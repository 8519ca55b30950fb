//! What is not as it was, and the commands that mend it, as an administrator would type them.

use std::path::Path;

/// Where `ip netns` keeps its networks.
const NAMED: &str = "/run/netns/";

/// One thing that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Which.
    pub what: String,
    /// What it is.
    pub found: String,
    /// What it was.
    pub expected: String,
    /// What makes it so again, in this order; none where no command does.
    pub commands: Vec<String>,
}

impl Difference {
    /// One that these commands mend.
    pub fn new(what: String, found: impl ToString, expected: impl ToString, commands: Vec<String>) -> Self {
        Self { what, found: found.to_string(), expected: expected.to_string(), commands }
    }

    /// The same in another network of this machine.
    pub(super) fn inside(mut self, network: &Path) -> Self {
        let shown = network.display().to_string();
        let prefix = match shown.strip_prefix(NAMED) {
            Some(name) => format!("ip netns exec {}", quoted(name)),
            None => format!("nsenter --net={}", quoted(&shown)),
        };
        self.what = format!("{} in the network {shown}", self.what);
        self.commands = self.commands.iter().map(|command| format!("{prefix} {command}")).collect();
        self
    }

    /// In one line.
    pub fn line(&self) -> String {
        format!("{}: found {}, expected {}", self.what, self.found, self.expected)
    }
}

/// A word as a shell reads it: names of interfaces may have anything but blanks and slashes.
pub fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:/@%+=-".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_word_of_a_shell() {
        for (word, expected) in
            [("eth1.7", "eth1.7"), ("a;b", "'a;b'"), ("$(x)", "'$(x)'"), ("a'b", "'a'\\''b'")]
        {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn in_another_network_its_commands_go_there() {
        let one = || {
            Difference::new("the MTU of m0".into(), 1500, 9000, vec!["ip link set dev m0 mtu 9000".into()])
        };
        let named = one().inside(Path::new("/run/netns/blue"));
        assert_eq!(named.commands, ["ip netns exec blue ip link set dev m0 mtu 9000"]);
        assert_eq!(named.line(), "the MTU of m0 in the network /run/netns/blue: found 1500, expected 9000");
        let other = one().inside(Path::new("/proc/7/ns/net"));
        assert_eq!(other.commands, ["nsenter --net=/proc/7/ns/net ip link set dev m0 mtu 9000"]);
    }
}
