//! How an application cuts what it sends into messages: each is one call, and what the socket did not take of one
//! is sent before the next, as a blocking call does.

use std::num::NonZeroU32;

/// How many bytes are to be sent next, where `sent` have been and `rest` are left. Without a size of messages
/// everything that is left is one.
pub fn next_write_bytes(sent: u64, rest: u64, message_bytes: Option<NonZeroU32>) -> u64 {
    message_bytes.map_or(rest, |size| {
        let size = u64::from(size.get());
        rest.min(size - sent % size)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(size: u32) -> Option<NonZeroU32> {
        NonZeroU32::new(size)
    }

    #[test]
    fn what_the_socket_did_not_take_comes_before_the_next_message() {
        // 100 kB in messages of 16 KiB: six whole ones, 98304 bytes, and one of the 1696 that are left.
        assert_eq!(next_write_bytes(0, 100_000, of(16_384)), 16_384);
        assert_eq!(next_write_bytes(98_304, 1_696, of(16_384)), 1_696);
        // Of the second message the socket took 1000 bytes.
        assert_eq!(next_write_bytes(17_384, 82_616, of(16_384)), 15_384);
        assert_eq!(next_write_bytes(17_384, 82_616, None), 82_616);
        assert_eq!(next_write_bytes(5, 0, of(10)), 0);
    }

    proptest! {
        /// Whatever the socket takes of each call, no call crosses the end of a message, and all is sent.
        #[test]
        fn calls_end_with_messages(total in 0u64..5000, size in 1u32..700, takes in proptest::collection::vec(1u64..900, 1..20)) {
            let (mut sent, mut calls) = (0, 0);
            while sent < total {
                let write_bytes = next_write_bytes(sent, total - sent, of(size));
                let end = (sent / u64::from(size) + 1) * u64::from(size);
                prop_assert_eq!(sent + write_bytes, end.min(total));
                sent += write_bytes.min(takes[calls % takes.len()]);
                calls += 1;
            }
            prop_assert_eq!(sent, total);
            if takes.iter().all(|take| *take >= u64::from(size)) {
                prop_assert_eq!(calls as u64, total.div_ceil(u64::from(size)));
            }
        }
    }
}
