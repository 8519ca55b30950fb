//! How far one clock is ahead of another, over time: straight pieces, each with how wrong it may be.
//!
//! ```text
//!   ahead │  .  : .   .        forward packets: at most so far ahead
//!         │ ───────────╮
//!         │  '  : '  ' │ .  : .
//!         │            ╰───────────   a step: no line has all points of one kind above and all of the other below
//!         │              '  : '       backward packets: at least so far
//!         └─────────────────────────▶ time of the first clock
//! ```

use super::hull::{Bounds, DRIFT_MOST, Line, ROUNDING};

/// Longer than this, no clock is trusted to run straight.
const PIECE_NANOSECONDS: f64 = 60e9;
/// What follows a step within this tells where it was.
const NEAR_NANOSECONDS: f64 = 10e9;
/// A piece is parted where its parts have more room than the whole by so much: a step that a line could still follow.
const ROOM_MORE: f64 = 0.1;
const ROOM_NANOSECONDS: f64 = 1000.0;
/// Parts have at least so many points on each side, ...
const PART_POINTS: usize = 16;
/// ... and are sought at so many places.
const PLACES: usize = 32;
/// Of more sightings than these, a part is kept.
const MOST_POINTS: usize = 40_000;
/// So many packets at the ends of a piece tell how long they were under way there.
const NEAR_POINTS: usize = 64;
const DEPTH: u32 = 6;

/// A packet that both clocks saw, in nanoseconds: when by the first, how far the second was ahead then, and whether it
/// came to the first clock first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sighting {
    /// By the first clock.
    pub at: i64,
    /// The second's stamp minus the first's.
    pub ahead: i64,
    /// From the first clock to the second.
    pub forward: bool,
}

/// A stretch over which the second clock runs straight by the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// Its first packet, by the first clock, in nanoseconds.
    pub begin: i64,
    /// Its last.
    pub end: i64,
    /// How far the second clock is ahead at `begin`, in nanoseconds.
    pub offset: i64,
    /// By how much it gains, without unit.
    pub drift: f64,
    /// The offset is wrong by this at most, in nanoseconds, whatever the delays were.
    pub uncertainty: i64,
    /// The longest delay of a packet near its ends, in nanoseconds.
    under_way: i64,
}

impl Piece {
    fn at(&self, nanoseconds: i64) -> i64 {
        let gained = nanoseconds.saturating_sub(self.begin) as f64 * self.drift;
        self.offset.saturating_add(gained.round() as i64)
    }
}

/// How far a clock is ahead of another.
#[derive(Debug, Clone, PartialEq)]
pub struct Clock {
    /// In the order of time; at least one.
    pub pieces: Vec<Piece>,
    /// What packets of one direction before the first piece and after the last one add to the uncertainty there: a step may
    /// be between, of at most so many nanoseconds.
    outside: [i64; 2],
}

impl Clock {
    /// From packets that both clocks saw. `None` unless some came either way.
    ///
    /// The first and last corner of each side decide (`hull.rs`); asymmetric delays stay within the uncertainty.
    pub fn align(mut sightings: Vec<Sighting>) -> Option<Clock> {
        sightings.sort_unstable();
        let first = sightings.first()?;
        let origin = (first.at, first.ahead);
        let points: Vec<Point> = telling(&sightings)
            .into_iter()
            .map(|sighting| Point {
                x: (sighting.at - origin.0) as f64,
                y: (sighting.ahead - origin.1) as f64,
                above: sighting.forward,
            })
            .collect();
        let mut parts: Vec<(usize, usize)> = Vec::new();
        for (begin, end) in steps(&points) {
            part(&points, begin, end, DEPTH, &mut parts);
        }
        let mut pieces: Vec<Piece> =
            parts.into_iter().filter_map(|(begin, end)| piece(&points[begin..end], origin)).collect();
        keep_apart(&mut pieces);
        let outside = keep_ends(&mut pieces, &sightings);
        (!pieces.is_empty()).then_some(Clock { pieces, outside })
    }

    /// How far the second clock is ahead at a time of the first, and how wrong that may be, in nanoseconds.
    pub fn ahead(&self, at: i64) -> (i64, i64) {
        let after = self.pieces.partition_point(|piece| piece.end < at);
        let Some(next) = self.pieces.get(after) else {
            let (ahead, uncertainty) = beyond(&self.pieces[self.pieces.len() - 1], at);
            return (ahead, uncertainty.saturating_add(self.outside[1]));
        };
        if at >= next.begin || after == 0 {
            let (ahead, uncertainty) = beyond(next, at);
            return (ahead, uncertainty.saturating_add(if at < next.begin { self.outside[0] } else { 0 }));
        }
        // Between two pieces a step may be anywhere.
        let (one, two) = (beyond(&self.pieces[after - 1], at), beyond(next, at));
        let behind = at.saturating_sub(self.pieces[after - 1].end);
        let nearest = if behind <= next.begin.saturating_sub(at) { one } else { two };
        (nearest.0, one.1.max(two.1).saturating_add(apart(one.0, two.0)))
    }
}

/// How far two times are apart.
fn apart(one: i64, two: i64) -> i64 {
    one.saturating_sub(two).saturating_abs()
}

/// Packets are under way for some time, and the second clock was read at the other end of it: a step between two pieces may
/// have been so much earlier or later. A piece that is shorter than that may be wrong by the step itself.
fn keep_apart(pieces: &mut [Piece]) {
    let whole: Vec<Piece> = pieces.to_vec();
    for (place, two) in whole.windows(2).enumerate() {
        let (one, two) = (two[0], two[1]);
        let middle = i64::midpoint(one.end, two.begin);
        let step = apart(one.at(middle), two.at(middle));
        let end = one.end.saturating_sub(one.under_way);
        let begin = two.begin.saturating_add(two.under_way);
        let (center, next_center) = (i64::midpoint(one.begin, one.end), i64::midpoint(two.begin, two.end));
        let last = &mut pieces[place];
        last.end = end.max(center);
        last.uncertainty = last.uncertainty.saturating_add(if end < center { step } else { 0 });
        let next = &mut pieces[place + 1];
        next.begin = begin.min(next_center);
        next.offset = two.at(next.begin);
        next.uncertainty = next.uncertainty.saturating_add(if begin > next_center { step } else { 0 });
    }
}

/// What lies before the first piece and after the last one was seen by one side only: how far from the pieces it is.
fn keep_ends(pieces: &mut [Piece], sightings: &[Sighting]) -> [i64; 2] {
    let farthest = |piece: &Piece, of: &dyn Fn(&Sighting) -> bool| {
        let off = |sighting: &Sighting| {
            apart(sighting.ahead, piece.at(sighting.at)).saturating_add(piece.uncertainty)
        };
        sightings.iter().filter(|sighting| of(sighting)).map(off).max().unwrap_or(0)
    };
    let mut outside = [0; 2];
    if let Some(first) = pieces.first_mut() {
        outside[0] = farthest(first, &|sighting| sighting.at < first.begin);
        if outside[0] > 0 {
            let begin = first.begin.saturating_add(first.under_way).min(first.end);
            (first.offset, first.begin) = (first.at(begin), begin);
        }
    }
    if let Some(last) = pieces.last_mut() {
        outside[1] = farthest(last, &|sighting| sighting.at > last.end);
        if outside[1] > 0 {
            last.end = last.end.saturating_sub(last.under_way).max(last.begin);
        }
    }
    outside
}

/// A piece's offset at a time in it, or before or after it.
fn beyond(piece: &Piece, at: i64) -> (i64, i64) {
    let outside = piece.begin.saturating_sub(at).max(at.saturating_sub(piece.end)).max(0);
    (piece.at(at), piece.uncertainty.saturating_add((outside as f64 * 2.0 * DRIFT_MOST) as i64))
}

/// Of very many sightings, those that leave least room: the others would say nothing new.
fn telling(sightings: &[Sighting]) -> Vec<Sighting> {
    let stride = sightings.len().div_ceil(MOST_POINTS / 2).max(1);
    if stride == 1 {
        return sightings.to_vec();
    }
    let least = |chunk: &[Sighting], forward: bool| {
        let of_side = chunk.iter().filter(|sighting| sighting.forward == forward).copied();
        of_side.min_by_key(|sighting| if forward { sighting.ahead } else { -sighting.ahead })
    };
    let mut selection: Vec<Sighting> = sightings
        .chunks(stride)
        .flat_map(|chunk| [least(chunk, true), least(chunk, false)])
        .flatten()
        .collect();
    selection.sort_unstable();
    selection
}

#[derive(Debug, Clone, Copy)]
struct Point {
    x: f64,
    y: f64,
    above: bool,
}

fn bounds(points: &[Point]) -> Bounds {
    let mut bounds = Bounds::default();
    points.iter().for_each(|point| bounds.push(point.x, point.y, point.above));
    bounds
}

fn is_two_sided(points: &[Point]) -> bool {
    points.iter().any(|point| point.above) && points.iter().any(|point| !point.above)
}

/// The most room that a line has among these points; without a bound if one side has none.
fn room(points: &[Point]) -> f64 {
    let bounds = bounds(points);
    if bounds.is_two_sided() { bounds.most_room() } else { f64::INFINITY }
}

/// The longest stretches from the first point on that a line may have, without those that a step is near to.
fn steps(points: &[Point]) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    let mut begin = 0;
    while begin < points.len() {
        let (end, is_step) = straight(&points[begin..]);
        let end = begin + end;
        ranges.push((begin, end));
        if is_step && end < points.len() {
            let near = points[end..].partition_point(|point| point.x <= points[end].x + NEAR_NANOSECONDS);
            let next = end + straight(&points[end..]).0.min(near.max(PART_POINTS));
            // The step may be earlier than the first point that no line could follow.
            let back: Vec<Point> = points[begin..next].iter().rev().map(mirrored).collect();
            let earliest = (next - straight(&back).0).clamp(begin + 1, end);
            // Both are sure: no line goes on beyond the one, nor back beyond the other.
            let (last, first) =
                match is_two_sided(&points[begin..earliest]) && is_two_sided(&points[end..next]) {
                    true => (earliest, end),
                    false => boundary(points, (begin, next), (earliest, end)),
                };
            if let Some(piece) = ranges.last_mut() {
                piece.1 = last;
            }
            begin = first;
        } else {
            begin = end;
        }
    }
    ranges
}

fn mirrored(point: &Point) -> Point {
    Point { x: -point.x, ..*point }
}

/// How many points from the first on a line may have, and whether a step ended it.
fn straight(points: &[Point]) -> (usize, bool) {
    let mut bounds = Bounds::default();
    let mut line: Option<Line> = None;
    for (place, point) in points.iter().enumerate() {
        if point.x - points[0].x > PIECE_NANOSECONDS && bounds.is_two_sided() {
            return (place, false);
        }
        bounds.push(point.x, point.y, point.above);
        let side = if point.above { 1.0 } else { -1.0 };
        let fits = line.is_some_and(|line| side * (point.y - line.at(point.x)) >= -ROUNDING / 2.0);
        if !fits && bounds.is_two_sided() {
            line = bounds.middle();
            if line.is_none() {
                return (place, true);
            }
        }
    }
    (points.len(), false)
}

/// Where the stretch `[begin, end)` is best parted between two places: the point after the last one that is surely before the
/// step, and the first one that is surely after it.
fn boundary(points: &[Point], (begin, end): (usize, usize), (low, high): (usize, usize)) -> (usize, usize) {
    let stride = (high - low).div_ceil(PLACES).max(1);
    let rooms: Vec<(usize, f64)> = (low..=high)
        .step_by(stride)
        .map(|place| (place, room(&points[begin..place]).min(room(&points[place..end]))))
        .collect();
    let best = rooms.iter().map(|(_, room)| *room).fold(f64::NEG_INFINITY, f64::max);
    let enough = |room: f64| room >= best - best.abs() * ROOM_MORE - ROOM_NANOSECONDS;
    let well = || rooms.iter().filter(|(_, room)| enough(*room)).map(|(place, _)| *place);
    let (Some(first), Some(last)) = (well().min(), well().max()) else { return (high, high) };
    let first = if stride > 1 { first.saturating_sub(stride).max(low) } else { first };
    (first, if stride > 1 { (last + stride).min(high) } else { last })
}

/// Parts a stretch where a step hides that a line could still follow.
fn part(points: &[Point], begin: usize, end: usize, depth: u32, parts: &mut Vec<(usize, usize)>) {
    let whole = room(&points[begin..end]);
    let stride = (end - begin) / PLACES;
    let enough = |points: &[Point]| {
        let above = points.iter().filter(|point| point.above).count();
        above.min(points.len() - above) >= PART_POINTS
    };
    if depth == 0 || stride == 0 || !whole.is_finite() || !enough(&points[begin..end]) {
        parts.push((begin, end));
        return;
    }
    let places = (1..PLACES).map(|number| begin + number * stride);
    let both = |place: usize| {
        let (one, two) = (&points[begin..place], &points[place..end]);
        if enough(one) && enough(two) { room(one).min(room(two)) } else { f64::NEG_INFINITY }
    };
    let best = places.map(|place| (place, both(place))).max_by(|one, two| one.1.total_cmp(&two.1));
    match best {
        Some((place, room)) if room > whole + whole.abs() * ROOM_MORE + ROOM_NANOSECONDS => {
            part(points, begin, place - stride, depth - 1, parts);
            part(points, (place + stride).min(end), end, depth - 1, parts);
        }
        _ => parts.push((begin, end)),
    }
}

fn piece(points: &[Point], origin: (i64, i64)) -> Option<Piece> {
    let bounds = bounds(points);
    if !bounds.is_two_sided() {
        return None;
    }
    let line = bounds.middle()?;
    let (first, last) = (points.first()?.x, points.last()?.x);
    let farthest = bounds.farthest(line, first).max(bounds.farthest(line, last));
    // What a step that is not looked for may add, and a nanosecond for rounding.
    let unseen = bounds.most_room().abs() * ROOM_MORE + ROOM_NANOSECONDS + 1.0;
    let ends = points.iter().take(NEAR_POINTS).chain(points.iter().rev().take(NEAR_POINTS));
    let longest = ends.map(|point| (point.y - line.at(point.x)).abs()).fold(0.0, f64::max);
    Some(Piece {
        under_way: (longest + farthest).ceil() as i64,
        begin: origin.0.saturating_add(first as i64),
        end: origin.0.saturating_add(last as i64),
        offset: origin.1.saturating_add(line.at(first).round() as i64),
        drift: line.drift,
        uncertainty: (farthest + unseen).ceil() as i64,
    })
}
