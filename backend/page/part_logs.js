// SPDX-License-Identifier: Apache-2.0
// Log lines that came in, the newest first. A line leads to the samples of its trace within a second of it, or of its process.
import { h, replace, button, select } from "./dom.js";
import { state, set, selection } from "./state.js";
import { clock, count } from "./format.js";
import { Rows } from "./rows.js";
import { goToSamples, goToTrace } from "./joined.js";

const LEVELS = [["", "All"], ["info", "Info and above"], ["warn", "Warnings and above"], ["error", "Errors"]];
const NAMES = ["", "trace", "debug", "info", "warn", "error", "fatal"], MOST = "500";

// OTLP has four numbers a level.
const level = (severity) => NAMES[Math.ceil(severity / 4)] || "";

export class LogsPart {
  constructor(app) {
    this.app = app;
    this.box = h("input", { type: "search", placeholder: "Lines with…  /", "aria-label": "Only lines with this text", spellcheck: "false", onchange: () => set({ lt: this.box.value }) });
    this.found = h("output", { class: "found" });
    this.choice = h("span");
    const body = h("tbody");
    this.rows = new Rows(body);
    this.el = h("div", { class: "scroll logs" }, h("div", { class: "toolbar" }, this.choice, h("div", { class: "search" }, this.box, this.found)),
      h("table", { class: "grid" }, h("thead", null, h("tr", null, ["Time", "Level", "Service", "Line"].map((t) => h("th", { scope: "col" }, t)), h("th", { scope: "col" }, h("span", { class: "offscreen" }, "Actions")))), body));
  }

  query() {
    const { from, to, query } = selection();
    return { path: "logs", params: { from, to, query, text: state.lt, severity: state.ls, limit: MOST } };
  }

  show(data) {
    this.data = data;
    this.render();
  }

  act(text, says, go) {
    return button(text, says, (e) => {
      e.stopPropagation();
      go();
    }, { class: "small" });
  }

  render() {
    if (!this.data || !this.data.logs) return;
    if (document.activeElement !== this.box) this.box.value = state.lt;
    replace(this.choice, select("Level", LEVELS, state.ls, (ls) => set({ ls })));
    replace(this.found, h("span", { class: "quiet" }, this.data.logs.length ? `${count(this.data.logs.length)}${this.data.more ? " of more" : ""} lines` : "No log line came in here at that time: send logs by OTLP to this address."));
    this.rows.fill(this.data.logs.map((l) => [h("tr", { class: l.severity >= 17 ? "some" : "" }, h("td", { class: "time" }, clock(l.time, true)), h("td", null, level(l.severity)), h("td", null, l.service),
      h("td", { class: "name" }, l.body),
      h("td", { class: "acts" }, l.trace_id && this.act("Trace", "The spans of its trace", () => goToTrace(state.q, l.trace_id)),
        this.act("Process", "The samples of its process from 1 s before to 1 s after", () => goToSamples(`log/${l.id}`, { of: "process" })))),
    () => goToSamples(`log/${l.id}`)]));
  }

  key(e) {
    if (e.key === "/") {
      this.box.focus();
      e.preventDefault();
      return true;
    }
    return this.rows.key(e);
  }
}
