// SPDX-License-Identifier: Apache-2.0
// One function: all that calls it above, all that it calls below.
import { h, replace } from "./dom.js";
import { state, set, selection } from "./state.js";
import { address, ask } from "./api.js";
import { treeOf } from "./tree.js";
import { coloring, isDark } from "./colors.js";
import { FlameChart } from "./flame.js";
import { Tooltip, dock } from "./details.js";
import { cores, percent, weight } from "./format.js";

export class SandwichView {
  constructor() {
    this.tooltip = new Tooltip();
    this.input = h("input", { type: "search", list: "functions", placeholder: "Name of a function  /", "aria-label": "Function", spellcheck: "false", onchange: () => this.go(this.input.value) });
    this.names = h("datalist", { id: "functions" });
    this.facts = h("div", { class: "sandwich-facts" });
    this.dock = h("div", { class: "dock", "aria-live": "polite" });
    this.charts = ["callers", "callees"].map((side, k) => {
      const chart = new FlameChart({
        zoom: (i) => chart.zoom(i, true),
        reset: () => chart.zoom(0, true),
        window: () => {},
        hover: (i, x, y) => this.tooltip.show(chart.tree, i, x, y),
        select: (i) => this.selected(chart, i),
        menu: (i) => this.follow(chart, i),
        key: (e) => this.chartKey(chart, e),
      }, `${side} as a flame graph: arrow keys move, Enter zooms, s goes to the chosen function`);
      chart.up = k === 0;
      chart.hasCentre = true;
      return chart;
    });
    this.el = h("div", { class: "sandwich" },
      h("div", { class: "toolbar" }, h("div", { class: "search" }, this.input, this.names), this.facts),
      h("h3", null, "Callers"), this.charts[0].el, h("h3", null, "Callees"), this.charts[1].el, this.dock);
    this.offer();
  }

  free() {
    this.tooltip.free();
    this.charts.forEach((c) => c.free());
  }

  // Without a function the heaviest one is shown.
  async offer() {
    try {
      const { data } = await ask(address("top", { ...selection(), limit: 100 }));
      replace(this.names, data.rows.map((r) => h("option", { value: r.name }, r.module)));
      if (!state.fn && state.view === "sandwich" && data.rows.length) set({ fn: data.rows[0].name, mod: data.rows[0].module }, true);
    } catch (e) {
      replace(this.names);
    }
  }

  go(name) {
    if (name) set({ fn: name, mod: "" });
  }

  query() {
    return state.fn ? { path: "sandwich", params: { ...selection(), function: state.fn, module: state.mod } } : null;
  }

  show(data) {
    this.data = data;
    this.render();
  }

  render() {
    const d = this.data;
    if (!d) return;
    this.input.value = state.fn;
    const whole = d.whole || 0;
    this.el.classList.toggle("nothing", !d.total);
    replace(this.facts, h("b", null, state.mod), d.total ? [
      h("span", null, h("small", null, "total "), [whole ? percent(d.total, whole) : "", weight(d.total, d), cores(d.total, d)].filter(Boolean).join(" · ")),
      h("span", null, h("small", null, "self "), [weight(d.self, d), `${percent(d.self, d.total)} of it`].join(" · ")),
    ] : h("span", { class: "quiet" }, `No sample of ${state.fn} in this range: choose another function, or a longer range.`));
    ["callers", "callees"].forEach((side, k) => {
      const tree = treeOf(d, "", d[side]);
      this.charts[k].set({ tree, coloring: coloring(state.color, tree, isDark()), up: k === 0, matches: null });
    });
    dock(this.dock, null, -1);
  }

  selected(chart, i) {
    const other = this.charts.find((c) => c !== chart);
    if (other.selected >= 0) other.select(-1, true);
    const go = h("button", { type: "button", onclick: () => this.follow(chart, i) }, "Its callers and callees");
    dock(this.dock, chart.tree, i, i > 0 ? [go] : []);
  }

  follow(chart, i) {
    if (i > 0) set({ fn: chart.tree.name(i), mod: chart.tree.module(i) });
  }

  chartKey(chart, e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (chart.move(e.key)) this.tooltip.hide();
    else if (e.key === "Enter" && chart.selected >= 0) chart.zoom(chart.selected, true);
    else if (e.key === "Escape") chart.zoom(0, true);
    else if (e.key === "s" && chart.selected > 0) this.follow(chart, chart.selected);
    else return;
    e.preventDefault();
    e.stopPropagation();
  }

  key(e) {
    if (e.key !== "/") return false;
    this.input.focus();
    this.input.select();
    e.preventDefault();
    return true;
  }
}
