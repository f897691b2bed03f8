// SPDX-License-Identifier: Apache-2.0
// Heat map: a column for each piece of the range, rows for the moments within it, the earliest at the bottom. A rhythm
// shows as a pattern. A chosen part, from one cell to another in time, becomes a flame graph below.
import { h, replace, button, select, sized, css } from "./dom.js";
import { state, set, selection, grouping } from "./state.js";
import { address, Loader } from "./api.js";
import { FlamePane } from "./flamepane.js";
import { Tooltip } from "./details.js";
import { clock, cores, seconds, ticks, weight } from "./format.js";
import { isDark } from "./colors.js";

const ROWS = 50, FOOT = 16, LEFT = 46;

// From nothing to most, lighter to darker (on a dark page the other way round): one hue after the other, in even steps of lightness.
function heatColor(part, dark) {
  const k = part;
  return dark ? `hsl(${20 + 26 * k} ${70 + 20 * k}% ${14 + 56 * k}%)` : `hsl(${44 - 26 * k} ${88 - 10 * k}% ${92 - 58 * k}%)`;
}

// How dark each weight is, by its place among all that are not 0: one heavy moment leaves the others as they are.
export function ranks(weights) {
  const sorted = Float64Array.from(weights).filter((w) => w > 0).sort(), n = sorted.length, out = new Map();
  for (let i = 0, end = 0; i < n; i = end) {
    while (end < n && sorted[end] === sorted[i]) end++;
    out.set(sorted[i], (i + end) / 2 / n);
  }
  return out;
}

export class HeatView {
  constructor() {
    this.countsEvents = false;
    this.canvas = h("canvas", { tabindex: 0, role: "application", "aria-label": "Heat map. Arrow keys move from cell to cell, with shift they select, Enter shows the flame graph, Escape clears." });
    this.pick = sizedOverlay();
    this.frame = h("div", { class: "heat-frame" }, this.canvas, this.pick);
    this.tools = h("div", { class: "toolbar" });
    this.pane = new FlamePane({ title: "Flame graph of the chosen time" });
    this.below = h("div", { class: "heat-below" });
    this.el = h("div", { class: "heat" }, this.tools, this.frame, this.below);
    this.tooltip = new Tooltip();
    this.cursor = -1;
    this.loader = new Loader((data) => {
      replace(this.below, this.pane.el);
      this.pane.show(data);
    }, (e) => replace(this.below, h("p", { class: "card error" }, e.message)));
    this.resize = new ResizeObserver(() => this.draw());
    this.resize.observe(this.frame);
    this.listen();
    this.isStill = true; // a map that moves cannot be chosen from
  }

  free() {
    this.resize.disconnect();
    this.tooltip.free();
    this.loader.stop();
    this.pane.free();
  }

  query() {
    const columns = Math.max(30, Math.min(300, Math.round(((this.frame.clientWidth || 1000) - LEFT) / 8 / 10) * 10));
    return { path: "heatmap", params: { ...selection(), columns, rows: ROWS } };
  }

  show(data) {
    this.data = data;
    this.rank = ranks(data.weights);
    this.render();
  }

  render() {
    const d = this.data;
    if (!d) return;
    const cut = this.cut();
    this.el.classList.toggle("whole", !cut);
    replace(this.tools,
      h("span", null, h("b", null, `${seconds(d.column_seconds)} a column`), h("span", { class: "quiet" }, `, ${seconds(d.column_seconds / d.rows)} a cell`)),
      select("Range of the map", [["", "Finer…"], ["60", "last minute"], ["120", "last 2 minutes"], ["600", "last 10 minutes"]], "", (s) => s && set({ from: `${d.to - +s}`, to: `${d.to}`, sel: "", hs: "", live: "" })),
      cut ? h("span", { class: "cut" }, h("b", null, `${clock(cut[0], true)} – ${clock(cut[1], true)}`), h("span", { class: "quiet" }, ` ${seconds(cut[1] - cut[0])}`),
        button("Use in all views", "Select this time", () => set({ sel: `${cut[0].toFixed(6)}-${cut[1].toFixed(6)}`, hs: "", view: "flame" }), { class: "small" }),
        button("Clear", "Choose nothing (Escape)", () => set({ hs: "" }), { class: "small" }))
        : h("span", { class: "quiet" }, "Drag from one cell to another: the time between becomes a flame graph."));
    this.draw();
    if (cut) this.loader.load(address("flamegraph", { ...selection(), from: cut[0].toFixed(6), to: cut[1].toFixed(6), by: grouping(), max_nodes: state.nodes }));
    else replace(this.below, h("p", { class: "hint" }, "Columns that look alike are alike; a dark row is something that happens at the same moment again and again. How dark a cell is says how many others weigh less."));
    if (cut && this.loader.last) this.pane.render();
  }

  // The chosen time; `hs` holds it as FROM-TO.
  cut() {
    const m = state.hs.match(/^([\d.]+)-([\d.]+)$/);
    return m ? [+m[1], +m[2]] : null;
  }

  size() {
    return [this.frame.clientWidth - LEFT, this.frame.clientHeight - FOOT];
  }

  draw() {
    const d = this.data, [width, height] = this.size();
    if (!d || width <= 0) return;
    const c = sized(this.canvas, this.frame.clientWidth, this.frame.clientHeight), dark = isDark();
    c.clearRect(0, 0, this.frame.clientWidth, this.frame.clientHeight);
    c.fillStyle = css("--panel");
    c.fillRect(LEFT, 0, width, height);
    const w = width / d.columns, hh = height / d.rows;
    for (let k = 0; k < d.weights.length; k++) {
      const v = d.weights[k];
      if (!v) continue;
      const x = LEFT + Math.floor(k / d.rows) * w, y = height - ((k % d.rows) + 1) * hh;
      c.fillStyle = heatColor(this.rank.get(v), dark);
      c.fillRect(Math.round(x), Math.round(y), Math.max(1, Math.round(x + w) - Math.round(x) - (w > 4 ? 1 : 0)), Math.max(1, Math.round(y + hh) - Math.round(y) - (hh > 4 ? 1 : 0)));
    }
    c.fillStyle = css("--quiet");
    c.font = "11px system-ui, sans-serif";
    for (const [t, text] of ticks(d.from, d.to, width / 90)) {
      const x = LEFT + ((t - d.from) / (d.to - d.from)) * width;
      c.textAlign = x > this.frame.clientWidth - 24 ? "right" : "center";
      c.fillText(text, Math.min(x, this.frame.clientWidth - 2), height + 13);
    }
    c.textAlign = "right";
    for (const part of [0, 0.5, 1]) c.fillText(seconds(d.column_seconds * part), LEFT - 5, Math.max(10, height * (1 - part) + (part ? 4 : 0)));
    this.drawPick();
  }

  // The chosen cells, column by column.
  drawPick() {
    const d = this.data, [width, height] = this.size();
    const c = sized(this.pick, this.frame.clientWidth, this.frame.clientHeight);
    c.clearRect(0, 0, this.frame.clientWidth, this.frame.clientHeight);
    const cell = d.column_seconds / d.rows, cut = this.drag ? this.times(this.drag) : this.cut(), w = width / d.columns, hh = height / d.rows;
    const paint = (first, last) => {
      for (let col = Math.floor(first / d.rows); col <= Math.floor(last / d.rows); col++) {
        const low = Math.max(first, col * d.rows) - col * d.rows, high = Math.min(last, (col + 1) * d.rows - 1) - col * d.rows;
        c.fillRect(LEFT + col * w, height - (high + 1) * hh, Math.ceil(w), (high - low + 1) * hh);
      }
    };
    c.fillStyle = css("--pick");
    if (cut && cut[1] > d.from && cut[0] < d.to) paint(Math.max(0, Math.round((cut[0] - d.from) / cell)), Math.min(d.columns * d.rows - 1, Math.round((cut[1] - d.from) / cell) - 1));
    c.fillStyle = css("--ink");
    if (this.cursor >= 0) paint(this.cursor, this.cursor);
  }

  times([a, b]) {
    const d = this.data, cell = d.column_seconds / d.rows;
    return [d.from + Math.min(a, b) * cell, d.from + (Math.max(a, b) + 1) * cell];
  }

  choose(cells) {
    const [a, b] = this.times(cells);
    set({ hs: `${a.toFixed(6)}-${b.toFixed(6)}` });
  }

  cellAt(e) {
    const d = this.data, r = this.frame.getBoundingClientRect(), [width, height] = this.size();
    const col = Math.max(0, Math.min(d.columns - 1, Math.floor(((e.clientX - r.left - LEFT) / width) * d.columns)));
    const row = Math.max(0, Math.min(d.rows - 1, Math.floor((1 - (e.clientY - r.top) / height) * d.rows)));
    return col * d.rows + row;
  }

  tell(cell, x, y) {
    const d = this.data, piece = d.column_seconds / d.rows, from = d.from + cell * piece;
    const kind = d.weight_ns ? [["weight", [weight(d.weights[cell], d), cores(d.weights[cell], { ...d, covered_seconds: piece })].filter(Boolean).join(" · ")]] : [["weight", String(d.weights[cell])]];
    this.tooltip.text(`${clock(from, true)} – ${clock(from + piece, true)}`, kind, x, y);
  }

  listen() {
    const c = this.canvas;
    c.addEventListener("pointerdown", (e) => {
      if (!this.data || e.button) return;
      c.setPointerCapture(e.pointerId);
      this.drag = [this.cellAt(e), this.cellAt(e)];
      this.drawPick();
    });
    c.addEventListener("pointermove", (e) => {
      if (!this.data) return;
      const cell = this.cellAt(e);
      if (this.drag) {
        this.drag[1] = cell;
        this.drawPick();
      }
      this.tell(cell, e.clientX, e.clientY);
    });
    c.addEventListener("pointerleave", () => this.tooltip.hide());
    c.addEventListener("pointerup", () => {
      const was = this.drag;
      this.drag = null;
      if (was) this.choose(was);
    });
    c.addEventListener("keydown", (e) => this.cellKey(e));
  }

  cellKey(e) {
    const d = this.data;
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: 0, ArrowDown: 0 }[e.key];
    if (!d) return;
    if (by !== undefined) {
      const before = this.cursor < 0 ? Math.floor(d.columns / 2) * d.rows : this.cursor;
      const step = by ? by * d.rows : e.key === "ArrowUp" ? 1 : -1;
      this.cursor = Math.max(0, Math.min(d.weights.length - 1, before + step));
      if (e.shiftKey) this.drag = [this.drag ? this.drag[0] : before, this.cursor];
      const r = this.frame.getBoundingClientRect(), [width] = this.size();
      this.tell(this.cursor, r.left + LEFT + (Math.floor(this.cursor / d.rows) / d.columns) * width, r.top + 20);
      this.drawPick();
    } else if (e.key === "Enter" && (this.drag || this.cursor >= 0)) {
      const was = this.drag || [this.cursor, this.cursor];
      this.drag = null;
      this.choose(was);
    } else if (e.key === "Escape") {
      this.drag = null;
      this.cursor = -1;
      set({ hs: "" });
      this.drawPick();
    } else return;
    e.preventDefault();
    e.stopPropagation();
  }

  key(e) {
    return this.cut() ? this.pane.key(e) : false;
  }
}

function sizedOverlay() {
  return h("canvas", { class: "heat-pick", "aria-hidden": "true" });
}
