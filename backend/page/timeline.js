// SPDX-License-Identifier: Apache-2.0
// Weight over the range, by label; a lane for each further kind of samples; or the kinds that are time, one above the other. Dragging selects the part of time that all views show.
// For Diff it selects B, with A before it; there both can be dragged by their names and by their edges.
import { h, replace, button, select, sized, css } from "./dom.js";
import { state, set, selection, groupings } from "./state.js";
import { address, Loader } from "./api.js";
import { cores, kindName, percent, piece, span, ticks, weight } from "./format.js";
import { hashOf, isDark } from "./colors.js";
import { Tooltip } from "./details.js";
import { sides, withBefore } from "./sides.js";

const LANE = 16, FOOT = 16, MOST_LANES = 3, GRIP = 5, NAME = 18;
const STACKED = "kind", STACK = ["samples", "cpu", "runnable", "off_cpu"]; // from the ground up

// Okabe and Ito's colours, which differ for all eyes, softened for areas.
const AREAS = { light: ["#6fa8dc", "#e6a04b", "#5fb7a3", "#c58ab8", "#8c9be0", "#d98c6a", "#a7b860", "#7cc0dd"],
  dark: ["#4f83b5", "#b97c33", "#43907f", "#9a6790", "#6a77b8", "#ab694c", "#808e45", "#5795b0"] };

// A colour for each value: its own by its name, another where a heavier one has it already.
function areaColors(values) {
  const list = AREAS[isDark() ? "dark" : "light"], taken = new Set(), out = new Map();
  for (const value of values) {
    let k = hashOf(value) % list.length;
    for (let tries = 0; taken.has(k) && tries < list.length; tries++) k = (k + 1) % list.length;
    if (value !== "(other)" && value !== "") taken.add(k);
    out.set(value, value === "(other)" || value === "" ? css("--rest") : list[k]);
  }
  return out;
}

export class Timeline {
  constructor(el, app) {
    this.app = app;
    this.canvas = h("canvas", { tabindex: 0, role: "application", "aria-label": "Timeline. Arrow keys move, with shift they select, Enter shows the selected time, Escape all of it." });
    this.pick = h("div", { class: "pick", hidden: true });
    this.marks = h("div", { class: "marks" });
    this.tools = h("div", { class: "timeline-tools" });
    this.said = h("span", { class: "offscreen", "aria-live": "polite" });
    this.frame = h("div", { class: "timeline-frame" }, this.canvas, this.marks, this.pick);
    replace(el, this.tools, this.frame, this.said);
    this.tooltip = new Tooltip();
    this.cursor = -1;
    this.lanes = new Map();
    this.onload = () => {};
    this.loader = new Loader((data) => {
      this.data = data;
      this.failed = "";
      this.render();
      this.onload();
    }, (e) => {
      this.data = null;
      this.failed = e.message;
      this.render();
    });
    new ResizeObserver(() => this.draw()).observe(this.frame);
    this.listen();
  }

  focus() {
    this.canvas.focus();
  }

  params() {
    const { from, to } = state;
    return { ...selection(), from, to, points: Math.max(60, Math.min(600, Math.round((this.frame.clientWidth || 800) / 4))) };
  }

  async refresh(force) {
    const params = this.params(), kinds = this.app.status ? this.app.status.kinds.map((k) => k.type) : [];
    const other = kinds.filter((k, i) => (state.kind ? k !== state.kind : i > 0)).slice(0, MOST_LANES);
    for (const kind of this.lanes.keys()) if (!other.includes(kind)) this.lanes.delete(kind);
    const asked = other.map((kind) => {
      if (!this.lanes.has(kind)) {
        const lane = { data: null };
        lane.loader = new Loader((data) => {
          lane.data = data;
          if (state.tby === STACKED) this.render();
          else this.draw();
        }, () => (lane.data = null));
        this.lanes.set(kind, lane);
      }
      return this.lanes.get(kind).loader.load(address("timeline", { ...params, kind }), force);
    });
    const by = state.tby === STACKED ? "" : state.tby;
    await Promise.all([this.loader.load(address("timeline", { ...params, by, limit: by ? 7 : "" }), force), ...asked]);
  }

  // The kinds that are time, each as a series of nanoseconds: with what was asked for; null where there is but one.
  stacked() {
    const all = [this.data, ...[...this.lanes.values()].map((lane) => lane.data)].filter((d) => d && d.weight_ns && d.series.length < 2);
    if (state.tby !== STACKED || all.length < 2 || all[0] !== this.data) return null;
    all.sort((a, b) => STACK.indexOf(a.kind.type) - STACK.indexOf(b.kind.type));
    const series = all.map((d) => ({ value: kindName(d.kind.type), weights: (d.series[0] ? d.series[0].weights : []).map((w) => w * d.weight_ns) }));
    const total = all.reduce((sum, d) => sum + d.total * d.weight_ns, 0);
    return { ...this.data, weight_ns: 1, total, series, kind: { type: "runnable", unit: "nanoseconds" } };
  }

  // What is drawn: the answer, or the stack that was made of several.
  shown() {
    return this.stacked() || this.data;
  }

  render() {
    const d = this.shown(), colors = areaColors(d ? d.series.map((s) => s.value) : []);
    const own = this.app.status && this.app.status.kinds.length > 1 ? [[STACKED, "All kinds of time"]] : [];
    const by = groupings([["", "All together"], ["exe", "By executable"], ...own], state.tby);
    const cut = state.view === "diff" ? null : this.cut();
    if (!this.tools.contains(document.activeElement) || document.activeElement.tagName !== "SELECT") {
      replace(this.tools,
        h("b", null, d ? (d === this.data ? kindName(d.kind.type) : "All time of threads") : ""),
        h("span", { class: "quiet" }, d ? [cores(d.total, d), weight(d.total, d)].filter(Boolean).join(" on average · ") : this.failed || ""),
        select("Timeline by", by, state.tby, (tby) => set({ tby }, true)),
        cut && h("span", { class: "cut" }, h("b", null, span(cut[0], cut[1])), ` ${percent(cut[1] - cut[0], d ? d.to - d.from : 0)} of the range`,
          button("Zoom", "Make it the range", () => set({ from: String(cut[0]), to: String(cut[1]), sel: "", live: "" }), { class: "small" }),
          button("All", "Show all of the range (Escape)", () => set({ sel: "" }), { class: "small" })),
        h("span", { class: "keys" }, d && d.series.length > 1 ? d.series.map((s) => {
          const mark = h("i", { class: "swatch" });
          mark.style.backgroundColor = colors.get(s.value);
          return h("span", null, mark, s.value || "(none)");
        }) : null));
    }
    this.draw();
  }

  cut() {
    const m = state.sel.match(/^([\d.]+)-([\d.]+)$/);
    return m ? [+m[1], +m[2]] : null;
  }

  // --- drawing ---

  draw() {
    const width = this.frame.clientWidth, height = this.frame.clientHeight, d = this.shown();
    if (!width || !height) return;
    const c = sized(this.canvas, width, height);
    c.clearRect(0, 0, width, height);
    c.font = "11px system-ui, sans-serif";
    if (d && d.to > d.from) {
      const ground = height - FOOT - this.lanes.size * LANE;
      this.axis(c, d, width, height);
      this.areas(c, d, ground - 2);
      let y = ground;
      for (const [kind, lane] of this.lanes) {
        this.lane(c, kind, lane.data, y);
        y += LANE;
      }
    }
    this.drawPick();
  }

  x(t) {
    const d = this.data;
    return ((t - d.from) / (d.to - d.from)) * this.frame.clientWidth;
  }

  time(x) {
    const d = this.data;
    return d.from + (Math.max(0, Math.min(this.frame.clientWidth, x)) / this.frame.clientWidth) * (d.to - d.from);
  }

  axis(c, d, width, height) {
    c.fillStyle = css("--quiet");
    c.strokeStyle = css("--line");
    c.textBaseline = "alphabetic";
    c.beginPath();
    for (const [t, text] of ticks(d.from, d.to, width / 90)) {
      const x = Math.round(this.x(t)) + 0.5;
      c.moveTo(x, 0);
      c.lineTo(x, height - FOOT);
      c.textAlign = x < 24 ? "left" : x > width - 24 ? "right" : "center";
      c.fillText(text, Math.max(2, Math.min(width - 2, x)), height - 4);
    }
    c.stroke();
    c.textAlign = "left";
  }

  areas(c, d, height) {
    const colors = areaColors(d.series.map((s) => s.value));
    const n = Math.max(0, ...d.series.map((s) => s.weights.length)), sums = new Float64Array(n);
    for (const s of d.series) s.weights.forEach((w, i) => (sums[i] += w));
    const most = Math.max(1e-9, ...sums) * 1.06, step = this.x(d.from + d.step), base = new Float64Array(n);
    for (const s of d.series) {
      c.fillStyle = d.series.length > 1 ? colors.get(s.value) : css("--area");
      s.weights.forEach((w, i) => {
        if (!w) return;
        const left = Math.round(i * step), right = Math.round((i + 1) * step);
        const low = height * (1 - base[i] / most), high = height * (1 - (base[i] + w) / most);
        c.fillRect(left, high + 1, Math.max(1, right - left - (step > 5 ? 1 : 0)), low - high);
        base[i] += w;
      });
    }
    this.sums = sums;
    const label = cores(most / 1.06, { ...d, covered_seconds: d.step }) || weight(most / 1.06, { ...d, covered_seconds: d.step });
    const w = c.measureText(label).width;
    c.fillStyle = css("--page");
    c.globalAlpha = 0.8;
    c.fillRect(0, 0, w + 8, 15);
    c.globalAlpha = 1;
    c.fillStyle = css("--quiet");
    c.fillText(label, 4, 11);
  }

  // Another kind: how dark says how much.
  lane(c, kind, d, y) {
    const width = this.frame.clientWidth;
    c.fillStyle = css("--line");
    c.fillRect(0, y, width, 1);
    if (d) {
      const series = d.series[0] ? d.series[0].weights : [], most = Math.max(1e-9, ...series), step = width / Math.max(1, (d.to - d.from) / d.step);
      c.fillStyle = css("--area2");
      series.forEach((w, i) => {
        if (!w) return;
        c.globalAlpha = 0.25 + (0.75 * w) / most;
        c.fillRect(Math.round(i * step), y + 3, Math.max(1, Math.round(step)), LANE - 5);
      });
      c.globalAlpha = 1;
    }
    c.fillStyle = css("--page");
    const text = kindName(kind), w = c.measureText(text).width;
    c.fillRect(0, y + 2, w + 8, LANE - 3);
    c.fillStyle = css("--quiet");
    c.fillText(text, 4, y + 12);
  }

  drawPick() {
    const isDiff = state.view === "diff", cut = this.drag || (isDiff ? null : this.cut()), d = this.data;
    this.pick.hidden = !(cut && d);
    if (cut && d) {
      const a = Math.max(0, this.x(Math.min(...cut))), b = Math.min(this.frame.clientWidth, this.x(Math.max(...cut)));
      this.pick.style.left = `${a}px`;
      this.pick.style.width = `${Math.max(1, b - a)}px`;
    }
    replace(this.marks, !isDiff || !d ? [] : sides().map((side) => {
      const { name, from, to } = this.moved && this.moved.n === side.n ? this.moved : side;
      const el = h("div", { class: `mark ${name}` }, h("b", null, name)), a = Math.max(0, this.x(from)), b = Math.min(this.frame.clientWidth, this.x(to));
      el.style.left = `${a}px`;
      el.style.width = `${Math.max(2, b - a)}px`;
      el.hidden = b < 0 || a > this.frame.clientWidth;
      return el;
    }));
  }

  // --- pointer and keys ---

  choose(a, b) {
    const [from, to] = a < b ? [a, b] : [b, a], kept = this.app.status && this.app.status.store;
    if (state.view === "diff") set({ ...withBefore(from, to, kept && kept.first), q1: "", q2: "" });
    else set({ sel: `${from.toFixed(3)}-${to.toFixed(3)}`, from1: "", to1: "", from2: "", to2: "" });
  }

  // What of Diff's sides is at a place: { n, name, from, to, part: "from", "to" or "both" }, or null. Of two edges at one place
  // that of the side that the pointer is in.
  gripAt(x, y) {
    const found = [];
    for (const side of state.view === "diff" && this.data ? sides() : []) {
      const a = this.x(side.from), b = this.x(side.to), isIn = x >= a && x <= b;
      const part = Math.abs(x - a) <= GRIP ? "from" : Math.abs(x - b) <= GRIP ? "to" : isIn && y < NAME ? "both" : null;
      if (part) found[isIn ? "unshift" : "push"]({ ...side, part });
    }
    return found[0] || null;
  }

  // @grip where it is when the pointer has gone from time @t0 to @t.
  move({ n, name, from, to, part }, t0, t) {
    const d = this.data, by = Math.round((t - t0) / d.step) * d.step;
    if (part === "both") return { n, name, from: from + by, to: to + by };
    if (part === "from") return { n, name, from: Math.min(this.snap(t, false), to - d.step), to };
    return { n, name, from, to: Math.max(this.snap(t, true), from + d.step) };
  }

  // The edges of the pieces around a time: what is selected begins and ends where bars do.
  snap(t, up) {
    const d = this.data, k = (t - d.from) / d.step;
    return Math.min(d.to, d.from + (up ? Math.ceil(k) : Math.floor(k)) * d.step);
  }

  listen() {
    const c = this.canvas;
    let from = -1, grip = null;
    const at = (e) => {
      const r = this.frame.getBoundingClientRect();
      return [e.clientX - r.left, e.clientY - r.top];
    };
    c.addEventListener("pointerdown", (e) => {
      if (e.button || !this.data) return;
      from = at(e)[0];
      grip = this.gripAt(...at(e));
      c.setPointerCapture(e.pointerId);
    });
    c.addEventListener("pointermove", (e) => {
      if (!this.data) return;
      const [x, y] = at(e), over = from < 0 ? this.gripAt(x, y) : grip;
      c.style.cursor = over ? (over.part === "both" ? "grab" : "ew-resize") : "";
      if (from >= 0 && Math.abs(x - from) > 3) {
        if (grip) this.moved = this.move(grip, this.time(from), this.time(x));
        else this.drag = [this.snap(this.time(Math.min(x, from)), false), this.snap(this.time(Math.max(x, from)), true)];
        this.drawPick();
      }
      this.tell(this.time(x), e.clientX, e.clientY);
    });
    c.addEventListener("pointerleave", () => this.tooltip.hide());
    c.addEventListener("pointercancel", () => {
      from = -1;
      this.drag = this.moved = grip = null;
      this.drawPick();
    });
    c.addEventListener("pointerup", (e) => {
      const was = this.drag, moved = this.moved, held = grip, y = at(e)[1];
      from = -1;
      this.drag = this.moved = grip = null;
      if (moved) return set({ [`from${moved.n}`]: moved.from.toFixed(3), [`to${moved.n}`]: moved.to.toFixed(3) });
      if (was) return this.choose(was[0], was[1]);
      const lane = Math.floor((y - (this.frame.clientHeight - FOOT - this.lanes.size * LANE)) / LANE);
      if (held) return;
      if (lane >= 0 && lane < this.lanes.size) set({ kind: [...this.lanes.keys()][lane], z: "", w: "" });
      else if (state.sel && state.view !== "diff") set({ sel: "" });
    });
    c.addEventListener("dblclick", () => state.view !== "diff" && set({ sel: "" }));
    c.addEventListener("keydown", (e) => this.key(e));
    c.addEventListener("blur", () => {
      this.cursor = -1;
      this.tooltip.hide();
    });
  }

  tell(t, x, y) {
    const d = this.shown(), i = Math.floor((t - d.from) / d.step), at = piece(d, d.from + i * d.step, Math.min(d.to, d.from + (i + 1) * d.step));
    const rows = d.series.filter((s) => s.weights[i]).map((s) => [d.series.length > 1 ? s.value || "(none)" : kindName(d.kind.type), [cores(s.weights[i], at), weight(s.weights[i], at)].filter(Boolean).join(" · ")]);
    this.tooltip.text(span(d.from + i * d.step, Math.min(d.to, d.from + (i + 1) * d.step)), rows.length ? rows : [["", "nothing"]], x, y);
  }

  key(e) {
    const d = this.data;
    if (!d) return;
    if (e.key === "ArrowLeft" || e.key === "ArrowRight") {
      const by = (e.key === "ArrowRight" ? 1 : -1) * (e.ctrlKey ? 10 : 1) * d.step, cut = this.drag || this.cut();
      if (this.cursor < 0) this.cursor = cut ? cut[1] : d.from + Math.floor((d.to - d.from) / d.step / 2) * d.step;
      const before = this.cursor;
      this.cursor = Math.max(d.from, Math.min(d.to, this.cursor + by));
      if (e.shiftKey) this.drag = this.drag ? [this.drag[0], this.cursor] : [before, this.cursor];
      this.drawPick();
      const r = this.frame.getBoundingClientRect();
      this.tell(Math.min(this.cursor, d.to - d.step / 2), r.left + this.x(this.cursor), r.top + 10);
      this.said.textContent = this.drag ? span(Math.min(...this.drag), Math.max(...this.drag)) : span(this.cursor, this.cursor + d.step);
    } else if (e.key === "Enter" && this.drag) {
      const [a, b] = this.drag;
      this.drag = null;
      this.choose(a, b);
    } else if (e.key === "Escape") {
      this.drag = null;
      if (state.sel) set({ sel: "" });
      this.drawPick();
    } else return;
    e.preventDefault();
    e.stopPropagation();
  }
}
