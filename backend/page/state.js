// SPDX-License-Identifier: Apache-2.0
// What the page shows, kept in the address behind "#", so that a link shows the same again. Each key has a default, which is not
// written. Everything that changes goes through set(); who listens hears which keys did.

const DEFAULTS = {
  view: "flame",
  from: "now-1h", to: "now", // the range the timeline spans, as the API takes it
  sel: "", // "FROM-TO" in Unix seconds: the part of it that all views show
  kind: "", q: "", focus: "", ignore: "", inline: "1",
  by: "", nodes: "20000", lines: "", // of the flame graph
  dir: "icicle", color: "type", inv: "", x: [], z: "", w: "",
  s: "", case: "",
  fn: "", mod: "", // sandwich
  sort: "self", rows: "200", // top
  tby: "", // the timeline's label
  from2: "", to2: "", q2: "", q1: "", from1: "", to1: "", dm: "share", dv: "flame", // diff: A is ...1, B is ...2
  hs: "", // heat map: chosen cells
  lb: "comm", // label of the chooser
  live: "1",
};

export const state = {};
const listeners = [];

function parse(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  for (const [key, value] of Object.entries(DEFAULTS)) {
    if (Array.isArray(value)) state[key] = given.getAll(key);
    else state[key] = given.has(key) ? given.get(key) : value;
  }
}

// The address of a state; @changes stand in for what is in `state`.
export function link(changes) {
  const now = { ...state, ...changes }, out = new URLSearchParams();
  for (const [key, value] of Object.entries(DEFAULTS)) {
    if (Array.isArray(value)) now[key].forEach((v) => out.append(key, v));
    else if (now[key] !== value) out.set(key, now[key]);
  }
  const text = out.toString();
  return text ? `#${text}` : "#";
}

// quiet: not a step that "back" returns to (typing, dragging).
export function set(changes, quiet) {
  const changed = Object.keys(changes).filter((k) => String(state[k]) !== String(changes[k]));
  if (!changed.length) return;
  Object.assign(state, changes);
  history[quiet ? "replaceState" : "pushState"](null, "", link());
  tell(changed);
}

function tell(changed) {
  for (const fn of listeners) fn(new Set(changed));
}

export const onChange = (fn) => listeners.push(fn);

window.addEventListener("popstate", () => {
  const before = { ...state };
  parse(location.hash);
  tell(Object.keys(DEFAULTS).filter((k) => String(before[k]) !== String(state[k])));
});
parse(location.hash);

// The part of time that views ask for.
export function range() {
  const cut = state.sel.match(/^([\d.]+)-([\d.]+)$/);
  return cut ? { from: cut[1], to: cut[2] } : { from: state.from, to: state.to };
}

export const isLive = () => state.live === "1" && !state.sel && state.to === "now";

// The parameters that all questions share.
export function selection() {
  const { from, to } = range();
  return { from, to, query: state.q, kind: state.kind, focus: state.focus, ignore: state.ignore, inline: state.inline === "1" ? "" : "0" };
}

// --- matchers in the query ---

const quote = (value) => `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;

// The matchers of a query: [{ label, op, value, text }]; null when it cannot be read.
export function matchers(query) {
  const text = query.trim().replace(/^\{/, "").replace(/\}$/, ""), out = [];
  const one = /\s*([A-Za-z_][\w.]*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"\s*(,|$)/y;
  while (one.lastIndex < text.length) {
    const m = one.exec(text);
    if (!m) return null;
    out.push({ label: m[1], op: m[2], value: m[3].replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c)), text: `${m[1]}${m[2]}"${m[3]}"` });
  }
  return out;
}

// The query with a matcher more; one of the same label and operator is replaced.
export function withMatcher(query, label, op, value) {
  const others = (matchers(query) || []).filter((m) => m.label !== label || m.op !== op || (op === "!=" && m.value !== value));
  return `{${[...others.map((m) => m.text), `${label}${op}${quote(value)}`].join(", ")}}`;
}

export function withoutMatcher(query, index) {
  const left = (matchers(query) || []).filter((_, i) => i !== index);
  return left.length ? `{${left.map((m) => m.text).join(", ")}}` : "";
}
