// SPDX-License-Identifier: Apache-2.0
// Stands in place of a picture when there is nothing to draw: how data comes in, or where the data is.
import { h, button, copy } from "./dom.js";
import { set, state, withNearest } from "./state.js";
import { halves } from "./sides.js";
import { count, span } from "./format.js";

function command(text) {
  return h("div", { class: "command" }, h("code", null, text), button("Copy", "Copy this", () => copy(text), { class: "small" }));
}

export function emptyStore(status) {
  // With --page-address OTLP goes elsewhere, and the page cannot know where senders reach that.
  const here = status.receives === false ? "http://HOST:4318" : location.origin;
  return h("div", { class: "scroll padded" }, h("div", { class: "card empty" },
    h("h2", null, "No samples yet"),
    h("p", null, status.live ? "hearth profiles this machine: the first samples are here within seconds." : "This hearth waits for profiles. Any of these brings some:"),
    h("h3", null, "Profile this machine"), command("sudo hearth"),
    h("h3", null, "Send here from another hearth"), command(`sudo hearth run --collector ${here}`),
    h("h3", null, "Send here from any OpenTelemetry profiler or Collector"), command(`OTEL_EXPORTER_OTLP_ENDPOINT=${here}`),
    status.receives === false && h("p", null, "HOST:4318 stands for the address that hearth was given with --http-address."),
    h("h3", null, "Look at a capture"), command("hearth view capture.otlp")));
}

// Buttons that put what there is into the question; @of: the state's key of that.
function nearest(list, of) {
  return list && list.length > 0 && h("div", { class: "nearest" }, h("h3", null, "Did you mean"),
    h("p", { class: "row" }, list.map((n) => button(`${n.label} ${n.value}`, `Ask for ${n.label} ${n.value} instead of ${n.instead_of}`,
      () => set({ [of]: withNearest(state[of] || state.q, n), z: "", w: "" })))));
}

export function emptyRange(status, data) {
  const s = status && status.store, narrowed = state.q || state.focus || state.ignore;
  return h("div", { class: "scroll padded" }, h("div", { class: "card empty" },
    h("h2", null, narrowed ? "No samples of this selection" : "No samples in this time"),
    h("p", null, data && data.from ? `Asked for ${span(data.from, data.to)}.` : "", s && s.events ? ` The store has ${count(s.events)} samples from ${span(s.first, s.last)}.` : ""),
    nearest(data && data.nearest, "q"),
    h("p", { class: "row" },
      narrowed && button("All series", "Drop selector and filters", () => set({ q: "", focus: "", ignore: "" })),
      s && s.events && button("All that is kept", "From the first sample to the last", () => set({ from: "first", to: "last", sel: "", live: "" })),
      state.sel && button("The whole range", "Drop the selected time", () => set({ sel: "" })))));
}

// Which side of the answer @d of /diff has nothing to compare; @timeline: its answer, or null.
export function emptySide(d, timeline) {
  const times = { A: [d.from, d.to], B: [d.from2, d.to2] }, sides = ["A", "B"].filter((s) => !(s === "A" ? d.total : d.total2));
  const isAny = timeline && timeline.total > 0;
  return h("div", { class: "scroll padded" }, h("div", { class: "card empty", role: "status" },
    h("h2", null, sides.length > 1 ? "Neither A nor B has samples" : `${sides[0]} has no samples`),
    h("p", null, sides.map((s) => `${s} is ${span(...times[s])}. `), "There is nothing to compare."),
    h("p", null, isAny ? "The timeline shows where samples are: drag over a time in it. It becomes B, the time before it A; both can be moved there." : "This range has none at all: choose a longer one above."),
    nearest(d.nearest, "q1"), nearest(d.nearest2, "q2"),
    isAny && h("p", { class: "row" }, button("Compare the halves of what there is", "The first half of the time that has samples against the second",
      () => set({ ...halves(timeline), q1: "", q2: "" })))));
}
