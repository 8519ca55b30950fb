//! All tests of the fabric in one program: it is linked once, and its tests run beside each other.

mod ahead;
mod background;
mod bonds;
mod changes;
mod common;
mod known_answers;
mod links;
mod lossless;
mod marks;
mod properties;
mod queues;
mod routers;
mod scripts;
mod shared_buffer;
mod topologies;
mod watch;
