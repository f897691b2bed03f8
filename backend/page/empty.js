// SPDX-License-Identifier: Apache-2.0
// What stands in place of a picture when there is nothing to draw: how data comes in, or where the data is.
import { h, button, copy } from "./dom.js";
import { set, state } from "./state.js";
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

export function emptyRange(status, data) {
  const s = status && status.store, narrowed = state.q || state.focus || state.ignore;
  return h("div", { class: "scroll padded" }, h("div", { class: "card empty" },
    h("h2", null, narrowed ? "No samples of this selection" : "No samples in this time"),
    h("p", null, data && data.from ? `Asked for ${span(data.from, data.to)}.` : "", s && s.events ? ` The store has ${count(s.events)} samples from ${span(s.first, s.last)}.` : ""),
    h("p", { class: "row" },
      narrowed && button("All series", "Drop selector and filters", () => set({ q: "", focus: "", ignore: "" })),
      s && s.events && button("All that is kept", "From the first sample to the last", () => set({ from: "first", to: "last", sel: "", live: "" })),
      state.sel && button("The whole range", "Drop the selected time", () => set({ sel: "" })))));
}
