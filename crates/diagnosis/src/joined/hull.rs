//! The lines that lie below some points and above others: what offset and drift a clock may have.
//!
//! A packet that clock A saw before clock B says that B is ahead of A by at most the difference of its stamps, one that came
//! the other way, by at least that. So every offset and drift that is possible is a line between the two sets (S. Moon et
//! al., INFOCOM 1999), of which only the corners of the sets' convex hulls count (L. Zhang et al., INFOCOM 2002).

/// No clock of a computer runs faster or slower by more than this: what NTP may slew (500 ppm).
pub(super) const DRIFT_MOST: f64 = 5e-4;
/// Of two drifts that leave nearly as much room, the smaller one is likelier.
const ROOM_SHARE: f64 = 0.02;
const ROOM_NANOSECONDS: f64 = 1000.0;
/// Stamps are whole nanoseconds.
pub(super) const ROUNDING: f64 = 1.0;
const STEPS: u32 = 60;

/// The lower convex hull of points that come in the order of their first coordinate (A. Andrew's monotone chain).
#[derive(Debug, Clone, Default)]
struct Hull {
    corners: Vec<(f64, f64)>,
}

impl Hull {
    fn push(&mut self, x: f64, y: f64) {
        if self.corners.last().is_some_and(|last| last.0 == x && last.1 <= y) {
            return;
        }
        while let [.., one, two] = self.corners[..] {
            // Whether `two` is on or above the line from `one` to the new point.
            if (two.1 - one.1) * (x - one.0) < (y - one.1) * (two.0 - one.0) {
                break;
            }
            self.corners.pop();
        }
        if let [only] = self.corners[..]
            && only.0 == x
        {
            self.corners.pop();
        }
        self.corners.push((x, y));
    }

    /// The height at 0 of the highest line with this slope that is above no point.
    fn height(&self, slope: f64) -> f64 {
        let (mut place, mut after) = (0, self.corners.len() - 1);
        while place < after {
            let middle = (place + after) / 2;
            let (one, two) = (self.corners[middle], self.corners[middle + 1]);
            if two.1 - one.1 < slope * (two.0 - one.0) {
                place = middle + 1;
            } else {
                after = middle;
            }
        }
        let (x, y) = self.corners[place];
        y - slope * x
    }
}

/// A line: the offset at 0 in nanoseconds, and the drift.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    pub(super) offset: f64,
    pub(super) drift: f64,
}

impl Line {
    pub(super) fn at(&self, x: f64) -> f64 {
        self.offset + self.drift * x
    }
}

/// The points on both sides of the line that is sought.
#[derive(Debug, Clone, Default)]
pub(super) struct Bounds {
    above: Hull,
    /// Upside down.
    below: Hull,
}

impl Bounds {
    /// Adds a point, not before those that are there.
    pub(super) fn push(&mut self, x: f64, y: f64, above: bool) {
        if above {
            self.above.push(x, y);
        } else {
            self.below.push(x, -y);
        }
    }

    pub(super) fn is_two_sided(&self) -> bool {
        !self.above.corners.is_empty() && !self.below.corners.is_empty()
    }

    /// How far apart the two sets are, measured along lines with this slope; below 0 if no such line is between them.
    pub(super) fn room(&self, slope: f64) -> f64 {
        self.above.height(slope) + self.below.height(-slope)
    }

    /// The slope that leaves most room, and that room.
    fn widest(&self) -> (f64, f64) {
        let slope = most(|slope| self.room(slope), -DRIFT_MOST, DRIFT_MOST);
        (slope, self.room(slope))
    }

    /// The most room that a line has.
    pub(super) fn most_room(&self) -> f64 {
        self.widest().1
    }

    /// The line in the middle, where both sets leave most room for it. `None` if no line is between them.
    pub(super) fn middle(&self) -> Option<Line> {
        let (widest, room) = self.widest();
        if room < -ROUNDING {
            return None;
        }
        // From no drift to the widest, the room only grows.
        let least = room - (room.abs() * ROOM_SHARE).min(ROOM_NANOSECONDS) - ROUNDING;
        let enough = |share: f64| self.room(widest * share) >= least;
        let drift = widest * edge(enough, 1.0, 0.0);
        let offset = (self.above.height(drift) - self.below.height(-drift)) / 2.0;
        Some(Line { offset, drift })
    }

    /// How far from this line any line between the sets is at most, at `x`.
    pub(super) fn farthest(&self, line: Line, x: f64) -> f64 {
        let widest = self.widest().0;
        let fits = |slope: f64| self.room(slope) >= -ROUNDING;
        let (low, high) = (edge(fits, widest, -DRIFT_MOST), edge(fits, widest, DRIFT_MOST));
        let highest = |slope: f64| self.above.height(slope) + slope * x;
        let lowest = |slope: f64| self.below.height(-slope) - slope * x;
        let up = highest(most(highest, low, high)) - line.at(x);
        let down = line.at(x) + lowest(most(lowest, low, high));
        up.max(down).max(0.0)
    }
}

/// Where a concave function is greatest between two places.
fn most(of: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    for _ in 0..STEPS {
        let (one, two) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if of(one) < of(two) {
            low = one;
        } else {
            high = two;
        }
    }
    (low + high) / 2.0
}

/// The place nearest to `to` up to which all is well, from `from` on.
fn edge(well: impl Fn(f64) -> bool, from: f64, to: f64) -> f64 {
    if well(to) {
        return to;
    }
    let (mut good, mut bad) = (from, to);
    for _ in 0..STEPS {
        let middle = (good + bad) / 2.0;
        if well(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    good
}
