// SPDX-License-Identifier: Apache-2.0
// One profile on the page of proto/report/flamegraph_page.js, which says what each member is: a colour a kind of frame, shares of the whole.
"use strict";
const makeLook = (data, flame) => {
  const { names, shades } = data, { colours, unit } = data.look, whole = flame.total[0] || 1;
  const INLINED = 8, KINDS = ["process", "kernel", "native", "Go", "interpreted", "marker"];

  const number = (v) => {
    if (unit !== "nanoseconds") return v.toLocaleString("en") + (unit === "count" ? "" : " " + unit);
    return v >= 1e9 ? (v / 1e9).toFixed(2) + " s" : v >= 1e6 ? (v / 1e6).toFixed(1) + " ms" : v.toLocaleString("en") + " ns";
  };
  const percent = (v) => ((100 * v) / whole).toFixed(2) + " %";

  function functions(tree) {
    const self = new Float64Array(names.length), total = new Float64Array(names.length), open = new Int32Array(names.length), path = [];
    for (let i = 1; i < tree.name.length; i++) {
      while (path.length && tree.depth[path[path.length - 1]] >= tree.depth[i]) open[tree.name[path.pop()]]--;
      const name = tree.name[i];
      if (tree.depth[i] > 1) {
        self[name] += tree.self[i];
        if (!open[name]) total[name] += tree.total[i]; // recursion counts once
      }
      open[name]++;
      path.push(i);
    }
    return names.map((_, name) => ({ name, self: self[name], total: total[name] })).filter((f) => f.total);
  }


  return {
    colour: (tree, i) => colours[tree.kind[i] & 7][shades[tree.name[i]]],
    alpha: (tree, i) => (tree.kind[i] & INLINED ? 0.65 : 1),
    describe: (tree, i) => `${names[tree.name[i]]}${tree.kind[i] & INLINED ? " (inlined)" : ""}: ${number(tree.total[i])}, ` +
      `${percent(tree.total[i])}` + (tree.self[i] ? `, itself ${percent(tree.self[i])}` : ""),
    found: percent,
    legend: (tree) => [...new Set(tree.kind.map((k) => k & 7))].map((kind) => [colours[kind][0], KINDS[kind]]),
    functions,
    orders: { self: (f) => f.self, total: (f) => f.total },
    cells: (f) => [[percent(f.self)], [number(f.self), "detail"], [percent(f.total)], [number(f.total), "detail"], [names[f.name]]],
  };
};
