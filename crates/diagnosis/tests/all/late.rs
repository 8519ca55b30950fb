//! Acknowledgements and data that are late on their way to or from a tap, as the timestamps that a sender echoes and its own
//! tell (RFC 7323).

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind};
use framegauge_packets::TcpFlags;

const RTT: i64 = 10 * MS;

/// A client that sends, and a tap beside the server: what the client had heard of, and by when it sent.
struct Sender {
    scene: Scene,
    /// The timestamp that it echoes.
    heard: u32,
}

impl Sender {
    fn met() -> Sender {
        let mut scene = Scene::new();
        scene.meet_at_server(RTT);
        let heard = ticks(scene.now);
        Sender { scene, heard }
    }

    /// A full segment in the middle of a write, which left so long ago.
    fn data(&mut self, late: i64) {
        self.scene.send(CLIENT, MSS, TcpFlags::ACK);
        self.scene.next[CLIENT] = self.scene.next[CLIENT].wrapping_add(MSS);
        let stamps = (ticks(self.scene.now - late), self.heard);
        self.scene.segments.last_mut().expect("just sent").timestamps = Some(stamps);
    }

    /// The server acknowledges all. Its timestamp.
    fn ack(&mut self) -> u32 {
        self.scene.ack(SERVER);
        ticks(self.scene.now)
    }

    /// Two segments and two acknowledgements 2 ms apart; the next two follow when the first acknowledgement has come to the
    /// sender and what it released has come back.
    fn rounds(&mut self, ways: impl IntoIterator<Item = i64>) {
        for way in ways {
            self.data(0);
            let first = self.ack();
            self.scene.pass(2 * MS);
            self.data(0);
            self.ack();
            self.scene.pass(way - 2 * MS);
            self.heard = first;
        }
    }
}

fn ticks(nanoseconds: i64) -> u32 {
    (nanoseconds / MS) as u32
}

fn time(found: &Diagnosis, kind: &str) -> f64 {
    found.connections[0].time.get(kind).copied().unwrap_or(0.0)
}

#[test]
fn a_sender_to_which_acknowledgements_come_late_does_not_pause() {
    let mut sender = Sender::met();
    sender.rounds([RTT; 20]);
    sender.rounds((11..60).map(|way| way * MS));
    let found = sender.scene.diagnosis();
    assert_eq!(kinds(&found), []);
    assert!(time(&found, "network_limited") > 1.6, "{:?}", found.connections[0].time);
}

#[test]
fn a_sender_whose_data_stands_in_a_queue_does_not_pause() {
    let mut sender = Sender::met();
    sender.rounds([RTT; 20]);
    for queue in (0..50).map(|step| step * MS) {
        // Of both segments one acknowledgement tells, and the sender has heard of that.
        sender.data(queue);
        sender.data(queue);
        let all = sender.ack();
        sender.scene.pass(RTT + queue);
        sender.heard = all;
    }
    let found = sender.scene.diagnosis();
    assert!(!kinds(&found).contains(&Kind::SenderStall), "{:?}", found.findings);
    assert!(
        time(&found, "network_limited") + time(&found, "bufferbloat") > 1.6,
        "{:?}",
        found.connections[0].time
    );
}

#[test]
fn a_sender_that_has_heard_of_all_and_rests_pauses_by_itself() {
    let mut sender = Sender::met();
    sender.rounds([RTT; 20]);
    for _ in 0..20 {
        sender.data(0);
        sender.data(0);
        let all = sender.ack();
        sender.scene.pass(50 * MS);
        sender.heard = all;
    }
    let found = sender.scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::SenderStall]);
    assert!((one(&found, Kind::SenderStall).lost_seconds - 0.76).abs() < 0.03);
}

#[test]
fn an_answer_that_was_late_on_its_way_to_the_sender_is_no_fault_of_the_sender() {
    let mut sender = Sender::met();
    sender.rounds([RTT; 20]);
    sender.data(0);
    let early = sender.ack();
    sender.scene.pass(2 * MS);
    sender.data(0);
    sender.ack();
    // What passes meanwhile has every acknowledgement reach the sender, as far as time tells.
    sender.scene.pass(50 * MS);
    sender.scene.ack(SERVER);
    sender.scene.pass(300 * MS);
    sender.heard = early;
    sender.rounds([RTT; 20]);
    let found = sender.scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::Unexplained]);
    assert!((time(&found, "unexplained") - 0.3).abs() < 0.01, "{:?}", found.connections[0].time);
}

/// All had arrived when the sender repeated some of it, and what says so (D-SACK) is late as well.
#[test]
fn an_answer_to_a_repeat_that_was_late_is_no_fault_of_the_sender() {
    let mut sender = Sender::met();
    sender.rounds([RTT; 20]);
    let before = sender.heard;
    sender.data(0);
    sender.ack();
    let begin = sender.scene.next[CLIENT].wrapping_sub(MSS);
    sender.scene.pass(220 * MS);
    sender.scene.again(CLIENT, begin, MSS);
    let stamp = ticks(sender.scene.now);
    sender.scene.segments.last_mut().expect("just sent").timestamps = Some((stamp, before));
    sender.scene.segments.last_mut().expect("just sent").flags = TcpFlags::ACK;
    sender.scene.pass(20_000);
    sender.scene.sack(SERVER, begin.wrapping_add(MSS), &[(begin, begin.wrapping_add(MSS))]);
    sender.scene.pass(120 * MS);
    sender.rounds([RTT; 20]);
    let found = sender.scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::SpuriousRetransmit]);
    assert!((time(&found, "unexplained") - 0.12).abs() < 0.001, "{:?}", found.connections[0].time);
}

#[test]
fn a_sender_that_echoes_no_timestamp_may_have_heard_of_all() {
    let mut sender = Sender::met();
    sender.rounds([RTT; 20]);
    for _ in 0..10 {
        sender.data(0);
        sender.ack();
        sender.scene.pass(50 * MS);
    }
    let own = sender.scene.ends[CLIENT];
    let never = ticks(sender.scene.segments[0].nanoseconds) - 1000;
    for segment in sender.scene.segments.iter_mut().filter(|segment| segment.source == own) {
        segment.timestamps = segment.timestamps.map(|(value, _)| (value, never));
    }
    assert_eq!(kinds(&sender.scene.diagnosis()), [Kind::SenderStall]);
}

#[test]
fn acknowledgements_that_are_late_once_have_no_name() {
    let mut sender = Sender::met();
    sender.rounds([RTT; 20]);
    sender.rounds([150 * MS]);
    sender.rounds([RTT; 5]);
    let found = sender.scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::Unexplained]);
    assert!((time(&found, "unexplained") - 0.146).abs() < 0.01, "{:?}", found.connections[0].time);
}

/// Ten segments of which the first comes `late`, repaired meanwhile; without identifications, as with IPv6.
fn overtaken(late: i64) -> Diagnosis {
    let mut sender = Sender::met();
    sender.rounds([RTT; 20]);
    let begin = sender.scene.next[CLIENT];
    sender.scene.next[CLIENT] = begin.wrapping_add(MSS);
    let sent = ticks(sender.scene.now);
    for count in 1..10u32 {
        sender.data(0);
        let block = (begin.wrapping_add(MSS), begin.wrapping_add(MSS * (count + 1)));
        sender.scene.sack(SERVER, begin, &[block]);
    }
    sender.scene.pass(late);
    // The first copy, stamped as those that overtook it.
    sender.scene.again(CLIENT, begin, MSS);
    sender.scene.segments.last_mut().expect("just sent").timestamps = Some((sent, sender.heard));
    sender.scene.ack(SERVER);
    sender.scene.pass(RTT - late);
    sender.scene.again(CLIENT, begin, MSS);
    sender.scene.ack(SERVER);
    sender.scene.pass(RTT);
    sender.rounds([RTT; 5]);
    sender.scene.segments.iter_mut().for_each(|segment| segment.identification = None);
    sender.scene.diagnosis()
}

#[test]
fn a_packet_that_was_overtaken_for_long_is_not_taken_for_its_repair() {
    for late in [2 * MS, 8 * MS] {
        let found = kinds(&overtaken(late));
        assert!(found.contains(&Kind::Reordering), "{found:?}");
        assert!(!found.contains(&Kind::DoubleLoss), "{found:?}");
    }
}

/// The last data of the client was acknowledged. It rests, and ends the connection; whatever timestamp it echoes then, it would have
/// repeated that data long before.
#[test]
fn a_sender_that_repeated_nothing_for_long_had_heard_of_all() {
    for (rest, late) in [(60_000, 0.0), (100, 0.1)] {
        let mut sender = Sender::met();
        sender.rounds([RTT; 20]);
        let heard = sender.heard;
        sender.data(0);
        sender.ack();
        sender.scene.pass(rest * MS);
        sender.scene.send(CLIENT, 0, TcpFlags::FIN.with(TcpFlags::ACK));
        let stamps = (ticks(sender.scene.now), heard);
        sender.scene.segments.last_mut().expect("just sent").timestamps = Some(stamps);
        let found = sender.scene.diagnosis();
        let unexplained = found.connections[0].time.get("unexplained").copied().unwrap_or(0.0);
        assert!((unexplained - late).abs() < 0.015, "{rest} {:?}", found.connections[0].time);
    }
}
