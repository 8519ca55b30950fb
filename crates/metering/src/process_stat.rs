//! What the kernel says of one process.

use crate::ParseError;
use crate::error::number;

/// Some fields of `/proc/<pid>/stat` (proc_pid_stat(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessStat {
    /// The program's name, as far as the kernel keeps it.
    pub name: String,
    /// Its parent.
    pub parent: i32,
    /// Ticks on a CPU, of all its threads and of those that have ended.
    pub ticks: u64,
    /// When it was started, in ticks since the machine was.
    pub started: u64,
    /// How it is scheduled: `SCHED_OTHER` is 0, `SCHED_FIFO` 1, `SCHED_RR` 2.
    pub policy: u32,
}

/// Parses `/proc/<pid>/stat`. A name may have spaces and brackets.
pub fn parse_process_stat(text: &str) -> Result<ProcessStat, ParseError> {
    let expected = "PID (NAME) STATE PARENT …, 41 fields at least";
    let outside = || ParseError::new(0, text, expected);
    let (head, tail) = text.rsplit_once(')').ok_or_else(outside)?;
    let (_, name) = head.split_once('(').ok_or_else(outside)?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    // The first of these is field 3.
    let field = |place: usize| fields.get(place - 3).copied();
    let ticks = |place| number::<u64>(0, field(place), expected);
    Ok(ProcessStat {
        name: name.to_string(),
        parent: number(0, field(4), expected)?,
        ticks: ticks(14)?.saturating_add(ticks(15)?),
        started: ticks(22)?,
        policy: number(0, field(41), expected)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "26575 (a (b) c) S 26555 26575 26555 0 -1 4194560 1190 0 0 0 17 5 0 0 -2 0 4 0 138063 \
                        1091166208 18984 18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 1 1 2 0 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn reads_what_the_kernel_writes() {
        let expected =
            ProcessStat { name: "a (b) c".into(), parent: 26555, ticks: 22, started: 138_063, policy: 2 };
        assert_eq!(parse_process_stat(LINE), Ok(expected));
    }

    #[test]
    fn says_what_it_expected() {
        for text in ["", "1 sh S 0", "1 (sh) S 0 1", &LINE.replace("26555", "x")] {
            assert!(parse_process_stat(text).is_err(), "{text}");
        }
    }
}
