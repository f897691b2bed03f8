// SPDX-License-Identifier: Apache-2.0
// How true the picture is: stacks that are complete, why others are not, names that are missing, samples lost, hearth's own cost.
import { h, replace } from "./dom.js";
import { state, set, range } from "./state.js";
import { bytes, count, percent, seconds } from "./format.js";
import { bar } from "./view_top.js";

const lostOf = (d) => Object.entries(d.counters || {}).filter(([name]) => /lost|dropped|not_sampled/.test(name));

function tone(part) {
  return part >= 0.99 ? "good" : part >= 0.9 ? "fair" : "bad";
}

// For the foot of every view.
export function truthPill(d) {
  if (!d || !d.events) return null;
  const lost = lostOf(d).filter(([name]) => /lost|dropped/.test(name)).reduce((a, [, v]) => a + v, 0), part = d.complete / d.events;
  return h("a", { href: "#view=truth", class: `pill ${lost ? "fair" : tone(part)}`, title: "How true this is: stacks complete, samples lost", onclick: (e) => {
    e.preventDefault();
    set({ view: "truth" });
  } }, `${percent(d.complete, d.events)} complete · ${count(lost)} lost`);
}

function gauge(title, text, part, says, className) {
  return h("div", { class: `gauge ${className}` }, h("h3", null, title), h("div", { class: "figure" }, text), part === null ? null : bar(part), h("p", { class: "quiet" }, says));
}

export class TruthView {
  constructor() {
    this.el = h("div", { class: "scroll padded" });
  }

  query() {
    const { from, to } = range();
    return { path: "truth", params: { from, to, query: state.q } };
  }

  show(data) {
    this.data = data;
    this.render();
  }

  render() {
    const d = this.data;
    if (!d) return;
    const complete = d.events ? d.complete / d.events : 1, named = d.frames ? 1 - d.unnamed_frames / d.frames : 1;
    const lost = lostOf(d), sum = lost.filter(([name]) => /lost|dropped/.test(name)).reduce((a, [, v]) => a + v, 0);
    const cost = d.uptime_seconds ? d.cpu_seconds / d.uptime_seconds : 0;
    replace(this.el,
      h("div", { class: "gauges" },
        gauge("Complete stacks", percent(d.complete, d.events), complete, `${count(d.complete)} of ${count(d.events)} stacks reach the outermost function.`, tone(complete)),
        gauge("Named frames", percent(d.frames - d.unnamed_frames, d.frames), named, `${count(d.unnamed_frames)} of ${count(d.frames)} have an address only; see Executables.`, tone(named)),
        gauge("Lost samples", count(sum), null, sum ? "By reason, below. Nothing is lost without being counted." : "None. What would be lost is counted below.", sum ? "fair" : "good"),
        gauge("hearth's own cost", percent(cost, 1), null, `of one CPU: ${seconds(d.cpu_seconds)} in ${seconds(d.uptime_seconds)}; ${bytes(d.resident_bytes)} of memory.`, cost < 0.03 ? "good" : "fair")),
      h("section", null, h("h2", null, "Stacks that are not complete"), d.truncated.length ? h("table", { class: "grid" },
        h("thead", null, h("tr", null, h("th", { scope: "col", class: "number" }, "Samples"), h("th", { scope: "col", class: "number" }, "Share"), h("th", { scope: "col" }, "Reason"))),
        h("tbody", null, d.truncated.map((t) => h("tr", null, h("td", { class: "number" }, count(t.events)), h("td", { class: "number" }, percent(t.events, d.events)), h("td", null, t.reason)))))
        : h("p", { class: "quiet" }, "All stacks of this range are complete.")),
      h("section", null, h("h2", null, "Counters of loss"), lost.length ? h("table", { class: "grid" }, h("tbody", null, lost.map(([name, v]) =>
        h("tr", { class: v ? "some" : "none" }, h("td", { class: "number" }, count(v)), h("td", { class: "name" }, name))))) : h("p", { class: "quiet" }, "No counter of loss: this process samples nothing itself.")));
  }
}
