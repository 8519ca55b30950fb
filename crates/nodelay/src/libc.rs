//! The little that is needed of the C library, whichever it is. No symbol may have a version, and those that an older
//! library lacks must not be required: glibc before 2.34 has `dlsym` in a library of its own, which a program may not
//! have loaded. Without it the system calls are made directly.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// "The next one after this library".
const RTLD_NEXT: *mut c_void = -1_isize as *mut c_void;

unsafe extern "C" {
    pub(super) fn getsockopt(
        socket: c_int,
        level: c_int,
        name: c_int,
        value: *mut c_void,
        length: *mut u32,
    ) -> c_int;
    fn getenv(name: *const c_char) -> *const c_char;
    fn syscall(number: c_long, ...) -> c_long;
    #[link_name = "__errno_location"]
    fn errno_location() -> *mut c_int;
    static framegauge_nodelay_dlsym: Option<unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void>;
}

// The address of `dlsym`, or null where nothing has it. Rust has no stable word for a weak symbol.
core::arch::global_asm!(
    ".weak dlsym",
    ".pushsection .data.rel.ro,\"aw\"",
    ".balign 8",
    ".globl framegauge_nodelay_dlsym",
    ".hidden framegauge_nodelay_dlsym",
    "framegauge_nodelay_dlsym:",
    ".dc.a dlsym",
    ".popsection",
);

type Five = unsafe extern "C" fn(usize, usize, usize, usize, usize) -> c_int;

/// What stands behind this library.
#[derive(Clone, Copy)]
pub(super) enum Function {
    Socket,
    Connect,
    Accept,
    Accept4,
    Setsockopt,
}

static NEXT: [AtomicPtr<c_void>; 5] = [const { AtomicPtr::new(null_mut()) }; 5];

#[cfg(target_arch = "x86_64")]
const NUMBERS: [c_long; 5] = [41, 42, 43, 288, 54];
#[cfg(target_arch = "aarch64")]
const NUMBERS: [c_long; 5] = [198, 203, 202, 242, 208];
const NAMES: [&CStr; 5] = [c"socket", c"connect", c"accept", c"accept4", c"setsockopt"];

/// Calls a function of the C library, or of another library before it, with its arguments and zeros behind them.
pub(super) fn call(function: Function, arguments: [usize; 5]) -> c_int {
    let (place, [a, b, c, d, e]) = (function as usize, arguments);
    let mut next = NEXT[place].load(Ordering::Relaxed);
    // SAFETY: the loader has filled it in, and nobody writes to it.
    if let (true, Some(dlsym)) = (next.is_null(), unsafe { framegauge_nodelay_dlsym }) {
        // SAFETY: the name is a terminated string.
        next = unsafe { dlsym(RTLD_NEXT, NAMES[place].as_ptr()) };
        NEXT[place].store(next, Ordering::Relaxed);
    }
    if next.is_null() {
        // SAFETY: the arguments are those that the program gave for this very call.
        return unsafe { syscall(NUMBERS[place], a, b, c, d, e) as c_int };
    }
    // SAFETY: it is the C function of that name. All of its arguments are integers or pointers, each in a register of
    // its own on these machines, whose upper half an `int` does not use; further registers are not looked at.
    unsafe { transmute::<*mut c_void, Five>(next)(a, b, c, d, e) }
}

/// A variable of the environment.
pub(super) fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name is a terminated string; what is found is one, and is read at once.
    unsafe {
        let found = getenv(name.as_ptr());
        (!found.is_null()).then(|| CStr::from_ptr(found))
    }
}

/// The thread's `errno`.
pub(super) fn errno() -> c_int {
    // SAFETY: the C library's own place for it.
    unsafe { *errno_location() }
}

/// Sets the thread's `errno`.
pub(super) fn set_errno(value: c_int) {
    // SAFETY: the C library's own place for it.
    unsafe { *errno_location() = value }
}
