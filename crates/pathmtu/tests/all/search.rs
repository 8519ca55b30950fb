//! The search against networks whose truth is known.
use crate::common::{Network, config, mtus, quiet, run};
use framegauge_pathmtu::{Config, Next, Report, Search, Told, Verdict};
use proptest::prelude::*;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_millis(500);

#[test]
fn a_path_that_carries_the_target_needs_three_packets_a_flow() {
    let (report, took) = run(config(9000, 32), &quiet(vec![9000; 32]));
    assert!(report.flows.iter().all(|flow| flow.verdict == Verdict::CarriesTarget));
    assert_eq!(mtus(&report), vec![Some(9000); 32]);
    assert_eq!((report.sent_packets, report.sent_bytes), (96, 32 * 10_600));
    assert!(took < Duration::from_millis(20), "{took:?}");
}

#[test]
fn every_path_mtu_is_found_to_the_byte_and_in_time() {
    for truth in [576, 1279, 1280, 1281, 1399, 1454, 1500, 1501, 1504, 2345, 4000, 8949, 8950, 8951, 8999] {
        for router in [false, true] {
            let (report, took) = run(config(9000, 4), &Network { router, ..quiet(vec![truth; 4]) });
            assert_eq!(mtus(&report), vec![Some(truth); 4], "{truth} {router}");
            let verdict = if router { Verdict::TooSmall } else { Verdict::BlackHole };
            assert!(report.flows.iter().all(|flow| flow.verdict == verdict), "{report:?}");
            assert!(took < PATIENCE, "{truth}: {took:?}");
        }
    }
}

#[test]
fn one_bad_member_of_four_is_found_on_its_flows_only() {
    let truth: Vec<u32> = (0..32).map(|flow| if flow % 4 == 1 { 1504 } else { 9000 }).collect();
    let (report, took) = run(config(9000, 32), &quiet(truth.clone()));
    assert_eq!(mtus(&report), truth.into_iter().map(Some).collect::<Vec<_>>());
    assert!(took < PATIENCE, "{took:?}");
}

#[test]
fn flows_of_different_path_mtus_do_not_mislead_each_other() {
    let truth: Vec<u32> = (0..16).map(|flow| [1504, 4321, 8950, 9000][flow % 4]).collect();
    let (report, _) = run(config(9000, 16), &quiet(truth.clone()));
    assert_eq!(mtus(&report), truth.into_iter().map(Some).collect::<Vec<_>>());
}

#[test]
fn what_siblings_learn_from_scouts_saves_most_of_the_search() {
    let alone = run(config(9000, 2), &quiet(vec![1504; 2])).0.sent_bytes / 2;
    let together = run(config(9000, 32), &quiet(vec![1504; 32])).0.sent_bytes / 32;
    assert!(together < alone * 6 / 10, "{together} {alone}");
}

#[test]
fn nothing_there_is_unreachable_not_a_black_hole() {
    let (report, took) = run(config(9000, 8), &quiet(vec![0; 8]));
    assert!(report.flows.iter().all(|flow| flow.verdict == Verdict::Unreachable));
    assert_eq!(mtus(&report), vec![None; 8]);
    // A busy far end gets its time, and a flow that asks alone: 10 controls, 125 to 375 ms apart.
    assert!(took > Duration::from_millis(2500) && took < Duration::from_secs(6), "{took:?}");
}

#[test]
fn a_far_end_is_not_unreachable_before_it_had_the_time_that_others_needed() {
    let busy = |elsewhere: Duration| {
        let delay = (Duration::from_millis(7500), Duration::from_millis(8000));
        let network = Network { delay, elsewhere, ..quiet(vec![9000; 8]) };
        mtus(&run(config(9000, 8), &network).0)
    };
    // With nothing to compare it with, nobody waits so long.
    assert_eq!(busy(Duration::ZERO), vec![None; 8]);
    assert_eq!(busy(Duration::from_millis(1500)), vec![Some(9000); 8]);
}

#[test]
fn plain_loss_is_never_an_mtu_fault() {
    for loss in [0.01, 0.05, 0.15] {
        for seed in 0..200 {
            let (report, _) = run(config(9000, 8), &Network { loss, seed, ..quiet(vec![9000; 8]) });
            assert_eq!(mtus(&report), vec![Some(9000); 8], "{loss} {seed}");
        }
    }
}

#[test]
fn a_flow_whose_first_probes_are_lost_does_not_hold_up_the_others() {
    let slowest =
        (0..200).map(|seed| run(config(9000, 32), &Network { loss: 0.1, seed, ..quiet(vec![9000; 32]) }).1);
    assert!(slowest.max() < Some(Duration::from_millis(300)));
}

#[test]
fn without_exact_sizes_what_is_refused_is_not_searched_for_and_what_is_silent_is() {
    let asked = Config { exact: false, ..config(9000, 8) };
    for router in [false, true] {
        let (report, took) = run(asked, &Network { router, ..quiet(vec![4000; 8]) });
        let expected = if router { (Verdict::TooSmall, None) } else { (Verdict::BlackHole, Some(4000)) };
        assert!(
            report.flows.iter().all(|flow| (flow.verdict, flow.path_mtu_bytes) == expected),
            "{report:?}"
        );
        assert!(took < PATIENCE, "{took:?}");
    }
}

#[test]
fn a_liar_who_says_too_big_is_not_believed() {
    // The router names 1400, but 1500 arrives: what arrives is proof, what is said is a hint.
    let mut search = Search::new(config(9000, 1));
    let mut now = Duration::ZERO;
    loop {
        match search.poll(now, true) {
            Next::Done => break,
            Next::Wait(until) => now = until,
            Next::Send { flow, number, bytes } if bytes <= 1500 => {
                search.on_delivered(now, flow, number, bytes, None);
            }
            Next::Send { flow, number, .. } => {
                search.on_too_big(now, flow, number, Told { by: None, mtu_bytes: Some(1400) });
            }
        }
    }
    assert_eq!(mtus(&search.report()), [Some(1500)]);
}

/// Searches a path that carries `mtu`, on which somebody says of all that is larger than `above` that it is too big for
/// `said`, some time before it arrives.
fn told(mtu: u32, above: u32, said: u32) -> (Report, Duration) {
    let mut search = Search::new(config(9000, 4));
    let mut arriving = std::collections::VecDeque::new();
    let mut now = Duration::ZERO;
    let device = Told { by: Some("10.0.0.1".parse().unwrap()), mtu_bytes: Some(said) };
    loop {
        match search.poll(now, true) {
            Next::Done => return (search.report(), now),
            Next::Send { flow, number, bytes } => {
                if bytes > above {
                    search.on_too_big(now, flow, number, device);
                }
                if bytes <= mtu {
                    arriving.push_back((now + Duration::from_millis(1), flow, number, bytes));
                }
            }
            Next::Wait(until) => match arriving.front().copied() {
                Some((at, flow, number, bytes)) if at <= until => {
                    arriving.pop_front();
                    now = now.max(at);
                    search.on_delivered(now, flow, number, bytes, None);
                }
                _ => now = until,
            },
        }
    }
}

#[test]
fn what_arrives_disproves_who_calls_it_too_big() {
    let (report, took) = told(9000, 552, 552);
    assert_eq!(mtus(&report), [Some(9000); 4]);
    for flow in &report.flows {
        assert_eq!((flow.verdict, flow.told), (Verdict::CarriesTarget, None));
        assert_eq!(flow.disproved.and_then(|told| told.mtu_bytes), Some(552));
    }
    assert!(took < PATIENCE, "{took:?}");
    // Behind a real limit as well.
    let (report, _) = told(1500, 552, 552);
    assert_eq!(mtus(&report), [Some(1500); 4]);
    assert!(report.flows.iter().all(|flow| flow.disproved.is_some() && flow.told.is_none()), "{report:?}");
}

#[test]
fn who_names_more_than_passes_has_refused_it_all_the_same() {
    let (report, took) = told(1438, 1438, 1442);
    assert_eq!(mtus(&report), [Some(1438); 4]);
    for flow in &report.flows {
        let said = flow.told.and_then(|told| told.mtu_bytes);
        assert_eq!((flow.verdict, said, flow.disproved), (Verdict::TooSmall, Some(1442), None));
    }
    assert!(took < PATIENCE, "{took:?}");
}

#[test]
fn what_arrives_in_fragments_was_not_carried() {
    let mut search = Search::new(config(9000, 2));
    let mut now = Duration::ZERO;
    loop {
        match search.poll(now, true) {
            Next::Done => break,
            Next::Wait(until) => now = until,
            Next::Send { flow, number, bytes } => {
                let pieces = (bytes > 1500).then_some(1500);
                search.on_delivered(now, flow, number, bytes, pieces);
            }
        }
    }
    let report = search.report();
    assert_eq!(mtus(&report), [Some(1500); 2]);
    assert!(
        report
            .flows
            .iter()
            .all(|flow| flow.verdict == Verdict::TooSmall && flow.fragment_bytes == Some(1500))
    );
    // Nobody has said a word.
    assert!(report.flows.iter().all(|flow| flow.told.is_none()));
}

#[test]
fn what_is_said_of_other_flows_or_twice_is_ignored() {
    let mut search = Search::new(config(9000, 2));
    let mut now = Duration::ZERO;
    let mut others = 0;
    loop {
        match search.poll(now, true) {
            Next::Done => break,
            Next::Wait(until) => now = until,
            Next::Send { flow, number, bytes } => {
                // Only on the other flow, of another size, of another number: none of it counts.
                search.on_delivered(now, 1 - flow, number, bytes, None);
                search.on_delivered(now, flow, number, bytes - 1, None);
                search.on_delivered(now, flow, number + 1000, bytes, None);
                others += 1;
            }
        }
    }
    assert!(others > 0);
    assert!(search.report().flows.iter().all(|flow| flow.verdict == Verdict::Unreachable));
}

#[test]
fn a_slow_beginning_does_not_make_every_later_silence_long() {
    // A host that is busy for a second while the first burst arrives, and quick from then on.
    let slow_until = Duration::from_secs(1);
    let mut search = Search::new(config(9000, 8));
    let mut now = Duration::ZERO;
    let mut answers = std::collections::VecDeque::new();
    let ended = loop {
        match search.poll(now, true) {
            Next::Done => break now,
            Next::Send { flow, number, bytes } if bytes <= 1500 => {
                let quick = now + Duration::from_millis(1);
                answers.push_back((quick.max(slow_until), flow, number, bytes));
            }
            Next::Send { .. } => {}
            Next::Wait(until) => match answers.front().copied() {
                Some((at, flow, number, bytes)) if at <= until => {
                    answers.pop_front();
                    now = now.max(at);
                    search.on_delivered(now, flow, number, bytes, None);
                }
                _ => now = until,
            },
        }
    };
    assert_eq!(mtus(&search.report()), [Some(1500); 8]);
    // Three times the slowest answer, for each of the rounds, would be more than ten seconds.
    assert!(ended < Duration::from_millis(2500), "{ended:?}");
}

#[test]
fn a_prober_that_takes_silence_for_delivery_would_be_wrong() {
    // The check of the check: the same network, but whatever is not answered is said to have arrived.
    let mut wrong = 0;
    for truth in [1400, 1500, 1504, 4000, 8950] {
        let mut search = Search::new(config(9000, 1));
        let mut now = Duration::ZERO;
        loop {
            match search.poll(now, true) {
                Next::Done => break,
                Next::Wait(until) => now = until,
                Next::Send { flow, number, bytes } => {
                    search.on_delivered(now, flow, number, bytes, None);
                }
            }
        }
        wrong += usize::from(mtus(&search.report()) != [Some(truth)]);
    }
    assert_eq!(wrong, 5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn it_ends_with_the_exact_size_or_could_not_tell(
        truth in prop::collection::vec(576u32..=65_535, 1..6),
        target in prop::sample::select(vec![1500u32, 4000, 9000, 9216, 65_535]),
        loss in 0.0f64..0.2,
        duplicates in 0.0f64..0.5,
        late in prop::sample::select(vec![0.0f64, 0.0, 0.02, 0.2]),
        delay_micros in 10u64..60_000,
        jitter_micros in 0u64..60_000,
        router in any::<bool>(),
        controls_a_probe in 1u32..=3,
        seed in any::<u64>(),
    ) {
        let delay = (Duration::from_micros(delay_micros), Duration::from_micros(delay_micros + jitter_micros));
        let quiet = quiet(truth.clone());
        let network = Network { loss, duplicates, delay, late, router, seed, ..quiet };
        let asked = Config { controls_a_probe, ..config(target, truth.len() as u16) };
        let (report, _) = run(asked, &network);
        for (flow, truth) in report.flows.iter().zip(&truth) {
            match flow.verdict {
                Verdict::CarriesTarget => prop_assert!(*truth >= target && flow.path_mtu_bytes == Some(target)),
                Verdict::TooSmall | Verdict::BlackHole => prop_assert_eq!(flow.path_mtu_bytes, Some(*truth)),
                Verdict::Unknown => {}
                Verdict::Unreachable => prop_assert!(false, "something arrives"),
            }
            prop_assert!(flow.delivered_bytes <= *truth);
            prop_assert_eq!(flow.verdict == Verdict::TooSmall && !router, false);
        }
    }
}
