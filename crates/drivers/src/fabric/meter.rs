//! What the fabric's thread measures, and changes, when it is asked to.

use crate::fabric::ports::{Drops, FabricMeasurement, PortLook, Snapshot, ThreadMeasurement};
use crate::fabric::record::Record;
use crate::fabric::series::{Peaks, Series, Since};
use crate::fabric::thread::Loop;
use crate::fabric::watching::Watching;
use crate::fabric::{Changed, Measured, Meters};
use framegauge_fabric::{PortChange, PortIndex};
use framegauge_frames::Picoseconds;
use framegauge_linux::{OsError, Result, clock, sched};
use framegauge_metering::parse_schedstat;

/// What is kept from the begin of an interval to its end.
#[derive(Default)]
pub(crate) struct Meter {
    snapshot: Option<Snapshot>,
    thread: sched::ThreadUse,
    waited_nanoseconds: u64,
    wakeups: u64,
    peaks: Peaks,
    pub(crate) series: Option<Series>,
    changes: Vec<Changed>,
}

impl Loop {
    fn snapshot(&self) -> Snapshot {
        let counters = self.fabric.counters();
        let mut hosts = self.edge.counts.clone();
        for (host, interrupts) in hosts.iter_mut().zip(counters.interrupts) {
            host.interrupts = interrupts;
        }
        Snapshot {
            time_nanoseconds: self.edge.now().as_nanoseconds(),
            ports: counters.ports,
            hosts,
            background: counters.background,
        }
    }

    pub(crate) fn sample(&mut self, now: Picoseconds) {
        let now = now.as_nanoseconds();
        if let Some(series) = self.meter.series.as_mut().filter(|series| series.next() <= now) {
            let peaks = self.meter.peaks.take(&mut self.fabric, Since::Sample);
            series.take(now, self.fabric.counters().ports, &peaks);
        }
    }

    pub(crate) fn look(&mut self) -> PortLook {
        let peaks = self.meter.peaks.take(&mut self.fabric, Since::Look);
        let mut ports = self.fabric.counters().ports;
        for (port, peak) in ports.iter_mut().zip(peaks) {
            port.peak_queue_bytes = peak;
        }
        PortLook {
            time_nanoseconds: self.edge.now().as_nanoseconds(),
            ports: self.port_names().into_iter().zip(ports).collect(),
        }
    }

    fn port_names(&self) -> Vec<String> {
        let name = |port: usize| self.fabric.port_name(framegauge_fabric::PortIndex(port as u16)).to_string();
        (0..self.fabric.ports()).map(name).collect()
    }

    /// Begins an interval; fails if there is no memory for a capture.
    pub(crate) fn begin(&mut self, meters: Meters) -> Result<()> {
        let now = self.edge.now().as_nanoseconds();
        self.meter.peaks.take(&mut self.fabric, Since::Begin);
        self.edge.record = meters.record.then(Record::default);
        self.meter.series = None;
        if let Some(interval) = meters.sample_nanoseconds {
            self.meter.peaks.take(&mut self.fabric, Since::Sample);
            self.meter.series = Some(Series::begin(interval, now, self.fabric.counters().ports));
        }
        self.watch(meters, now)?;
        self.fabric.take_drops();
        self.edge.lateness.reset();
        self.edge.waits.reset();
        for counts in &mut self.edge.counts {
            (counts.largest_packet_bytes, counts.largest_frame_bytes) = (0, 0);
        }
        self.meter.changes.clear();
        self.meter.snapshot = Some(self.snapshot());
        self.meter.thread = sched::thread_use();
        self.meter.waited_nanoseconds = waited();
        self.meter.wakeups = self.wakeups;
        Ok(())
    }

    /// Watches these ports and no others.
    fn watch(&mut self, meters: Meters, now: u64) -> Result<()> {
        let Meters { watch: ports, capture, around_nanoseconds, .. } = meters;
        for port in self.edge.watching.take().iter().flat_map(Watching::ports) {
            self.fabric.watch(*port, false);
        }
        if ports.is_empty() {
            return Ok(());
        }
        for port in &ports {
            self.fabric.watch(*port, true);
        }
        let names = self.port_names();
        let since_1970 = clock::real_nanoseconds().saturating_sub(now);
        self.edge.watching =
            Some(Watching::begin(ports, &names, now, since_1970, capture, around_nanoseconds)?);
        self.edge.port_names = names;
        Ok(())
    }

    /// Changes ports in that order, up to one that cannot be so; when, on `CLOCK_MONOTONIC`.
    pub(crate) fn change(&mut self, changes: &[(PortIndex, PortChange)]) -> Result<f64> {
        let now = self.edge.now();
        let began = self.meter.snapshot.as_ref().map_or(0, |snapshot| snapshot.time_nanoseconds);
        for (port, change) in changes {
            self.fabric.change(now, *port, *change, &mut self.edge).map_err(|error| OsError {
                operation: "change a port".into(),
                source: std::io::Error::other(error.to_string()),
            })?;
            self.meter.changes.push(Changed {
                time_seconds: now.as_nanoseconds().saturating_sub(began) as f64 * 1e-9,
                port: self.fabric.port_name(*port).to_string(),
            });
        }
        Ok(clock::monotonic_nanoseconds() as f64 * 1e-9)
    }

    pub(crate) fn end(&mut self) -> Measured {
        let used = sched::thread_use();
        let thread = ThreadMeasurement {
            cpu_seconds: used.cpu_seconds - self.meter.thread.cpu_seconds,
            involuntary_switches: used.involuntary_switches - self.meter.thread.involuntary_switches,
            waited_seconds: (waited() - self.meter.waited_nanoseconds) as f64 * 1e-9,
            wakeups: self.wakeups - self.meter.wakeups,
            scheduling: self.scheduling,
            cpu: self.cpu,
        };
        let peaks = self.meter.peaks.take(&mut self.fabric, Since::Begin);
        let mut later = self.snapshot();
        for (port, peak) in later.ports.iter_mut().zip(peaks) {
            port.peak_queue_bytes = peak;
        }
        let earlier = self.meter.snapshot.take().unwrap_or_else(|| later.clone());
        let names = self.port_names();
        let series = self.meter.series.take();
        let drops = Drops::collect(&self.fabric.take_drops(), &names, earlier.time_nanoseconds);
        let waits = self.edge.waits.measurement(&names);
        let late = &self.edge.lateness;
        let measurement =
            FabricMeasurement::between(&earlier, &later, names, &self.names, late, waits, thread);
        let mut record = self.edge.record.take();
        if let Some(record) = &mut record {
            record.until = self.fabric.counters().time;
        }
        let changes = std::mem::take(&mut self.meter.changes);
        let watching = self.edge.watching.take();
        for port in watching.iter().flat_map(Watching::ports) {
            self.fabric.watch(*port, false);
        }
        Measured { measurement, drops, series, record, watching, changes }
    }
}

/// Nanoseconds that the calling thread has waited for a CPU.
fn waited() -> u64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| parse_schedstat(&text).ok())
        .map_or(0, |stat| stat.wait_nanoseconds)
}
