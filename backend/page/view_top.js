// SPDX-License-Identifier: Apache-2.0
// The functions that take the time, each with a strip of when.
import { h, svg, replace, select } from "./dom.js";
import { state, set, selection, groupings } from "./state.js";
import { cores, count, percent, weight } from "./format.js";
import { kindOf, kindShares, swatch, isDark } from "./colors.js";
import { typeLegend } from "./details.js";
import { pattern, whyWrong } from "./tree.js";

const STRIP = 60;

// A small picture of weights over time, as high as the highest.
export function strip(weights, most) {
  const n = weights.length, top = most || Math.max(1e-9, ...weights);
  const d = weights.map((w, i) => (w ? `M${i + 0.5} 16V${(16 - Math.max(1, (15 * w) / top)).toFixed(1)}` : "")).join("");
  return svg("svg", { class: "strip", viewBox: `0 0 ${n} 16`, preserveAspectRatio: "none", "aria-hidden": "true" }, svg("path", { d }));
}

export function bar(part) {
  const fill = h("i");
  fill.style.width = `${Math.max(0, Math.min(100, 100 * part))}%`;
  return h("span", { class: "bar", "aria-hidden": "true" }, fill);
}

export class TopView {
  constructor() {
    this.countsEvents = true;
    this.box = h("input", { type: "search", placeholder: "Search functions  /", "aria-label": "Search functions", spellcheck: "false", oninput: () => set({ s: this.box.value }, true) });
    this.found = h("output", { class: "found" });
    this.tools = h("div", { class: "toolbar" }, h("div", { class: "search" }, this.box, this.found), this.controls = h("span", { class: "controls" }));
    this.legend = h("div", { class: "legend" });
    this.body = h("tbody");
    this.head = h("thead");
    this.el = h("div", { class: "scroll" }, this.tools, this.legend, h("table", { class: "grid top" }, this.head, this.body));
    this.at = -1;
  }

  query() {
    const params = { ...selection(), sort: state.sort === "total" ? "total" : "", limit: state.rows === "200" ? "" : state.rows, by: this.by() };
    return { path: "top", params: { ...params, strip: STRIP }, first: params };
  }

  // Rows are of functions alone unless it is said otherwise.
  by() {
    return state.by === "none" ? "" : state.by;
  }

  show(data) {
    this.data = data;
    this.render();
  }

  render() {
    const d = this.data;
    if (!d) return;
    if (document.activeElement !== this.box) this.box.value = state.s;
    let regex = null;
    let wrong = "";
    try {
      regex = pattern(state.s, state.case === "1");
    } catch (e) {
      wrong = whyWrong(state.s);
    }
    this.box.classList.toggle("wrong", Boolean(wrong));
    const rows = regex ? d.rows.filter((r) => regex.test(r.name) || regex.test(r.module)) : d.rows;
    const sum = rows.reduce((a, r) => a + r.self, 0);
    replace(this.found, wrong ? h("span", { class: "why" }, wrong) : regex ? `${percent(sum, d.total)} self in ${count(rows.length)}` : h("span", { class: "quiet" }, `${count(rows.length)} of ${count(d.functions)} functions`));
    replace(this.controls,
      select("Rows for each", groupings([["", "Not grouped"], ["exe", "By executable"]], this.by()), this.by(), (by) => set({ by })),
      select("How many rows", [["50", "50 rows"], ["200", "200 rows"], ["1000", "1 000 rows"]], state.rows, (n) => set({ rows: n })));
    typeLegend(this.legend, kindShares(d.types), d.total);
    const column = (key, text) => h("th", { scope: "col", class: "number", "aria-sort": state.sort === key ? "descending" : null },
      h("button", { type: "button", onclick: () => set({ sort: key }) }, text, state.sort === key ? " ↓" : ""));
    replace(this.head, h("tr", null, column("self", "Self"), column("total", "Total"), h("th", { scope: "col", class: "wide" }, "Activity"),
      h("th", { scope: "col" }, "Function"), this.by() && h("th", { scope: "col" }, this.by()), h("th", { scope: "col", class: "wide" }, "Module")));
    const most = Math.max(1e-9, ...d.rows.map((r) => Math.max(0, ...(r.strip || []))));
    replace(this.body, rows.map((r, i) => this.row(r, i, d, most)));
    this.rows = rows;
    this.mark();
  }

  row(r, i, d, most) {
    const mark = h("i", { class: "swatch" }), numbers = (w) => [weight(w, d), cores(w, d)].filter(Boolean).join(" · ");
    mark.style.backgroundColor = swatch(kindOf(r.type, r.name), isDark());
    return h("tr", { onclick: () => this.go(i) },
      h("td", { class: "number", title: numbers(r.self) }, bar(d.total ? r.self / d.total : 0), percent(r.self, d.total)),
      h("td", { class: "number", title: numbers(r.total) }, percent(r.total, d.total)),
      h("td", { class: "wide strips" }, strip(r.strip || [], most)),
      h("td", { class: "name" }, h("div", null, mark, h("a", { href: "#", title: [r.name, r.file].filter(Boolean).join("\n"), onclick: (e) => e.preventDefault() }, r.name)), h("small", { class: "narrow" }, r.module)),
      this.by() && h("td", null, r.value || r.by || ""),
      h("td", { class: "wide module" }, r.module));
  }

  go(i) {
    const r = this.rows[i];
    if (r) set({ view: "sandwich", fn: r.name, mod: r.module });
  }

  mark() {
    [...this.body.children].forEach((tr, i) => tr.classList.toggle("chosen", i === this.at));
    if (this.body.children[this.at]) this.body.children[this.at].scrollIntoView({ block: "nearest" });
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return false;
    const last = this.rows ? this.rows.length - 1 : -1;
    if (e.key === "ArrowDown" || e.key === "j") this.at = Math.min(last, this.at + 1);
    else if (e.key === "ArrowUp" || e.key === "k") this.at = Math.max(0, this.at - 1);
    else if ((e.key === "Enter" || e.key === "s") && this.at >= 0) this.go(this.at);
    else if (e.key === "/") this.box.focus();
    else if (e.key === "Escape" && state.s) set({ s: (this.box.value = "") }, true);
    else return false;
    this.mark();
    e.preventDefault();
    return true;
  }
}
