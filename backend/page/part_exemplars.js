// SPDX-License-Identifier: Apache-2.0
// Exemplars of one metric as points over time: a point leads to its trace, and a range that is drawn over a spike to what changed
// in it against the same length of time before it.
import { h, svg, replace, button, select } from "./dom.js";
import { state, set, selection, withoutLabels } from "./state.js";
import { clock, count, span, ticks } from "./format.js";
import { withBefore } from "./sides.js";
import { goToTrace } from "./joined.js";

const HEIGHT = 260, LEFT = 70, FOOT = 22, TOP = 10, MOST = "2000", NEAR = 12;

const number = (v) => (Math.abs(v) >= 1e5 || (v && Math.abs(v) < 1e-3) ? v.toExponential(1) : String(+v.toPrecision(3)));

export class ExemplarsPart {
  constructor(app) {
    this.app = app;
    this.choice = h("span");
    this.told = h("span", { class: "quiet" });
    this.acts = h("span");
    this.chart = svg("svg", { class: "exemplars", role: "img", "aria-label": "Exemplars over time" });
    this.el = h("div", { class: "scroll" }, h("div", { class: "toolbar" }, this.choice, this.acts, this.told), this.chart);
    this.chart.addEventListener("pointerdown", (e) => this.down(e));
    this.chart.addEventListener("pointermove", (e) => this.move(e));
    this.chart.addEventListener("pointerup", (e) => this.up(e));
  }

  query() {
    const { from, to, query } = selection();
    return { path: "exemplars", params: { from, to, query: withoutLabels(query, ["trace_id", "span_id"]), limit: MOST } };
  }

  show(data) {
    this.data = data;
    this.render();
  }

  render() {
    const d = this.data;
    if (!d || !d.exemplars) return;
    const names = [...new Set(d.exemplars.map((e) => e.metric))].sort();
    this.metric = names.includes(state.mn) ? state.mn : names[0] || "";
    this.points = d.exemplars.filter((e) => e.metric === this.metric);
    replace(this.choice, names.length ? select("Metric", names.map((n) => [n, n]), this.metric, (mn) => set({ mn })) : null);
    replace(this.told, names.length ? `${count(this.points.length)}${d.more ? " of more" : ""} exemplars${this.points[0] && this.points[0].unit ? ` in ${this.points[0].unit}` : ""}. Draw a range over a spike to see what changed; a point leads to its trace.`
      : "No metric with exemplars came in here at that time: send metrics by OTLP to this address, with exemplars of traces turned on.");
    this.cut = null;
    this.draw();
  }

  x(t) {
    return LEFT + ((this.width - LEFT) * (t - this.data.from)) / Math.max(1e-9, this.data.to - this.data.from);
  }

  y(v) {
    return TOP + (HEIGHT - TOP - FOOT) * (1 - v / this.top);
  }

  draw() {
    const d = this.data, most = Math.max(0, ...this.points.map((e) => e.value));
    this.width = Math.max(3 * LEFT, this.chart.clientWidth);
    this.top = most * 1.05 || 1;
    const axis = ticks(d.from, d.to, 8).map(([t, text]) => svg("text", { x: this.x(t), y: HEIGHT - 6, "text-anchor": "middle" }, text));
    const rules = [0, 0.5, 1].map((p) => [svg("line", { x1: LEFT, x2: this.width, y1: this.y(p * most), y2: this.y(p * most) }), svg("text", { x: LEFT - 8, y: this.y(p * most) + 4, "text-anchor": "end" }, number(p * most))]);
    const cut = this.cut && svg("rect", { class: "cut", x: this.x(this.cut[0]), y: TOP, width: Math.max(1, this.x(this.cut[1]) - this.x(this.cut[0])), height: HEIGHT - TOP - FOOT });
    const points = this.points.map((e) => svg("circle", { class: e.trace_id ? "linked" : "", cx: this.x(e.time), cy: this.y(e.value), r: 4 }, svg("title", null, `${clock(e.time, true)} ${number(e.value)} ${e.unit} ${e.service}${e.trace_id ? `, trace ${e.trace_id}` : ""}`)));
    replace(this.chart, rules, axis, cut, points);
    replace(this.acts, this.cut ? button("What changed", `The code of ${span(...this.cut)} against the time before it`, () => this.compare()) : null);
  }

  // Where the pointer is, in the chart's own units and as a time.
  at(e) {
    const r = this.chart.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
    return { x, y, t: this.data.from + ((Math.max(LEFT, Math.min(this.width, x)) - LEFT) / (this.width - LEFT)) * (this.data.to - this.data.from) };
  }

  down(e) {
    if (!this.data || e.button) return;
    this.begin = this.at(e);
    this.chart.setPointerCapture(e.pointerId);
  }

  move(e) {
    if (!this.begin) return;
    const now = this.at(e);
    if (Math.abs(now.x - this.begin.x) < 4) return;
    this.cut = [Math.min(this.begin.t, now.t), Math.max(this.begin.t, now.t)];
    this.draw();
  }

  up(e) {
    const begin = this.begin;
    this.begin = null;
    if (!begin || Math.abs(this.at(e).x - begin.x) >= 4) return;
    const near = this.points.filter((p) => p.trace_id).map((p) => [Math.hypot(this.x(p.time) - begin.x, this.y(p.value) - begin.y), p]).sort((a, b) => a[0] - b[0])[0];
    if (near && near[0] < NEAR) goToTrace(state.q, near[1].trace_id);
    else if (this.cut) this.render();
  }

  compare() {
    set({ view: "diff", q1: "", q2: "", z: "", w: "", live: "", ...withBefore(this.cut[0], this.cut[1], this.app.status && this.app.status.store.first) });
  }

  key(e) {
    if (e.key !== "Enter" || !this.cut) return false;
    this.compare();
    return true;
  }
}
