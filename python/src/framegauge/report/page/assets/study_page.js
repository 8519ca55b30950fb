"use strict";
// The charts over time: for every cell one chart a series, all on one time axis. Colours are read from the page's
// variables whenever a chart is drawn, so that it follows the theme.
(() => {
  const cells = JSON.parse(document.getElementById("courses-data").textContent);
  const dashes = { baseline: [], control: [2, 3], first: [], second: [9, 3], third: [9, 3, 2, 3], fourth: [4, 4] };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const width = (role) => (role === "baseline" || role === "control" ? 1.5 : 2.25);
  const charts = [];
  for (const line of document.querySelectorAll(".needs-script")) line.hidden = false;
  for (const line of document.querySelectorAll(".without-script")) line.hidden = true;

  const make = (tag, attributes, ...inside) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...inside);
    return made;
  };

  const sample = (role) => {
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    const line = document.createElementNS(space, "line");
    for (const [name, value] of Object.entries({ width: 28, height: 8, "aria-hidden": "true" })) svg.setAttribute(name, value);
    const drawn = { x2: 28, y1: 4, y2: 4, stroke: `var(--${role})`, "stroke-width": width(role), "stroke-dasharray": dashes[role].join(" ") };
    for (const [name, value] of Object.entries(drawn)) line.setAttribute(name, value);
    svg.append(line);
    return svg;
  };

  const build = (place) => {
    const cell = cells[Number(place.dataset.cell)];
    const end = cell.seconds.length > 1 ? cell.seconds[cell.seconds.length - 1] : 1;
    const plots = [];
    let range = [0, end];
    const show = (from, to) => {
      const span = Math.min(end, Math.max(to - from, end / 1000));
      const start = Math.min(Math.max(0, from), end - span);
      range = [start, start + span];
      for (const plot of plots) plot.setScale("x", { min: range[0], max: range[1] });
    };
    const scaled = (by) => () => show((range[0] + range[1]) / 2 - ((range[1] - range[0]) / 2) * by, (range[0] + range[1]) / 2 + ((range[1] - range[0]) / 2) * by);
    const moved = (by) => () => show(range[0] + (range[1] - range[0]) * by, range[1] + (range[1] - range[0]) * by);

    const arms = make("div", { class: "arms", role: "group", "aria-label": `Arms shown, ${cell.title}` });
    cell.arms.forEach((arm, index) => {
      const button = make("button", { type: "button", "aria-pressed": "true" }, sample(arm.role), arm.label);
      button.addEventListener("click", () => {
        const shown = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(shown));
        for (const plot of plots) plot.setSeries(index + 1, { show: shown });
      });
      arms.append(button);
    });
    const tools = make("div", { class: "tools", role: "group", "aria-label": `Time shown, ${cell.title}` });
    for (const [label, act] of [["Zoom in", scaled(0.5)], ["Zoom out", scaled(2)], ["Earlier", moved(-0.5)], ["Later", moved(0.5)], ["Show all", () => show(0, end)]]) {
      const button = make("button", { type: "button" }, label);
      button.addEventListener("click", act);
      tools.append(button);
    }
    const panels = make("div", { class: "panels" });
    place.append(arms, tools, panels);
    place.hidden = false;
    for (const chart of cell.charts) plots.push(plotted(cell, chart, panels, show, end, place.dataset.cell));
    charts.push(...plots);
    fit(); // the first was drawn before the others took their share of the row
  };

  const plotted = (cell, chart, panels, show, end, key) => {
    const readout = make("p", { class: "readout" });
    const canvas = make("div", { role: "img", "aria-label": `${chart.title} over time, ${cell.title}; medians are in the table below` });
    const panel = make("div", { class: "panel" }, make("p", {}, chart.title), canvas, readout);
    panels.append(panel);
    const axis = { stroke: () => colour("soft"), grid: { stroke: () => colour("line"), width: 1 }, ticks: { stroke: () => colour("line"), width: 1 }, font: "12px system-ui, sans-serif" };
    const plot = new uPlot({
      width: panel.clientWidth, height: 190, legend: { show: false }, padding: [8, 12, 0, 0],
      cursor: { sync: { key: `cell-${key}` }, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
      scales: { x: { time: false, range: (_, min, max) => [min, max] }, y: { range: (_, __, max) => [0, (max || 1) * 1.05] } },
      axes: [{ ...axis, size: 34, values: (_, ticks) => ticks.map((each) => `${+each.toFixed(6)} s`) }, { ...axis, size: 52 }],
      series: [{}, ...cell.arms.map((arm) => ({ label: arm.label, stroke: () => colour(arm.role), width: width(arm.role), dash: dashes[arm.role], spanGaps: true, points: { show: cell.seconds.length < 3 } }))],
      hooks: {
        // What goodput leaves out, lightly, once an arm that is shown: where all do, it is darkest.
        drawClear: [(self) => {
          const { ctx, bbox } = self;
          ctx.save();
          ctx.globalAlpha = 0.18;
          ctx.fillStyle = colour("soft");
          ctx.beginPath();
          ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
          ctx.clip();
          cell.trimmed.forEach((parts, index) => {
            if (!self.series[index + 1].show) return;
            for (const [from, to] of parts) {
              const left = self.valToPos(from, "x", true);
              ctx.fillRect(left, bbox.top, self.valToPos(to, "x", true) - left, bbox.height);
            }
          });
          ctx.restore();
        }],
        setCursor: [(self) => {
          const at = self.cursor.idx;
          readout.textContent = at == null ? "" : `${+cell.seconds[at].toFixed(6)} s: ` + cell.arms.map((arm, index) => `${arm.label} ${chart.rows[index][at] ?? "–"}`).filter((_, index) => self.series[index + 1].show).join(" · ");
        }],
        setSelect: [(self) => {
          if (self.select.width > 4) show(self.posToVal(self.select.left, "x"), self.posToVal(self.select.left + self.select.width, "x"));
          self.setSelect({ width: 0, height: 0 }, false);
        }],
      },
    }, [cell.seconds, ...chart.rows], canvas);
    plot.over.addEventListener("dblclick", () => show(0, end));
    plot.setScale("x", { min: 0, max: end });
    return plot;
  };

  const fit = () => {
    for (const plot of charts) {
      const room = plot.root.closest(".panel").clientWidth;
      if (room > 0 && room !== plot.width) plot.setSize({ width: room, height: 190 });
    }
  };
  const places = [...document.querySelectorAll(".courses")];
  for (const place of places) {
    const fold = place.closest("details");
    // What is folded has no width to draw in.
    if (fold === null) build(place);
    else fold.addEventListener("toggle", () => { if (fold.open && place.hidden) build(place); });
  }
  addEventListener("resize", fit);
  const redraw = () => { for (const plot of charts) plot.redraw(false); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details")) fold.open = true;
    for (const place of places) if (place.hidden) build(place);
    // Three in a row of a sheet, whatever the window's width.
    for (const plot of charts) plot.setSize({ width: 222, height: 120 });
    redraw();
  });
  addEventListener("afterprint", () => {
    fit();
    redraw();
  });
  matchMedia("print").addEventListener("change", redraw);
})();
