//! All tests of the search for path MTUs in one program: it is linked once, and its tests run beside each other.

mod claims_and_messages;
mod clamps;
mod common;
mod echo;
mod filters;
mod lengths;
mod rates;
mod search;
mod trace;
