//! Single exchanges, segment by segment, as the kernel was seen to hold them (`bench/exchanges`).

use crate::common::{host, milliseconds, rack, scenario};
use framegauge_fabric::{Act, PortIndex, Rule, Script};
use framegauge_frames::Picoseconds;
use framegauge_simulator::{Algorithm, Flow, Logged, Outcome, Repeat, Simulation, Step};

const MSS: u64 = 1448;
const RATE: u64 = 50_000_000;
/// Frames with payload; any of TCP.
const PAYLOAD: u32 = 100;
const ANY: u32 = 66;

fn message(from_client: bool, bytes: u64) -> Step {
    Step::whole(from_client, Some(bytes))
}

/// Steps between two hosts over 20 ms; the client's frames that are lost, by number.
fn played(steps: Vec<Step>, lost: &[u32], at_least_bytes: u32) -> Outcome {
    let mut network = rack(2, RATE, milliseconds(20), 4_000_000);
    let rules = vec![Rule { frames: lost.to_vec(), at_least_bytes, act: Act::Lose }];
    network.scripts = vec![Script { port: PortIndex(0), rules }];
    let flow = Flow { steps, ..Flow::transfer(host(1), host(2), None) };
    let mut scenario = scenario(network, 1500, vec![flow], milliseconds(60_000));
    scenario.logs_segments = true;
    Simulation::new(scenario).unwrap().run()
}

fn transfer(segments: u64) -> Vec<Step> {
    vec![message(true, segments * MSS), message(false, 1)]
}

/// Numbers of the client's segments with payload, in the order in which they were sent.
fn order(outcome: &Outcome) -> Vec<u64> {
    let data = outcome.log.iter().filter(|logged| logged.from_client && logged.bytes > 0);
    data.map(|logged| (logged.sequence - 1) / MSS + 1).collect()
}

fn of_server(outcome: &Outcome) -> impl Iterator<Item = &Logged> {
    outcome.log.iter().filter(|logged| !logged.from_client)
}

#[test]
fn a_lost_segment_is_sent_again_when_three_behind_it_have_come() {
    let outcome = played(transfer(30), &[3], PAYLOAD);
    let sent = order(&outcome);
    // The kernel's order: two for each of the first two, one for the third's and the fourth's answer, then the lost one.
    assert_eq!(sent[10..19], [11, 12, 13, 14, 15, 16, 3, 17, 18]);
    assert_eq!((sent.len(), outcome.flows[0].sender.recoveries), (31, 1));
    let last = outcome.log.iter().rfind(|logged| logged.from_client).unwrap();
    assert_eq!((last.cwnd_segments, last.ssthresh_segments), (9, 8));
}

/// Sizes and acknowledgements as a kernel had them on the rack (Linux 6.18): what is sent ends where the window does, and of the
/// super-segments of two, which begin with the fifth segment, each is acknowledged as a whole.
#[test]
fn large_segments_go_out_as_they_are_written() {
    let network = rack(2, RATE, milliseconds(20), 4_000_000);
    let steps = vec![message(true, 20 * 8948), message(false, 1)];
    let flow = Flow { steps, ..Flow::transfer(host(1), host(2), None) };
    let mut scenario = scenario(network, 9000, vec![flow], milliseconds(1000));
    (scenario.tcp.gso_bytes, scenario.tcp.tso_rtt_log, scenario.tcp.output_limit_bytes) = (10_000, 0, 32_768);
    scenario.burst_bytes = 20_000;
    scenario.logs_segments = true;
    let outcome = Simulation::new(scenario).unwrap().run();
    let data = outcome.log.iter().filter(|logged| logged.from_client && logged.bytes > 0);
    let sizes: Vec<u32> = data.map(|logged| logged.bytes).collect();
    let known = [vec![8948; 12], vec![4460], vec![8948; 7], vec![4488]].concat();
    assert_eq!(sizes, known);
    let told: Vec<_> = of_server(&outcome).map(|logged| logged.acknowledged).take(10).collect();
    assert_eq!(told, [1, 8949, 17_897, 26_845, 35_793, 53_689, 71_585, 80_533, 89_481, 98_429]);
}

#[test]
fn resends_are_counted_by_round() {
    for repeat in [Repeat::Rounds(3), Repeat::NewUntil(milliseconds(400))] {
        let mut network = rack(2, RATE, milliseconds(20), 4_000_000);
        // The second of the second round's three segments.
        let rules = vec![Rule { frames: vec![5], at_least_bytes: PAYLOAD, act: Act::Lose }];
        network.scripts = vec![Script { port: PortIndex(0), rules }];
        let flow = Flow { steps: transfer(3), repeat, ..Flow::transfer(host(1), host(2), None) };
        let outcome = Simulation::new(scenario(network, 1500, vec![flow], milliseconds(1000))).unwrap().run();
        let ends: Vec<_> = outcome.transfers.iter().filter(|one| one.step == 1).collect();
        assert!(ends.len() >= 3, "{repeat:?}");
        for end in ends {
            assert_eq!(end.resends, [u64::from(end.round == 1), 0], "{repeat:?}, round {}", end.round);
        }
    }
}

#[test]
fn a_probe_is_not_counted_as_lost_when_the_timeout_comes() {
    let outcome = played(transfer(30), &[30, 31], PAYLOAD);
    let sender = outcome.flows[0].sender;
    assert_eq!((sender.probes, sender.timeouts, sender.lost_resends), (1, 1, 0));
    assert_eq!(order(&outcome)[29..], [30, 30, 30]);
}

/// `tcp_send_loss_probe` forgets what was pending, so that the timeout is not that of the head, which is older.
#[test]
fn a_timeout_begins_anew_with_the_probe_before_it() {
    let mut network = rack(2, RATE, milliseconds(20), 4_000_000);
    // All that the server tells from its fifth acknowledgement on.
    let rules = vec![Rule { frames: (6..40).collect(), at_least_bytes: ANY, act: Act::Lose }];
    network.scripts = vec![Script { port: PortIndex(2), rules }];
    let flow = Flow { steps: transfer(7), ..Flow::transfer(host(1), host(2), None) };
    let mut scenario = scenario(network, 1500, vec![flow], milliseconds(1000));
    scenario.logs_segments = true;
    let outcome = Simulation::new(scenario).unwrap().run();
    let data = outcome.log.iter().filter(|logged| logged.from_client && logged.bytes > 0);
    let again: Vec<_> = data.skip(7).map(|logged| ((logged.sequence - 1) / MSS + 1, logged.time)).collect();
    let [(probe, begins), (head, expires), ..] = again[..] else { panic!("{again:?}") };
    assert_eq!((probe, head), (7, 5));
    assert!(expires - begins >= milliseconds(200), "{again:?}");
}

#[test]
fn a_syn_is_sent_again_at_even_times_and_the_path_is_then_tried_with_one_segment() {
    let outcome = played(transfer(10), &[1, 2], ANY);
    let syns: Vec<f64> = outcome
        .log
        .iter()
        .filter(|logged| logged.from_client && logged.flags & 2 != 0)
        .map(|logged| logged.time.as_seconds_f64())
        .collect();
    assert_eq!(syns.len(), 3);
    assert!((1.0..1.1).contains(&syns[1]) && (2.0..2.1).contains(&syns[2]), "{syns:?}");
    let first = outcome.log.iter().find(|logged| logged.bytes > 0).unwrap();
    assert_eq!(first.cwnd_segments, 1);
}

#[test]
fn the_window_opens_with_each_segment_and_each_of_these_is_acknowledged_at_once() {
    let outcome = played(transfer(30), &[], PAYLOAD);
    let told: Vec<u32> = of_server(&outcome).skip(1).take(8).map(|logged| logged.window_bytes).collect();
    // As the kernel tells them.
    assert_eq!(told, [68_608, 71_680, 74_752, 76_800, 79_872, 82_944, 86_016, 86_016]);
    let singly = of_server(&outcome).skip(1).map(|logged| logged.acknowledged);
    let steps: Vec<u64> = singly.scan(1, |before, now| Some(now - std::mem::replace(before, now))).collect();
    assert!(steps[..24].iter().all(|step| *step == MSS), "{steps:?}");
    assert_eq!(steps[24], 2 * MSS);
}

#[test]
fn a_reader_that_pauses_closes_the_window_and_opens_it_again() {
    let mut steps = transfer(100);
    steps[0].reader_waits = milliseconds(1_000);
    let outcome = played(steps, &[], PAYLOAD);
    let closed =
        of_server(&outcome).find(|logged| logged.acknowledged > 1 && logged.window_bytes == 0).unwrap();
    assert!(closed.time < milliseconds(500), "{closed:?}");
    let opens = of_server(&outcome)
        .find(|logged| logged.acknowledged == closed.acknowledged && logged.window_bytes > 50_000)
        .unwrap();
    assert!(opens.time >= milliseconds(1_000), "{opens:?}");
    assert!(outcome.transfers.iter().all(|transfer| transfer.is_complete));
}

#[test]
fn a_message_waits_for_its_sender_to_think() {
    let think = Step { think: milliseconds(500), ..message(true, MSS) };
    let outcome = played(vec![message(true, MSS), message(false, 1), think, message(false, 1)], &[], PAYLOAD);
    let sent: Vec<&Logged> =
        outcome.log.iter().filter(|logged| logged.from_client && logged.bytes > 0).collect();
    assert!(sent[1].time - sent[0].time > milliseconds(500));
    let answers: Vec<&Logged> = of_server(&outcome).filter(|logged| logged.bytes > 0).collect();
    assert!(answers[1].time > sent[1].time);
}

#[test]
fn a_side_that_closes_says_so_with_its_last_segment_and_is_still_answered() {
    const FIN: u8 = 1;
    let greeted = Step { first_write_bytes: 48, closes: true, ..message(true, 48 + 2 * MSS + 100) };
    let outcome = played(vec![greeted, message(false, 8)], &[], PAYLOAD);
    let data = outcome.log.iter().filter(|logged| logged.from_client && logged.bytes > 0);
    let sent: Vec<_> = data.map(|logged| (logged.bytes, logged.flags & FIN)).collect();
    // As the rack's generator on a kernel: Nagle holds back no segment with a FIN, and the greeting has its own.
    assert_eq!(sent, [(48, 0), (1448, 0), (1448, 0), (100, FIN)]);
    let answers = of_server(&outcome).filter(|logged| logged.bytes > 0 || logged.flags & FIN > 0);
    assert_eq!(
        answers.map(|logged| (logged.bytes, logged.flags & FIN)).collect::<Vec<_>>(),
        [(8, 0), (0, FIN)]
    );
    assert!(outcome.transfers.iter().all(|transfer| transfer.is_complete));
}

#[test]
fn what_is_logged_ends_with_the_connection() {
    let outcome = played(transfer(3), &[], PAYLOAD);
    let fins = outcome.log.iter().filter(|logged| logged.flags & 1 != 0).count();
    let last = outcome.log.last().unwrap();
    assert_eq!((fins, last.bytes, last.from_client), (2, 0, true));
}

/// Super-segments as a kernel handed them to its host's queue (Linux 6.18 on the rack, `net_dev_queue`), in segments: 42 at 50 Mb/s
/// and 5 ms, behind a shaper that lets two frames through at once. Larger ones are cut there, and each piece has memory of
/// its own.
#[test]
fn super_segments_end_where_the_kernels_do() {
    let network = rack(2, RATE, milliseconds(5), 4_000_000);
    let flow = Flow { steps: transfer(42), ..Flow::transfer(host(1), host(2), None) };
    let mut scenario = scenario(network, 1500, vec![flow], milliseconds(1000));
    (scenario.tcp.gso_bytes, scenario.tcp.tso_rtt_log, scenario.tcp.output_limit_bytes) = (10_000, 0, 32_768);
    (scenario.tcp.header_room_bytes, scenario.tcp.uncut_bytes) = (192, 3176);
    scenario.burst_bytes = 3176;
    scenario.logs_segments = true;
    let outcome = Simulation::new(scenario).unwrap().run();
    let data = outcome.log.iter().filter(|logged| logged.from_client && logged.bytes > 0);
    let mut parts: Vec<(Picoseconds, u64)> = Vec::new();
    for logged in data {
        match parts.last_mut().filter(|(time, _)| *time == logged.time) {
            Some((_, count)) => *count += 1,
            None => parts.push((logged.time, 1)),
        }
    }
    let counts: Vec<u64> = parts.into_iter().map(|(_, count)| count).collect();
    // The first nine are three super-segments at one time. A fraction of a millisecond decides about those that follow.
    assert_eq!(counts[..5], [9, 1, 2, 4, 5]);
}

/// A case as a kernel played it (Linux 6.18 on the rack): five segments are late by 4 ms, and taken for lost. The first of them
/// comes before what was sent again: from there on nothing that is only late is taken for lost (`tcp_try_undo_partial`).
#[test]
fn what_is_late_is_taken_for_lost_once() {
    let mut network = rack(2, RATE, milliseconds(10), 4_000_000);
    let late = Act::Hold(milliseconds(4));
    let script = |port, frames: Vec<u32>, at_least_bytes, act| Script {
        port: PortIndex(port),
        rules: vec![Rule { frames, at_least_bytes, act }],
    };
    network.scripts = vec![script(0, (21..26).collect(), PAYLOAD, late), script(2, vec![23], ANY, Act::Lose)];
    let flow = Flow { steps: transfer(50), ..Flow::transfer(host(1), host(2), None) };
    let mut scenario = scenario(network, 1500, vec![flow], milliseconds(1000));
    (scenario.tcp.gso_bytes, scenario.tcp.tso_rtt_log, scenario.tcp.output_limit_bytes) = (10_000, 0, 32_768);
    (scenario.tcp.header_room_bytes, scenario.tcp.uncut_bytes) = (192, 3176);
    scenario.burst_bytes = 3176;
    scenario.logs_segments = true;
    let outcome = Simulation::new(scenario).unwrap().run();
    let sent = order(&outcome);
    assert_eq!((sent.len(), &sent[50..]), (53, &[21, 22, 23][..]));
    let counts = outcome.flows[0].sender;
    assert_eq!((counts.recoveries, counts.undone), (1, 1));
}

/// Cases as kernels played them on the rack (Linux 6.18): Reno, at 1500, with what is done to the client's frames with payload and
/// to the server's frames, by number.
fn as_on_the_rack(
    segments: u64,
    rtt_ms: u64,
    sack: bool,
    client: &[(&[u32], Act)],
    server: &[u32],
) -> Outcome {
    let mut network = rack(2, RATE, milliseconds(rtt_ms), 4_000_000);
    let rule =
        |(frames, act): &(&[u32], Act)| Rule { frames: frames.to_vec(), at_least_bytes: PAYLOAD, act: *act };
    let lost = Rule { frames: server.to_vec(), at_least_bytes: ANY, act: Act::Lose };
    network.scripts = vec![
        Script { port: PortIndex(0), rules: client.iter().map(rule).collect() },
        Script { port: PortIndex(2), rules: vec![lost] },
    ];
    let flow = Flow { steps: transfer(segments), ..Flow::transfer(host(1), host(2), None) };
    let mut scenario = scenario(network, 1500, vec![flow], milliseconds(60_000));
    (scenario.tcp.gso_bytes, scenario.tcp.tso_rtt_log, scenario.tcp.output_limit_bytes) = (10_000, 0, 32_768);
    (scenario.tcp.header_room_bytes, scenario.tcp.uncut_bytes) = (192, 3176);
    (scenario.tcp.algorithm, scenario.tcp.sack, scenario.tcp.ecn) = (Algorithm::Reno, sack, !sack);
    scenario.burst_bytes = 3176;
    scenario.logs_segments = true;
    Simulation::new(scenario).unwrap().run()
}

/// The last but one of the client's resends is a tail-loss probe: one duplicate that is told after the timeout may be of it, and
/// proves nothing of the other (`tcp_init_undo`).
#[test]
fn a_duplicate_after_a_probe_and_a_timeout_takes_nothing_back() {
    let outcome = as_on_the_rack(6, 5, true, &[(&[2, 3, 4, 5, 6], Act::Lose)], &[2, 3]);
    assert_eq!(order(&outcome), [1, 2, 3, 4, 5, 6, 6, 1, 2, 3, 4, 5]);
    let counts = outcome.flows[0].sender;
    assert_eq!((counts.timeouts, counts.probes, counts.recoveries, counts.undone), (1, 1, 0, 0));
}

/// The third segment is lost three times, and so are the answers to the others. The one that comes at last answers the first
/// transmission, by its timestamp, and takes the loss back; without SACK nothing is lost then, until the next timeout.
#[test]
fn without_sack_a_timeout_that_is_taken_back_is_waited_for_again() {
    let client = [(&[3_u32, 4, 5][..], Act::Lose), (&[2][..], Act::Mark)];
    let outcome = as_on_the_rack(3, 5, false, &client, &[2, 3, 4, 5]);
    assert_eq!(order(&outcome), [1, 2, 3, 1, 1, 1, 1, 1, 3]);
    let counts = outcome.flows[0].sender;
    assert_eq!((counts.timeouts, counts.recoveries, counts.undone), (6, 0, 1));
}

/// Five segments are late by 20 ms. Each answer takes a recovery back and, as the duplicates before it are still there, is the
/// beginning of the next one (`tcp_fastretrans_alert`: "Undo reverts the recovery state").
#[test]
fn without_sack_duplicates_outlast_a_recovery_that_was_taken_back() {
    let client = [(&[7_u32][..], Act::Lose), (&[3, 4, 5, 6, 7][..], Act::Hold(milliseconds(20)))];
    let outcome = as_on_the_rack(11, 50, false, &client, &[]);
    assert_eq!(order(&outcome), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 3, 4, 5, 6, 7]);
    let counts = outcome.flows[0].sender;
    assert_eq!((counts.timeouts, counts.recoveries, counts.undone), (0, 5, 4));
}
