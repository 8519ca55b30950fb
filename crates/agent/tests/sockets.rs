//! The watch on the sockets of programs, through the pipe of a host agent, with real programs on its loopback.
#![allow(clippy::disallowed_methods, reason = "a test waits for a program")]

mod common;

use common::Agent;
use serde_json::{Value, json};

/// Two ends of connections of a program's own. The server answers 100 bytes with 1000 and sets TCP_NODELAY, on its listener,
/// so that no connection is ever seen without; the client leaves it as it is.
const SERVER: &str = "
import os, socket, sys
family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
listener = socket.create_server((sys.argv[1], 0), family=family)
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
print(listener.getsockname()[1], flush=True)
while True:
    connection, _ = listener.accept()
    if os.fork() == 0:
        while connection.recv(100, socket.MSG_WAITALL):
            connection.sendall(bytes(1000))
        os._exit(0)
    connection.close()
";
const CLIENT: &str = "
import socket, sys, time
for _ in range(int(sys.argv[3])):
    connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    for _ in range(10):
        connection.sendall(bytes(100))
        connection.recv(1000, socket.MSG_WAITALL)
        time.sleep(float(sys.argv[4]))
    if len(sys.argv) > 5:  # nothing is under way, and the connection stays until the program is ended
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        print('done', flush=True)
        time.sleep(60)
    connection.close()
";

fn spawn(agent: &mut Agent, program: &str, arguments: &[&str]) -> Option<u64> {
    let argv: Vec<&str> = ["python3", "-c", program].into_iter().chain(arguments.iter().copied()).collect();
    let answer = agent.call("process.spawn", json!({"argv": argv}));
    let process = answer["result"]["process"].as_u64();
    if process.is_none() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{answer}");
        eprintln!("not run: needs a cgroup for programs, and python3: {answer}");
    }
    process
}

fn first_line(agent: &mut Agent, process: u64) -> String {
    for _ in 0..3000 {
        let params = json!({"process": process, "stream": "stdout", "offset_bytes": 0, "length_bytes": 100});
        let answer = agent.call("process.output", params);
        if answer["result"]["size_bytes"].as_u64() > Some(0) {
            use base64::Engine;
            let data = answer["result"]["data"].as_str().expect("text");
            let bytes = base64::engine::general_purpose::STANDARD.decode(data).expect("base64");
            return String::from_utf8(bytes).expect("text").trim().to_string();
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the program said nothing");
}

/// What a watch sees of clients that connect so often, and pause after each request.
fn watched(agent: &mut Agent, address: &str, connections: u32, pause: &str) -> Option<(Value, u64)> {
    let server = spawn(agent, SERVER, &[address])?;
    let port = first_line(agent, server);
    assert_eq!(agent.call("sockets.watch", json!({"interval_seconds": 0.005}))["result"], json!({}));
    let client = spawn(agent, CLIENT, &[address, &port, &connections.to_string(), pause])?;
    let ended = agent.call("process.wait", json!({"process": client, "timeout_seconds": 60}));
    assert_eq!(ended["result"]["exit_code"], 0, "{ended}");
    Some((agent.call("sockets.watched", json!({}))["result"].clone(), port.parse().expect("a port")))
}

fn of<'a>(found: &'a Value, role: &str, port: u64) -> Vec<&'a Value> {
    let sockets = found["sockets"].as_array().expect("a list").iter();
    sockets.filter(|each| each["role"] == role && each["port"] == port).collect()
}

/// What a watch sees of a connection that is open until its last look, however seldom it looked before, and at which port
/// it was.
fn watched_to_the_end(agent: &mut Agent, address: &str) -> Option<(Value, u64)> {
    let server = spawn(agent, SERVER, &[address])?;
    let port = first_line(agent, server);
    assert_eq!(agent.call("sockets.watch", json!({"interval_seconds": 0.005}))["result"], json!({}));
    let client = spawn(agent, CLIENT, &[address, &port, "1", "0.02", "stay"])?;
    assert_eq!(first_line(agent, client), "done");
    let found = agent.call("sockets.watched", json!({}))["result"].clone();
    agent.call("process.kill", json!({"process": client}));
    assert!(found["looks"].as_u64() >= Some(2), "{found}");
    Some((found, port.parse().expect("a port")))
}

#[test]
fn both_ends_of_a_connection_are_seen_with_what_their_programs_chose() {
    let mut agent = Agent::start();
    for (address, shown) in [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")] {
        let Some((found, port)) = watched_to_the_end(&mut agent, address) else { return agent.end() };
        assert_eq!((&found["unread"], &found["more"]), (&json!([]), &json!(0)));
        let (servers, clients) = (of(&found, "server", port), of(&found, "client", port));
        assert_eq!((servers.len(), clients.len()), (1, 1), "{found}");
        let (server, client) = (servers[0], clients[0]);
        assert_eq!((&server["nodelay"], &client["nodelay"]), (&json!([true]), &json!([false])));
        assert_eq!((&server["local"], &server["remote"]), (&client["remote"], &client["local"]));
        assert_eq!(server["local"], format!("{shown}:{port}"));
        assert_eq!((&client["sent_bytes"], &server["sent_bytes"]), (&json!(1000), &json!(10_000)));
        assert_eq!(client["received_bytes"], 10_000);
        for end in [server, client] {
            let name = end["program"].as_str().expect("a name");
            assert!(name.starts_with("python"), "{name}");
            assert_eq!((&end["loopback"], &end["connections"]), (&json!(true), &json!(1)));
            assert_eq!(end["congestion_control"].as_array().map(Vec::len), Some(1));
        }
    }
    agent.end();
}

/// Most are shorter than the time between two looks. In a namespace of its own the kernel tells of each at its end.
#[test]
fn no_byte_of_short_connections_is_missed_in_a_namespace_of_the_host() {
    let mut agent = Agent::start_with(&["host", "--fresh"]);
    let raised = agent.call("process.spawn", json!({"argv": ["ip", "link", "set", "lo", "up"]}));
    let Some(process) = raised["result"]["process"].as_u64() else { return agent.end() };
    agent.call("process.wait", json!({"process": process, "timeout_seconds": 10}));
    let Some((found, port)) = watched(&mut agent, "127.0.0.1", 100, "0") else { return agent.end() };
    assert_eq!((&found["lost"], &found["more"]), (&json!(0), &json!(0)));
    let sum =
        |ends: &[&Value], key: &str| ends.iter().map(|end| end[key].as_u64().expect("a count")).sum::<u64>();
    let (servers, clients) = (of(&found, "server", port), of(&found, "client", port));
    assert_eq!((servers.len(), clients.len()), (100, 100));
    assert_eq!((sum(&servers, "sent_bytes"), sum(&clients, "sent_bytes")), (1_000_000, 100_000));
    assert!(servers.iter().all(|end| end["program"].as_str().is_some_and(|name| name.starts_with("python"))));
    agent.end();
}

#[test]
fn a_watch_is_begun_before_it_ends_and_its_interval_is_within_reason() {
    let mut agent = Agent::start();
    assert_eq!(agent.call("sockets.watched", json!({}))["error"]["code"], -32006);
    for interval in [json!(0), json!(0.0001), json!(11), json!("1")] {
        assert_eq!(
            agent.call("sockets.watch", json!({"interval_seconds": interval}))["error"]["code"],
            -32602
        );
    }
    assert_eq!(agent.call("sockets.watch", json!({}))["result"], json!({}));
    assert_eq!(agent.call("sockets.watch", json!({}))["result"], json!({}), "it begins anew");
    let found = agent.call("sockets.watched", json!({}))["result"].clone();
    assert_eq!(found["sockets"], json!([]), "there are no programs");
    assert_eq!(agent.call("sockets.watched", json!({}))["error"]["code"], -32006);
    agent.end();
}
