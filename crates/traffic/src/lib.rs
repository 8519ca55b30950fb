//! Decides what to send when, and never sends: a driver asks, does it, and tells what came of it.
//! Times are nanoseconds on the driver's clock.

mod hello;
mod stream;

pub use hello::{Hello, HelloError, TOKEN_BYTES, Token};
pub use stream::{Action, Amount, Stream, StreamSpec, Transfer};
