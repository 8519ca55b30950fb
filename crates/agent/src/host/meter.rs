//! The CPU meter that a host agent holds while an interval is measured.

use framegauge_drivers::host::processes::Processes;
use framegauge_drivers::meters::cpu::{CpuMeter, HostCpu, WholeMeter};

/// Instructions and cycles of the whole host so far, or why they are not known.
pub type Counts = Result<(u64, u64), String>;

/// The meter of an emulated host, or of one that is somebody's own.
pub enum Meter {
    /// Its programs and its receive path.
    Parts(CpuMeter),
    /// All of it, with what its counters said.
    Whole(WholeMeter, Counts),
}

impl Meter {
    /// What was used since the beginning of the interval, which goes on.
    pub fn read(&mut self, processes: &Processes) -> framegauge_drivers::Result<HostCpu> {
        match self {
            Self::Parts(meter) => meter.read(processes),
            Self::Whole(meter, _) => meter.read(),
        }
    }
}
