//! The folder of a host: what is written and read there, who sees it, and that it is gone on every way out.
#![allow(clippy::disallowed_methods, reason = "a test starts the agent")]

mod common;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use common::{Agent, children, eventually, is_root, killed};
use serde_json::{Value, json};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

fn file(path: &str, text: &str) -> Value {
    json!({"path": path, "data": STANDARD.encode(text), "mode": 0o640})
}

fn folder(agent: &mut Agent) -> PathBuf {
    let path = agent.ask("host.folder", json!({}))["path"].take();
    PathBuf::from(path.as_str().expect("a path"))
}

fn written(agent: &mut Agent) -> PathBuf {
    let path = folder(agent);
    agent.ask("host.files", json!({"files": [file("run-1/log.txt", "jumbo"), file("a", "")]}));
    path
}

#[test]
fn files_are_written_read_listed_and_removed() {
    let mut agent = Agent::start();
    let path = written(&mut agent);
    assert_eq!(folder(&mut agent), path);
    let found = std::fs::metadata(path.join("run-1/log.txt")).expect("it is there");
    assert_eq!(found.mode() & 0o7777, 0o640);
    let fetch = |path: &str| json!({"path": path, "offset_bytes": 1, "length_bytes": 3});
    let answer = agent.ask("host.fetch", fetch("run-1/log.txt"));
    assert_eq!(answer, json!({"data": STANDARD.encode("umb"), "size_bytes": 5}));
    let all = json!([{"path": "a", "size_bytes": 0}, {"path": "run-1/log.txt", "size_bytes": 5}]);
    assert_eq!(agent.ask("host.list", json!({"path": ""})), json!({"files": all, "more": false}));
    agent.ask("host.clear", json!({"path": "run-1"}));
    agent.ask("host.clear", json!({"path": "run-1"}));
    let rest = json!([{"path": "a", "size_bytes": 0}]);
    assert_eq!(agent.ask("host.list", json!({"path": ""})), json!({"files": rest, "more": false}));
    agent.end();
    assert!(!path.exists());
}

#[test]
fn what_is_not_below_is_refused() {
    let mut agent = Agent::start();
    let path = written(&mut agent);
    std::os::unix::fs::symlink("/etc", path.join("link")).expect("a link");
    let fetch = |path: &str| json!({"path": path, "offset_bytes": 0, "length_bytes": 9});
    for wrong in ["/etc/hostname", "../x", "run-1/../../x", "."] {
        for (method, asked) in [
            ("host.fetch", fetch(wrong)),
            ("host.list", json!({"path": wrong})),
            ("host.clear", json!({"path": wrong})),
            ("host.files", json!({"files": [file("b", "not written"), file(wrong, "x")]})),
        ] {
            assert_eq!(agent.refusal(method, asked)["code"], -32602, "{method} {wrong}");
        }
    }
    assert_eq!(agent.refusal("host.fetch", fetch(""))["code"], -32602);
    assert!(!path.join("b").exists());
    for (method, asked) in [
        ("host.fetch", fetch("link/hostname")),
        ("host.files", json!({"files": [file("link/framegauge", "x")]})),
        ("host.list", json!({"path": "link"})),
        ("host.clear", json!({"path": "link/hostname"})),
    ] {
        let error = agent.refusal(method, asked);
        assert_eq!((&error["code"], &error["data"]["errno"]), (&json!(-32004), &json!(40)), "{error}");
    }
    let wrong = json!({"files": [{"path": "c", "data": "?"}]});
    assert_eq!(agent.refusal("host.files", wrong)["code"], -32602);
    let wrong = json!({"files": [{"path": "c", "data": "", "mode": 0o10000}]});
    assert_eq!(agent.refusal("host.files", wrong)["code"], -32602);
    assert_eq!(agent.refusal("host.folder", json!({"limit_bytes": 1 << 20}))["code"], -32006);
    agent.end();
    assert!(!path.exists() && Path::new("/etc/passwd").exists());
}

#[test]
fn it_is_gone_when_the_agent_is_killed_and_when_its_keeper_is() {
    let mut agent = Agent::start();
    let path = written(&mut agent);
    assert!(path.exists());
    agent.kill();
    eventually("the folder is removed", || !path.exists());

    let mut agent = Agent::start();
    let path = written(&mut agent);
    killed(&children(agent.pid()));
    agent.end();
    assert!(!path.exists());
}

#[test]
fn an_ordinary_users_is_their_own() {
    if !is_root() {
        return;
    }
    let mut agent = Agent::start_as_nobody();
    let path = written(&mut agent);
    let found = std::fs::metadata(&path).expect("it is there");
    assert_eq!(found.mode() & 0o7777, 0o700);
    assert_ne!(found.uid(), 0);
    agent.kill();
    eventually("the folder is removed", || !path.exists());
}

/// A rack agent with two hosts, and a function that asks one of them.
struct Rack(Agent);

impl Rack {
    fn up() -> Self {
        let mut agent = Agent::start_rack();
        agent.ask("rack.bare", json!({"hosts": ["h1", "h2"]}));
        Self(agent)
    }

    fn ask(&mut self, host: &str, method: &str, params: Value) -> Value {
        self.0.ask("relay", json!({"host": host, "method": method, "params": params}))
    }
}

#[test]
fn in_a_rack_each_host_has_its_own_by_the_same_path() {
    if !is_root() {
        return;
    }
    let mut rack = Rack::up();
    let path = rack.ask("h1", "host.folder", json!({"limit_bytes": 1 << 20}))["path"].take();
    assert_eq!(rack.ask("h2", "host.folder", json!({}))["path"], path);
    let path = PathBuf::from(path.as_str().expect("a path"));
    rack.ask("h1", "host.files", json!({"files": [file("conf/own", "h1")]}));
    assert_eq!(rack.ask("h2", "host.list", json!({"path": ""}))["files"], json!([]));
    // Nothing of it is the machine's.
    assert!(!path.exists());
    let mounts = || std::fs::read_to_string("/proc/mounts").expect("procfs");
    assert!(!mounts().contains("/dev/shm/framegauge"));
    // A program of another user reads there, and finds its host's files only.
    let script = format!("cat {0}/conf/own && ! touch {0}/new", path.display());
    let spawn = json!({"argv": ["sh", "-c", script], "user": "daemon"});
    rack.ask("h1", "host.files", json!({"files": [{"path": "conf/own", "data": STANDARD.encode("h1")}]}));
    let process = rack.ask("h1", "process.spawn", spawn)["process"].take();
    let ended = rack.ask("h1", "process.wait", json!({"process": process, "timeout_seconds": 30}));
    assert_eq!(ended["exit_code"], 0);
    // It holds no more than it may, until it may hold more.
    let large = json!({"files": [{"path": "large", "data": STANDARD.encode(vec![1; 2 << 20])}]});
    let relayed = json!({"host": "h1", "method": "host.files", "params": large});
    let full = rack.0.refusal("relay", relayed.clone());
    assert_eq!((&full["code"], &full["data"]["errno"]), (&json!(-32004), &json!(28)), "{full}");
    rack.ask("h1", "host.folder", json!({"limit_bytes": 8 << 20}));
    rack.0.ask("relay", relayed);
    rack.0.ask("rack.down", json!({}));
    rack.0.end();
    assert!(!path.exists() && !mounts().contains("/dev/shm/framegauge"));
}
