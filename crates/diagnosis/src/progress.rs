//! How a direction got on: what had been acknowledged by when, and what was lost in a row.

/// How much had been acknowledged is kept for so many times ...
const MOST_MARKS: usize = 64;
/// ... at first so far apart, in nanoseconds.
const FIRST_STEP: i64 = 10_000_000;

/// How much had been acknowledged by when. The marks lie farther apart the longer it takes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    marks: Vec<(i64, u64)>,
    step: i64,
}

impl Progress {
    /// Takes how much has been acknowledged by now: any place of the stream, counted from anywhere.
    #[inline]
    pub(crate) fn take(&mut self, now: i64, place: u64) {
        if self.marks.last().is_none_or(|(at, _)| now - at >= self.step) {
            self.mark(now, place);
        }
    }

    /// Takes how much has been acknowledged in the end.
    pub(crate) fn end(&mut self, now: i64, place: u64) {
        self.marks.push((now, place));
    }

    #[cold]
    fn mark(&mut self, now: i64, place: u64) {
        self.step = self.step.max(FIRST_STEP);
        self.marks.push((now, place));
        if self.marks.len() == MOST_MARKS {
            self.step *= 2;
            let mut is_kept = false;
            self.marks.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
    }

    /// Bytes that were acknowledged from one time to another, between the marks in proportion.
    pub(crate) fn between(&self, begin: i64, end: i64) -> f64 {
        (self.at(end) - self.at(begin)).max(0.0)
    }

    fn at(&self, time: i64) -> f64 {
        let (Some(first), Some(last)) = (self.marks.first(), self.marks.last()) else { return 0.0 };
        let origin = first.1;
        let bytes = |place: u64| place.saturating_sub(origin) as f64;
        let next = self.marks.partition_point(|(at, _)| *at <= time);
        match next {
            0 => 0.0,
            _ if next == self.marks.len() => bytes(last.1),
            _ => {
                let ((one, from), (other, to)) = (self.marks[next - 1], self.marks[next]);
                let part = (time - one) as f64 / (other - one).max(1) as f64;
                bytes(from) + part * (bytes(to) - bytes(from))
            }
        }
    }
}

/// Data that was sent again, piece after piece: what was lost in a row.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Run {
    end: u64,
    bytes: u64,
    longest_bytes: u64,
}

impl Run {
    pub(crate) fn take(&mut self, begin: u64, end: u64) {
        let follows = begin == self.end;
        self.bytes = if follows { self.bytes } else { 0 } + (end - begin);
        self.end = end;
        self.longest_bytes = self.longest_bytes.max(self.bytes);
    }

    /// The place after the newest.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The most bytes in a row.
    pub(crate) fn longest_bytes(&self) -> u64 {
        self.longest_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_known_between_its_marks_however_long_it_takes() {
        let mut progress = Progress::default();
        for step in 0..10_000 {
            progress.take(step * 1_000_000, (1 << 32) + step as u64 * 1000);
        }
        assert!(progress.marks.len() < MOST_MARKS);
        let bytes = progress.between(2_000_000_000, 5_000_000_000);
        assert!((bytes - 3_000_000.0).abs() < 3_000.0, "{bytes}");
        assert_eq!(progress.between(-5, 0), 0.0);
    }

    #[test]
    fn a_run_goes_on_while_resends_follow_each_other() {
        let mut run = Run::default();
        for (begin, end) in [(100, 200), (200, 300), (400, 500), (500, 550)] {
            run.take(begin, end);
        }
        assert_eq!(run.longest_bytes, 200);
    }
}
