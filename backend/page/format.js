// SPDX-License-Identifier: Apache-2.0
// Numbers, times and names as people read them.

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const count = (n) => grouped.format(n).replaceAll(",", "\u202f");

export function percent(part, whole) {
  if (!whole) return "0 %";
  const p = (100 * part) / whole;
  if (p === 0) return "0 %";
  if (p < 100 && p > 99.9) return `${(Math.floor(p * 100) / 100).toFixed(2)} %`; // not quite all is not all
  return Math.abs(p) < 0.01 ? "<0.01 %" : `${p.toFixed(Math.abs(p) < 10 ? 2 : 1)} %`;
}

export function bytes(n) {
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (n < 1000) return `${n < 10 && unit !== "B" ? n.toFixed(1) : Math.round(n)}\u00a0${unit}`;
    n /= 1000;
  }
  return `${n.toFixed(1)}\u00a0TB`;
}

// Rounded before it is divided, or there would be 43 min 60 s.
function twoParts(s, large, largeUnit, small, smallUnit) {
  const rounded = Math.round(s / small) * small;
  return `${Math.floor(rounded / large)} ${largeUnit} ${Math.round((rounded % large) / small)} ${smallUnit}`;
}

export function seconds(s) {
  const a = Math.abs(s);
  if (a === 0) return "0 s";
  if (a < 1e-6) return `${(s * 1e9).toFixed(0)} ns`;
  if (a < 1e-3) return `${(s * 1e6).toFixed(0)} µs`;
  if (a < 1) return `${(s * 1e3).toFixed(a < 0.01 ? 1 : 0)} ms`;
  if (a < 120) return `${s.toFixed(a < 10 ? 2 : 1)} s`;
  const sign = s < 0 ? "-" : "";
  if (a < 7200) return sign + twoParts(a, 60, "min", 1, "s");
  if (a < 172800) return sign + twoParts(a, 3600, "h", 60, "min");
  return sign + twoParts(a, 86400, "d", 3600, "h");
}

// A weight as CPU time where it is one, else in its unit.
export function weight(value, answer) {
  if (answer.weight_ns) return seconds((value * answer.weight_ns) / 1e9);
  const unit = answer.kind ? answer.kind.unit : "";
  if (unit === "bytes" || unit === "By") return bytes(value);
  const held = /^(byte|count)_seconds$/.exec(unit); // of a moment, each times how long it held: the mean
  if (held) {
    const mean = value / (answer.covered_seconds || answer.to - answer.from || 1);
    return held[1] === "byte" ? bytes(mean) : count(mean);
  }
  return `${count(value)}${unit && unit !== "count" ? ` ${unit}` : ""}`;
}

// A piece of an answer's time: what there is of it.
export function piece(answer, from, to) {
  const covered = Math.min(to, answer.covered_to ?? to) - Math.max(from, answer.covered_from ?? from);
  return { ...answer, from, to, covered_seconds: Math.min(to - from, Math.max(covered, 0.1)) };
}

// How many CPUs were busy with it on average over the time that has samples; "" where the weight is no time.
export function cores(value, answer) {
  const span = answer.covered_seconds || answer.to - answer.from;
  if (!answer.weight_ns || !(span > 0)) return "";
  const c = (value * answer.weight_ns) / 1e9 / span;
  return `${c === 0 ? "0" : c < 0.001 ? "<0.001" : c.toFixed(c < 0.1 ? 3 : 2)} ${answer.kind && /off_cpu|runnable|waker/.test(answer.kind.type) ? "threads" : "cores"}`;
}

const two = (n) => String(n).padStart(2, "0");
export const clock = (t, fraction) => {
  const d = new Date(t * 1000);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}${fraction ? "." + String(d.getMilliseconds()).padStart(3, "0") : ""}`;
};
export const day = (t) => {
  const d = new Date(t * 1000);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
};
export const moment = (t) => (day(t) === day(Date.now() / 1000) ? clock(t) : `${day(t)} ${clock(t)}`);
export const span = (from, to) => `${moment(from)} – ${day(from) === day(to) ? clock(to) : moment(to)}`;

// Where ticks of an axis over a range of time go: [time, text] pairs, about @room of them, at round local times.
export function ticks(from, to, room) {
  const steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
  const wanted = (to - from) / Math.max(1, room), step = steps.find((s) => s >= wanted) || 1209600;
  const shift = new Date(from * 1000).getTimezoneOffset() * 60;
  const out = [];
  for (let t = Math.ceil((from - shift) / step) * step + shift; t < to; t += step) {
    const text = step >= 86400 ? day(t).slice(5) : step >= 60 ? clock(t).slice(0, 5) : step >= 1 ? clock(t) : clock(t, true).slice(3);
    out.push([t, text]);
  }
  return out;
}

export const kindName = (kind) =>
  ({ samples: "CPU samples", cpu: "CPU time", off_cpu: "Waiting", waker: "Waiting, by who ended it", contentions: "Waits for locks", runnable: "Waiting for a CPU", memory: "Memory first touched", alloc_space: "Allocated bytes", alloc_objects: "Allocations",
    malloc: "Bytes asked for (malloc)", inuse_space: "Bytes in use", inuse_objects: "Objects in use" })[kind] ||
  kind.replaceAll("_", " ");
