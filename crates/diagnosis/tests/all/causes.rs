//! Each cause alone, at a tap at the client, with the time that it took known to the nanosecond.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, diagnosis, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind};
use framegauge_packets::TcpFlags;

const RTT: i64 = 10 * MS;

#[test]
fn a_clean_conversation_has_no_findings_but_its_application() {
    let mut scene = Scene::met(RTT);
    for _ in 0..5 {
        scene.talk(10, RTT);
        scene.pass(300 * MS);
    }
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), []);
    assert!(one(&found, Kind::ApplicationLimited).lost_seconds >= 1.2);
}

#[test]
fn nagle_waits_for_a_delayed_acknowledgement() {
    let mut scene = Scene::met(RTT);
    for _ in 0..5 {
        scene.data(CLIENT, 100);
        scene.pass(RTT + 40 * MS);
        scene.ack(SERVER);
        scene.pass(100_000);
        scene.data(CLIENT, 200);
        scene.pass(RTT);
        scene.got[SERVER] = scene.next[CLIENT];
        scene.data(SERVER, 500);
        scene.pass(MS);
    }
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::NagleDelayedAck]);
    let finding = one(&found, Kind::NagleDelayedAck);
    assert_eq!(finding.count, 5);
    assert!((finding.lost_seconds - 0.25).abs() < 1e-9);
    assert_eq!(finding.packets[..3], [4, 5, 6]);
}

#[test]
fn an_application_that_thinks_after_a_delayed_acknowledgement_is_no_nagle() {
    let mut scene = Scene::met(RTT);
    for _ in 0..10 {
        scene.data(CLIENT, 100);
        scene.pass(RTT + 40 * MS);
        scene.ack(SERVER);
        scene.pass(77 * MS);
    }
    assert_eq!(kinds(&scene.diagnosis()), []);
}

/// Ten segments of which none arrives, and the same again after a timeout.
fn lost_burst(scene: &mut Scene, more: bool) {
    let begins: Vec<u32> = (0..10).map(|_| scene.data(CLIENT, MSS)).collect();
    scene.pass(230 * MS);
    for begin in begins {
        scene.again(CLIENT, begin, MSS);
        scene.pass(RTT);
        scene.sack(SERVER, begin.wrapping_add(MSS), &[]);
        scene.pass(10_000);
    }
    if more {
        scene.data(CLIENT, MSS);
        scene.pass(RTT);
        scene.ack(SERVER);
    }
}

#[test]
fn silence_with_more_behind_it_is_a_timeout() {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    lost_burst(&mut scene, true);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::RtoStall]);
    assert!((one(&found, Kind::RtoStall).lost_seconds - 0.23).abs() < 1e-9);
}

#[test]
fn silence_at_the_end_of_a_burst_is_a_tail_loss() {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    scene.data(CLIENT, MSS);
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.pass(10_000);
    let begin = scene.data(CLIENT, 700);
    scene.pass(25 * MS);
    scene.again(CLIENT, begin, 700);
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.pass(500 * MS);
    scene.talk(3, RTT);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::TailLoss]);
    assert!((one(&found, Kind::TailLoss).lost_seconds - 0.025).abs() < 1e-9);
}

/// A burst whose first segment is lost; returns its first byte, with three SACKs of the rest seen.
fn revealed(scene: &mut Scene) -> u32 {
    let begin = scene.data(CLIENT, MSS);
    for _ in 0..5 {
        scene.data(CLIENT, MSS);
    }
    scene.pass(RTT);
    for count in 1..=5 {
        scene.sack(SERVER, begin, &[(begin.wrapping_add(MSS), begin.wrapping_add(MSS * (count + 1)))]);
        scene.pass(10_000);
    }
    begin
}

#[test]
fn a_loss_that_sack_reveals_is_repaired_fast() {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    let begin = revealed(&mut scene);
    scene.again(CLIENT, begin, MSS);
    scene.pass(RTT);
    scene.ack(SERVER);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::FastRetransmit]);
    let finding = one(&found, Kind::FastRetransmit);
    assert_eq!((finding.count, finding.lost_seconds), (1, 0.0));
}

/// The second last of some segments is lost, and what reveals it is a single SACK; the resend comes so much later.
fn revealed_by_one(rtt: i64, wait: i64) -> Diagnosis {
    let mut scene = Scene::met(rtt);
    scene.talk(20, rtt);
    scene.data(CLIENT, MSS);
    let lost = scene.data(CLIENT, MSS);
    let end = lost.wrapping_add(2 * MSS);
    scene.data(CLIENT, MSS);
    scene.pass(rtt);
    scene.sack(SERVER, lost, &[]);
    scene.pass(10_000);
    scene.sack(SERVER, lost, &[(lost.wrapping_add(MSS), end)]);
    scene.pass(wait);
    scene.again(CLIENT, lost, MSS);
    scene.pass(rtt);
    scene.ack(SERVER);
    scene.talk(5, rtt);
    scene.diagnosis()
}

#[test]
fn what_one_segment_reveals_waits_for_the_reordering_timer() {
    for (rtt, wait) in [(MS, 12 * MS), (MS / 5, 4 * MS), (10 * MS, 25 * MS)] {
        let found = revealed_by_one(rtt, wait);
        assert_eq!(kinds(&found), [Kind::ReorderingTimer], "{rtt} {wait}");
        let finding = one(&found, Kind::ReorderingTimer);
        assert!((finding.lost_seconds - wait as f64 / 1e9).abs() < 1e-9, "{}", finding.lost_seconds);
    }
    // Within two RTTs it is no pause, but a repair, which has waited as well.
    let found = revealed_by_one(40 * MS, 11 * MS);
    assert_eq!(kinds(&found), [Kind::FastRetransmit, Kind::ReorderingTimer]);
    assert!((one(&found, Kind::ReorderingTimer).lost_seconds - 0.011).abs() < 1e-9);
    // One that leaves at once has not.
    assert_eq!(kinds(&revealed_by_one(40 * MS, MS)), [Kind::FastRetransmit]);
    assert_eq!(kinds(&revealed_by_one(MS, 202 * MS)), [Kind::RtoStall]);
}

/// All of a flight is lost. After the timer has repeated the first, new data goes on (RFC 5682), and SACK of that reveals the rest,
/// which the timer had taken for lost: that waits for no other timer.
#[test]
fn what_a_timeout_repairs_waits_for_no_reordering_timer() {
    let rtt = 20 * MS;
    let mut scene = Scene::met(rtt);
    scene.talk(5, rtt);
    let begins: Vec<u32> = (0..6).map(|_| scene.data(CLIENT, MSS)).collect();
    scene.pass(230 * MS);
    scene.again(CLIENT, begins[0], MSS);
    scene.pass(rtt);
    scene.sack(SERVER, begins[1], &[]);
    let news = scene.data(CLIENT, MSS);
    scene.pass(rtt);
    scene.sack(SERVER, begins[1], &[(news, news.wrapping_add(MSS))]);
    for begin in &begins[1..] {
        scene.pass(3 * MS);
        scene.again(CLIENT, *begin, MSS);
        scene.pass(rtt);
        scene.sack(SERVER, begin.wrapping_add(MSS), &[(news, news.wrapping_add(MSS))]);
    }
    scene.ack(SERVER);
    scene.talk(5, rtt);
    let found = kinds(&scene.diagnosis());
    assert!(found.contains(&Kind::RtoStall) && !found.contains(&Kind::ReorderingTimer), "{found:?}");
}

#[test]
fn a_repair_that_is_lost_too_waits_for_the_timer() {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    let begin = revealed(&mut scene);
    scene.again(CLIENT, begin, MSS);
    scene.pass(220 * MS);
    scene.again(CLIENT, begin, MSS);
    scene.pass(RTT);
    scene.ack(SERVER);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::FastRetransmit, Kind::DoubleLoss]);
    let finding = one(&found, Kind::DoubleLoss);
    assert!((finding.lost_seconds - 0.22).abs() < 1e-9);
    assert!(finding.text.contains("for which its sender waited 220.0 ms"), "{}", finding.text);
}

#[test]
fn large_segments_that_never_arrive_are_a_black_hole() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    let begin = scene.data(CLIENT, MSS);
    scene.data(CLIENT, MSS);
    for wait in [210, 420, 840] {
        scene.pass(wait * MS);
        // The other end is alive.
        scene.again(CLIENT, begin, MSS);
        scene.pass(MS);
        scene.sack(SERVER, begin, &[]);
    }
    // With tcp_mtu_probing the sender tries smaller ones.
    scene.pass(1680 * MS);
    scene.again(CLIENT, begin, 500);
    scene.pass(RTT);
    scene.sack(SERVER, begin.wrapping_add(500), &[]);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::PmtuBlackHole]);
    assert!(one(&found, Kind::PmtuBlackHole).lost_seconds > 3.1);
}

/// Every path carries packets so small: whatever loses them, it is not their size.
#[test]
fn the_same_with_small_segments_is_loss() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    let begin = scene.data(CLIENT, 500);
    for wait in [210, 420, 840] {
        scene.pass(wait * MS);
        scene.again(CLIENT, begin, 500);
        scene.pass(MS);
        scene.sack(SERVER, begin, &[]);
    }
    scene.pass(1680 * MS);
    scene.again(CLIENT, begin, 300);
    scene.pass(RTT);
    scene.sack(SERVER, begin.wrapping_add(300), &[]);
    assert!(!kinds(&scene.diagnosis()).contains(&Kind::PmtuBlackHole));
}

#[test]
fn the_same_with_a_large_one_that_arrives_is_none() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    let begin = scene.data(CLIENT, MSS);
    for wait in [210, 420, 840] {
        scene.pass(wait * MS);
        scene.again(CLIENT, begin, MSS);
    }
    scene.pass(RTT);
    scene.ack(SERVER);
    assert_eq!(kinds(&scene.diagnosis()), [Kind::RtoStall]);
}

#[test]
fn a_receiver_that_does_not_read_closes_its_window() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    scene.data(CLIENT, MSS);
    scene.pass(RTT);
    scene.window[SERVER] = 0;
    scene.ack(SERVER);
    for wait in [210, 420] {
        scene.pass(wait * MS);
        let next = scene.next[CLIENT];
        scene.again(CLIENT, next.wrapping_sub(1), 0);
        scene.pass(RTT);
        scene.ack(SERVER);
    }
    scene.pass(300 * MS);
    scene.window[SERVER] = 512;
    scene.ack(SERVER);
    scene.pass(10_000);
    scene.data(CLIENT, MSS);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::ZeroWindow]);
    assert!((one(&found, Kind::ZeroWindow).lost_seconds - 0.95).abs() < 0.001);
}

#[test]
fn a_small_window_limits() {
    let mut scene = Scene::new();
    scene.window = [64, 64]; // of 128 bytes each
    scene.meet(RTT);
    for _ in 0..20 {
        (0..5).for_each(|_| _ = scene.data(CLIENT, MSS));
        scene.pass(RTT);
        scene.ack(SERVER);
        scene.pass(10_000);
    }
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::ReceiverLimited]);
    assert!(one(&found, Kind::ReceiverLimited).lost_seconds > 0.15);
}

#[test]
fn without_scaling_the_window_of_64_kib_limits() {
    let mut scene = Scene::new();
    scene.syn[SERVER].window_scale = None;
    scene.window = [65_535, 65_535];
    scene.meet(RTT);
    for _ in 0..20 {
        (0..45).for_each(|_| _ = scene.data(CLIENT, MSS));
        scene.pass(RTT);
        scene.ack(SERVER);
        scene.pass(10_000);
    }
    assert_eq!(kinds(&scene.diagnosis()), [Kind::WindowScalingOff]);
}

#[test]
fn a_syn_that_is_lost_is_repeated() {
    let mut scene = Scene::new();
    scene.send(CLIENT, 0, TcpFlags::SYN);
    scene.pass(1000 * MS);
    scene.meet(RTT);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::SynLoss]);
    assert_eq!(one(&found, Kind::SynLoss).lost_seconds, 1.0);
    assert_eq!(found.connections.len(), 1);
}

#[test]
fn refused_and_reset_are_different() {
    let mut refused = Scene::new();
    refused.send(CLIENT, 0, TcpFlags::SYN);
    refused.pass(RTT);
    refused.got[SERVER] = refused.next[CLIENT].wrapping_add(1);
    refused.send(SERVER, 0, TcpFlags::RST.with(TcpFlags::ACK));
    assert_eq!(kinds(&refused.diagnosis()), [Kind::ConnectionRefused]);
    let mut reset = Scene::met(RTT);
    reset.talk(3, RTT);
    reset.send(SERVER, 0, TcpFlags::RST);
    assert_eq!(kinds(&reset.diagnosis()), [Kind::Reset]);
}

#[test]
fn a_hole_that_closes_by_itself_was_reordered() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    let first = scene.data(CLIENT, MSS);
    let second = scene.data(CLIENT, MSS);
    scene.pass(RTT);
    scene.sack(SERVER, first, &[(second, second.wrapping_add(MSS))]);
    scene.pass(300_000);
    scene.ack(SERVER);
    assert_eq!(kinds(&scene.diagnosis()), [Kind::Reordering]);
}

#[test]
fn what_had_arrived_and_is_sent_again_is_spurious() {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    let begin = scene.data(CLIENT, MSS);
    scene.pass(RTT);
    scene.again(CLIENT, begin, MSS);
    scene.pass(3 * MS);
    scene.ack(SERVER);
    scene.pass(RTT);
    scene.sack(SERVER, scene.next[CLIENT], &[(begin, begin.wrapping_add(MSS))]);
    assert_eq!(kinds(&scene.diagnosis()), [Kind::SpuriousRetransmit]);
}

#[test]
fn a_probe_that_was_needless_takes_its_silence_along() {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    let begin = scene.data(CLIENT, MSS);
    scene.pass(25 * MS);
    scene.again(CLIENT, begin, MSS);
    scene.pass(3 * MS);
    scene.sack(SERVER, scene.next[CLIENT], &[(begin, begin.wrapping_add(MSS))]);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::SpuriousRetransmit]);
    assert!((one(&found, Kind::SpuriousRetransmit).lost_seconds - 0.025).abs() < 1e-9);
}

#[test]
fn a_transfer_that_ends_in_slow_start() {
    let mut scene = Scene::new();
    scene.window = [4096, 4096];
    scene.meet(RTT);
    for burst in [10, 20, 40, 80] {
        (0..burst).for_each(|_| _ = scene.data(CLIENT, MSS));
        scene.pass(RTT);
        scene.ack(SERVER);
        scene.pass(10_000);
    }
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::ShortFlowSlowStart]);
}

#[test]
fn a_mirror_port_shows_packets_twice_and_nothing_else_changes() {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    lost_burst(&mut scene, true);
    let twice: Vec<_> = scene
        .segments
        .iter()
        .flat_map(|segment| {
            let mut again = *segment;
            again.nanoseconds += 5_000;
            [*segment, again]
        })
        .collect();
    assert_eq!(kinds(&diagnosis(&twice)), [Kind::RtoStall, Kind::CaptureDuplicates]);
}

#[test]
fn one_direction_alone_says_so() {
    let mut scene = Scene::met(RTT);
    for _ in 0..20 {
        scene.data(CLIENT, MSS);
        scene.pass(RTT);
        scene.ack(SERVER);
    }
    let half: Vec<_> =
        scene.segments.iter().filter(|each| each.source == scene.ends[CLIENT]).copied().collect();
    assert!(kinds(&diagnosis(&half)).contains(&Kind::HalfCapture));
}

#[test]
fn different_mss_are_named() {
    let mut scene = Scene::new();
    scene.syn[SERVER].mss = Some(8960);
    scene.meet(RTT);
    scene.talk(3, RTT);
    assert_eq!(kinds(&scene.diagnosis()), [Kind::MssMismatch]);
}

/// A receiver that offers so many bytes each time, which the sender fills with whole segments and the rest.
fn offered(window: u16, rounds: usize) -> Scene {
    let mut scene = Scene::new();
    scene.window[SERVER] = window;
    scene.meet(RTT);
    let bytes = u32::from(window) << 7;
    for _ in 0..rounds {
        scene.ack(SERVER);
        scene.pass(10_000);
        (0..bytes / MSS).for_each(|_| _ = scene.data(CLIENT, MSS));
        if bytes % MSS > 0 {
            scene.data(CLIENT, bytes % MSS);
        }
        scene.pass(RTT);
    }
    scene.ack(SERVER);
    scene
}

#[test]
fn a_window_below_half_a_segment_is_silly() {
    let found = offered(4, 20).diagnosis();
    assert_eq!(one(&found, Kind::SillyWindow).count, 20);
}

#[test]
fn the_rest_of_a_window_of_many_segments_is_not() {
    // 128 KiB are 90 segments of 1448 bytes and 752; 127.5 KiB are 90 and 240.
    let found = offered(1020, 20).diagnosis();
    assert!(!kinds(&found).contains(&Kind::SillyWindow));
}

/// Five connections to one server that lose a burst at the same time.
fn silent_together(sender: impl Fn(usize) -> String) -> Diagnosis {
    let mut all = Vec::new();
    for number in 1..=5 {
        let mut scene = Scene::between(&sender(number), "10.0.0.2:80");
        scene.meet(RTT);
        scene.talk(20, RTT);
        lost_burst(&mut scene, true);
        all.extend(scene.segments);
    }
    all.sort_by_key(|segment| segment.nanoseconds);
    all.iter_mut().enumerate().for_each(|(place, segment)| segment.number = place as u64 + 1);
    diagnosis(&all)
}

#[test]
fn many_senders_that_fall_silent_together_are_incast() {
    let found = silent_together(|number| format!("10.0.1.{number}:40000"));
    assert!(one(&found, Kind::Incast).text.starts_with("Up to 5 senders to 10.0.0.2"));
    assert_eq!(found.connections.len(), 5);
}

/// They share its link, so that they cannot overflow another one's together.
#[test]
fn connections_of_one_sender_are_no_incast() {
    let found = silent_together(|number| format!("10.0.1.1:{}", 40_000 + number));
    assert!(!kinds(&found).contains(&Kind::Incast));
}

/// A congestion window of one segment, whose acknowledgement the receiver delays as it does that of any single one.
#[test]
fn a_window_of_one_segment_waits_for_delayed_acknowledgements() {
    let mut scene = Scene::met(RTT);
    for _ in 0..10 {
        scene.data(CLIENT, MSS);
        scene.pass(RTT + 40 * MS);
        scene.ack(SERVER);
        scene.pass(100_000);
    }
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), []);
    assert!(one(&found, Kind::NetworkLimited).lost_seconds > 0.4);
}

/// Answers that come ever later because they wait for the next request are no queue.
#[test]
fn acknowledgements_that_come_with_the_next_request_are_no_queue() {
    let mut scene = Scene::met(RTT);
    for round in 0..20 {
        scene.data(CLIENT, 100);
        scene.pass(RTT);
        scene.got[SERVER] = scene.next[CLIENT];
        scene.data(SERVER, 700);
        scene.pass(3 * MS * (round + 1));
        scene.got[CLIENT] = scene.next[SERVER];
    }
    assert_eq!(kinds(&scene.diagnosis()), []);
}

/// After a silence a probe with new data is answered by SACK: what lay before it was lost.
#[test]
fn a_probe_that_shows_a_loss_ends_a_tail_loss() {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    let begin = scene.data(CLIENT, MSS);
    let lost = scene.data(CLIENT, MSS);
    scene.pass(30 * MS);
    let probe = scene.data(CLIENT, MSS);
    scene.pass(RTT);
    scene.sack(SERVER, begin.wrapping_add(MSS), &[(probe, probe.wrapping_add(MSS))]);
    scene.pass(10_000);
    scene.again(CLIENT, lost, MSS);
    scene.pass(RTT);
    scene.ack(SERVER);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found)[0], Kind::TailLoss);
    assert!((one(&found, Kind::TailLoss).lost_seconds - 0.03).abs() < 1e-9);
}

/// Programs that wait for a CPU answer some milliseconds late: of a short life that is a large share.
#[test]
fn a_few_milliseconds_are_no_warning() {
    for (late, found) in [(6 * MS, vec![]), (30 * MS, vec![Kind::Unexplained])] {
        let mut scene = Scene::met(MS);
        scene.talk(2, MS);
        (0..4).for_each(|_| _ = scene.data(CLIENT, MSS));
        scene.pass(late);
        scene.ack(SERVER);
        assert_eq!(kinds(&scene.diagnosis()), found, "{late}");
    }
}

/// An answer is lost as a whole; who asked for it asks again before the answer is repeated.
#[test]
fn an_answer_that_is_lost_as_a_whole_is_a_tail_loss_though_the_request_is_repeated() {
    for is_lost in [true, false] {
        let mut scene = Scene::met(RTT);
        scene.talk(10, RTT);
        let request = scene.data(CLIENT, 100);
        scene.pass(RTT);
        scene.got[SERVER] = scene.next[CLIENT];
        let answer = scene.data(SERVER, 1000);
        scene.pass(220 * MS);
        scene.again(CLIENT, request, 100);
        scene.pass(RTT);
        if is_lost {
            scene.again(SERVER, answer, 1000);
            scene.pass(20_000);
        }
        scene.ack(CLIENT);
        scene.pass(20_000);
        scene.talk(10, RTT);
        let expected = if is_lost { Kind::TailLoss } else { Kind::SpuriousRetransmit };
        let found = scene.diagnosis();
        assert_eq!(kinds(&found), [expected], "{is_lost}");
        assert!((one(&found, expected).lost_seconds - 0.22).abs() < 1e-9);
    }
}

/// The clock of a sender goes back. Whatever it sends, a FIN as well, the receiver answers at once, and does not take.
#[test]
fn what_is_stamped_before_what_came_is_discarded_also_where_it_ends_the_connection() {
    for bytes in [1000, 0] {
        let mut scene = Scene::new();
        scene.meet_at_server(20 * MS);
        scene.talk(5, MS / 10);
        let begin = scene.next[CLIENT];
        let flags = if bytes == 0 { TcpFlags::FIN.with(TcpFlags::ACK) } else { TcpFlags::ACK };
        for turn in 0..4 {
            scene.send(CLIENT, bytes, flags);
            let stamps = scene.segments.last().and_then(|last| last.timestamps);
            scene.segments.last_mut().expect("just sent").timestamps =
                stamps.map(|(value, echo)| (value.wrapping_sub(90_000), echo));
            scene.pass(20_000);
            scene.sack(SERVER, begin, &[]);
            scene.pass((200 * MS) << turn);
        }
        assert_eq!(kinds(&scene.diagnosis()), [Kind::Paws], "{bytes}");
    }
}

/// A small segment is repeated until the end. What comes of the other end meanwhile shows that it lives.
#[test]
fn what_nobody_answers_any_more_is_not_waited_for_by_more() {
    for (turns, lives, stalls) in [(5, false, 0), (5, true, 0), (2, false, 0), (5, false, 1)] {
        let mut scene = Scene::met(RTT);
        scene.talk(5, RTT);
        for _ in 0..stalls {
            let begins: Vec<u32> = (0..6).map(|_| scene.data(CLIENT, MSS)).collect();
            scene.pass(230 * MS);
            begins.iter().for_each(|begin| scene.again(CLIENT, *begin, MSS));
            scene.pass(RTT);
            scene.ack(SERVER);
            scene.talk(5, RTT);
        }
        let begin = scene.data(CLIENT, 300);
        for turn in 0..turns {
            scene.pass((220 * MS) << turn);
            scene.again(CLIENT, begin, 300);
            if lives {
                scene.pass(RTT);
                scene.sack(SERVER, begin, &[]);
            }
        }
        let found = scene.diagnosis();
        let is_told = |word: &str| found.findings.iter().any(|each| each.text.contains(word));
        let has_gone = turns > 2 && !lives;
        assert_eq!(is_told("it had gone, or the path to it"), has_gone, "{turns} {lives} {found:#?}");
        if has_gone {
            let stall = one(&found, Kind::RtoStall);
            assert_eq!(stall.count, 1 + stalls, "{found:#?}");
            assert_eq!(is_told("more data was waiting"), stalls > 0);
            assert_eq!(stall.remedy.contains("RTO"), stalls > 0);
        }
    }
}
