//! What an interface has of its own, whole: read as the kernel tells it, and put back as it was. A change of an MTU takes
//! some of it along (`net/ipv6/addrconf.c`, `net/ipv6/route.c`), and all of IPv6 below 1280 bytes (RFC 8200).

pub mod addresses;
pub mod neighbours;
pub mod relations;
pub mod routes;
pub mod settings;
