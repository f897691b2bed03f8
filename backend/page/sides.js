// SPDX-License-Identifier: Apache-2.0
// The two times that Diff compares, A (from1 .. to1) and B (from2 .. to2), as the address has them.
import { state } from "./state.js";

const times = (a, b, c, d) => ({ from1: a.toFixed(3), to1: b.toFixed(3), from2: c.toFixed(3), to2: d.toFixed(3) });

// The halves of the time that has samples, as the timeline's answer has them; without any, of its range.
export function halves(timeline) {
  const n = Math.max(0, ...timeline.series.map((s) => s.weights.length)), has = (i) => timeline.series.some((s) => s.weights[i]);
  let first = 0, end = n;
  while (first < end && !has(first)) first++;
  while (end > first && !has(end - 1)) end--;
  const at = (i) => Math.min(timeline.to, timeline.from + i * timeline.step);
  const [from, to] = first < end ? [at(first), at(end)] : [timeline.from, timeline.to], half = (from + to) / 2;
  return times(from, half, half, to);
}

// A selected time is B, the same length before it is A; where the store begins later (@first), A begins there.
export function withBefore(from, to, first) {
  const a = from - (to - from);
  return times(first > a && first < from ? first : a, from, from, to);
}

// [{ name, n, from, to }...]: the sides whose times are fixed, so that they have a place in the timeline.
export function sides() {
  return [["A", 1], ["B", 2]].filter(([, n]) => /^[\d.]+$/.test(state[`from${n}`]) && /^[\d.]+$/.test(state[`to${n}`]))
    .map(([name, n]) => ({ name, n, from: +state[`from${n}`], to: +state[`to${n}`] }));
}
