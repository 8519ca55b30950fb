//! A library for `LD_PRELOAD`: every TCP socket of a program has `TCP_NODELAY` on or off, whatever the program asks for.
//!
//! `FRAMEGAUGE_NODELAY=on` or `off` says which; without it nothing is changed. The variable is read when the library is
//! loaded, because programs may wipe their environment (nginx does, in its workers). The option is set when a socket is
//! made, before it connects and when it is accepted; what the program asks for with `setsockopt(TCP_NODELAY)` is
//! answered with success and not done. `TCP_CORK` is left alone: the factor is Nagle's algorithm, and nothing else.
//!
//! Programs that make system calls by themselves (Go, io_uring, static ones) are not reached. Whoever uses this proves
//! on the live sockets that it was obeyed.
//!
//! For any Linux with any C library, glibc or musl, old or new, it is built with nothing below it: no `std`, no library
//! that it needs, no symbol with a version (`make agent`, profile `preload`). With `std`, as other profiles build it for
//! the checks of the workspace, it does the same.
#![cfg_attr(panic = "abort", no_std)]

mod libc;

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU8, Ordering};
use libc::Function;

const AF_INET: c_int = 2;
const AF_INET6: c_int = 10;
const SOCK_STREAM: c_int = 1;
/// `SOCK_NONBLOCK` and `SOCK_CLOEXEC` are flags above it.
const SOCK_TYPE_MASK: c_int = 0xf;
const SOL_SOCKET: c_int = 1;
const SO_TYPE: c_int = 3;
const SO_DOMAIN: c_int = 39;
const IPPROTO_TCP: c_int = 6;
const TCP_NODELAY: c_int = 1;

const NOT_READ: u8 = 0;
const LEAVE: u8 = 1;
const OFF: u8 = 2;
const ON: u8 = 3;

static CHOICE: AtomicU8 = AtomicU8::new(NOT_READ);

/// The dynamic loader calls it, before the program begins.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    choice();
}

/// What the environment says; `None`: leave sockets as they are. It is read once.
fn choice() -> Option<bool> {
    let mut known = CHOICE.load(Ordering::Relaxed);
    if known == NOT_READ {
        known = match libc::variable(c"FRAMEGAUGE_NODELAY") {
            Some(value) if value == c"on" => ON,
            Some(value) if value == c"off" => OFF,
            _ => LEAVE,
        };
        CHOICE.store(known, Ordering::Relaxed);
    }
    match known {
        ON => Some(true),
        OFF => Some(false),
        _ => None,
    }
}

/// An option of a socket that is a number; `None` where it is no socket.
fn number(socket: c_int, name: c_int) -> Option<c_int> {
    let (mut value, mut length) = (0, size_of::<c_int>() as u32);
    // SAFETY: pointer and length describe `value`.
    let read = unsafe { libc::getsockopt(socket, SOL_SOCKET, name, (&raw mut value).cast(), &mut length) };
    (read == 0).then_some(value)
}

fn is_tcp(socket: c_int) -> bool {
    number(socket, SO_TYPE) == Some(SOCK_STREAM)
        && matches!(number(socket, SO_DOMAIN), Some(AF_INET | AF_INET6))
}

/// Sets the option as the environment says, if it is a TCP socket, and leaves `errno` as it is.
fn settle(socket: c_int) {
    let Some(nodelay) = choice() else { return };
    let errno = libc::errno();
    if is_tcp(socket) {
        let value = c_int::from(nodelay);
        let (pointer, length) = ((&raw const value).cast::<c_void>(), size_of::<c_int>());
        libc::call(
            Function::Setsockopt,
            [socket as usize, IPPROTO_TCP as usize, TCP_NODELAY as usize, pointer as usize, length],
        );
    }
    libc::set_errno(errno);
}

/// `socket(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let made = libc::call(Function::Socket, [domain as usize, kind as usize, protocol as usize, 0, 0]);
    if made >= 0 && kind & SOCK_TYPE_MASK == SOCK_STREAM && matches!(domain, AF_INET | AF_INET6) {
        settle(made);
    }
    made
}

/// `connect(2)`. The option is set before, so that it holds for a connection that is made later, too.
#[unsafe(no_mangle)]
pub extern "C" fn connect(socket: c_int, address: *const c_void, length: u32) -> c_int {
    settle(socket);
    libc::call(Function::Connect, [socket as usize, address as usize, length as usize, 0, 0])
}

/// `accept(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn accept(socket: c_int, address: *mut c_void, length: *mut u32) -> c_int {
    let accepted = libc::call(Function::Accept, [socket as usize, address as usize, length as usize, 0, 0]);
    if accepted >= 0 {
        settle(accepted);
    }
    accepted
}

/// `accept4(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn accept4(socket: c_int, address: *mut c_void, length: *mut u32, flags: c_int) -> c_int {
    let arguments = [socket as usize, address as usize, length as usize, flags as usize, 0];
    let accepted = libc::call(Function::Accept4, arguments);
    if accepted >= 0 {
        settle(accepted);
    }
    accepted
}

/// `setsockopt(2)`: a program's own `TCP_NODELAY` is not done.
#[unsafe(no_mangle)]
pub extern "C" fn setsockopt(
    socket: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: u32,
) -> c_int {
    if level == IPPROTO_TCP && name == TCP_NODELAY && choice().is_some() {
        let errno = libc::errno();
        // What is wrong with the call (no socket, no number) is told by the kernel.
        let is_fine = is_tcp(socket) && !value.is_null() && length as usize >= size_of::<c_int>();
        libc::set_errno(errno);
        if is_fine {
            // Sockets come from elsewhere, too: from a parent, or over a Unix socket.
            settle(socket);
            return 0;
        }
    }
    let arguments = [socket as usize, level as usize, name as usize, value as usize, length as usize];
    libc::call(Function::Setsockopt, arguments)
}

#[cfg(panic = "abort")]
#[panic_handler]
fn never(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
