//! The book of connections, with looks and ends made up.

use framegauge_metering::connections::{Book, Counts, Holder, Owner, Role, Sight, Summary};
use proptest::prelude::*;

const SERVER_PORT: u16 = 6379;

fn owner(process: u64, program: &str) -> Owner {
    Owner { process, program: program.into() }
}

/// A client's end, or a server's, of connection `cookie`.
fn sight(cookie: u64, server: bool, sent_bytes: u64) -> Sight {
    let ephemeral = 20_000 + (cookie % 30_000) as u16;
    let (here, there) = if server { (SERVER_PORT, ephemeral) } else { (ephemeral, SERVER_PORT) };
    let counts = Some(Counts { mss_bytes: 1448, sent_bytes, received_bytes: 2 * sent_bytes });
    Sight {
        cookie,
        local: ([10, 77, 0, 2], here).into(),
        remote: ([10, 77, 0, 1], there).into(),
        congestion_control: Some("cubic".into()),
        counts,
        held: true,
    }
}

fn end(cookie: u64, server: bool, sent_bytes: u64) -> Sight {
    Sight { held: false, congestion_control: None, ..sight(cookie, server, sent_bytes) }
}

fn redis(_: u64) -> Option<Holder> {
    Some(Holder::Program(owner(1, "redis-server")))
}

fn nobody(_: u64) -> Option<Holder> {
    None
}

fn finish(book: Book) -> Vec<Summary> {
    book.finish().0
}

#[test]
fn a_connection_is_kept_with_all_that_was_seen_of_it() {
    let mut book = Book::new(false, 10);
    book.listens(SERVER_PORT, Some(owner(1, "redis-server")));
    book.look(1.0, &[sight(7, true, 100)], redis);
    book.nodelay(7, false);
    let changed = Sight { congestion_control: Some("bbr".into()), ..sight(7, true, 200) };
    book.look(2.0, &[changed], nobody);
    book.nodelay(7, true);
    book.nodelay(7, false);
    book.destroyed(2.5, &end(7, true, 300));
    let found = finish(book);
    assert_eq!(found.len(), 1);
    let only = &found[0];
    assert_eq!((only.owner.clone(), only.role), (Some(owner(1, "redis-server")), Role::Server));
    assert_eq!((only.sent_bytes, only.received_bytes, only.connections), (300, 600, 1));
    assert_eq!((only.first_seconds, only.last_seconds), (1.0, 2.5));
    assert_eq!((only.nodelay.as_slice(), only.mss_bytes.as_slice()), (&[false, true][..], &[1448][..]));
    assert_eq!(only.congestion_control.iter().map(|name| &**name).collect::<Vec<_>>(), ["cubic", "bbr"]);
}

#[test]
fn only_a_namespace_of_the_host_has_connections_that_nobody_holds() {
    for (private, expected) in [(false, 0), (true, 2)] {
        let mut book = Book::new(private, 10);
        book.look(1.0, &[sight(1, false, 5)], nobody);
        book.destroyed(1.1, &end(2, false, 6));
        let found = finish(book);
        assert_eq!(found.len(), expected);
        assert!(found.iter().all(|each| each.owner.is_none() && each.role == Role::Client));
    }
}

#[test]
fn one_that_no_look_found_is_of_the_program_that_listens() {
    let mut book = Book::new(true, 10);
    book.listens(SERVER_PORT, Some(owner(3, "nginx")));
    book.destroyed(0.5, &end(1, true, 6));
    book.destroyed(0.6, &end(2, false, 7));
    let found = finish(book);
    let owners: Vec<Option<Owner>> = found.iter().map(|each| each.owner.clone()).collect();
    assert_eq!(owners, [Some(owner(3, "nginx")), None]);
    assert!(found.iter().all(|each| each.nodelay.is_empty() && each.port == Some(SERVER_PORT)));
}

#[test]
fn the_agents_own_sockets_are_not_those_of_programs() {
    let mut book = Book::new(true, 10);
    // Not accepted yet when it was first seen.
    book.look(1.0, &[Sight { held: false, ..sight(1, true, 5) }], nobody);
    book.look(2.0, &[sight(1, true, 5)], |_| Some(Holder::Agent));
    book.look(3.0, &[sight(1, true, 9)], nobody);
    book.destroyed(4.0, &end(1, true, 9));
    assert_eq!(finish(book), []);
}

#[test]
fn what_the_kernel_keeps_after_an_end_is_no_connection() {
    let mut book = Book::new(true, 10);
    let remnant = Sight { counts: None, ..end(1, true, 0) };
    book.look(1.0, std::slice::from_ref(&remnant), nobody);
    book.destroyed(1.5, &end(2, true, 5));
    book.look(9.0, &[remnant, Sight { counts: None, ..end(2, true, 0) }], nobody);
    let found = finish(book);
    assert_eq!((found.len(), found[0].last_seconds), (1, 1.5));
}

#[test]
fn loopback_is_told_by_both_addresses() {
    for (local, remote, expected) in [
        ("127.0.0.1:1", "127.0.0.1:2", true),
        ("[::1]:1", "[::1]:2", true),
        ("10.77.0.2:1", "10.77.0.2:2", true),
        ("10.77.0.2:1", "10.77.0.1:2", false),
    ] {
        let mut book = Book::new(true, 10);
        let (local, remote) = (local.parse().expect("an address"), remote.parse().expect("an address"));
        book.destroyed(1.0, &Sight { local, remote, ..end(1, true, 5) });
        assert_eq!(finish(book)[0].loopback, expected, "{local} {remote}");
    }
}

#[test]
fn tcp_nodelay_is_asked_for_at_first_and_then_every_so_often() {
    let mut book = Book::new(false, 10);
    let mut asked = 0;
    for look in 0..103 {
        book.look(f64::from(look), &[sight(7, true, 0)], redis);
        if book.asks_nodelay(7) {
            book.nodelay(7, true);
            asked += 1;
        }
    }
    assert_eq!(asked, 3 + 10, "each of the first three, and one of ten of the others");
    assert!(!book.asks_nodelay(8), "there is no such socket");
}

#[test]
fn a_client_with_a_port_for_every_connection_does_not_grow_the_sums_without_end() {
    let mut book = Book::new(true, 1);
    for cookie in 0..20_000 {
        let one = end(cookie, false, 1);
        book.destroyed(1.0, &Sight { remote: (one.remote.ip(), 1 + cookie as u16).into(), ..one });
    }
    book.look(2.0, &[], nobody);
    let (found, more) = book.finish();
    assert_eq!((found.len(), more), (1 + 4000 + 1, 19_999));
    assert_eq!(found.iter().map(|each| each.connections).sum::<u64>(), 20_000);
    assert_eq!(found.iter().filter(|each| each.port.is_none()).count(), 1);
}

proptest! {
    /// However looks and ends follow each other, and however few are kept: every connection is there once, with all
    /// of its bytes.
    #[test]
    fn no_connection_is_lost_or_counted_twice(
        most in 0..8_usize,
        steps in proptest::collection::vec((0..24_u64, 0..5_u8), 0..200),
    ) {
        let mut book = Book::new(true, most);
        book.listens(SERVER_PORT, Some(owner(1, "redis-server")));
        let (mut alive, mut ended) = (std::collections::BTreeMap::new(), std::collections::BTreeMap::new());
        let mut now = 0.0;
        for (cookie, step) in steps {
            now += 0.7;
            if step == 0 {
                if let Some(bytes) = alive.remove(&cookie) {
                    book.destroyed(now, &end(cookie, true, bytes));
                    ended.insert(cookie, bytes);
                }
            } else if !ended.contains_key(&cookie) {
                *alive.entry(cookie).or_insert(0) += u64::from(step);
            }
            // A socket that its program has kept after its connection broke is in no look, and its end comes late.
            let seen: Vec<Sight> = alive
                .iter()
                .filter(|(_, bytes)| **bytes <= 8)
                .map(|(cookie, bytes)| sight(*cookie, true, *bytes))
                .collect();
            book.look(now, &seen, redis);
        }
        for (cookie, bytes) in &alive {
            book.destroyed(now, &end(*cookie, true, *bytes));
        }
        let (found, more) = book.finish();
        let all: u64 = alive.values().chain(ended.values()).sum();
        prop_assert_eq!(found.iter().map(|each| each.sent_bytes).sum::<u64>(), all);
        let connections = found.iter().map(|each| each.connections).sum::<u64>();
        prop_assert_eq!(connections, (alive.len() + ended.len()) as u64);
        prop_assert_eq!(more, connections.saturating_sub(most as u64));
    }
}
