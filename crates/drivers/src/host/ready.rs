//! When a program is ready for others: what it does that tells so, and the wait for it.

use crate::host::processes::{Ending, Output, Processes};
use framegauge_linux::sock_diag::listening_sockets;
use framegauge_linux::{Result, tree};
use regex_lite::Regex;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(2);
const PIECE_BYTES: usize = 1 << 16;
/// Of a line without end; words are looked for in its last part.
const LONGEST_LINE: usize = 1 << 16;

/// What tells that a program is ready.
pub enum Sign {
    /// A TCP socket of this network namespace listens on the port, with `own` one of the program or of what it started.
    Port {
        /// The port.
        port: u16,
        /// Whether others have sockets here too.
        own: bool,
    },
    /// A line that it has printed has these words in it.
    Words(Words),
    /// The file is there.
    File(PathBuf),
}

/// What came of the wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Waited {
    /// Whether the sign was seen.
    pub ready: bool,
    /// How long it took.
    pub elapsed: Duration,
    /// How the program ended, if it has.
    pub ending: Option<Ending>,
}

/// Waits until the sign is seen, the program ends or the time is over; `None` if `stop` says so.
pub fn wait(
    processes: &Processes,
    number: u64,
    sign: &mut Sign,
    within: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Waited>> {
    let start = Instant::now();
    loop {
        // Whether it has ended is read first, so that all it did before its end counts.
        let ending = processes.ending(number)?;
        let ready = sign.is_seen(processes, number)?;
        let elapsed = start.elapsed();
        if ready || ending.is_some() || elapsed >= within {
            return Ok(Some(Waited { ready, elapsed, ending }));
        }
        if stop() {
            return Ok(None);
        }
        std::thread::sleep(PAUSE.min(within - elapsed));
    }
}

impl Sign {
    fn is_seen(&mut self, processes: &Processes, number: u64) -> Result<bool> {
        match self {
            Self::File(path) => Ok(path.exists()),
            Self::Words(words) => words.are_printed(processes, number),
            Self::Port { port, own } => {
                let listening = listening_sockets()?;
                let mut listeners = listening.iter().filter(|socket| socket.port == *port).peekable();
                if !*own || listeners.peek().is_none() {
                    return Ok(listeners.peek().is_some());
                }
                let own_sockets: Vec<_> = processes.tree(number)?.into_iter().map(tree::sockets).collect();
                Ok(listeners.any(|socket| {
                    own_sockets.iter().any(|sockets| sockets.contains(&u64::from(socket.inode)))
                }))
            }
        }
    }
}

/// Words in a program's output.
pub struct Words {
    expression: Regex,
    outputs: [(Output, u64, Lines); 2],
}

impl Words {
    /// Looks for a regular expression; the message says what is wrong with one.
    pub fn new(expression: &str) -> std::result::Result<Self, String> {
        let expression = Regex::new(expression)
            .map_err(|error| format!("found {expression:?}, expected a regular expression: {error}"))?;
        Ok(Self {
            expression,
            outputs: [Output::Standard, Output::Errors].map(|output| (output, 0, Lines::default())),
        })
    }

    fn are_printed(&mut self, processes: &Processes, number: u64) -> Result<bool> {
        for (output, offset, lines) in &mut self.outputs {
            loop {
                let (bytes, _) = processes.output(number, *output, *offset, PIECE_BYTES)?;
                if bytes.is_empty() {
                    break;
                }
                *offset += bytes.len() as u64;
                if lines.any(&bytes, |line| self.expression.is_match(line)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Bytes as they come, line by line.
#[derive(Default)]
struct Lines {
    unfinished: Vec<u8>,
}

impl Lines {
    /// Takes more bytes; whether `fits` is true of a line that they end, or of the beginning of one.
    fn any(&mut self, bytes: &[u8], fits: impl Fn(&str) -> bool) -> bool {
        self.unfinished.extend_from_slice(bytes);
        let mut pieces = self.unfinished.split(|byte| *byte == b'\n');
        let last = pieces.next_back().unwrap_or_default();
        let text =
            |line: &[u8]| String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
        let has_match = pieces.any(|line| fits(&text(line))) || fits(&text(last));
        let tail_bytes = last.len().min(LONGEST_LINE);
        self.unfinished.drain(..self.unfinished.len() - tail_bytes);
        has_match
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_within_one_line_however_it_comes() {
        let fits = |pattern: &str| {
            let expression = Regex::new(pattern).expect("an expression");
            move |line: &str| expression.is_match(line)
        };
        let mut lines = Lines::default();
        assert!(!lines.any(b"not yet\nserver rea", fits("ready$")));
        assert!(!lines.any(b"dy", fits("^ready")));
        assert!(lines.any(b"\r\nmore", fits("^server ready$")));
        // What a line before it ended with is no beginning.
        assert!(!lines.any(b"\n", fits("ready")));
        assert!(!lines.any(b"one\ntwo\n", fits("one.*two")));
        assert!(lines.any(b"unfinished", fits("finished$")));
    }

    #[test]
    fn a_line_without_end_costs_little() {
        let mut lines = Lines::default();
        for _ in 0..100 {
            assert!(!lines.any(&[b'x'; 10_000], |line| line.contains("ready")));
            assert!(lines.unfinished.len() <= LONGEST_LINE);
        }
        assert!(lines.any(b" ready", |line| line.contains("x ready")));
    }

    #[test]
    fn an_expression_that_is_none_is_refused() {
        let message = Words::new("(ready").map(drop).expect_err("a bracket is open");
        assert!(message.starts_with("found \"(ready\", expected a regular expression: "), "{message}");
    }
}
