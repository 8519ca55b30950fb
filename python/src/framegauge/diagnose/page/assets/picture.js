"use strict";
// One connection's picture on the page: its buttons, its view, and what pointer, wheel and keys do to it.
const make = (tag, attributes, ...inside) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
};

class Picture {
  static KEYS = [
    ["segments", "Segments", "segment", "M14 1v12M10 1h8M10 13h8"], ["resends", "Sent again", "resend", "M14 1v12"],
    ["acks", "Acknowledged", "ack", "M2 11h8V7h8V3h8"], ["sacks", "SACK", "sack", "M14 2v10M18 4v8"],
    ["window", "Window", "window", "M2 10h5m3 0h4V5h5m3 0h4"], ["bands", "Findings", "g-loss", "M2 2h24M2 3h24M2 4h24"],
  ];

  static sample(role, path) {
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg"), line = document.createElementNS(space, "path");
    for (const [name, value] of Object.entries({ width: 28, height: 14, "aria-hidden": "true" })) svg.setAttribute(name, value);
    for (const [name, value] of Object.entries({ d: path, stroke: `var(--${role})`, "stroke-width": 2, fill: "none" })) line.setAttribute(name, value);
    svg.append(line);
    return svg;
  }

  constructor(place, packed, models) {
    this.packed = packed;
    this.models = models;
    const end = Math.max(packed.end, packed.begin + 1e-6);
    const margin = (end - packed.begin) * 0.01;
    this.limits = [packed.begin - margin, end + margin];
    this.view = {
      from: this.limits[0], to: this.limits[1], end: packed.end, bands: packed.bands,
      shown: Object.fromEntries(Picture.KEYS.map(([name]) => [name, true])),
    };
    this.stretches = packed.bands.flatMap((band) => band.spans).sort((one, other) => one[0] - other[0]);
    this.side = this.weight(1) > this.weight(0) ? 1 : 0;
    this.at = -1; // the stretch that was gone to
    this.asked = false;
    this.selection = this.spot = this.drag = null;
    this.fingers = new Map();
    this.build(place);
    this.listen();
    new ResizeObserver(() => this.redraw()).observe(this.stage);
    this.paint();
  }

  weight(side) {
    return this.models[side].segments.bytes.reduce((sum, each) => sum + each, 0);
  }

  build(place) {
    this.canvas = make("canvas", {
      tabindex: "0", role: "application", "aria-roledescription": "picture",
      "aria-label": `Sequence numbers over time, connection ${place.dataset.connection}; the findings are in the table above`,
    });
    this.pen = this.canvas.getContext("2d");
    this.tip = make("div", { class: "tip", hidden: "" });
    this.told = make("p", { class: "told" });
    this.stage = make("div", { class: "stage" }, this.canvas, this.tip);
    const keys = make("div", { class: "tools", role: "group", "aria-label": "What is shown" });
    for (const [name, words, role, path] of Picture.KEYS) {
      const button = make("button", { type: "button", class: "key", "aria-pressed": "true" }, Picture.sample(role, path), words);
      button.addEventListener("click", () => {
        this.view.shown[name] = !this.view.shown[name];
        button.setAttribute("aria-pressed", String(this.view.shown[name]));
        this.redraw();
      });
      keys.append(button);
    }
    place.append(keys, this.tools(), this.stage, this.told);
    place.hidden = false;
  }

  tools() {
    const tools = make("div", { class: "tools", role: "group", "aria-label": "Time that is shown" });
    const acts = [
      ["Zoom in", () => this.scale(0.5)], ["Zoom out", () => this.scale(2)], ["Earlier", () => this.move(-0.5)],
      ["Later", () => this.move(0.5)], ["Show all", () => this.all()],
    ];
    if (this.stretches.length > 0) acts.push(["Next finding", () => this.go(1)]);
    for (const [words, act] of acts) {
      const button = make("button", { type: "button" }, words);
      button.addEventListener("click", act);
      tools.append(button);
    }
    this.sides = [0, 1].filter((each) => this.weight(each) > 0).map((each) => {
      const pressed = String(each === this.side);
      const button = make("button", { type: "button", class: "side", "data-side": each, "aria-pressed": pressed }, `Sent by the ${["client", "server"][each]}`);
      button.addEventListener("click", () => this.turn(each));
      return button;
    });
    if (this.sides.length > 1) tools.append(...this.sides);
    return tools;
  }

  colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  redraw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => this.paint());
  }

  paint() {
    this.asked = false;
    const { canvas, pen, view, packed } = this;
    const width = this.stage.clientWidth, model = this.models[this.side];
    if (width === 0) return;
    const height = width < 640 ? 480 : 620, ratio = devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== wide || canvas.height !== high) {
      Object.assign(canvas, { width: wide, height: high });
      canvas.style.height = `${height}px`;
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const { place, drawn } = Plot.draw(pen, width, height, model, view, this.colour);
    this.place = place;
    Object.assign(canvas.dataset, { drawn, marks: model.count, from: view.from, to: view.to, side: this.side });
    this.told.textContent = `${Plot.seconds(view.to - view.from)} shown, from ${Math.max(view.from, packed.begin).toFixed(6)} s; sent by ${packed.ends[this.side]}`
      + (model.left_out ? `; ${model.left_out} marks found no room` : "");
    if (this.selection !== null) this.shade();
    else if (this.spot !== null) this.point();
  }

  // The time that is being chosen.
  shade() {
    const { pen, place } = this;
    const [left, right] = this.selection.map((x) => Math.min(Math.max(x, place.left), place.right)).sort((one, other) => one - other);
    pen.fillStyle = this.colour("segment");
    pen.globalAlpha = 0.2;
    pen.fillRect(left, place.panels[0].top, right - left, place.panels[2].bottom - place.panels[0].top);
    pen.globalAlpha = 1;
  }

  // What lies under the pointer.
  point() {
    const { pen, place, tip, stage } = this;
    const found = Hover.find(this.models[this.side], this.view, place, this.spot);
    tip.hidden = found === null;
    if (found === null) return;
    pen.fillStyle = this.colour("soft");
    pen.fillRect(Math.round(found.x), place.panels[0].top, 1, place.panels[2].bottom - place.panels[0].top);
    pen.strokeStyle = this.colour("text");
    pen.lineWidth = 1.5;
    pen.strokeRect(found.x - 4, found.y - 4, 8, 8);
    tip.textContent = found.text;
    const room = stage.clientWidth - tip.offsetWidth - 4;
    const beside = found.x + 14 + tip.offsetWidth < stage.clientWidth ? found.x + 14 : found.x - 14 - tip.offsetWidth;
    tip.style.transform = `translate(${Math.max(4, Math.min(beside, room))}px, ${Math.max(4, found.y - tip.offsetHeight - 10)}px)`;
  }

  // The span is kept within what there is, and no shorter than the clocks of captures can tell.
  show(from, to) {
    const [first, last] = this.limits;
    const span = Math.min(last - first, Math.max(to - from, 2e-7));
    this.view.from = Math.min(Math.max(from, first), last - span);
    this.view.to = this.view.from + span;
    this.redraw();
  }

  all() {
    this.show(...this.limits);
  }

  scale(by, around = (this.view.from + this.view.to) / 2) {
    this.show(around - (around - this.view.from) * by, around + (this.view.to - around) * by);
  }

  move(by) {
    const span = (this.view.to - this.view.from) * by;
    this.show(this.view.from + span, this.view.to + span);
  }

  around(begin, end) {
    const room = Math.max((end - begin) * 0.25, this.packed.rtt * 3, 5e-4);
    this.show(begin - room, end + room);
  }

  // To the next stretch of a finding, or the one before.
  go(by) {
    const count = this.stretches.length;
    if (count === 0) return;
    this.at = this.at < 0 && by < 0 ? count - 1 : (this.at + by + count) % count;
    this.around(...this.stretches[this.at]);
  }

  turn(side) {
    this.side = side;
    for (const button of this.sides) button.setAttribute("aria-pressed", String(Number(button.dataset.side) === side));
    this.redraw();
  }

  // To what one finding is about: the direction that has most of its packets, and its time.
  reveal(link) {
    const packets = new Set(link.dataset.packets.split(" ").map(Number));
    const hits = this.models.map((model) => model.segments.number.reduce((sum, each) => sum + packets.has(each), 0));
    if (hits[1 - this.side] > hits[this.side]) this.turn(1 - this.side);
    this.around(Number(link.dataset.begin), Number(link.dataset.end));
    this.canvas.focus({ preventScroll: true });
  }

  where(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  listen() {
    const on = (name, act, options) => this.canvas.addEventListener(name, act, options);
    on("pointerdown", (event) => this.press(event));
    on("pointermove", (event) => this.pull(event));
    on("pointerup", (event) => this.release(event));
    on("pointercancel", (event) => this.release(event));
    on("pointerleave", () => {
      this.spot = null;
      this.tip.hidden = true;
      this.redraw();
    });
    on("dblclick", () => this.all());
    // A wheel over a picture that was not chosen scrolls the page.
    on("wheel", (event) => {
      if (document.activeElement !== this.canvas && !event.ctrlKey) return;
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.move(event.deltaX / this.place.plot);
      else this.scale(1.0015 ** Math.max(-400, Math.min(400, event.deltaY)), this.place.time(this.where(event).x));
    }, { passive: false });
    const all = () => this.all(), nearer = () => this.scale(0.5);
    const acts = {
      "+": nearer, "=": nearer, "-": () => this.scale(2), ArrowLeft: () => this.move(-0.2), ArrowRight: () => this.move(0.2),
      0: all, Home: all, Escape: all, n: () => this.go(1), p: () => this.go(-1),
    };
    on("keydown", (event) => {
      const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
      if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(acts, key)) return;
      event.preventDefault();
      acts[key]();
    });
  }

  press(event) {
    if (event.button !== 0) return;
    const here = this.where(event);
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.fingers.set(event.pointerId, here);
    this.drag = { begin: here.x, from: this.view.from, to: this.view.to, moves: event.shiftKey || event.pointerType === "touch" };
  }

  pull(event) {
    const here = this.where(event), { drag, fingers } = this;
    const before = fingers.get(event.pointerId);
    this.spot = event.pointerType === "touch" ? null : here;
    if (before !== undefined && fingers.size === 2) {
      const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, each]) => each);
      const [old, now] = [Math.abs(before.x - other.x), Math.abs(here.x - other.x)];
      if (old > 8 && now > 8) this.scale(old / now, this.place.time((here.x + other.x) / 2));
      this.drag = null;
    } else if (drag !== null && drag.moves) {
      const by = ((drag.begin - here.x) / this.place.plot) * (drag.to - drag.from);
      this.show(drag.from + by, drag.to + by);
    } else if (drag !== null) this.selection = [drag.begin, here.x];
    if (before !== undefined) fingers.set(event.pointerId, here);
    if (this.selection !== null) this.tip.hidden = true;
    this.redraw();
  }

  release(event) {
    const chosen = this.selection;
    this.fingers.delete(event.pointerId);
    this.selection = this.drag = null;
    if (chosen !== null && event.type === "pointerup" && Math.abs(chosen[1] - chosen[0]) > 5) {
      this.show(...chosen.map(this.place.time).sort((one, other) => one - other));
    }
    this.redraw();
  }
}
