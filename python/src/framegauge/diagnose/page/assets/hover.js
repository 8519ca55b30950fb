"use strict";
// What lies under the pointer, in words.
const Hover = (() => {
  const REACH = 14; // pixels

  const whole = (value) => Math.round(value).toLocaleString("en-GB").replaceAll(",", "\u202f");
  const at = (time) => `${time.toFixed(6)} s`;

  const segment = (model, index) => {
    const { time, begin, bytes, number, flags, count } = model.segments;
    const said = Plot.FLAGS.filter(([flag]) => flags[index] & flag).map(([, word]) => word);
    const what = count[index] > 1 ? `${whole(count[index])} segments from packet ${number[index]}` : `packet ${number[index]}`;
    return `${what}${said.length ? `, ${said.join(", ")}` : ""}\n${at(time[index])}\nsequence ${whole(begin[index])}, length ${whole(bytes[index])}`;
  };

  const ack = (model, index) => {
    const { time, ack, window, number, count } = model.acks;
    const what = count[index] > 1 ? `${whole(count[index])} ACKs up to packet ${number[index]}` : `packet ${number[index]}, ACK`;
    const room = window[index] < 0 ? "window of unknown scale" : `window ${whole(window[index])}`;
    return `${what}\n${at(time[index])}\nacknowledges ${whole(ack[index])}, ${room}`;
  };

  const sack = (model, index) => {
    const { time, begin, bytes, number, duplicate } = model.sacks;
    const what = duplicate[index] ? "D-SACK: arrived twice" : "SACK";
    return `packet ${number[index]}, ${what}\n${at(time[index])}\nsequence ${whole(begin[index])}, length ${whole(bytes[index])}`;
  };

  // The nearest mark of a series that is no farther than `REACH`.
  const near = (series, spot, place, panel, keep, best, say) => {
    const from = Plot.first(series.time, place.time(spot.x - REACH)), to = Plot.first(series.time, place.time(spot.x + REACH));
    // A column of pixels may stand for very many.
    const stride = Math.max(1, Math.floor((to - from) / 20000));
    for (let index = from; index < to; index += stride) {
      if (!keep(index)) continue;
      const [top, bottom] = [panel.y(series.end[index]), panel.y(series.begin[index])];
      const x = place.x(series.time[index]);
      const away = Math.hypot(x - spot.x, Math.max(top - spot.y, 0, spot.y - bottom));
      if (away < best.away) Object.assign(best, { away, x, y: Math.min(Math.max(spot.y, top), bottom), text: say(index) });
    }
  };

  const holding = (series, time) => Plot.first(series.time, time) - 1;

  // What there is to say of a spot, and where the mark is that it is said of; null for none.
  const find = (model, view, place, spot) => {
    if (spot.x < place.left || spot.x > place.right) return null;
    const [sequence, flight, rtt] = place.panels;
    const best = { away: REACH, text: "", x: spot.x, y: spot.y };
    const time = place.time(spot.x);
    const { segments, acks, sacks } = model;
    if (spot.y <= sequence.bottom + 8) {
      const resent = (index) => (segments.flags[index] & Plot.RESENT) !== 0;
      near(segments, spot, place, sequence, (index) => view.shown[resent(index) ? "resends" : "segments"], best, (index) => segment(model, index));
      if (view.shown.sacks) near(sacks, spot, place, sequence, () => true, best, (index) => sack(model, index));
      if (view.shown.acks) near({ time: acks.time, begin: acks.ack, end: acks.ack }, spot, place, sequence, () => true, best, (index) => ack(model, index));
    } else if (spot.y <= flight.bottom + 8) {
      const index = holding(model.flight, time);
      if (index >= 0) best.text = `${whole(model.flight.value[index])} bytes in flight\n${at(time)}`;
    } else {
      near({ time: model.rtt.time, begin: model.rtt.value, end: model.rtt.value }, spot, place, rtt, () => true, best, (index) => `RTT ${Plot.seconds(model.rtt.value[index])}\n${at(model.rtt.time[index])}`);
    }
    const bands = view.shown.bands ? view.bands.filter((band) => band.spans.some(([begin, end]) => {
      const reach = place.time(3) - place.time(0);
      return begin - reach <= time && time <= end + reach;
    })) : [];
    const text = [best.text, ...bands.map((band) => band.kind)].filter(Boolean).join("\n");
    return text === "" ? null : { x: best.x, y: best.y, text };
  };

  return { find };
})();
