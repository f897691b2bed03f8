// SPDX-License-Identifier: Apache-2.0
// Who takes the time: the values of a label (processes, containers, threads, services, CPUs, or any other), heaviest first. A row
// narrows all views to it, or takes it out.
import { h, replace, button, select } from "./dom.js";
import { state, set, selection, withMatcher } from "./state.js";
import { address, ask } from "./api.js";
import { cores, count, percent, weight } from "./format.js";
import { bar } from "./view_top.js";

const CHOICES = [["exe", "Executables"], ["pid", "Processes"], ["container", "Containers"], ["thread.name", "Thread names"], ["tid", "Threads"], ["service.name", "Services"], ["cpu", "CPUs"]];

export class WhoView {
  constructor(app) {
    this.app = app;
    this.box = h("input", { type: "search", placeholder: "Begins with…  /", "aria-label": "Only values that begin with", spellcheck: "false", oninput: () => this.render() });
    this.choices = h("div", { class: "segments", role: "group", "aria-label": "Label" });
    this.others = h("span");
    this.found = h("output", { class: "found" });
    this.body = h("tbody");
    this.el = h("div", { class: "scroll" }, h("div", { class: "toolbar" }, this.choices, this.others, h("div", { class: "search" }, this.box, this.found)),
      h("table", { class: "grid" }, h("thead", null, h("tr", null, h("th", { scope: "col", class: "number" }, "Share"), h("th", { scope: "col", class: "number wide" }, "Weight"),
        h("th", { scope: "col" }, "Value"), h("th", { scope: "col" }, h("span", { class: "offscreen" }, "Actions")))), this.body));
    this.labels = [];
    this.at = -1;
    this.ask();
  }

  async ask() {
    try {
      this.labels = (await ask(address("labels", selection()))).data.labels;
    } catch (e) {
      this.labels = [];
    }
    this.render();
  }

  query() {
    return { path: "values", params: { ...selection(), label: state.lb } };
  }

  show(data) {
    this.data = data;
    this.render();
  }

  render() {
    replace(this.choices, CHOICES.map(([id, text]) => button(text, `Values of ${id}`, () => set({ lb: id }), { "aria-pressed": String(state.lb === id) })));
    const known = new Set(CHOICES.map(([id]) => id)), rest = this.labels.filter((l) => !known.has(l));
    replace(this.others, rest.length ? select("Another label", [["", "Other labels…"], ...rest.map((l) => [l, l])], known.has(state.lb) ? "" : state.lb, (lb) => lb && set({ lb })) : null);
    const d = this.data;
    if (!d) return;
    const total = d.values.reduce((a, v) => a + v.weight, 0), rows = d.values.filter((v) => v.value.startsWith(this.box.value));
    replace(this.found, h("span", { class: "quiet" }, `${count(rows.length)} of ${count(d.values.length)}`));
    const { data } = this.timeline() || {}, spanned = { ...d, weight_ns: d.weight_ns ?? (data ? data.weight_ns : 0), kind: d.kind || (data && data.kind), from: d.from ?? (data ? data.from : 0), to: d.to ?? (data ? data.to : 0) };
    replace(this.body, rows.map((v) => h("tr", { onclick: () => this.only(v) },
      h("td", { class: "number" }, bar(total ? v.weight / total : 0), percent(v.weight, total)),
      h("td", { class: "number wide" }, [weight(v.weight, spanned), cores(v.weight, spanned)].filter(Boolean).join(" · ")),
      h("td", { class: "name" }, v.value || h("span", { class: "quiet" }, "(none)")),
      h("td", { class: "acts" }, button("Only", "Only this, in all views", (e) => {
        e.stopPropagation();
        this.only(v);
      }, { class: "small" }), button("Not", "All but this", (e) => {
        e.stopPropagation();
        set({ q: withMatcher(state.q, state.lb, "!=", v.value) });
      }, { class: "small" })))));
    this.rows = rows;
    this.mark();
  }

  timeline() {
    return this.app && this.app.timeline.loader.last;
  }

  only(v) {
    set({ q: withMatcher(state.q, state.lb, "=", v.value), view: "flame", z: "", w: "" });
  }

  mark() {
    [...this.body.children].forEach((tr, i) => tr.classList.toggle("chosen", i === this.at));
    if (this.body.children[this.at]) this.body.children[this.at].scrollIntoView({ block: "nearest" });
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || !this.rows) return false;
    if (e.key === "ArrowDown" || e.key === "j") this.at = Math.min(this.rows.length - 1, this.at + 1);
    else if (e.key === "ArrowUp" || e.key === "k") this.at = Math.max(0, this.at - 1);
    else if (e.key === "Enter" && this.rows[this.at]) this.only(this.rows[this.at]);
    else if (e.key === "/") this.box.focus();
    else return false;
    this.mark();
    e.preventDefault();
    return true;
  }
}
