//! Known answers of the claims, and datagrams that are written and read back.

use framegauge_frames::Family;
use framegauge_pathmtu::{
    Acknowledgement, MESSAGE_BYTES, MessageError, Probe, SMALLEST_PROBE_BYTES, Token, coverage,
    flows_for_coverage, header_bytes, same_token, silence_by_loss,
};
use proptest::prelude::*;

#[test]
fn flows_that_meet_one_bad_member_with_99_percent() {
    for (members, flows) in [(4, 17), (8, 35), (16, 72), (64, 293)] {
        assert_eq!(flows_for_coverage(members, 0.99), flows);
        assert!(coverage(flows, members) >= 0.99 && coverage(flows - 1, members) < 0.99);
    }
    assert_eq!((coverage(0, 4), coverage(5, 1)), (0.0, 1.0));
}

#[test]
fn silence_without_any_control_is_a_coin_that_nobody_knows() {
    assert_eq!(silence_by_loss(0, 0, 0), 1.0);
    assert_eq!(silence_by_loss(1, 0, 0), 0.5);
    // B(½ + 2, ½) / B(½, ½) = 3/8.
    assert!((silence_by_loss(2, 0, 0) - 0.375).abs() < 1e-15);
    // Controls that all came make silence telling, controls that were lost explain it.
    assert!(silence_by_loss(8, 60, 0) < 1e-10);
    assert!(silence_by_loss(8, 60, 30) > 1e-3);
}

#[test]
fn an_acknowledgement_is_never_larger_than_the_smallest_probe() {
    for family in [Family::V4, Family::V6] {
        assert!(SMALLEST_PROBE_BYTES - header_bytes(family) >= MESSAGE_BYTES as u32);
    }
}

#[test]
fn what_is_none_of_ours_says_why() {
    let mut payload = [0; 64];
    Probe { id: 7, ip_bytes: 92 }.write(&[1; 16], &mut payload);
    assert_eq!(Probe::read(&[2; 16], &payload), Err(MessageError::Token));
    assert_eq!(Acknowledgement::read(&[1; 16], &payload), Err(MessageError::Kind));
    assert_eq!(Probe::read(&[1; 16], &payload[..31]), Err(MessageError::Short { found: 31 }));
    // A router may quote no more than this.
    assert_eq!(Probe::read(&[1; 16], &payload[..32]), Ok(Probe { id: 7, ip_bytes: 92 }));
}

proptest! {
    #[test]
    fn messages_are_read_back(id: u64, ip_bytes: u32, fragment: u32, token: [u8; 16], padding in 0usize..100) {
        let mut payload = vec![0xa5; MESSAGE_BYTES + padding];
        let probe = Probe { id, ip_bytes };
        probe.write(&token, &mut payload);
        prop_assert_eq!(Probe::read(&token, &payload), Ok(probe));
        let answer = Acknowledgement { id, ip_bytes, fragment_bytes: (fragment > 0).then_some(fragment) };
        prop_assert_eq!(Acknowledgement::read(&token, &answer.to_bytes(&token)), Ok(answer));
    }

    #[test]
    fn no_datagram_makes_a_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), token: [u8; 16]) {
        let _ = Probe::read(&token, &bytes);
        let _ = Acknowledgement::read(&token, &bytes);
    }

    #[test]
    fn more_silence_is_never_less_telling(silent in 0u32..60, controls in 0u32..200, lost in 0u32..200) {
        let lost = lost.min(controls);
        prop_assert!(silence_by_loss(silent + 1, controls, lost) <= silence_by_loss(silent, controls, lost));
        prop_assert!(silence_by_loss(silent, controls, lost) <= silence_by_loss(silent, controls + 1, lost + 1) + 1e-12);
    }
}

#[test]
fn only_the_whole_token_is_the_token() {
    let token: Token = std::array::from_fn(|place| place as u8);
    assert!(same_token(&token, &token));
    for place in 0..token.len() {
        for bit in 0..8 {
            let mut other = token;
            other[place] ^= 1 << bit;
            assert!(!same_token(&other, &token), "bit {bit} of byte {place}");
        }
        assert!(!same_token(&token[..place], &token), "{place} bytes");
    }
    assert!(!same_token(&[token.as_slice(), &[0]].concat(), &token));
}
