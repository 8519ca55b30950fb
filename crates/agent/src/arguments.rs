//! The agent's command line. People use `framegauge`, which starts this.

use framegauge_drivers::{PortRange, Result, own};
use std::path::PathBuf;
use std::time::Duration;

/// How far racks may go before the rest of the machine: "real time", "nice" or "ordinary".
const PRECEDENCE: &str = "FRAMEGAUGE_PRECEDENCE";

const HELP: &str = "\
framegauge-agent: the measuring end of framegauge; started by `framegauge`, not by hand

  framegauge-agent rack    builds emulated racks (needs root)
  framegauge-agent host    measures on this host; --netns NAME: in that network namespace (see `ip netns`; needs root)
  framegauge-agent exec    becomes a program inside a host of a rack (see `framegauge-agent exec --help`)
  framegauge-agent lease SECONDS SETTING=VALUE...
                           changes settings of this host, and puts them back unless a line `renew` comes in time
  framegauge-agent change SECONDS SETTING=VALUE...
                           the same; a line `keep` has changes stay
  framegauge-agent keep    puts away what an agent leaves that is killed; only agents start it
  framegauge-agent counters
                           counts the instructions and cycles of this whole host, one answer per line of input
  framegauge-agent sockets COUNT
                           hands over packet sockets by its standard input; only agents start it

  host --ports LOW-HIGH    opens ports for data and probes among these only
  host --patience SECONDS  ends when its input is silent for so long (an empty line is enough)

`rack` and `host` speak JSON-RPC 2.0, one message a line, on standard input and output; they put everything back
and end when their input ends. Try:
  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\",\"params\":{\"protocol\":1,\"client\":\"me\"}}' | framegauge-agent host
";

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Arguments {
    /// Print this and end.
    Text(String),
    /// Serve the pipe.
    Run(Role),
}

/// What kind of agent this is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// Builds racks and relays to the agents of their hosts.
    Rack,
    /// Measures on one host.
    Host {
        /// Work in fresh network and mount namespaces.
        fresh: bool,
        /// The host name to take there.
        name: Option<String>,
        /// Move into this existing network namespace first.
        network: Option<String>,
        /// The cgroup below which programs are started; without it this finds its own.
        group: Option<PathBuf>,
        /// CPUs to run on; empty: all.
        cpus: Vec<usize>,
        /// Where others may be told to connect to it.
        ports: PortRange,
        /// How long its input may be silent: a network that broke may never end it.
        patience: Option<Duration>,
        /// Lay down the real time that it inherits: what it does may take all of the CPUs.
        gives_way: bool,
    },
}

impl Role {
    /// The role's name in `hello`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rack => "rack",
            Self::Host { .. } => "host",
        }
    }

    /// Whether all work is to be done in fresh namespaces.
    pub fn works_apart(&self) -> bool {
        matches!(self, Self::Host { fresh: true, .. })
    }

    /// The host name to take in fresh namespaces.
    pub fn host_name(&self) -> Option<String> {
        match self {
            Self::Host { name, .. } => name.clone(),
            Self::Rack => None,
        }
    }

    /// How long its input may be silent.
    pub fn patience(&self) -> Option<Duration> {
        match self {
            Self::Rack => None,
            Self::Host { patience, .. } => *patience,
        }
    }

    /// What must happen while this is a process of one thread.
    pub fn prepare(&self) -> Result<()> {
        let most = std::env::var(PRECEDENCE).ok().and_then(|name| own::Precedence::named(&name));
        let most = most.unwrap_or(own::Precedence::RealTime);
        // The agents of a rack's hosts inherit what it has.
        if matches!(self, Self::Rack) || most == own::Precedence::Ordinary {
            own::take_precedence(most);
        }
        if let Self::Host { network, cpus, gives_way, .. } = self {
            if *gives_way && own::precedence() == own::Precedence::RealTime {
                own::take_precedence(own::Precedence::Nice);
            }
            if let Some(name) = network {
                own::enter_named(name)?;
            }
            if !cpus.is_empty() {
                own::bind(0, cpus)?;
            }
        }
        Ok(())
    }
}

/// Reads the command line.
pub fn parse(mut words: impl Iterator<Item = String>) -> std::result::Result<Arguments, String> {
    let role = match words.next().as_deref() {
        Some("rack") => Role::Rack,
        Some("host") => parse_host(&mut words)?,
        Some("--version" | "-V") => {
            return Ok(Arguments::Text(format!("framegauge-agent {}\n", env!("CARGO_PKG_VERSION"))));
        }
        Some("--help" | "-h") | None => return Ok(Arguments::Text(HELP.into())),
        Some(other) => {
            return Err(format!(
                "{other:?} is not a command; expected rack, host, exec, lease, change, keep, counters or --help"
            ));
        }
    };
    match words.next() {
        Some(word) => Err(format!("{word:?} is one argument too many")),
        None => Ok(Arguments::Run(role)),
    }
}

fn parse_host(words: &mut impl Iterator<Item = String>) -> std::result::Result<Role, String> {
    let (mut fresh, mut network, mut group, mut cpus) = (false, None, None, Vec::new());
    let (mut ports, mut patience, mut name, mut gives_way) = (PortRange::ANY, None, None, false);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--fresh" => fresh = true,
            "--gives-way" => gives_way = true,
            "--name" => name = Some(value()?),
            "--netns" => network = Some(value()?),
            "--group" => group = Some(PathBuf::from(value()?)),
            "--cpus" => {
                let list = value()?;
                let numbers: std::result::Result<_, _> = list.split(',').map(str::parse).collect();
                cpus = numbers.map_err(|_| format!("--cpus {list:?}: expected numbers such as 0,1"))?;
            }
            "--ports" => ports = value()?.parse().map_err(|error| format!("--ports: {error}"))?,
            "--patience" => patience = Some(parse_seconds(&value()?)?),
            _ => {
                return Err(format!(
                    "{word:?} is not an option; expected --fresh, --name, --netns, --group, --cpus, --ports, --patience or --gives-way"
                ));
            }
        }
    }
    if fresh && network.is_some() {
        return Err("found --fresh and --netns, expected one of them".into());
    }
    if name.is_some() && !fresh {
        return Err("found --name without --fresh: a host of its own keeps its name".into());
    }
    Ok(Role::Host { fresh, name, network, group, cpus, ports, patience, gives_way })
}

fn parse_seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (1..=86_400).contains(seconds));
    seconds.map(Duration::from_secs).ok_or(format!("--patience {text:?}: expected whole seconds, 1 to 86400"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> std::result::Result<Arguments, String> {
        parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn reads_the_roles() {
        assert_eq!(words("rack"), Ok(Arguments::Run(Role::Rack)));
        let (ports, patience) = (PortRange::ANY, None);
        let gives_way = false;
        let (fresh, name, network, group) = (true, Some("h1".into()), None, Some("/x".into()));
        let host = Role::Host { fresh, name, network, group, cpus: vec![0, 1], ports, patience, gives_way };
        assert_eq!(words("host --fresh --name h1 --group /x --cpus 0,1"), Ok(Arguments::Run(host)));
        let (fresh, network, group) = (false, Some("blue".into()), None);
        let named =
            Role::Host { fresh, name: None, network, group, cpus: vec![], ports, patience, gives_way };
        assert_eq!(words("host --netns blue"), Ok(Arguments::Run(named)));
        let ports = "40000-40099".parse().expect("a range");
        let (network, group, patience) = (None, None, Some(Duration::from_secs(900)));
        let far =
            Role::Host { fresh, name: None, network, group, cpus: vec![], ports, patience, gives_way: true };
        assert_eq!(words("host --ports 40000-40099 --patience 900 --gives-way"), Ok(Arguments::Run(far)));
    }

    #[test]
    fn says_what_is_wrong() {
        assert_eq!(
            words("server"),
            Err("\"server\" is not a command; expected rack, host, exec, lease, change, keep, counters or --help"
                .into())
        );
        assert_eq!(words("host --cpus a"), Err("--cpus \"a\": expected numbers such as 0,1".into()));
        assert_eq!(
            words("host --ports 9-1"),
            Err("--ports: found \"9-1\", expected ports such as 40000-40099".into())
        );
        assert_eq!(
            words("host --patience 0"),
            Err("--patience \"0\": expected whole seconds, 1 to 86400".into())
        );
        assert_eq!(words("host --netns"), Err("--netns needs a value".into()));
        assert_eq!(
            words("host --fresh --netns blue"),
            Err("found --fresh and --netns, expected one of them".into())
        );
        assert_eq!(
            words("host --name h1"),
            Err("found --name without --fresh: a host of its own keeps its name".into())
        );
        assert_eq!(words("rack now"), Err("\"now\" is one argument too many".into()));
    }
}
