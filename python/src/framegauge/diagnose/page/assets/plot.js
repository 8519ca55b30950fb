"use strict";
// Draws a connection: sequence numbers over time, and below, on the same axis, the bytes under way and the RTT. Only
// what is visible is drawn, and where many marks share a column of pixels, the column is drawn once: the number of
// drawn marks is bounded by the width, however many there are.
const Plot = (() => {
  const RESENT = 1, LATE = 2, PROBE = 32;
  const FLAGS = [[RESENT, "sent again"], [LATE, "late"], [4, "SYN"], [8, "FIN"], [16, "RST"], [PROBE, "probe"]];
  const LEFT = 58, RIGHT = 8, TOP = 26, BOTTOM = 34, GAP = 24;

  // Columns are differences: each value less the one before.
  const summed = (steps) => {
    const found = new Float64Array(steps.length);
    let value = 0;
    for (let at = 0; at < steps.length; at++) found[at] = value += steps[at];
    return found;
  };

  const unpack = async (packed) => {
    const bytes = Uint8Array.from(atob(packed.marks), (each) => each.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const directions = JSON.parse(await new Response(stream).text());
    return directions.map((direction) => {
      const found = { left_out: direction.left_out, count: 0 };
      for (const kind of ["segments", "acks", "sacks", "flight", "rtt"]) {
        const columns = Object.fromEntries(Object.entries(direction[kind]).map(([name, steps]) => [name, summed(steps)]));
        columns.time = columns.time.map((nanoseconds) => packed.begin + nanoseconds / 1e9);
        found[kind] = columns;
        found.count += columns.time.length;
      }
      found.rtt.value = found.rtt.value.map((nanoseconds) => nanoseconds / 1e9);
      found.segments.end = found.segments.begin.map((begin, at) => begin + found.segments.bytes[at]);
      found.sacks.end = found.sacks.begin.map((begin, at) => begin + found.sacks.bytes[at]);
      found.acks.edge = found.acks.ack.map((ack, at) => (found.acks.window[at] < 0 ? NaN : ack + found.acks.window[at]));
      return found;
    });
  };

  // The first place whose value is not below this one.
  const first = (sorted, value) => {
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] < value) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  const within = (time, view) => [first(time, view.from), first(time, view.to)];

  // Round steps, so far apart that their labels do not touch.
  const step = (span, most) => {
    const least = span / Math.max(1, most);
    const power = 10 ** Math.floor(Math.log10(least));
    return power * [1, 2, 5, 10].find((each) => each * power >= least * 0.999);
  };

  const digits = (value) => Math.max(0, Math.min(9, -Math.floor(Math.log10(value) + 1e-9)));

  const UNITS = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
  const seconds = (value, least = Math.abs(value) / 100) => {
    const [scale, name] = UNITS.find(([scale]) => Math.abs(value) >= scale) ?? UNITS[value === 0 ? 0 : 3];
    return `${(value / scale).toFixed(least > 0 ? digits(least / scale) : 0)} ${name}`;
  };
  const SIZES = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];
  const bytes = (value, most, least) => {
    const [scale, name] = SIZES.find(([scale]) => most >= scale * 2) ?? SIZES[3];
    return `${(value / scale).toFixed(scale === 1 ? 0 : digits(least / scale))} ${name}`;
  };

  const extent = (column, low, high, range, keep = () => true) => {
    for (let at = low; at < high; at++) {
      if (!keep(at) || Number.isNaN(column[at])) continue;
      if (column[at] < range[0]) range[0] = column[at];
      if (column[at] > range[1]) range[1] = column[at];
    }
    return range;
  };

  // The sequence numbers that are shown: those of the visible marks. The window's edge may be far above all data; then
  // it is seen only when it comes near.
  const sequences = (model, view) => {
    const range = [Infinity, -Infinity];
    const [low, high] = within(model.segments.time, view);
    extent(model.segments.begin, low, high, range);
    extent(model.segments.end, low, high, range);
    const acks = within(model.acks.time, view);
    extent(model.acks.ack, Math.max(0, acks[0] - 1), acks[1], range);
    if (range[0] > range[1]) range.splice(0, 2, 0, 1);
    const room = Math.max(range[1] - range[0], 1000);
    if (view.shown.window) {
      const edges = extent(model.acks.edge, Math.max(0, acks[0] - 1), acks[1], [Infinity, -Infinity]);
      if (edges[1] > range[1]) range[1] = Math.min(edges[1], range[1] + room * 0.4);
    }
    const margin = Math.max(range[1] - range[0], 100) * 0.04;
    return [range[0] - margin, range[1] + margin];
  };

  const largest = (series, view) => {
    const [low, high] = within(series.time, view);
    const range = extent(series.value, Math.max(0, low - 1), high, [0, 0]);
    return range[1] > 0 ? range[1] * 1.08 : 1;
  };

  // Three panels below one another. Sizes in CSS pixels.
  const layout = (width, height, model, view) => {
    const room = height - TOP - BOTTOM - 2 * GAP;
    const heights = [0.62, 0.19, 0.19].map((share) => room * share);
    const ranges = [sequences(model, view), [0, largest(model.flight, view)], [0, largest(model.rtt, view)]];
    let top = TOP;
    const panels = heights.map((height, index) => {
      const panel = { top, bottom: top + height, range: ranges[index] };
      panel.y = (value) => panel.bottom - ((value - panel.range[0]) / (panel.range[1] - panel.range[0])) * height;
      top += height + GAP;
      return panel;
    });
    const plot = width - LEFT - RIGHT;
    return {
      width, height, left: LEFT, right: width - RIGHT, plot, panels,
      x: (time) => LEFT + ((time - view.from) / (view.to - view.from)) * plot,
      time: (x) => view.from + ((x - LEFT) / plot) * (view.to - view.from),
    };
  };

  // Vertical lines from one value to another: each for itself, or one for each column of pixels.
  const verticals = (pen, series, view, place, panel, style, keep = () => true) => {
    const [low, high] = within(series.time, view);
    let kept = 0;
    for (let at = low; at < high; at++) if (keep(at)) kept++;
    if (kept === 0) return 0;
    const line = (x, begin, end) => {
      const [top, bottom] = [panel.y(end), panel.y(begin)];
      pen.fillRect(x - style.width / 2, top, style.width, Math.max(bottom - top, style.width));
    };
    pen.fillStyle = style.colour;
    if (kept <= 2 * place.plot) {
      const ticks = kept <= place.plot / 6 ? style.ticks : 0;
      for (let at = low; at < high; at++) {
        if (!keep(at)) continue;
        const x = place.x(series.time[at]);
        line(x, series.begin[at], series.end[at]);
        if (ticks) for (const y of [panel.y(series.begin[at]), panel.y(series.end[at])]) pen.fillRect(x - ticks, y - 0.5, 2 * ticks, 1);
      }
      return kept * (ticks ? 3 : 1);
    }
    const columns = Math.ceil(place.plot) + 1;
    const begins = new Float64Array(columns).fill(Infinity), ends = new Float64Array(columns).fill(-Infinity);
    for (let at = low; at < high; at++) {
      if (!keep(at)) continue;
      const column = Math.round(place.x(series.time[at]) - place.left);
      if (series.begin[at] < begins[column]) begins[column] = series.begin[at];
      if (series.end[at] > ends[column]) ends[column] = series.end[at];
    }
    let drawn = 0;
    for (let column = 0; column < columns; column++) {
      if (ends[column] === -Infinity) continue;
      line(place.left + column, begins[column], ends[column]);
      drawn++;
    }
    return drawn;
  };

  // A line in steps: a value holds until the next one. For many, the least, the largest and the last of each column.
  const steps = (pen, time, values, view, place, panel, style) => {
    const [low, high] = within(time, view);
    const start = Math.max(0, low - 1);
    if (start >= high) return 0;
    pen.strokeStyle = style.colour;
    pen.lineWidth = style.width;
    pen.setLineDash(style.dash ?? []);
    pen.beginPath();
    let drawn = 0, before = NaN;
    const to = (x, value) => {
      if (Number.isNaN(value)) return;
      if (Number.isNaN(before)) pen.moveTo(x, panel.y(value));
      else pen.lineTo(x, panel.y(value));
      before = value;
      drawn++;
    };
    if (high - start <= 2 * place.plot) {
      for (let at = start; at < high; at++) {
        const x = Math.max(place.left, place.x(time[at]));
        if (!Number.isNaN(before)) to(x, before);
        to(x, values[at]);
      }
    } else {
      let column = -1, least = 0, most = 0, last = 0;
      const flush = () => {
        if (column < 0) return;
        const x = place.left + column;
        if (!Number.isNaN(before)) to(x, before);
        to(x, least);
        to(x, most);
        to(x, last);
      };
      for (let at = start; at < high; at++) {
        if (Number.isNaN(values[at])) continue;
        const here = Math.max(0, Math.round(place.x(time[at]) - place.left));
        if (here !== column) {
          flush();
          [column, least, most] = [here, values[at], values[at]];
        }
        if (values[at] < least) least = values[at];
        if (values[at] > most) most = values[at];
        last = values[at];
      }
      flush();
    }
    // It holds until the end of its connection.
    const end = Math.min(place.right, place.x(view.end));
    if (!Number.isNaN(before)) to(end, before);
    pen.stroke();
    pen.setLineDash([]);
    return drawn;
  };

  // Bands of findings over all panels, with their names where there is room.
  const bands = (pen, all, view, place, colour) => {
    let drawn = 0;
    const bottom = place.panels[2].bottom, names = [];
    for (const band of all) {
      pen.fillStyle = colour(`g-${band.group}`);
      let covered = -Infinity;
      for (const [begin, end] of band.spans) {
        if (end < view.from || begin > view.to) continue;
        const left = Math.max(place.left, place.x(begin)), right = Math.min(place.right, place.x(end));
        if (right <= covered) continue;
        const from = Math.max(left, covered), width = Math.max(right - from, 1.5);
        covered = from + width;
        // Over all panels only what cost time.
        pen.globalAlpha = 0.16;
        if (band.costs) pen.fillRect(from, place.panels[0].top, width, bottom - place.panels[0].top);
        pen.globalAlpha = 1;
        pen.fillRect(from, place.panels[0].top - 4, width, 4);
        drawn += 1 + band.costs;
        names.push([pen.measureText(band.kind).width > right - left, left, band]);
      }
    }
    // First those that have room over their own band; none over another.
    for (const [overhangs, left, band] of names.sort(([one], [other]) => one - other)) {
      const right = left + pen.measureText(band.kind).width;
      if (overhangs && right >= place.right) continue;
      if (all.named.some(([from, to]) => left < to + 12 && right > from - 12)) continue;
      pen.fillStyle = colour(`g-${band.group}`);
      pen.fillText(band.kind, left, place.panels[0].top - 7);
      all.named.push([left, right]);
      drawn++;
    }
    return drawn;
  };

  // Grid, numbers and titles.
  const axes = (pen, view, place, colour) => {
    const span = view.to - view.from;
    const gap = step(span, place.plot / 70);
    const fine = digits(gap) > 4;
    const ink = (name, align, baseline) => Object.assign(pen, { fillStyle: colour(name), textAlign: align, textBaseline: baseline });
    const [top, bottom] = [place.panels[0].top, place.panels[2].bottom];
    const origin = fine ? Math.max(0, Math.floor(view.from / gap) * gap) : 0;
    for (let at = Math.ceil(view.from / gap); at * gap <= view.to; at++) {
      const x = place.x(at * gap);
      pen.fillStyle = colour("line");
      pen.fillRect(Math.round(x), top, 1, bottom - top);
      ink("soft", "center", "top");
      const label = fine ? `+${seconds(at * gap - origin, gap)}` : `${(at * gap).toFixed(digits(gap))} s`;
      if (x - pen.measureText(label).width / 2 < place.right - 12) pen.fillText(label, x, bottom + 4);
    }
    ink("soft", "right", "bottom");
    pen.fillText(fine ? `time since ${origin.toFixed(digits(gap))} s` : "time since the capture began", place.right, place.height);
    const titles = ["sequence number", "in flight", "RTT at the tap"];
    place.panels.forEach((panel, index) => {
      const fine = step(panel.range[1] - panel.range[0], (panel.bottom - panel.top) / 34);
      const gap = index === 2 ? fine : Math.max(1, fine); // there are no parts of a byte
      for (let at = Math.ceil(panel.range[0] / gap); at * gap <= panel.range[1]; at++) {
        if (at < 0) continue;
        const y = panel.y(at * gap);
        pen.fillStyle = colour("line");
        pen.fillRect(place.left, Math.round(y), place.plot, 1);
        ink("soft", "right", "middle");
        const label = index === 2 ? seconds(at * gap, gap) : bytes(at * gap, panel.range[1], gap);
        pen.fillText(at === 0 ? "0" : label, place.left - 6, y);
      }
      // Above the first panel are the names of findings.
      ink("text", "left", index === 0 ? "top" : "bottom");
      pen.fillText(titles[index], place.left + 4, index === 0 ? panel.top + 4 : panel.top - 3);
    });
  };

  const draw = (pen, width, height, model, view, colour) => {
    const place = layout(width, height, model, view);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    axes(pen, view, place, colour);
    pen.save();
    pen.textAlign = "left";
    pen.textBaseline = "bottom";
    view.bands.named = [];
    let drawn = view.shown.bands ? bands(pen, view.bands, view, place, colour) : 0;
    const [sequence, flight, rtt] = place.panels;
    const inside = (panel, act) => {
      pen.save();
      pen.beginPath();
      pen.rect(place.left - 4, panel.top, place.plot + 8, panel.bottom - panel.top + 1);
      pen.clip();
      act();
      pen.restore();
    };
    const { segments, acks, sacks } = model;
    const is = (flag) => (at) => (segments.flags[at] & flag) !== 0;
    inside(sequence, () => {
      if (view.shown.window) drawn += steps(pen, acks.time, acks.edge, view, place, sequence, { colour: colour("window"), width: 1.25, dash: [5, 3] });
      if (view.shown.acks) drawn += steps(pen, acks.time, acks.ack, view, place, sequence, { colour: colour("ack"), width: 1.5 });
      if (view.shown.sacks) {
        pen.globalAlpha = 0.6;
        drawn += verticals(pen, sacks, view, place, sequence, { colour: colour("sack"), width: 2, ticks: 0 });
        pen.globalAlpha = 1;
      }
      if (view.shown.segments) {
        drawn += verticals(pen, segments, view, place, sequence, { colour: colour("segment"), width: 1.5, ticks: 4 }, (at) => !(segments.flags[at] & (RESENT | LATE | PROBE)));
        drawn += verticals(pen, segments, view, place, sequence, { colour: colour("late"), width: 2, ticks: 4 }, is(LATE | PROBE));
      }
      if (view.shown.resends) drawn += verticals(pen, segments, view, place, sequence, { colour: colour("resend"), width: 2.5, ticks: 4 }, is(RESENT));
    });
    inside(flight, () => { drawn += steps(pen, model.flight.time, model.flight.value, view, place, flight, { colour: colour("segment"), width: 1.25 }); });
    const dots = { time: model.rtt.time, begin: model.rtt.value, end: model.rtt.value };
    inside(rtt, () => { drawn += verticals(pen, dots, view, place, rtt, { colour: colour("ack"), width: 2.5, ticks: 0 }); });
    pen.restore();
    return { place, drawn };
  };

  return { FLAGS, RESENT, LATE, PROBE, unpack, draw, first, seconds };
})();
