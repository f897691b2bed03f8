// SPDX-License-Identifier: Apache-2.0
// All that is known of a box: the tooltip below the pointer, and the same docked below the graph, where it can be
// selected.
import { h, replace, button } from "./dom.js";
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
    out.push(["B (after)", side(tree.self2[i], tree.total2[i], whole2, { from: answer.from2 || answer.from, to: answer.to2 || answer.to, covered_seconds: answer.covered_seconds2 })]);
    const points = 100 * ((whole2 ? tree.total2[i] / whole2 : 0) - (whole ? tree.total[i] / whole : 0));
    const factor = tree.total[i] && whole && whole2 ? tree.total2[i] / whole2 / (tree.total[i] / whole) : 0;
    out.push(["change", `${points > 0 ? "+" : ""}${points.toFixed(2)} points of share${factor ? ` (× ${factor.toFixed(2)})` : ""}`]);
    const noise = tree.noise(i);
    if (noise) out.push(["noise", `±${(100 * noise.band).toFixed(2)} points: ${Math.abs(noise.b - noise.a) <= noise.band ? "this may be chance" : "this is more"}`]);
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

// What each type of function weighs by itself: kinds are kindShares(); @act(kind), when given, is what a click does.
export function typeLegend(el, kinds, whole, act) {
  replace(el, Object.keys(TYPES).filter((k) => kinds[k] > 0).map((k) => {
    const mark = h("i", { class: "swatch" });
    mark.style.backgroundColor = swatch(k, isDark());
    const text = [mark, k === "label" ? "cut away" : TYPES[k].title, h("small", null, ` ${percent(kinds[k], whole)}`)];
    if (k === "label") return h("span", { title: "Boxes too light to be shown, as (other): of which types they are is not known once the graph was changed" }, text);
    return act ? button(text, `Self weight of ${TYPES[k].title} functions; click to hide them`, () => act(k)) : h("span", { title: `Self weight of ${TYPES[k].title} functions` }, text);
  }));
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
