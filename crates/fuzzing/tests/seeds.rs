//! Every input in `fuzz/seeds/`, and the same with damage, without a fuzzer: with any compiler, and the same each time.
#![allow(clippy::disallowed_methods)]

use framegauge_fuzzing::{TARGETS, Target, run};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

/// Damaged inputs of each target.
const CASES: u32 = 300;
/// What is kept of a target, in bytes.
const MOST_BYTES: usize = 16 * 1024;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name")).collect()
}

fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = fuzz().join("seeds").join(target);
    let read = |name: String| (fs::read(folder.join(&name)).expect("it is readable"), name);
    names(&folder).into_iter().map(read).map(|(bytes, name)| (name, bytes)).collect()
}

#[test]
fn every_target_has_its_program_and_its_seeds() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|target| target.0.into()).collect();
    assert_eq!(targets.len(), TARGETS.len());
    assert_eq!(names(&fuzz().join("seeds")), targets);
    let programs: BTreeSet<String> = targets.iter().map(|target| format!("{target}.rs")).collect();
    assert_eq!(names(&fuzz().join("fuzz_targets")), programs);
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).expect("it is readable");
    for target in &targets {
        let program =
            fs::read_to_string(fuzz().join(format!("fuzz_targets/{target}.rs"))).expect("it is readable");
        assert!(program.contains(&format!("run({target:?}, bytes)")), "{target}.rs runs another target");
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{target}.rs\"")), "{target} is not built");
        let bytes: usize = seeds(target).iter().map(|seed| seed.1.len()).sum();
        assert!((1..=MOST_BYTES).contains(&bytes), "{target}: {bytes} bytes of seeds");
    }
}

#[test]
fn every_seed_holds() {
    for (target, _) in TARGETS {
        for (name, bytes) in seeds(target) {
            assert!(catch_unwind(|| run(target, &bytes)).is_ok(), "fuzz/seeds/{target}/{name}");
        }
    }
}

/// One change of a byte string: what, where, and with which byte.
type Damage = (u8, prop::sample::Index, u8);

fn damaged(mut bytes: Vec<u8>, damage: &[Damage]) -> Vec<u8> {
    for (kind, place, byte) in damage {
        let place = place.index(bytes.len() + 1);
        match (kind % 5, bytes.get_mut(place)) {
            (0, Some(found)) => *found = *byte,
            (1, Some(found)) => *found ^= 1 << (byte % 8),
            (2, _) => bytes.insert(place, *byte),
            (3, _) => bytes.truncate(place),
            // A part twice: counts and lengths do not fit any more.
            (4, _) => bytes.extend_from_within(place..(place + usize::from(*byte)).min(bytes.len())),
            _ => {}
        }
    }
    bytes
}

fn hold_with_damage(name: &str, target: Target) {
    let seeds = seeds(name);
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let changes = prop::collection::vec(any::<Damage>(), 0..6);
    let inputs = (prop::sample::select(seeds), changes).prop_map(|(seed, damage)| damaged(seed.1, &damage));
    let outcome = TestRunner::new_with_rng(config, random).run(&inputs, |bytes| {
        target(&bytes);
        Ok(())
    });
    assert!(outcome.is_ok(), "{name}: {outcome:?}");
}

#[test]
fn every_target_holds_for_damaged_seeds() {
    for (name, target) in TARGETS {
        hold_with_damage(name, *target);
    }
}
