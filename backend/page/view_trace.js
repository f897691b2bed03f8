// SPDX-License-Identifier: Apache-2.0
// Signals beside profiles, and the ways from them to samples and back: three views in one, of which one is shown.
import { h, replace, button } from "./dom.js";
import { state, set } from "./state.js";
import { TracesPart } from "./part_traces.js";
import { LogsPart } from "./part_logs.js";
import { ExemplarsPart } from "./part_exemplars.js";

const PARTS = [["traces", "Traces", TracesPart], ["logs", "Logs", LogsPart], ["exemplars", "Metrics", ExemplarsPart]];

export class TraceView {
  constructor(app) {
    this.app = app;
    this.parts = h("div", { class: "segments", role: "group", "aria-label": "Kind of signal" });
    this.holder = h("div", { class: "health-part" });
    this.el = h("div", { class: "health" }, h("div", { class: "toolbar" }, this.parts), this.holder);
    this.choose();
  }

  // The part that the address names is shown.
  choose() {
    const found = PARTS.find(([id]) => id === state.tv) || PARTS[0];
    if (this.shown === found[0]) return;
    this.shown = found[0];
    this.part = new found[2](this.app);
    this.asked = "";
    replace(this.holder, this.part.el);
    replace(this.parts, PARTS.map(([id, title]) => button(title, title, () => set({ tv: id }), { "aria-pressed": String(id === this.shown) })));
  }

  query() {
    this.choose();
    return this.part.query();
  }

  show(data) {
    this.asked = this.shown;
    this.part.show(data);
  }

  render() {
    if (this.asked === this.shown) this.part.render();
  }

  repaint() {
    this.render();
  }

  key(e) {
    return this.part.key ? this.part.key(e) : false;
  }
}
