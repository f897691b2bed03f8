// SPDX-License-Identifier: Apache-2.0
// Whether what is shown can be believed, and how hearth itself is: four views in one, of which one is shown.
import { h, replace, button } from "./dom.js";
import { state, set } from "./state.js";
import { TruthView } from "./view_truth.js";
import { ExecutablesView } from "./view_executables.js";
import { LogView, DeveloperView } from "./view_hearth.js";

const PARTS = [["truth", "Truth", TruthView], ["executables", "Executables", ExecutablesView], ["log", "Log", LogView], ["developer", "Developer", DeveloperView]];

export class HealthView {
  constructor(app) {
    this.app = app;
    this.parts = h("div", { class: "segments", role: "group", "aria-label": "Part of Health" });
    this.holder = h("div", { class: "health-part" });
    this.el = h("div", { class: "health" }, h("div", { class: "toolbar" }, this.parts), this.holder);
    this.choose();
  }

  // The part that the address names is shown.
  choose() {
    const found = PARTS.find(([id]) => id === state.hv) || PARTS[0];
    if (this.shown === found[0]) return;
    this.shown = found[0];
    this.part = new found[2](this.app);
    this.isOfHearth = this.part.isOfHearth;
    this.asked = "";
    replace(this.holder, this.part.el);
    replace(this.parts, PARTS.map(([id, title]) => button(title, title, () => set({ hv: id }), { "aria-pressed": String(id === this.shown) })));
  }

  query() {
    this.choose();
    return this.part.query();
  }

  show(data) {
    this.data = data;
    this.asked = this.shown;
    this.part.show(data);
  }

  // Two parts that ask the same share the answer.
  render() {
    if (this.asked === this.shown) this.part.render();
    else this.show(this.data);
  }

  key(e) {
    return this.part.key ? this.part.key(e) : false;
  }
}
