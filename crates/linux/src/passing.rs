//! Descriptors that one process hands to another over a Unix socket (`unix(7)`, `SCM_RIGHTS`).

use crate::error::{OsError, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// As many as one message may carry here; the kernel's limit is 253.
pub const MOST: usize = 64;

const ROOM: usize = 1024;

/// The room for descriptors, aligned as its head must be.
#[repr(C, align(8))]
struct Control([u8; ROOM]);

/// Hands over descriptors, at most [`MOST`] of them; those of the caller stay open.
pub fn send(socket: &UnixStream, descriptors: &[OwnedFd]) -> Result<()> {
    let operation = "hand over descriptors";
    if descriptors.is_empty() || descriptors.len() > MOST {
        return Err(OsError::errno(operation, libc::EINVAL));
    }
    let numbers: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let bytes = size_of_val(numbers.as_slice()) as u32;
    let (mut control, mut word) = (Control([0; ROOM]), [1u8]);
    let mut part = libc::iovec { iov_base: word.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: all-zero is a valid msghdr; all that it points at lives during the call, and the room holds MOST of them.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(bytes) as _;
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        (*head).cmsg_level = libc::SOL_SOCKET;
        (*head).cmsg_type = libc::SCM_RIGHTS;
        (*head).cmsg_len = libc::CMSG_LEN(bytes) as _;
        std::ptr::copy_nonoverlapping(numbers.as_ptr().cast(), libc::CMSG_DATA(head), bytes as usize);
        libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
    };
    if sent == 1 { Ok(()) } else { Err(OsError::last(operation)) }
}

/// Takes the descriptors of one message; none once the other end is gone.
pub fn receive(socket: &UnixStream) -> Result<Vec<OwnedFd>> {
    let (mut control, mut word) = (Control([0; ROOM]), [0u8]);
    let mut part = libc::iovec { iov_base: word.as_mut_ptr().cast(), iov_len: 1 };
    let mut descriptors = Vec::new();
    // SAFETY: all-zero is a valid msghdr; all that it points at lives during the calls. The kernel says how much of the
    // room it has filled, and each descriptor in it is ours alone.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = ROOM as _;
        if libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) < 0 {
            return Err(OsError::last("take over descriptors"));
        }
        let mut head = libc::CMSG_FIRSTHDR(&raw const message);
        while !head.is_null() {
            if (*head).cmsg_level == libc::SOL_SOCKET && (*head).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*head).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let numbers = libc::CMSG_DATA(head).cast::<RawFd>();
                for number in 0..bytes / size_of::<RawFd>() {
                    descriptors.push(OwnedFd::from_raw_fd(numbers.add(number).read_unaligned()));
                }
            }
            head = libc::CMSG_NXTHDR(&raw const message, head);
        }
    }
    Ok(descriptors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Seek, Write};

    #[test]
    fn what_was_handed_over_is_the_same_file() {
        let (sender, receiver) = UnixStream::pair().expect("a pair");
        let mut file = crate::files::in_memory().expect("a file");
        file.write_all(b"the same").expect("room");
        let copies: Vec<OwnedFd> = (0..3).map(|_| file.try_clone().expect("a copy").into()).collect();
        send(&sender, &copies).expect("they are sent");
        let descriptors = receive(&receiver).expect("they are taken");
        assert_eq!(descriptors.len(), 3);
        file.rewind().expect("a file");
        let mut text = String::new();
        File::from(descriptors.into_iter().next().expect("one")).read_to_string(&mut text).expect("its text");
        assert_eq!(text, "the same");
        drop(sender);
        assert!(receive(&receiver).expect("its end").is_empty());
        assert!(send(&receiver, &[]).is_err());
    }
}
