// SPDX-License-Identifier: Apache-2.0
// From a span or a log line to its samples, as the server joins them: exactly, by link, or by process and time, which is said.
import { say } from "./dom.js";
import { set, withMatcher, withoutLabels } from "./state.js";
import { address, ask } from "./api.js";

export const JOINED = {
  link: "joined exactly: the samples say their span",
  time: "joined by time: all that its thread, or its process, did meanwhile",
  none: "no sample is of it",
};

const IDS = ["trace_id", "span_id"];

// Shows the flame graph of what `where` tells: @path is "span/ID" or "log/ID".
export async function goToSamples(path, params) {
  let found;
  try {
    found = (await ask(address(`${path}/where`, params))).data;
  } catch (e) {
    say(e.message);
    return;
  }
  if (found.joined === "none") {
    say("No sample is of it: neither by link nor by process and time.");
    return;
  }
  say(`Samples ${JOINED[found.joined]}.`);
  const times = found.to === undefined ? { from: "first", to: "last" } : { from: String(found.from), to: String(found.to) };
  set({ view: "flame", q: found.query, kind: "", focus: "", sel: "", live: "", z: "", w: "", ...times });
}

export const goToTrace = (query, trace) => set({ view: "trace", tv: "traces", q: withMatcher(withoutLabels(query, IDS), "trace_id", "=", trace), focus: "", z: "", w: "" });
export const withoutIds = (query) => withoutLabels(query, IDS);

// The address of trace @id in the tool that --trace-url names; "": in none.
export function foreign(status, id) {
  const template = (status && status.trace_url) || "";
  return /^https?:\/\//.test(template) ? template.replaceAll("${trace_id}", id) : "";
}
