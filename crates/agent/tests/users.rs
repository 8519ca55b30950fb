//! As whom programs run, what is said of those that do not start, and the name that their host has.
#![allow(clippy::disallowed_methods, reason = "a test starts the agent")]

mod common;

use common::{Agent, is_root};
use serde_json::json;

#[test]
fn a_program_runs_as_the_user_that_is_named() {
    if !is_root() {
        return;
    }
    let mut agent = Agent::start();
    let script = "id -u; id -g; id -G; echo $HOME $USER $LOGNAME; echo once more >>/dev/stdout";
    let spawn = json!({"argv": ["sh", "-c", script], "user": "daemon", "environment": {"LOGNAME": "mine"}});
    let mut expected = String::new();
    for option in ["-u", "-g", "-G"] {
        expected += &agent.printed(json!({"argv": ["id", option, "daemon"]}));
    }
    assert_eq!(agent.printed(spawn), expected + "/usr/sbin daemon mine\nonce more\n");
    assert_eq!(agent.printed(json!({"argv": ["id", "-u"], "user": null})), "0\n");
    let stranger = agent.refusal("process.spawn", json!({"argv": ["id"], "user": "no-such-user"}));
    assert_eq!((&stranger["code"], &stranger["data"]["errno"]), (&json!(-32004), &json!(2)));
    assert!(stranger["message"].to_string().contains("no-such-user"), "{stranger}");
    agent.end();
}

#[test]
fn who_is_not_root_starts_programs_as_nobody_else() {
    if !is_root() {
        return;
    }
    let mut agent = Agent::start_as_nobody();
    let refused = agent.refusal("process.spawn", json!({"argv": ["id"], "user": "root"}));
    assert_eq!((&refused["code"], &refused["data"]["errno"]), (&json!(-32004), &json!(1)));
    assert!(refused["message"].to_string().contains("expected root"), "{refused}");
    agent.end();
}

#[test]
fn what_is_missing_is_said() {
    if !is_root() {
        return;
    }
    let mut agent = Agent::start();
    let mut said = |spawn| {
        let error = agent.refusal("process.spawn", spawn);
        assert_eq!((&error["code"], &error["data"]["errno"]), (&json!(-32004), &json!(2)), "{error}");
        error["message"].to_string()
    };
    assert!(said(json!({"argv": ["no-such"]})).contains("start no-such: found no such program in /"));
    assert!(
        said(json!({"argv": ["no-such"], "environment": {"PATH": "/nowhere"}}))
            .contains("program in /nowhere")
    );
    assert!(said(json!({"argv": ["/no/such"]})).contains("start /no/such: found no such program"));
    assert!(said(json!({"argv": ["id"], "directory": "/no/such"})).contains("found no folder /no/such"));
    let script = std::env::temp_dir().join(format!("framegauge-script-{}", std::process::id()));
    std::fs::write(&script, "#!/no/such\n").expect("a script");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).expect("its mode");
    let answer = said(json!({"argv": [script]}));
    std::fs::remove_file(script).expect("the script");
    assert!(answer.contains("in its first line"), "{answer}");
    agent.end();
}

#[test]
fn a_host_of_a_rack_has_a_name_of_its_own() {
    if !is_root() {
        return;
    }
    let mut agent = Agent::start_rack();
    agent.ask("rack.bare", json!({"hosts": ["h1", "store-2"]}));
    for host in ["h1", "store-2"] {
        let mut relay = |method: &str, params| {
            agent.ask("relay", json!({"host": host, "method": method, "params": params}))
        };
        assert_eq!(relay("check.facts", json!({}))["hostname"], host);
        let process = relay("process.spawn", json!({"argv": ["uname", "-n"]}))["process"].clone();
        relay("process.wait", json!({"process": process, "timeout_seconds": 30}));
        let asked = json!({"process": process, "stream": "stdout", "offset_bytes": 0, "length_bytes": 99});
        let size = relay("process.output", asked)["size_bytes"].clone();
        assert_eq!(size, host.len() + 1);
    }
    agent.ask("rack.down", json!({}));
    let long = "x".repeat(65);
    let refused = agent.refusal("rack.bare", json!({"hosts": [long]}));
    assert!(refused["message"].to_string().contains("65 letters, expected at most 64"), "{refused}");
    agent.end();
}
