// SPDX-License-Identifier: Apache-2.0
// Two profiles on the page of proto/report/flamegraph_page.js, which says what each member is. A node's total is what A and B take of it
// together, in look.unit parts; its second is B's. look.functions has [name, module, [a, b, band, changed] of itself, the same of it
// with what it calls] in parts of 1, or seconds a run.
"use strict";
const makeLook = (data, flame) => {
  const { names } = data, { unit, seconds, least, factor, more, less, same, modules } = data.look;
  const isTime = seconds > 0, whole = isTime ? seconds : 1;

  const value = (v) => (isTime ? v.toFixed(Math.abs(seconds) < 10 ? 3 : 2) + " s" : (100 * v).toFixed(2) + " %");
  const signed = (v) => (v < 0 ? "\u2212" : "+") + value(Math.abs(v));
  const relative = (a, b) => (a > 0 && b > 0 ? `${b < a ? "\u2212" : "+"}${Math.abs((b / a - 1) * 100).toFixed(1)} %` : b > 0 ? "new" : "gone");

  const sides = (total, second) => [(total - second) / unit, second / unit]; // parts of A's run
  const band = (a, b) => {
    const part = Math.min((a + b) / 2, 0.99);
    return factor * Math.sqrt(part * (1 - part));
  };
  const colour = (tree, i) => {
    const [a, b] = sides(tree.total[i], tree.totalSecond[i]), part = Math.abs(b - a) / Math.max(a, b);
    if (Math.abs(b - a) <= Math.max(band(a, b), least)) return same;
    return (b > a ? more : less)[part > 0.5 ? 3 : part > 0.2 ? 2 : part > 0.07 ? 1 : 0];
  };
  const describe = (tree, i) => {
    const [a, b] = sides(tree.total[i], tree.totalSecond[i]);
    return `${names[tree.name[i]]}: A ${value(a * whole)}, B ${value(b * whole)}: ${signed((b - a) * whole)}, ${relative(a, b)}, ` +
      `noise \u00b1${value(band(a, b) * whole)}`;
  };
  const found = (total, second) => {
    const [a, b] = sides(total, second);
    return `A ${value(a * whole)}, B ${value(b * whole)}`;
  };

  const change = ([a, b, noise, changed]) => ({ a, b, noise, changed, delta: b - a });
  const functions = () => data.look.functions.map(([name, module, self, total]) =>
    ({ name, module: modules[module], self: change(self), total: change(total) }));
  // What changed, by how much; then what did not.
  const rank = (c) => (c.changed ? 1e9 : 0) + Math.abs(c.delta);
  const cells = (c) => [[value(c.a), "detail"], [value(c.b), "detail"],
    [`${c.changed ? (c.delta > 0 ? "\u25b2 " : "\u25bc ") : ""}${signed(c.delta)}`, c.changed ? (c.delta > 0 ? "more" : "less") : "noise"],
    ["\u00b1" + value(c.noise), "noise"]];

  return {
    colour,
    alpha: () => 1,
    describe,
    found,
    legend: () => [[less[3], "less in B"], [less[0], "a little less"], [same, "no more than noise"], [more[0], "a little more"],
      [more[3], "more in B"]],
    functions,
    orders: { self: (f) => rank(f.self), total: (f) => rank(f.total), a: (f) => f.total.a, b: (f) => f.total.b },
    cells: (f) => [...cells(f.self), ...cells(f.total), [names[f.name] + (f.module ? ` (${f.module})` : "")]],
  };
};
