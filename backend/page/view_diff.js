// SPDX-License-Identifier: Apache-2.0
// What changed from A (before) to B (after): two times, or two selections of series, or both. As a flame graph or as a table.
import { h, replace, button, select } from "./dom.js";
import { state, set, selection, range } from "./state.js";
import { FlamePane } from "./flamepane.js";
import { percent, span, weight } from "./format.js";
import { diffColor, isDark, kindOf, swatch } from "./colors.js";

export class DiffView {
  constructor(app) {
    this.app = app;
    this.countsEvents = true;
    this.pane = new FlamePane({ isDiff: true, title: "Difference", extra: [
      () => select("Width of boxes", [["share", "Share of each"], ["absolute", "Absolute"]], state.dm, (dm) => set({ dm })),
    ] });
    this.sides = h("div", { class: "sides" });
    this.body = h("tbody");
    this.table = h("table", { class: "grid" }, h("thead", null, h("tr", null,
      ["Change", "A", "B"].map((t) => h("th", { scope: "col", class: "number" }, t)), h("th", { scope: "col" }, "Function"), h("th", { scope: "col", class: "wide" }, "Module"))), this.body);
    this.holder = h("div", { class: "diff-holder" });
    this.el = h("div", { class: "diff" }, this.sides, this.holder);
    this.waits = true; // for the timeline, whose range is what A and B are made of
    this.default();
    this.renderSides();
  }

  free() {
    this.pane.free();
  }

  // Nothing new comes into times that are fixed.
  get isStill() {
    return /^\d/.test(state.to1) && /^\d/.test(state.to2);
  }

  // Without a choice: the first half of the range against the second.
  default() {
    const last = this.app.timeline && this.app.timeline.loader.last;
    if (state.from1 || state.from2 || state.q2 || state.q1 || !last) return;
    const { from, to } = last.data, half = (from + to) / 2;
    set({ from1: from.toFixed(3), to1: half.toFixed(3), from2: half.toFixed(3), to2: to.toFixed(3) }, true);
  }

  params() {
    const { from, to } = range();
    return { ...selection(), from: state.from1 || from, to: state.to1 || to, query: state.q1 || state.q,
      from2: state.from2 || (state.from1 ? from : ""), to2: state.to2 || (state.to1 ? to : ""), query2: state.q2 || (state.q1 ? state.q || "{}" : "") };
  }

  query() {
    this.default();
    if (!state.from1 && !state.from2 && !state.q2 && !state.q1) return null;
    const format = state.dv === "top" ? "top" : "";
    return { path: "diff", params: { ...this.params(), format, max_nodes: format ? "" : state.nodes } };
  }

  show(data) {
    this.data = data;
    this.mode = "";
    this.render();
  }

  render() {
    const d = this.data;
    if (!d) return;
    this.renderSides();
    if (d.rows) {
      replace(this.holder, h("div", { class: "scroll" }, this.table));
      this.renderTable(d);
      return;
    }
    if (this.pane.el.parentElement !== this.holder) replace(this.holder, this.pane.el);
    if (this.mode !== state.dm) {
      this.mode = state.dm;
      this.pane.show(d, state.dm);
    } else {
      this.pane.render();
    }
  }

  renderSides() {
    const d = this.data, { from, to } = range();
    const time = (side) => {
      const a = state[`from${side}`], b = state[`to${side}`];
      return /^[\d.]+$/.test(a) ? span(+a, +b) : a ? `${a} – ${b}` : `${from} – ${to}`;
    };
    const here = () => {
      const cut = state.sel.match(/^([\d.]+)-([\d.]+)$/), last = this.app.timeline.loader.last;
      return cut ? [cut[1], cut[2]] : last ? [String(last.data.from), String(last.data.to)] : ["", ""];
    };
    const side = (n, name) => h("div", { class: `side ${name}` }, h("b", null, name), h("span", null, time(n)),
      d && h("span", { class: "quiet" }, weight(n === 1 ? d.total : d.total2, d)),
      button("Use selection", "The time that is selected in the timeline", () => {
        const [a, b] = here();
        set({ [`from${n}`]: a, [`to${n}`]: b, sel: "" });
      }, { class: "small" }),
      h("input", { type: "text", class: "side-query", placeholder: 'series, as in {version="2"}', "aria-label": `Selector of ${name}`, spellcheck: "false", value: state[`q${n}`],
        onchange: (e) => set({ [`q${n}`]: e.target.value.trim() }) }));
    if (this.sides.contains(document.activeElement) && document.activeElement.tagName === "INPUT") return;
    replace(this.sides, side(1, "A"), button("⇄", "Swap A and B", () => this.swap(), { "aria-label": "Swap A and B" }), side(2, "B"),
      select("Show as", [["flame", "Flame graph"], ["top", "Table"]], state.dv, (dv) => set({ dv })));
  }

  swap() {
    set({ from1: state.from2, to1: state.to2, q1: state.q2, from2: state.from1, to2: state.to1, q2: state.q1 });
  }

  renderTable(d) {
    replace(this.body, d.rows.map((r) => {
      const a = d.total ? r.self / d.total : 0, b = d.total2 ? r.self2 / d.total2 : 0, points = 100 * (b - a);
      const mark = h("i", { class: "swatch" }), change = h("td", { class: "number" }, `${points > 0 ? "+" : ""}${points.toFixed(2)}`), tint = h("i", { class: "swatch" });
      mark.style.backgroundColor = swatch(kindOf(r.type, r.name), isDark());
      tint.style.backgroundColor = diffColor(Math.max(-1, Math.min(1, (b - a) * 8)), isDark());
      change.prepend(tint);
      return h("tr", { onclick: () => set({ view: "sandwich", fn: r.name, mod: r.module }) }, change,
        h("td", { class: "number" }, percent(r.self, d.total)), h("td", { class: "number" }, percent(r.self2, d.total2)),
        h("td", { class: "name" }, mark, r.name), h("td", { class: "wide module" }, r.module));
    }));
  }

  key(e) {
    if (e.key === "x") this.swap();
    else if (this.data && !this.data.rows) return this.pane.key(e);
    else return false;
    return true;
  }
}
