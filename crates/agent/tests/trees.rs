//! What a program has started is gone on every way out, whatever it has done to get away.
#![allow(clippy::disallowed_methods, reason = "a test starts the agent and kills it")]

mod common;

use common::{Agent, children, eventually, is_root, killed, stopped};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A word by which the processes of one test are known: it is in their environment.
fn mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("MARK=framegauge-{}-{}.", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The running processes with the word in their environment.
fn marked(mark: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("procfs").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let environment = |pid: &u32| std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    pids.filter(|pid| String::from_utf8_lossy(&environment(pid)).contains(mark)).collect()
}

fn command_line(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

fn spawn(script: &str, mark: &str) -> Value {
    let (name, value) = mark.split_once('=').expect("NAME=VALUE");
    // What ignores all that can be ignored; whoever is started so ignores it too.
    let still = "trap '' TERM HUP INT; exec sleep 1000";
    json!({"argv": ["sh", "-c", script], "environment": {name: value, "STILL": still}})
}

/// A program with a child, a daemon, and a daemon of a daemon: these two are in sessions of their own, and have lost their
/// parents.
const TREE: &str = r#"
    trap '' TERM HUP INT
    (setsid sh -c "$STILL" &)
    (setsid sh -c '(setsid sh -c "$STILL" &)' &)
    sh -c "$STILL" &
    wait
    sleep 1000"#;

/// Starts it, and waits until all of it is there.
fn started(agent: &mut Agent, mark: &str) -> Value {
    let process = agent.ask("process.spawn", spawn(TREE, mark))["process"].take();
    all_there(mark);
    process
}

/// The shell, and three processes that sleep, of which only one is still its child.
fn all_there(mark: &str) {
    eventually("the tree is there", || {
        let all = marked(mark);
        let (asleep, shells): (Vec<u32>, Vec<u32>) =
            all.iter().partition(|pid| command_line(**pid).starts_with("sleep "));
        let [shell] = shells[..] else { return false };
        asleep.len() == 3 && children(shell).iter().filter(|pid| asleep.contains(pid)).count() == 1
    });
}

fn gone(mark: &str) {
    eventually("all of it is gone", || marked(mark).is_empty());
}

/// Each way of starting an agent here.
fn agents() -> Vec<fn() -> Agent> {
    if is_root() { vec![Agent::start, Agent::start_as_nobody] } else { vec![Agent::start] }
}

/// The two keepers of the only program.
fn keepers(agent: &Agent) -> [u32; 2] {
    let keeper = |parent, word: &str| {
        let found = children(parent).into_iter().find(|pid| command_line(*pid).ends_with(word));
        found.expect("a keeper")
    };
    let first = keeper(agent.pid(), "keep program ");
    let second = keeper(first, "keep second ");
    [first, second]
}

#[test]
fn a_kill_ends_that_tree_and_no_other() {
    for start in agents() {
        let (mut agent, one, other) = (start(), mark(), mark());
        let process = started(&mut agent, &one);
        started(&mut agent, &other);
        let ended = agent.ask("process.kill", json!({"process": process}));
        assert_eq!(ended, json!({"ended": true, "exit_code": null, "signal": 9}));
        assert!(marked(&one).is_empty());
        assert_eq!(marked(&other).len(), 4);
        // Nothing of it is left to be killed.
        let again = agent.ask("process.kill", json!({"process": process}));
        assert_eq!(again["signal"], 9);
        agent.end();
        assert!(marked(&other).is_empty());
    }
}

#[test]
fn what_a_program_leaves_runs_on_and_is_ended_with_it() {
    for start in agents() {
        let (mut agent, mark) = (start(), mark());
        let asked = spawn("setsid sh -c \"$STILL\" & exit 4", &mark);
        let process = agent.ask("process.spawn", asked)["process"].take();
        let ended = agent.ask("process.wait", json!({"process": process, "timeout_seconds": null}));
        assert_eq!(ended["exit_code"], 4);
        eventually("what it left is there", || marked(&mark).len() == 1);
        assert_eq!(agent.ask("process.kill", json!({"process": process}))["exit_code"], 4);
        assert!(marked(&mark).is_empty());
        agent.end();
    }
}

#[test]
fn keepers_end_with_the_last_process() {
    for start in agents() {
        let mut agent = start();
        let process = agent.ask("process.spawn", json!({"argv": ["sh", "-c", "exit 5"]}))["process"].take();
        let ended = agent.ask("process.wait", json!({"process": process, "timeout_seconds": null}));
        assert_eq!(ended["exit_code"], 5);
        let program = |pid: &u32| command_line(*pid).ends_with("keep program ");
        eventually("its keepers are gone", || !children(agent.pid()).iter().any(program));
        // And what comes late changes nothing.
        agent.ask("process.signal", json!({"process": process, "signal": 15}));
        assert_eq!(agent.ask("process.kill", json!({"process": process}))["exit_code"], 5);
        agent.end();
    }
}

#[test]
fn nothing_stays_when_the_agent_ends_or_is_killed() {
    for start in agents() {
        let (mut agent, mark) = (start(), mark());
        started(&mut agent, &mark);
        agent.end();
        assert!(marked(&mark).is_empty());
    }
    for start in agents() {
        let (mut agent, mark) = (start(), mark());
        started(&mut agent, &mark);
        let group = group_of(marked(&mark)[0]);
        agent.kill();
        gone(&mark);
        if let Some(group) = group {
            eventually("its cgroup is removed", || !group.exists());
        }
    }
}

/// The cgroup of the agent of a program, if it has one.
fn group_of(pid: u32) -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/mounts").expect("procfs");
    let root = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?.split(' ').nth(1)?;
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("it runs");
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/framegauge-"))?;
    Some(PathBuf::from(format!("{root}/framegauge-{}", path.split('/').next()?)))
}

#[test]
fn nothing_stays_when_keepers_are_killed() {
    // The first, the second; the agent with either of them.
    for (place, with_agent) in [(0, false), (1, false), (0, true), (1, true)] {
        for start in agents() {
            let (mut agent, mark) = (start(), mark());
            let process = started(&mut agent, &mark);
            let keepers = keepers(&agent);
            if with_agent {
                // The agent last: until it is awaited its number is its own.
                killed(&[keepers[place], agent.pid()]);
                gone(&mark);
                continue;
            }
            killed(&[keepers[place]]);
            gone(&mark);
            let ended = agent.ask("process.wait", json!({"process": process, "timeout_seconds": 60}));
            assert_eq!(ended["signal"], 9, "{place}");
            agent.end();
        }
    }
}

#[test]
fn the_program_itself_ends_even_with_both_keepers() {
    for start in agents() {
        let (mut agent, mark) = (start(), mark());
        agent.ask("process.spawn", spawn("exec sh -c \"$STILL\"", &mark));
        eventually("it is there", || marked(&mark).len() == 1);
        let [first, second] = keepers(&agent);
        // It would end as soon as the second one does.
        stopped(first);
        killed(&[second, first]);
        gone(&mark);
        agent.end();
    }
}

#[test]
fn in_a_rack_nothing_stays_whoever_is_killed() {
    if !is_root() {
        return;
    }
    // The rack's agent, that of a host, and both of them.
    for (rack, host) in [(true, false), (false, true), (true, true)] {
        let (mut agent, mark) = (Agent::start_rack(), mark());
        let hosts = agent.ask("rack.bare", json!({"hosts": ["h1", "h2"]}))["hosts"].take();
        let spawn = json!({"host": "h1", "method": "process.spawn", "params": spawn(TREE, &mark)});
        agent.ask("relay", spawn);
        agent.ask("relay", json!({"host": "h1", "method": "host.folder", "params": {}}));
        all_there(&mark);
        let group = group_of(marked(&mark)[0]).expect("a rack has cgroups");
        let host_agent = hosts[0]["pid"].as_u64().and_then(|pid| pid.try_into().ok()).expect("a process");
        let agents = [(host, host_agent), (rack, agent.pid())];
        killed(&agents.iter().filter(|(end, _)| *end).map(|(_, pid)| *pid).collect::<Vec<_>>());
        gone(&mark);
        if rack {
            eventually("its cgroup is removed", || !group.exists());
        } else {
            agent.ask("rack.down", json!({}));
            agent.end();
            assert!(!group.exists());
        }
    }
}
