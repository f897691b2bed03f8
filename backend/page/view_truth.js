// SPDX-License-Identifier: Apache-2.0
// How true the picture is: stacks that are complete, why others are not, names that are missing, samples lost, hearth's own cost.
import { h, replace } from "./dom.js";
import { state, set, range } from "./state.js";
import { bytes, count, percent, seconds, weight } from "./format.js";
import { bar } from "./view_top.js";

const lostOf = (d) => Object.entries(d.counters || {}).filter(([name]) => /lost|dropped|not_sampled/.test(name));

// Green, amber or red, for a part that should be all: the same at the foot and here.
function tone(part) {
  return part >= 0.95 ? "good" : part >= 0.8 ? "fair" : "bad";
}

// For the foot of every view.
export function truthPill(d) {
  if (!d || !d.events) return null;
  const lost = lostOf(d).filter(([name]) => /lost|dropped/.test(name)).reduce((a, [, v]) => a + v, 0), part = d.complete / d.events;
  return h("a", { href: "#view=health", class: `pill ${tone(part)}`, title: "How true this is: stacks complete, samples lost", onclick: (e) => {
    e.preventDefault();
    set({ view: "health", hv: "truth" });
  } }, `${percent(d.complete, d.events)} complete · ${count(lost)} lost`);
}

function gauge(title, text, part, says, className) {
  return h("div", { class: `gauge ${className}` }, h("h3", null, title), h("div", { class: "figure" }, text), part === null ? null : bar(part), h("p", { class: "quiet" }, says));
}

// [{runtime, events, complete, faults: [[fault, events]]}] of {outcome: "RUNTIME: FAULT or complete", events}, most events first.
export function scriptsByRuntime(scripts) {
  const rows = new Map();
  for (const { outcome, events } of scripts) {
    const [runtime, fault] = outcome.split(/: (.*)/s), row = rows.get(runtime) || { runtime, events: 0, complete: 0, faults: [] };
    rows.set(runtime, row);
    row.events += events;
    if (fault === "complete") row.complete += events;
    else row.faults.push([fault || outcome, events]);
  }
  return [...rows.values()].sort((a, b) => b.events - a.events);
}

function scriptTable(scripts) {
  return h("table", { class: "grid" },
    h("thead", null, h("tr", null, h("th", { scope: "col", class: "number" }, "Samples"), h("th", { scope: "col", class: "number" }, "Complete"), h("th", { scope: "col" }, "Runtime"), h("th", { scope: "col" }, "Else"))),
    h("tbody", null, scriptsByRuntime(scripts).map((r) => h("tr", null, h("td", { class: "number" }, count(r.events)), h("td", { class: "number" }, percent(r.complete, r.events)),
      h("td", null, r.runtime), h("td", null, r.faults.map(([fault, n]) => `${fault} ${count(n)}`).join(", "))))));
}

const nothing = (title) => gauge(title, "–", null, "No samples in this range.", "");

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
    const complete = d.events ? d.complete / d.events : 1, named = d.total ? d.named_self / d.total : 1;
    const lost = lostOf(d), sum = lost.filter(([name]) => /lost|dropped/.test(name)).reduce((a, [, v]) => a + v, 0);
    const cost = d.uptime_seconds ? d.cpu_seconds / d.uptime_seconds : 0;
    replace(this.el,
      h("div", { class: "gauges" },
        d.events ? gauge("Complete stacks", percent(d.complete, d.events), complete, `${count(d.complete)} of ${count(d.events)} stacks reach the outermost function.`, tone(complete)) : nothing("Complete stacks"),
        d.events ? gauge("Time in code with a name", percent(d.named_self, d.total), named,
          `${weight(d.named_self, d)} of ${weight(d.total, d)}, by the innermost function. Of ${count(d.frames)} distinct frames ${percent(d.frames - d.unnamed_frames, d.frames)} have a name; see Executables.`, tone(named)) : nothing("Time in code with a name"),
        gauge("Lost samples", count(sum), null, sum ? "By reason, below. Nothing is lost without being counted." : "None. What would be lost is counted below.", sum ? "fair" : "good"),
        gauge("hearth's own cost", percent(cost, 1), null, `of one CPU: ${seconds(d.cpu_seconds)} in ${seconds(d.uptime_seconds)}; ${bytes(d.resident_bytes)} of memory.`, cost < 0.03 ? "good" : "fair")),
      h("section", null, h("h2", null, "Stacks that are not complete"), d.truncated.length ? h("table", { class: "grid" },
        h("thead", null, h("tr", null, h("th", { scope: "col", class: "number" }, "Samples"), h("th", { scope: "col", class: "number" }, "Share"), h("th", { scope: "col" }, "Reason"))),
        h("tbody", null, d.truncated.map((t) => h("tr", null, h("td", { class: "number" }, count(t.events)), h("td", { class: "number" }, percent(t.events, d.events)), h("td", null, t.reason)))))
        : h("p", { class: "quiet" }, d.events ? "All stacks of this range are complete." : "No samples in this range.")),
      d.scripts && d.scripts.length ? h("section", null, h("h2", null, "Stacks with functions of scripts"), scriptTable(d.scripts)) : null,
      h("section", null, h("h2", null, "Counters of loss"), lost.length ? h("table", { class: "grid" }, h("tbody", null, lost.map(([name, v]) =>
        h("tr", { class: v ? "some" : "none" }, h("td", { class: "number" }, count(v)), h("td", { class: "name" }, name))))) : h("p", { class: "quiet" }, "No counter of loss: this process samples nothing itself.")));
  }
}
