//! Reads ahead in a thread of its own, for sources that cost CPU time: what unpacks a file need not wait for what reads it.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Blocks that may wait; with their size, the memory that reading ahead takes.
const BLOCKS: usize = 4;
const BLOCK_BYTES: usize = 1 << 17;

/// What was read ahead.
#[derive(Debug)]
pub(crate) struct Ahead {
    full: Receiver<io::Result<Vec<u8>>>,
    empty: SyncSender<Vec<u8>>,
    block: Vec<u8>,
    at: usize,
}

impl Ahead {
    /// Begins to read. The thread ends with the source, with its first error, or once nobody takes the blocks.
    pub(crate) fn new(source: Box<dyn Read + Send>) -> Ahead {
        let (full_to, full) = sync_channel(BLOCKS);
        let (empty, empty_from) = sync_channel(BLOCKS + 1);
        thread::spawn(move || fill(source, &full_to, &empty_from));
        Ahead { full, empty, block: Vec::new(), at: 0 }
    }
}

fn fill(mut source: Box<dyn Read + Send>, full: &SyncSender<io::Result<Vec<u8>>>, empty: &Receiver<Vec<u8>>) {
    loop {
        let mut block = empty.try_recv().unwrap_or_default();
        block.clear();
        let read = source.by_ref().take(BLOCK_BYTES as u64).read_to_end(&mut block);
        // What was read before an error still counts.
        let is_last = read.is_err() || block.is_empty();
        if !block.is_empty() && full.send(Ok(block)).is_err() {
            return;
        }
        if let Err(error) = read {
            let _ = full.send(Err(error));
        }
        if is_last {
            return;
        }
    }
}

impl Read for Ahead {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.at == self.block.len() {
            let Ok(next) = self.full.recv() else { return Ok(0) };
            let used = std::mem::replace(&mut self.block, next?);
            self.at = 0;
            let _ = self.empty.try_send(used);
        }
        let count = to.len().min(self.block.len() - self.at);
        to[..count].copy_from_slice(&self.block[self.at..][..count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes, and then an error.
    struct Breaks(io::Cursor<Vec<u8>>);

    impl Read for Breaks {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            match self.0.read(to)? {
                0 => Err(io::Error::other("broken")),
                read => Ok(read),
            }
        }
    }

    #[test]
    fn everything_comes_in_order() {
        let bytes: Vec<u8> = (0..1_000_000u32).flat_map(u32::to_le_bytes).collect();
        let mut content = Vec::new();
        Ahead::new(Box::new(io::Cursor::new(bytes.clone()))).read_to_end(&mut content).expect("no error");
        assert!(content == bytes);
    }

    #[test]
    fn what_came_before_an_error_is_kept() {
        let mut content = Vec::new();
        let broken = Breaks(io::Cursor::new(vec![7; 300_000]));
        let error = Ahead::new(Box::new(broken)).read_to_end(&mut content).expect_err("broken");
        assert_eq!((content.len(), error.to_string()), (300_000, "broken".to_owned()));
    }
}
