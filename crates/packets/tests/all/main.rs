//! All tests of the packets in one program: it is linked once, and its tests run beside each other.

mod blocks;
mod capture_files;
mod capture_icmp;
mod capture_layers;
mod capture_packets;
mod capture_stored;
mod captures;
mod coalescing;
mod common;
mod filter;
mod marking;
mod pcapng_about;
mod reference;
mod views;
mod wrapping;
