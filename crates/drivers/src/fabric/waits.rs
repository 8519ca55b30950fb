//! How long frames waited in the switches for others, in virtual time: exact, however late the fabric was.

use framegauge_fabric::PortIndex;
use framegauge_frames::Picoseconds;
use framegauge_metering::Delays;

/// By output port and input port, made where a frame passes: a table of all pairs would grow with the square of
/// the fabric.
#[derive(Default)]
pub(crate) struct Waits {
    pairs: Vec<Vec<Option<Box<Delays>>>>,
}

/// The waits at one port of the frames that came by another.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct WaitMeasurement {
    pub port: String,
    pub input_port: String,
    pub frames: u64,
    pub mean_seconds: f64,
    pub p50_seconds: f64,
    pub p99_seconds: f64,
    pub p999_seconds: f64,
    pub max_seconds: f64,
}

impl Waits {
    /// Counts one frame.
    pub(crate) fn record(&mut self, port: PortIndex, input_port: PortIndex, wait: Picoseconds) {
        let row = place(&mut self.pairs, port);
        place(row, input_port).get_or_insert_default().record(wait.as_nanoseconds());
    }

    /// Forgets everything.
    pub(crate) fn reset(&mut self) {
        self.pairs.clear();
    }

    /// The waits of every pair of ports between which a frame passed; `names` are those of the ports.
    pub(crate) fn measurement(&self, names: &[String]) -> Vec<WaitMeasurement> {
        let pairs = self.pairs.iter().zip(names).flat_map(|(row, port)| {
            row.iter()
                .zip(names)
                .filter_map(move |(delays, input)| delays.as_ref().map(|delays| (port, input, delays)))
        });
        pairs
            .map(|(port, input_port, delays)| WaitMeasurement {
                port: port.clone(),
                input_port: input_port.clone(),
                frames: delays.count(),
                mean_seconds: delays.mean_seconds(),
                p50_seconds: delays.quantile(0.5),
                p99_seconds: delays.quantile(0.99),
                p999_seconds: delays.quantile(0.999),
                max_seconds: delays.max_seconds(),
            })
            .collect()
    }
}

/// The place of a port, made if it is not there yet.
fn place<T: Default>(row: &mut Vec<T>, port: PortIndex) -> &mut T {
    let index = usize::from(port.0);
    if row.len() <= index {
        row.resize_with(index + 1, T::default);
    }
    &mut row[index]
}
