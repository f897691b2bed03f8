// SPDX-License-Identifier: Apache-2.0
// The state of the page, kept in the address behind "#", so that a link shows the same again. Each key has a default,
// which is not written. Everything that changes goes through set(); who listens hears which keys did.

const DEFAULTS = {
  view: "flame",
  from: "recent", to: "now", // the range the timeline spans, as the API takes it
  sel: "", // "FROM-TO" in Unix seconds: the part of it that all views show
  kind: "", q: "", focus: "", ignore: "", idle: "", inline: "1",
  by: "", nodes: "20000", lines: "", // of the flame graph; by "": by process where there is more than one
  dir: "icicle", color: "type", inv: "", x: [], z: "", w: "",
  s: "", case: "",
  fn: "", mod: "", // sandwich
  sort: "self", rows: "200", // top
  tby: "", // the timeline's label
  from2: "", to2: "", q2: "", q1: "", from1: "", to1: "", dm: "share", dv: "flame", // diff: A is ...1, B is ...2
  hs: "", // heat map: chosen cells
  lb: "exe", // label of the chooser
  tv: "traces", ts: "slowest", lt: "", ls: "", mn: "", // traces: part, order; logs: text, level; metric
  hv: "truth", // part of Health
  live: "1",
};

// Views of before, which are parts of Health now.
const PARTS = ["truth", "executables", "log", "developer"];
const NARROW = matchMedia("(max-width: 760px)"), FEW_NODES = "2000";

const PROCESS = "exe";
const isPlace = ({ z, x }) => z || x.some((step) => step.startsWith("subtree:"));

export const state = {};
const listeners = [];

function parse(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  for (const [key, value] of Object.entries(DEFAULTS)) {
    if (Array.isArray(value)) state[key] = given.getAll(key);
    else state[key] = given.has(key) ? given.get(key) : value;
  }
  // Links of before called the executable comm; nothing here groups by what is called so now.
  for (const key of ["by", "tby", "lb"]) if (state[key] === "comm" || state[key] === "process.executable.name") state[key] = PROCESS;
  if (PARTS.includes(state.view)) Object.assign(state, { hv: state.view, view: "health" });
  if (NARROW.matches && !given.has("nodes")) state.nodes = FEW_NODES;
  // A place in a graph is found by the names above it. Links to one are from before graphs were grouped, or say how.
  if (state.by === PROCESS && state.view !== "top") state.by = "";
  else if (!given.has("by") && isPlace(state)) state.by = "none";
}

// The address of a state; @changes stand in for what is in `state`.
export function link(changes) {
  const now = { ...state, ...changes }, out = new URLSearchParams();
  for (const [key, value] of Object.entries(DEFAULTS)) {
    if (Array.isArray(value)) now[key].forEach((v) => out.append(key, v));
    else if (now[key] !== value || (key === "view" && NARROW.matches)) out.set(key, now[key]);
  }
  if (now.by === "" && isPlace(now)) out.set("by", PROCESS);
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
if (NARROW.matches && location.hash.length < 2) { // a table can be read there
  state.view = "top";
  history.replaceState(null, "", link());
}

// The label that the graph is grouped by, "" for none. One of a single process is not: withoutGroup() of transform.js.
export const grouping = () => (state.by === "" ? PROCESS : state.by === "none" ? "" : state.by);

// The part of time that views ask for.
export function range() {
  const cut = state.sel.match(/^([\d.]+)-([\d.]+)$/);
  return cut ? { from: cut[1], to: cut[2] } : { from: state.from, to: state.to };
}

export const isLive = () => state.live === "1" && !state.sel && state.to === "now";

// The parameters that all questions share.
export function selection() {
  const { from, to } = range();
  return { from, to, query: state.q, kind: state.kind, focus: state.focus, ignore: state.ignore, idle: state.idle, inline: state.inline === "1" ? "" : "0" };
}

// What things can be grouped by, as [label, text] pairs: @first, then the others, @by among them.
export function groupings(first, by) {
  const waits = /^(off_cpu|runnable|waker)$/.test(state.kind) ? [["syscall.name", "By system call"], ["wait.target", "By file, peer or lock"], ["thread.state", "By state"]] : [];
  if (state.kind === "waker") waits.push(["waker.thread.name", "By who ended it"]);
  const out = [...first, ...waits, ["pid", "By process ID"], ["thread.name", "By thread name"], ["tid", "By thread"], ["container", "By container"], ["service.name", "By service"], ["cpu", "By CPU"], ["span_id", "By span"], ["trace_id", "By trace"]];
  return out.some(([label]) => label === by) ? out : [...out, [by, `By ${by}`]];
}

// --- matchers in the query ---

const quote = (value) => `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;

const MATCHER = /^([A-Za-z_][\w.]*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"\s*/;
const WORD = /^(?:"((?:[^"\\]|\\.)*)"|([^\s{},"'`=!]+)(?=[\s{]|$)(?!\s*[=!]))\s*/, BARE = /^[^\s{},"'`=!]+$/;
const unquote = (text) => text.replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c));

// A query as docs/api.md has it: { matchers: [{ label, op, value, text }], word }; null when it cannot be read.
export function readQuery(query) {
  const out = { matchers: [], word: "" };
  let rest = query.trim(), m;
  const take = (pattern) => (m = rest.match(pattern)) && ((rest = rest.slice(m[0].length)), m);
  const takeWord = () => !out.word && take(WORD) && (out.word = m[1] === undefined ? m[2] : unquote(m[1]));
  takeWord();
  const isOpen = take(/^\{\s*/);
  while (take(MATCHER)) {
    out.matchers.push({ label: m[1], op: m[2], value: unquote(m[3]), text: `${m[1]}${m[2]}"${m[3]}"` });
    if (!take(/^,\s*/)) break;
  }
  if (isOpen && !take(/^\}\s*/)) return null;
  takeWord();
  return rest ? null : out;
}

export function writeQuery({ matchers, word }) {
  return [matchers.length ? `{${matchers.map((m) => m.text).join(", ")}}` : "", word && (BARE.test(word) ? word : quote(word))].filter(Boolean).join(" ");
}

const read = (query) => readQuery(query) || { matchers: [], word: "" };

// The query with a matcher more; one of the same label and operator is replaced.
export function withMatcher(query, label, op, value) {
  const { matchers, word } = read(query), others = matchers.filter((m) => m.label !== label || m.op !== op || (op === "!=" && m.value !== value));
  return writeQuery({ matchers: [...others, { text: `${label}${op}${quote(value)}` }], word });
}

export function withoutMatcher(query, index) {
  const { matchers, word } = read(query);
  return writeQuery({ matchers: matchers.filter((_, i) => i !== index), word });
}

// The query without matchers of @labels by =.
export function withoutLabels(query, labels) {
  const { matchers, word } = read(query);
  return writeQuery({ matchers: matchers.filter((m) => m.op !== "=" || !labels.includes(m.label)), word });
}

export const withoutWord = (query) => writeQuery({ ...read(query), word: "" });

// The query with @near of an answer's "nearest" in place of what it asked for.
export function withNearest(query, near) {
  const { matchers, word } = read(query), others = matchers.filter((m) => m.op !== "=" || m.value !== near.instead_of);
  return withMatcher(writeQuery({ matchers: others, word: word === near.instead_of ? "" : word }), near.label, "=", near.value);
}

// --- links from elsewhere ---

// ?trace=ID, ?span=ID, ?pid=PID, ?at=TIME (Unix seconds, or as in RFC 3339): where a page of traces or logs sends its readers to.
function comeFromElsewhere(given) {
  let q = "";
  for (const [key, label] of [["trace", "trace_id"], ["span", "span_id"], ["pid", "process.pid"]])
    if (given.get(key)) q = withMatcher(q, label, "=", given.get(key).toLowerCase());
  const at = given.get("at"), t = at ? (/^[\d.]+$/.test(at) ? +at : Date.parse(at) / 1000) : NaN;
  if (!q && !(t > 0)) return;
  const time = t > 0 ? { from: String(t - AROUND_S), to: String(t + AROUND_S) } : { from: "first", to: "last" };
  Object.assign(state, { q, live: "", ...time, view: given.get("trace") && !given.get("span") ? "trace" : "flame" });
  history.replaceState(null, "", location.pathname + link());
}

const AROUND_S = 1;
comeFromElsewhere(new URLSearchParams(location.search));
