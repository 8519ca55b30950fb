//! Features of an interface by the kernel's names for them (`ethtool -k`): those that have no request of their own.
//!
//! Their places among all features differ from kernel to kernel, so each request begins with the kernel's list of names.

use crate::error::{OsError, Result};
use crate::ethtool::exchange_words;
use std::collections::BTreeMap;

/// GRO in the hardware of a NIC.
pub const HARDWARE_GRO: &str = "rx-gro-hw";

const GET_SET_SIZE: u32 = 0x37;
const GET_STRINGS: u32 = 0x1b;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
/// The set of strings that are names of features (`ETH_SS_FEATURES`).
const NAMES: u32 = 4;
/// Bytes of a name, ended by a zero byte if it is shorter (`ETH_GSTRING_LEN`).
const NAME_BYTES: usize = 32;
/// Words before the features: the command, and how many blocks follow.
const HEAD_WORDS: usize = 2;
/// Words of a block of 32 features, and which is which.
const BLOCK_WORDS: usize = 4;
const AVAILABLE: usize = 0;
const REQUESTED: usize = 1;
const ACTIVE: usize = 2;
const NEVER_CHANGED: usize = 3;
/// More than any kernel has.
const MOST_FEATURES: u32 = 1024;

/// What an interface says of one of its features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feature {
    /// It is in force.
    pub on: bool,
    /// It can be switched; `ethtool -k` shows others as `[fixed]`.
    pub changeable: bool,
}

/// What `interface` says of a feature; `None` if this kernel has none of that name.
pub fn read(interface: &str, name: &str) -> Result<Option<Feature>> {
    let operation = format!("read {name} of {interface}");
    let names = names(interface, &operation)?;
    let blocks = blocks(interface, names.len() / NAME_BYTES, &operation)?;
    Ok(place(&names, name).and_then(|place| feature(&blocks, place)))
}

/// A feature as it is asked for and as it is: what it needs, or what excludes it, may keep the two apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switched {
    /// It is asked for.
    pub asked: bool,
    /// What the interface says of it.
    pub now: Feature,
}

/// All features of an interface by their names.
pub fn read_all(interface: &str) -> Result<BTreeMap<String, Switched>> {
    let operation = format!("read the features of {interface}");
    let names = names(interface, &operation)?;
    let blocks = blocks(interface, names.len() / NAME_BYTES, &operation)?;
    let places = names.chunks_exact(NAME_BYTES).enumerate().filter_map(|(place, text)| {
        let name = text.split(|byte| *byte == 0).next().filter(|name| !name.is_empty())?;
        let switched = Switched { asked: bit(&blocks, place, REQUESTED)?, now: feature(&blocks, place)? };
        Some((String::from_utf8_lossy(name).into_owned(), switched))
    });
    Ok(places.collect())
}

/// Switches a feature. The interface may do otherwise, or switch others with it: read them back.
pub fn set(interface: &str, name: &str, on: bool) -> Result<()> {
    let operation = format!("switch {name} of {interface} {}", if on { "on" } else { "off" });
    let place = place(&names(interface, &operation)?, name);
    let place = place.ok_or_else(|| OsError::errno(operation.clone(), libc::EOPNOTSUPP))?;
    let block_count = blocks(interface, place + 1, &operation)?.get(1).copied().unwrap_or_default();
    // Two words a block, of the features to change and of their values; all blocks must be there.
    let mut request = vec![0; HEAD_WORDS + 2 * (block_count as usize).max(place / 32 + 1)];
    request[..HEAD_WORDS].copy_from_slice(&[SET_FEATURES, block_count]);
    let (block, bit) = (HEAD_WORDS + place / 32 * 2, 1 << (place % 32));
    request[block] = bit;
    request[block + 1] = if on { bit } else { 0 };
    const UNSUPPORTED: i32 = 1;
    if exchange_words(interface, &mut request, &operation)? & UNSUPPORTED != 0 {
        return Err(OsError::errno(operation, libc::EOPNOTSUPP));
    }
    Ok(())
}

/// The names of all features of this kernel, one after the other.
fn names(interface: &str, operation: &str) -> Result<Vec<u8>> {
    // Two words are the mask of sets that are asked for, in the order of this machine's bytes.
    let mask = (1u64 << NAMES).to_ne_bytes();
    let word = |at: usize| u32::from_ne_bytes([mask[at], mask[at + 1], mask[at + 2], mask[at + 3]]);
    let mut size = [GET_SET_SIZE, 0, word(0), word(4), 0];
    exchange_words(interface, &mut size, operation)?;
    let count = size[4].min(MOST_FEATURES);
    let mut strings = vec![0; 3 + count as usize * NAME_BYTES / size_of::<u32>()];
    strings[..3].copy_from_slice(&[GET_STRINGS, NAMES, count]);
    if count == size[4] {
        exchange_words(interface, &mut strings, operation)?;
    }
    Ok(strings[3..].iter().flat_map(|word| word.to_ne_bytes()).collect())
}

/// The kernel's answer for at least `count` features, with its head.
fn blocks(interface: &str, count: usize, operation: &str) -> Result<Vec<u32>> {
    let room = count.div_ceil(32);
    let mut answer = vec![0; HEAD_WORDS + room * BLOCK_WORDS];
    answer[..HEAD_WORDS].copy_from_slice(&[GET_FEATURES, room as u32]);
    exchange_words(interface, &mut answer, operation)?;
    Ok(answer)
}

/// The place of a name among the kernel's.
fn place(names: &[u8], name: &str) -> Option<usize> {
    let plain = |text: &[u8]| text.split(|byte| *byte == 0).next() == Some(name.as_bytes());
    names.chunks_exact(NAME_BYTES).position(plain)
}

/// What the kernel's answer says of the feature at a place.
fn feature(answer: &[u32], place: usize) -> Option<Feature> {
    let has = |word: usize| bit(answer, place, word);
    Some(Feature { on: has(ACTIVE)?, changeable: has(AVAILABLE)? && !has(NEVER_CHANGED)? })
}

/// One bit of it.
fn bit(answer: &[u32], place: usize, word: usize) -> Option<bool> {
    let block_count = (*answer.get(1)? as usize).min((answer.len() - HEAD_WORDS) / BLOCK_WORDS);
    let block = answer[HEAD_WORDS..].chunks_exact(BLOCK_WORDS).take(block_count).nth(place / 32)?;
    Some(block[word] >> (place % 32) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(names: &[String]) -> Vec<u8> {
        let pad = |name: &String| {
            let mut text = [0; NAME_BYTES];
            text[..name.len()].copy_from_slice(name.as_bytes());
            text
        };
        names.iter().flat_map(pad).collect()
    }

    proptest! {
        #[test]
        fn each_feature_is_found_at_its_place(
            states in prop::collection::vec((any::<bool>(), any::<bool>(), any::<bool>()), 1..120),
        ) {
            let names: Vec<String> = (0..states.len()).map(|number| format!("rx-{number}")).collect();
            let blocks = states.len().div_ceil(32);
            let mut answer = vec![0u32; HEAD_WORDS + blocks * BLOCK_WORDS];
            answer[1] = blocks as u32;
            for (number, (available, active, never)) in states.iter().enumerate() {
                let at = HEAD_WORDS + number / 32 * BLOCK_WORDS;
                for (word, on) in [(0, available), (2, active), (3, never)] {
                    answer[at + word] |= u32::from(*on) << (number % 32);
                }
            }
            for (name, (available, active, never)) in names.iter().zip(&states) {
                let reading = feature(&answer, place(&list(&names), name).expect("it is listed"));
                prop_assert_eq!(reading, Some(Feature { on: *active, changeable: *available && !*never }));
            }
            prop_assert_eq!(place(&list(&names), "rx"), None);
        }

        #[test]
        fn whatever_the_kernel_answers_is_survived(
            names in prop::collection::vec(any::<u8>(), 0..200),
            words in prop::collection::vec(any::<u32>(), HEAD_WORDS..40),
            number in 0usize..2000,
            name in ".{0,40}",
        ) {
            let _ = place(&names, &name);
            let reading = feature(&words, number);
            // Nothing is read beyond what the kernel says that it has told.
            prop_assert!(reading.is_none() || number / 32 < words[1] as usize);
        }
    }

    #[test]
    fn the_loopback_has_features_and_no_gro_in_hardware() {
        assert!(
            read("lo", "tx-generic-segmentation").expect("its features").expect("it is listed").changeable
        );
        let reading = read("lo", HARDWARE_GRO).expect("its features");
        assert!(reading.is_none_or(|reading| !reading.changeable), "{reading:?}");
        assert_eq!(read("lo", "rx-nonesuch").expect("its features"), None);
        assert_eq!(read("no-such-if", HARDWARE_GRO).expect_err("there is none").code(), libc::ENODEV);
        assert_eq!(set("lo", "rx-nonesuch", true).expect_err("there is none").code(), libc::EOPNOTSUPP);
    }
}
