// SPDX-License-Identifier: Apache-2.0
// What is known of a box: the tooltip below the pointer, and the same docked below the graph, where it can be selected.
import { h, replace } from "./dom.js";
import { cores, percent, weight } from "./format.js";
import { TYPES, kindOf, swatch, isDark } from "./colors.js";

// [[label, text]...] of node @i.
export function facts(tree, i) {
  const { answer, functions } = tree, f = tree.fn[i], whole = tree.total[0], out = [];
  if (tree.isDiff) {
    const whole2 = tree.total2[0];
    const side = (self, total, all, span) => {
      const timed = { ...answer, ...span };
      return [percent(total, all), weight(total, timed), cores(total, timed), self ? `self ${percent(self, all)}` : ""].filter(Boolean).join(" · ");
    };
    out.push(["A (before)", side(tree.self[i], tree.total[i], whole, {})]);
    out.push(["B (after)", side(tree.self2[i], tree.total2[i], whole2, { from: answer.from2 || answer.from, to: answer.to2 || answer.to })]);
    const points = 100 * ((whole2 ? tree.total2[i] / whole2 : 0) - (whole ? tree.total[i] / whole : 0));
    const factor = tree.total[i] && whole && whole2 ? tree.total2[i] / whole2 / (tree.total[i] / whole) : 0;
    out.push(["change", `${points > 0 ? "+" : ""}${points.toFixed(2)} points of share${factor ? ` (× ${factor.toFixed(2)})` : ""}`]);
  } else {
    const line = (w) => [percent(w, whole), weight(w, answer), cores(w, answer)].filter(Boolean).join(" · ");
    out.push(["total", line(tree.total[i])], ["self", line(tree.self[i])]);
  }
  if (i > 0) {
    const file = functions.file[f], at = tree.line[i];
    if (functions.module[f]) out.push(["module", functions.module[f]]);
    if (file) out.push(["source", at ? `${file}:${at}` : file]);
    if (functions.build_id[f]) out.push(["build id", functions.build_id[f]]);
    out.push(["kind", `${TYPES[kindOf(functions.type[f], functions.name[f])].title}${functions.type[f] === "label" ? "" : tree.inlined[i] ? ", inlined call" : ""}`]);
  }
  return out;
}

const list = (rows) => h("dl", null, rows.map(([k, v]) => [h("dt", null, k), h("dd", null, v)]));

export class Tooltip {
  constructor() {
    this.el = h("div", { class: "tooltip", role: "tooltip", hidden: true });
    document.body.append(this.el);
  }

  show(tree, i, x, y) {
    if (i < 0) {
      this.hide();
      return;
    }
    replace(this.el, h("b", null, tree.name(i)), list(facts(tree, i)));
    this.place(x, y);
  }

  text(title, rows, x, y) {
    replace(this.el, h("b", null, title), list(rows));
    this.place(x, y);
  }

  place(x, y) {
    this.el.hidden = false;
    const r = this.el.getBoundingClientRect();
    const left = x + 14 + r.width > innerWidth - 6 ? Math.max(6, x - 14 - r.width) : x + 14;
    const top = y + 18 + r.height > innerHeight - 6 ? Math.max(6, y - 12 - r.height) : y + 18;
    this.el.style.transform = `translate(${left}px, ${top}px)`;
  }

  hide() {
    this.el.hidden = true;
  }

  free() {
    this.el.remove();
  }
}

export function dock(el, tree, i, actions) {
  if (!tree || i < 0) {
    replace(el, h("p", { class: "quiet" }, "Choose a box: click it, or move there with the arrow keys."));
    return;
  }
  const f = tree.fn[i], kind = kindOf(tree.functions.type[f], tree.name(i));
  const mark = h("i", { class: "swatch" });
  mark.style.backgroundColor = swatch(kind, isDark());
  replace(el, h("div", { class: "dock-name" }, mark, h("b", null, tree.name(i))),
    h("div", { class: "dock-facts" }, facts(tree, i).map(([k, v]) => h("span", null, h("small", null, k), ` ${v}`))),
    h("div", { class: "dock-actions" }, actions));
}
