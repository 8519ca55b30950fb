//! Measured intervals and changes of ports, on the fabric's thread.

use crate::fabric::edge::Edge;
use crate::fabric::orders::{Changed, Measured, Meters};
use crate::fabric::ports::{Drops, FabricMeasurement, PortLook, Snapshot, ThreadMeasurement};
use crate::fabric::record::Record;
use crate::fabric::series::{Peaks, Series, Since};
use crate::fabric::watching::Watching;
use framegauge_fabric::{Fabric, PortChange, PortIndex};
use framegauge_frames::Picoseconds;
use framegauge_linux::{OsError, Result, clock, sched};
use framegauge_metering::parse_schedstat;

/// Counts what the thread does, and keeps what is needed from the begin of an interval to its end.
#[derive(Default)]
pub(super) struct Meter {
    /// The owner of each end.
    names: Vec<String>,
    scheduling: &'static str,
    cpu: Option<usize>,
    /// How often the thread has gone round since it began.
    pub(super) wakeups: u64,
    snapshot: Option<Snapshot>,
    thread: sched::ThreadUse,
    waited_nanoseconds: u64,
    wakeups_before: u64,
    peaks: Peaks,
    pub(super) series: Option<Series>,
    changes: Vec<Changed>,
}

impl Meter {
    /// A meter of the calling thread, which is scheduled in that way and perhaps bound to a CPU.
    pub(super) fn new(names: Vec<String>, scheduling: &'static str, cpu: Option<usize>) -> Self {
        Self { names, scheduling, cpu, ..Self::default() }
    }

    fn snapshot(fabric: &Fabric, edge: &Edge) -> Snapshot {
        let counters = fabric.counters();
        let mut hosts = edge.counts.clone();
        for (host, interrupts) in hosts.iter_mut().zip(counters.interrupts) {
            host.interrupts = interrupts;
        }
        Snapshot {
            time_nanoseconds: edge.now().as_nanoseconds(),
            ports: counters.ports,
            hosts,
            background: counters.background,
        }
    }

    pub(super) fn sample(&mut self, now: Picoseconds, fabric: &mut Fabric) {
        let now = now.as_nanoseconds();
        if let Some(series) = self.series.as_mut().filter(|series| series.next() <= now) {
            let peaks = self.peaks.take(fabric, Since::Sample);
            series.take(now, fabric.counters().ports, &peaks);
        }
    }

    pub(super) fn look(&mut self, fabric: &mut Fabric, edge: &Edge) -> PortLook {
        let peaks = self.peaks.take(fabric, Since::Look);
        let mut ports = fabric.counters().ports;
        for (port, peak) in ports.iter_mut().zip(peaks) {
            port.peak_queue_bytes = peak;
        }
        PortLook {
            time_nanoseconds: edge.now().as_nanoseconds(),
            ports: port_names(fabric).into_iter().zip(ports).collect(),
        }
    }

    /// Begins an interval; fails if there is no memory for a capture.
    pub(super) fn begin(&mut self, meters: Meters, fabric: &mut Fabric, edge: &mut Edge) -> Result<()> {
        let now = edge.now().as_nanoseconds();
        self.peaks.take(fabric, Since::Begin);
        edge.record = meters.record.then(Record::default);
        self.series = None;
        if let Some(interval) = meters.sample_nanoseconds {
            self.peaks.take(fabric, Since::Sample);
            self.series = Some(Series::begin(interval, now, fabric.counters().ports));
        }
        Self::watch(meters, now, fabric, edge)?;
        fabric.take_drops();
        edge.lateness.reset();
        edge.waits.reset();
        for counts in &mut edge.counts {
            (counts.largest_packet_bytes, counts.largest_frame_bytes) = (0, 0);
        }
        self.changes.clear();
        self.snapshot = Some(Self::snapshot(fabric, edge));
        self.thread = sched::thread_use();
        self.waited_nanoseconds = waited();
        self.wakeups_before = self.wakeups;
        Ok(())
    }

    /// Watches these ports and no others.
    fn watch(meters: Meters, now: u64, fabric: &mut Fabric, edge: &mut Edge) -> Result<()> {
        let Meters { watch: ports, capture, around_nanoseconds, .. } = meters;
        for port in edge.watching.take().iter().flat_map(Watching::ports) {
            fabric.watch(*port, false);
        }
        if ports.is_empty() {
            return Ok(());
        }
        for port in &ports {
            fabric.watch(*port, true);
        }
        let names = port_names(fabric);
        let since_1970 = clock::real_nanoseconds().saturating_sub(now);
        edge.watching = Some(Watching::begin(ports, &names, now, since_1970, capture, around_nanoseconds)?);
        edge.port_names = names;
        Ok(())
    }

    /// Changes ports in that order, up to one that cannot be so; when, on `CLOCK_MONOTONIC`.
    pub(super) fn change(
        &mut self,
        changes: &[(PortIndex, PortChange)],
        fabric: &mut Fabric,
        edge: &mut Edge,
    ) -> Result<f64> {
        let now = edge.now();
        let began = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.time_nanoseconds);
        for (port, change) in changes {
            fabric.change(now, *port, *change, edge).map_err(|error| OsError {
                operation: "change a port".into(),
                source: std::io::Error::other(error.to_string()),
            })?;
            self.changes.push(Changed {
                time_seconds: now.as_nanoseconds().saturating_sub(began) as f64 * 1e-9,
                port: fabric.port_name(*port).to_string(),
            });
        }
        Ok(clock::monotonic_nanoseconds() as f64 * 1e-9)
    }

    pub(super) fn end(&mut self, fabric: &mut Fabric, edge: &mut Edge) -> Measured {
        let used = sched::thread_use();
        let thread = ThreadMeasurement {
            cpu_seconds: used.cpu_seconds - self.thread.cpu_seconds,
            involuntary_switches: used.involuntary_switches - self.thread.involuntary_switches,
            waited_seconds: (waited() - self.waited_nanoseconds) as f64 * 1e-9,
            wakeups: self.wakeups - self.wakeups_before,
            scheduling: self.scheduling,
            cpu: self.cpu,
        };
        let peaks = self.peaks.take(fabric, Since::Begin);
        let mut later = Self::snapshot(fabric, edge);
        for (port, peak) in later.ports.iter_mut().zip(peaks) {
            port.peak_queue_bytes = peak;
        }
        let earlier = self.snapshot.take().unwrap_or_else(|| later.clone());
        let names = port_names(fabric);
        let series = self.series.take();
        let drops = Drops::collect(&fabric.take_drops(), &names, earlier.time_nanoseconds);
        let waits = edge.waits.measurement(&names);
        let late = &edge.lateness;
        let measurement =
            FabricMeasurement::between(&earlier, &later, names, &self.names, late, waits, thread);
        let mut record = edge.record.take();
        if let Some(record) = &mut record {
            record.until = fabric.counters().time;
        }
        let changes = std::mem::take(&mut self.changes);
        let watching = edge.watching.take();
        for port in watching.iter().flat_map(Watching::ports) {
            fabric.watch(*port, false);
        }
        Measured { measurement, drops, series, record, watching, changes }
    }
}

fn port_names(fabric: &Fabric) -> Vec<String> {
    (0..fabric.ports()).map(|port| fabric.port_name(PortIndex(port as u16)).to_string()).collect()
}

/// Nanoseconds that the calling thread has waited for a CPU.
fn waited() -> u64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| parse_schedstat(&text).ok())
        .map_or(0, |stat| stat.wait_nanoseconds)
}
