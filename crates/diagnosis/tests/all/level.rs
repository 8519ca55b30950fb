//! An RTT that rises: by a queue of its own, by that of others, or since the path is another one.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, kinds};
use framegauge_diagnosis::{Diagnosis, Kind};
use proptest::prelude::*;
use std::collections::VecDeque;

const RTT: i64 = 10 * MS;
const LIFE: i64 = 4_000 * MS;

/// A sender that keeps so many segments under way, over a path with so long an RTT and a link that takes so long for a segment:
/// each by the time since the beginning.
fn sends(window: impl Fn(i64) -> u32, rtt: impl Fn(i64) -> i64, of_link: i64) -> Diagnosis {
    repeats(window, rtt, of_link, 0)
}

/// The same; so many of the first segments since the RTT has risen are repeated.
fn repeats(
    window: impl Fn(i64) -> u32,
    rtt: impl Fn(i64) -> i64,
    of_link: i64,
    mut repeated: u32,
) -> Diagnosis {
    let mut scene = Scene::met(RTT);
    scene.window = [u16::MAX; 2];
    let begin = scene.now;
    // Answers that are under way: when, and up to where.
    let mut answers: VecDeque<(i64, u32)> = VecDeque::new();
    let mut free = 0;
    while scene.now - begin < LIFE {
        let now = scene.now - begin;
        if answers.len() < window(now) as usize {
            let first = scene.data(CLIENT, MSS);
            if repeated > 0 && rtt(now) > RTT {
                repeated -= 1;
                scene.pass(10_000);
                scene.again(CLIENT, first, MSS);
            }
            let now = scene.now - begin;
            free = now.max(free) + of_link;
            // None overtakes another.
            let at = (free + rtt(now)).max(answers.back().map_or(0, |last| last.0));
            answers.push_back((at, scene.next[CLIENT]));
            scene.pass(10_000);
        } else if let Some((at, end)) = answers.drain(..2).next_back() {
            // Every second segment is answered.
            scene.now = scene.now.max(begin + at);
            scene.got[SERVER] = end;
            scene.send(SERVER, 0, framegauge_packets::TcpFlags::ACK);
        }
    }
    scene.diagnosis()
}

fn says_path(found: &Diagnosis) -> bool {
    found.findings.iter().any(|each| each.text.contains("another path, and no queue"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The RTT rises at once and stays, however much is under way: the path is another one, and no queue.
    #[test]
    fn a_step_that_stays_is_another_path(
        window in 4u32..60, more in 1u32..4, every in 300i64..900, factor in 6i64..20, at in 600i64..2_000,
        repeated in 0u32..4,
    ) {
        let windows = |now: i64| if now / MS / every % 2 == 1 { window * more } else { window };
        let found = repeats(windows, |now| if now < at * MS { RTT } else { factor * RTT }, 1_000, repeated);
        prop_assert!(!kinds(&found).contains(&Kind::Bufferbloat), "{:#?}", found.findings);
        prop_assert!(says_path(&found), "{:#?}", found.findings);
    }

    /// What is under way grows beyond what the path takes, at once or from RTT to RTT, and falls now and then: its own queue.
    #[test]
    fn a_queue_of_its_own_is_no_other_path(
        few in 4u32..6, many in 60u32..200, at in 300i64..1_500, is_sudden: bool, drains: bool,
    ) {
        // At most so many are under way without a queue.
        let of_link = RTT / 8;
        let windows = |now: i64| {
            let since = now / MS - at;
            let grown = if is_sudden { many } else { (few + (since.max(0) / 20) as u32).min(many) };
            if since < 0 || (drains && since / 700 % 2 == 1) { few } else { grown }
        };
        let found = sends(windows, |_| RTT, of_link);
        prop_assert!(kinds(&found).contains(&Kind::Bufferbloat), "{:#?}", found.findings);
        prop_assert!(!says_path(&found), "{:#?}", found.findings);
    }

    /// Others fill a queue, which takes a while, and drain it again.
    #[test]
    fn a_queue_of_others_is_no_other_path(
        window in 4u32..40, factor in 8i64..20, at in 300i64..1_000, fills in 100i64..400, stays in 500i64..3_000,
    ) {
        let rtt = |now: i64| {
            let since = now / MS - at;
            let filled = since.clamp(0, fills).min((fills + stays + fills - since).clamp(0, fills));
            RTT + (factor - 1) * RTT * filled / fills
        };
        let found = sends(|_| window, rtt, 1_000);
        prop_assert!(kinds(&found).contains(&Kind::Bufferbloat), "{:#?}", found.findings);
        prop_assert!(!says_path(&found), "{:#?}", found.findings);
    }
}
