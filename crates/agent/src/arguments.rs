//! The command line, such as it is: people use `framegauge`, which starts this.

use framegauge_drivers::{Result, namespace, sched};
use std::path::PathBuf;

const HELP: &str = "\
framegauge-agent: the measuring end of framegauge; started by `framegauge`, not by hand

  framegauge-agent rack    builds emulated racks (needs root)
  framegauge-agent host    measures on this host; --netns NAME: in that network namespace (see `ip netns`; needs root)
  framegauge-agent exec    becomes a program inside a host of a rack (see `framegauge-agent exec --help`)

The first two speak JSON-RPC 2.0, one message a line, on standard input and output; they put everything back
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
        /// Move into this existing network namespace first.
        network: Option<String>,
        /// The cgroup below which programs are started; without it this finds its own.
        group: Option<PathBuf>,
        /// CPUs to run on; empty: all.
        cpus: Vec<usize>,
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

    /// What must happen while this is a process of one thread.
    pub fn prepare(&self) -> Result<()> {
        if let Self::Host { network, cpus, .. } = self {
            if let Some(name) = network {
                namespace::enter_named(name)?;
            }
            if !cpus.is_empty() {
                sched::bind(0, cpus)?;
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
            return Err(format!("{other:?} is not a command; expected rack, host, exec or --help"));
        }
    };
    match words.next() {
        Some(word) => Err(format!("{word:?} is one argument too many")),
        None => Ok(Arguments::Run(role)),
    }
}

fn parse_host(words: &mut impl Iterator<Item = String>) -> std::result::Result<Role, String> {
    let (mut fresh, mut network, mut group, mut cpus) = (false, None, None, Vec::new());
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--fresh" => fresh = true,
            "--netns" => network = Some(value()?),
            "--group" => group = Some(PathBuf::from(value()?)),
            "--cpus" => {
                let list = value()?;
                let numbers: std::result::Result<_, _> = list.split(',').map(str::parse).collect();
                cpus = numbers.map_err(|_| format!("--cpus {list:?}: expected numbers such as 0,1"))?;
            }
            _ => {
                return Err(format!(
                    "{word:?} is not an option; expected --fresh, --netns, --group or --cpus"
                ));
            }
        }
    }
    if fresh && network.is_some() {
        return Err("found --fresh and --netns, expected one of them".into());
    }
    Ok(Role::Host { fresh, network, group, cpus })
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
        let host = Role::Host { fresh: true, network: None, group: Some("/x".into()), cpus: vec![0, 1] };
        assert_eq!(words("host --fresh --group /x --cpus 0,1"), Ok(Arguments::Run(host)));
        let named = Role::Host { fresh: false, network: Some("blue".into()), group: None, cpus: vec![] };
        assert_eq!(words("host --netns blue"), Ok(Arguments::Run(named)));
    }

    #[test]
    fn says_what_is_wrong() {
        assert_eq!(
            words("server"),
            Err("\"server\" is not a command; expected rack, host, exec or --help".into())
        );
        assert_eq!(words("host --cpus a"), Err("--cpus \"a\": expected numbers such as 0,1".into()));
        assert_eq!(words("host --netns"), Err("--netns needs a value".into()));
        assert_eq!(
            words("host --fresh --netns blue"),
            Err("found --fresh and --netns, expected one of them".into())
        );
        assert_eq!(words("rack now"), Err("\"now\" is one argument too many".into()));
    }
}
