//! A second pass over a capture, which draws the connections that the first one has told to be worth it.

use super::read;
use framegauge_diagnosis::{Picture, Thresholds};
use serde::Serialize;
use std::path::Path;

/// What is drawn of a capture.
#[derive(Debug, Serialize)]
pub struct Pictures {
    /// The file as it was named.
    pub file: String,
    /// By tap, in the order of the diagnosis.
    pub taps: Vec<Vec<Picture>>,
}

/// Draws connections, each named by the place of its tap in the diagnosis and its number there. What a capture no longer
/// has is not drawn.
pub fn draw(path: &Path, limits: Thresholds, connections: &[(usize, u64)]) -> Result<Pictures, String> {
    let capture = read(path, limits, connections)?;
    let taps = capture.taps.into_iter().map(|tap| tap.diagnosis.pictures).collect();
    Ok(Pictures { file: capture.file, taps })
}

pub(super) fn of_tap(connections: &[(usize, u64)], tap: usize) -> Vec<u64> {
    connections.iter().filter(|(place, _)| *place == tap).map(|(_, number)| *number).collect()
}
