//! Rows of JSON that wait until all are known: few in memory, many in a file without a name.

use framegauge_linux::files;
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

/// As much waits in memory.
const MEMORY_BYTES: usize = 4 << 20;

/// Where a row is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    at: u64,
    bytes: u32,
}

/// The rows.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Behind what the file has.
    bytes: Vec<u8>,
    file: Option<File>,
    file_bytes: u64,
}

impl Rows {
    pub(super) fn add(&mut self, row: &impl Serialize) -> Result<Place, String> {
        if self.bytes.len() >= MEMORY_BYTES {
            self.spill()?;
        }
        let begin = self.bytes.len();
        serde_json::to_writer(&mut self.bytes, row)
            .expect("what was found has only words and finite numbers");
        Ok(Place { at: self.file_bytes + begin as u64, bytes: (self.bytes.len() - begin) as u32 })
    }

    fn spill(&mut self) -> Result<(), String> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(files::unnamed().map_err(|error| error.to_string())?),
        };
        file.write_all(&self.bytes).map_err(cannot_keep)?;
        self.file_bytes += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }

    /// A row, as it was added.
    pub(super) fn get(&self, place: Place, to: &mut Vec<u8>) -> Result<(), String> {
        to.clear();
        match (place.at.checked_sub(self.file_bytes), &self.file) {
            (Some(at), _) => to.extend(&self.bytes[at as usize..][..place.bytes as usize]),
            (None, Some(file)) => {
                to.resize(place.bytes as usize, 0);
                file.read_exact_at(to, place.at).map_err(cannot_keep)?;
            }
            (None, None) => unreachable!("what is before the memory is in the file"),
        }
        Ok(())
    }
}

/// What is wrong with a file that holds what memory has no room for.
pub(super) fn cannot_keep(error: std::io::Error) -> String {
    let folder = std::env::temp_dir();
    format!("a file in {} for what memory has no room for: {error}", folder.display())
}
