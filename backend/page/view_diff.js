// SPDX-License-Identifier: Apache-2.0
// The changes from A (before) to B (after): two times, or two selections of series, or both; as a flame graph or as a
// table.
import { h, replace, button, select } from "./dom.js";
import { state, set, selection, range } from "./state.js";
import { FlamePane } from "./flamepane.js";
import { emptySide } from "./empty.js";
import { halves, withBefore } from "./sides.js";
import { percent, span, weight } from "./format.js";
import { diffColor, isDark, kindOf, swatch } from "./colors.js";

export class DiffView {
  constructor(app) {
    this.app = app;
    this.countsSides = true; // says itself which side is empty
    this.pane = new FlamePane({ isDiff: true, title: "Difference", extra: [
      () => select("Width of boxes", [["share", "Share of each"], ["absolute", "Absolute"]], state.dm, (dm) => set({ dm })),
    ] });
    this.sides = h("div", { class: "sides" });
    this.body = h("tbody");
    this.table = h("table", { class: "grid" }, h("thead", null, h("tr", null,
      ["Change", "Noise", "A", "B"].map((t) => h("th", { scope: "col", class: t === "Noise" ? "number wide" : "number", title: t === "Noise" ? "Differences of less come without any change (docs/diff.md)" : null }, t)), h("th", { scope: "col" }, "Function"), h("th", { scope: "col", class: "wide" }, "Module"))), this.body);
    this.holder = h("div", { class: "diff-holder" });
    // On a narrow page what is chosen seldom is folded away.
    this.fold = button("Controls", "Show or fold the controls", () => {
      this.fold.setAttribute("aria-expanded", String(!this.el.classList.toggle("folded")));
    }, { class: "narrow small fold", "aria-expanded": "false" });
    this.el = h("div", { class: "diff folded" }, this.sides, this.fold, this.holder);
    this.waits = true; // for the timeline: A and B are made of its range
    this.default();
    this.renderSides();
  }

  free() {
    this.pane.free();
  }

  // The timeline is there, or there anew.
  ready() {
    this.app.refresh(false);
    if (this.data && !(this.data.total && this.data.total2)) this.render();
  }

  // Nothing new comes into times that are fixed.
  get isStill() {
    return /^\d/.test(state.to1) && /^\d/.test(state.to2);
  }

  // Without a choice: the selected time against the same length before it, or the first half of what there is against the second.
  default() {
    const last = this.app.timeline && this.app.timeline.loader.last, cut = this.app.timeline && this.app.timeline.cut();
    if (state.from1 || state.from2 || state.q2 || state.q1 || !last) return;
    set(cut ? withBefore(cut[0], cut[1], this.app.status && this.app.status.store.first) : halves(last.data), true);
  }

  params() {
    const { from, to } = range();
    return { ...selection(), from: state.from1 || from, to: state.to1 || to, query: state.q1 || state.q,
      from2: state.from2 || (state.from1 ? from : ""), to2: state.to2 || (state.to1 ? to : ""), query2: state.q2 || (state.q1 ? state.q || "{}" : "") };
  }

  query() {
    this.default();
    if (!state.from1 && !state.from2 && !state.q2 && !state.q1) return null;
    const format = state.dv === "top" ? "top" : "", params = { ...this.params(), format, max_nodes: format ? "" : state.nodes };
    return { path: "diff", params: { ...params, noise: "1" }, first: params };
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
    if (!d.total || !d.total2) {
      const last = this.app.timeline.loader.last;
      this.mode = "";
      replace(this.holder, emptySide(d, last && last.data));
      return;
    }
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
    const side = (n, name) => h("div", { class: `side ${name}` }, h("b", null, name), h("span", null, time(n)),
      d && h("span", { class: "quiet" }, weight(n === 1 ? d.total : d.total2, d)),
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
    const points = (part) => `${part > 0 ? "+" : ""}${(100 * part).toFixed(2)}`;
    replace(this.body, d.rows.map((r) => {
      const change = (d.total2 ? r.self2 / d.total2 : 0) - (d.total ? r.self / d.total : 0), isNoise = d.noise && !r.self_changed;
      const mark = h("i", { class: "swatch" }), cell = h("td", { class: "number" }, points(change)), tint = h("i", { class: "swatch" });
      mark.style.backgroundColor = swatch(kindOf(r.type, r.name), isDark());
      tint.style.backgroundColor = diffColor(isNoise ? 0 : Math.max(-1, Math.min(1, change * 8)), isDark());
      cell.prepend(tint);
      return h("tr", { class: isNoise ? "none" : null, title: isNoise ? "Within noise" : null, onclick: () => set({ view: "sandwich", fn: r.name, mod: r.module }) }, cell,
        h("td", { class: "number wide" }, d.noise ? `±${(100 * (r.self_band || 0)).toFixed(2)}` : "…"),
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
