//! Probes that nobody answers.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind};
use framegauge_packets::TcpFlags;

const RTT: i64 = 10 * MS;

/// How a stack asks whether a window has opened.
#[derive(Debug, Clone, Copy)]
enum Probe {
    /// Linux: nothing, before what was acknowledged.
    Empty,
    /// BSD, Windows: the next byte.
    NextByte,
}

/// A client whose receiver has closed its window, asks so often with waits that double; `answered` of them are answered.
fn shut(probe: Probe, count: u32, answered: u32, gives_up: bool) -> Diagnosis {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    for _ in 0..4 {
        scene.data(CLIENT, MSS);
    }
    scene.pass(RTT);
    scene.window[SERVER] = 0;
    scene.ack(SERVER);
    let next = scene.next[CLIENT];
    for turn in 0..count {
        scene.pass((200 * MS) << turn);
        match probe {
            Probe::Empty => {
                scene.next[CLIENT] = next.wrapping_sub(1);
                scene.send(CLIENT, 0, TcpFlags::ACK);
                scene.next[CLIENT] = next;
            }
            Probe::NextByte => scene.again(CLIENT, next, 1),
        }
        if turn < answered {
            scene.pass(RTT);
            scene.send(SERVER, 0, TcpFlags::ACK);
        }
    }
    if gives_up {
        scene.pass(60_000 * MS);
        scene.send(CLIENT, 0, TcpFlags::RST.with(TcpFlags::ACK));
    }
    scene.diagnosis()
}

#[test]
fn a_receiver_that_answers_no_probe_of_its_window_is_gone() {
    for probe in [Probe::Empty, Probe::NextByte] {
        for gives_up in [false, true] {
            let found = shut(probe, 7, 2, gives_up);
            assert_eq!(kinds(&found), [Kind::ZeroWindow, Kind::DeadPeer], "{probe:?} {found:#?}");
            let dead = one(&found, Kind::DeadPeer);
            assert_eq!((dead.count, one(&found, Kind::ZeroWindow).count), (5, 1));
            // From the first that is not answered to the last, and to the end.
            let waited = 1.6 + 3.2 + 6.4 + 12.8 + if gives_up { 60.0 } else { 0.0 };
            assert!((dead.lost_seconds - waited).abs() < 0.1, "{} {probe:?}", dead.lost_seconds);
            assert!(dead.text.contains("whether the closed window has opened"), "{}", dead.text);
        }
    }
}

#[test]
fn a_receiver_that_answers_lives() {
    for probe in [Probe::Empty, Probe::NextByte] {
        for (count, answered) in [(6, 6), (4, 2)] {
            assert_eq!(kinds(&shut(probe, count, answered, false)), [Kind::ZeroWindow], "{probe:?}");
        }
    }
}

/// A file that lacks what was sent before a window closed: the byte that asks whether it has opened lies behind a hole.
#[test]
fn answers_to_probes_of_a_closed_window_reveal_no_loss() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(100 * MSS);
    scene.pass(2_000 * MS);
    let probe = scene.data(CLIENT, 1);
    for turn in 0..5 {
        scene.pass(RTT);
        scene.window[SERVER] = 0;
        scene.sack(SERVER, probe, &[]);
        scene.pass((300 * MS) << turn);
        scene.again(CLIENT, probe, 1);
    }
    scene.window[SERVER] = 400;
    scene.pass(RTT);
    scene.sack(SERVER, probe, &[]);
    scene.again(CLIENT, probe, 1);
    scene.pass(RTT);
    scene.ack(SERVER);
    let found = kinds(&scene.diagnosis());
    assert!(!found.contains(&Kind::FastRetransmit) && found.contains(&Kind::ZeroWindow), "{found:?}");
}

#[test]
fn to_an_end_that_has_finished_no_window_is_closed() {
    let fin = TcpFlags::FIN.with(TcpFlags::ACK);
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    scene.send(SERVER, 0, fin);
    scene.next[SERVER] = scene.next[SERVER].wrapping_add(1);
    scene.pass(20_000);
    scene.ack(CLIENT);
    scene.pass(20 * MS);
    scene.window[CLIENT] = 0;
    scene.send(CLIENT, 0, fin);
    scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(1);
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.pass(70 * MS);
    scene.send(CLIENT, 0, TcpFlags::RST.with(TcpFlags::ACK));
    assert_eq!(kinds(&scene.diagnosis()), []);
}

/// A SYN proxy answers with a closed window until it has a connection of its own: no application has anything to read then.
#[test]
fn a_window_that_was_closed_from_the_start_is_no_application_that_does_not_read() {
    let shut = |again: bool| {
        let mut scene = Scene::met(20 * MS);
        scene.segments[1].window = 0;
        scene.pass(30 * MS);
        scene.ack(SERVER);
        scene.talk(3, 20 * MS);
        if again {
            scene.window[SERVER] = 0;
            scene.ack(SERVER);
            scene.pass(300 * MS);
            scene.window[SERVER] = 512;
            scene.ack(SERVER);
            scene.talk(1, 20 * MS);
        }
        one(&scene.diagnosis(), Kind::ZeroWindow)
    };
    let (opening, later) = (shut(false), shut(true));
    assert!(opening.text.contains("The SYN was answered with a closed window"), "{}", opening.text);
    assert!(opening.remedy.contains("SYN proxy"), "{}", opening.remedy);
    assert!(later.text.contains("its application did not read") && !later.remedy.contains("SYN proxy"));
}

/// Behind a FIN, acknowledgements from before it lie where a probe would. They come late or twice, and no timer is so short.
#[test]
fn what_comes_sooner_than_any_timer_is_no_probe() {
    let late = |wait: i64| {
        let mut scene = Scene::met(RTT);
        scene.talk(3, RTT);
        scene.send(CLIENT, 0, TcpFlags::FIN.with(TcpFlags::ACK));
        scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(1);
        scene.pass(RTT);
        scene.ack(SERVER);
        for window in 300..306 {
            scene.pass(wait);
            scene.window[CLIENT] = window;
            let next = scene.next[CLIENT];
            scene.next[CLIENT] = next.wrapping_sub(1);
            scene.send(CLIENT, 0, TcpFlags::ACK);
            scene.next[CLIENT] = next;
        }
        kinds(&scene.diagnosis())
    };
    assert_eq!(late(10_000), []);
    assert_eq!(late(1000 * MS), [Kind::DeadPeer]);
}
