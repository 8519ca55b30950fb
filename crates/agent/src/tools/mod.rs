//! Other faces of the binary: what it is when it does not speak on the pipe.

pub mod counters;
pub mod diagnose;
pub mod exec;
pub mod helper;
pub mod keep;
pub mod lease;
pub mod permitted;
pub mod simulate;
pub mod sockets;

use framegauge_drivers::own;

const OUTPUT_AND_ERRORS: [i32; 2] = [1, 2];

/// Ends this process as soon as nobody reads any more what it says: whoever started it was killed, perhaps, and what comes
/// of its work is of no use. A signal from the kernel would come with the end of the thread that started it, which may be
/// one of many, and not at all through `ssh` or `sudo`.
///
/// It is also what ends first where memory is used up: nothing is lost with it, and its reader says so in one line.
pub fn end_with_reader() {
    own::be_first_without_memory();
    std::thread::spawn(|| {
        if own::await_no_reader(&OUTPUT_AND_ERRORS).is_ok() {
            std::process::exit(1);
        }
    });
}
