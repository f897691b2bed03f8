// SPDX-License-Identifier: Apache-2.0
// A flame graph with what belongs to it: search, colours, steps that change the tree, crumbs, minimap, details. It keeps nothing
// that is not in the page's address; the same pane stands in several views.
import { h, replace, button, select, toggle, copy, say } from "./dom.js";
import { state, set, link, groupings, withoutLabels } from "./state.js";
import { treeOf, pattern, search, whyWrong } from "./tree.js";
import { transformed, inverted, withoutGroup, stepFor, label, KINDS, PRESETS } from "./transform.js";
import { coloring, isDark, kindOf, kindShares, diffColor } from "./colors.js";
import { FlameChart, Minimap } from "./flame.js";
import { Tooltip, dock, typeLegend } from "./details.js";
import { showMenu } from "./menu.js";
import { count, percent, weight } from "./format.js";

const READ_ROWS = 60; // of the table for screen readers

export class FlamePane {
  // @extra: further controls of the view that this stands in; isDiff: two colours
  constructor({ extra = [], isDiff = false, title = "Flame graph" } = {}) {
    this.isDiff = isDiff;
    this.chart = new FlameChart({
      zoom: (i) => this.zoom(i),
      reset: () => set({ z: "", w: "" }, true),
      window: (from, to) => this.rest(from, to),
      hover: (i, x, y) => this.tooltip.show(this.tree, i, x, y),
      select: (i) => this.selected(i),
      menu: (i, x, y) => this.menu(i, x, y),
      key: (e) => this.key(e),
    }, `${title}. Arrow keys move from box to box, Enter zooms, Escape zooms out, question mark lists all keys.`);
    this.minimap = new Minimap((part) => {
      const size = this.chart.to - this.chart.from;
      this.chart.pan(part * this.tree.value[0] - size / 2);
      this.chart.later();
      this.mark();
    });
    this.tooltip = new Tooltip();
    this.box = h("input", { type: "search", placeholder: "Search functions  /", "aria-label": "Search functions: a regular expression", spellcheck: "false", autocomplete: "off",
      oninput: () => set({ s: this.box.value }, true), onkeydown: (e) => this.searchKey(e) });
    this.found = h("output", { class: "found" });
    this.tools = h("div", { class: "toolbar" });
    this.extra = extra;
    this.crumbs = h("nav", { class: "crumbs", "aria-label": "Zoomed into" });
    this.legend = h("div", { class: "legend" });
    this.dock = h("div", { class: "dock", "aria-live": "polite" });
    this.table = h("table");
    this.el = h("div", { class: "pane" }, this.tools, h("div", { class: "path" }, this.crumbs, this.minimap.el),
      this.chart.el, this.legend, this.dock, h("div", { class: "offscreen" }, this.table));
    this.base = null;
    this.hit = -1;
  }

  free() {
    this.chart.free();
    this.tooltip.free();
  }

  // --- data in, picture out ---

  show(answer, mode) {
    this.answer = answer;
    this.mode = mode;
    this.base = treeOf(answer, mode);
    if (state.by === "") this.base = withoutGroup(this.base);
    this.shape = "";
    this.render();
  }

  // Makes again what depends on what changed in the address.
  render() {
    if (!this.base) return;
    const shape = JSON.stringify([state.x, state.inv, state.inv ? state.z : ""]);
    if (shape !== this.shape) {
      this.shape = shape;
      const plain = transformed(this.base, state.x);
      this.tree = state.inv ? inverted(plain, this.idsAbove(state.z)) : plain;
      this.painted = "";
    }
    const paint = `${state.color} ${isDark()}`;
    if (paint !== this.painted) {
      this.painted = paint;
      this.coloring = coloring(this.isDiff ? "diff" : state.color, this.tree, isDark());
    }
    this.find();
    this.chart.set({ tree: this.tree, coloring: this.coloring, up: state.dir === "flame", matches: this.matches });
    this.restore();
    this.renderTools();
    this.renderPath();
    this.renderLegend();
    const shown = this.chart.selected >= 0 ? this.chart.selected : this.chart.zoomed;
    dock(this.dock, this.tree, shown, this.actions(shown));
    this.readable();
  }

  // Of an inverted tree only what is zoomed into is made in full, so its ids come along.
  idsAbove(id) {
    if (!id || !this.tree) return id ? [id] : [];
    const i = this.tree.find(id);
    return i < 0 ? [id] : this.tree.path(i).map((p) => this.tree.id(p));
  }

  // Zoom and window as the address says, gliding there.
  restore() {
    const at = Math.max(0, this.tree.find(state.z)), all = this.tree.value[0] || 1;
    const cut = state.w.match(/^([\d.e-]+)_([\d.e-]+)$/);
    const key = `${at} ${state.w}`, isNew = this.restoredFor !== this.tree;
    if (!isNew && key === this.restored) return;
    this.restored = key;
    this.restoredFor = this.tree;
    if (cut) {
      this.chart.zoomed = at;
      this.chart.show(+cut[1] * all, +cut[2] * all, false);
    } else {
      this.chart.zoom(at, !isNew);
    }
    this.mark(at, cut);
  }

  mark(at, cut) {
    const t = this.tree, all = t.value[0] || 1;
    this.minimap.draw(t, this.coloring, state.dir === "flame");
    if (at === undefined) this.minimap.mark(this.chart.from / all, this.chart.to / all);
    else if (cut) this.minimap.mark(+cut[1], +cut[2]);
    else this.minimap.mark(t.start[at] / all, (t.start[at] + t.value[at]) / all);
    const whole = at === undefined ? this.chart.to - this.chart.from >= all * 0.999 : at === 0 && !cut;
    this.minimap.el.classList.toggle("whole", whole);
  }

  zoom(i) {
    this.tooltip.hide();
    set({ z: i > 0 ? this.tree.id(i) : "", w: "" });
  }

  // The window came to rest somewhere else than on one node.
  rest(from, to) {
    const all = this.tree.value[0] || 1, i = this.chart.deepestAround(from, to);
    const exact = Math.abs(this.tree.start[i] - from) < all * 1e-9 && Math.abs(this.tree.start[i] + this.tree.value[i] - to) < all * 1e-9;
    set({ z: i > 0 ? this.tree.id(i) : "", w: exact ? "" : `${(from / all).toPrecision(8)}_${(to / all).toPrecision(8)}` }, true);
  }

  out() {
    const z = this.chart.zoomed;
    if (state.w) set({ w: "" });
    else if (z > 0) this.zoom(this.tree.parent[z]);
    else if (state.x.length) this.undo();
  }

  // --- search ---

  find() {
    const key = `${state.s} ${state.case} ${state.z} ${this.shape}`;
    if (key === this.foundFor && this.foundIn === this.tree) return;
    this.foundFor = key;
    this.foundIn = this.tree;
    this.matches = null;
    this.wrong = "";
    this.hit = -1;
    try {
      const regex = pattern(state.s, state.case === "1");
      if (regex) this.matches = search(this.tree, regex, Math.max(0, this.tree.find(state.z)));
    } catch (e) {
      this.wrong = whyWrong(state.s);
    }
  }

  renderFound() {
    const m = this.matches, t = this.tree;
    this.box.classList.toggle("wrong", Boolean(this.wrong));
    if (this.wrong || !m) {
      replace(this.found, this.wrong && h("span", { class: "why" }, this.wrong));
      return;
    }
    const below = Math.max(0, t.find(state.z));
    replace(this.found, h("b", null, percent(m.covered, t.value[0])), below > 0 && ` (${percent(m.inside, t.value[below])} of this)`,
      h("span", { class: "quiet" }, m.nodes.length ? ` ${this.hit < 0 ? "" : `${count(this.hit + 1)} of `}${count(m.nodes.length)}` : " no match"),
      m.nodes.length > 0 && [button("‹", "Previous match (N)", () => this.jump(-1), { class: "small" }), button("›", "Next match (n)", () => this.jump(1), { class: "small" })]);
  }

  jump(step) {
    const nodes = this.matches ? this.matches.nodes : [];
    if (!nodes.length) return;
    this.hit = (this.hit + step + nodes.length + (this.hit < 0 && step < 0 ? 1 : 0)) % nodes.length;
    const i = nodes[this.hit], z = this.chart.zoomed;
    // A match that cannot be seen from here is shown within its callers.
    const seen = i >= z && i < this.tree.end[z] && this.tree.value[i] / (this.tree.value[z] || 1) > 0.004;
    if (!seen) {
      let up = i;
      while (this.tree.parent[up] > 0 && this.tree.value[i] / this.tree.value[up] > 0.05) up = this.tree.parent[up];
      set({ z: this.tree.id(up), w: "" });
    }
    this.chart.select(i);
    this.renderFound();
  }

  searchKey(e) {
    if (e.key === "Enter") {
      e.preventDefault();
      this.jump(e.shiftKey ? -1 : 1);
    } else if (e.key === "Escape") {
      e.preventDefault(); // the text stays; Escape in the graph clears it
      e.stopPropagation();
      this.chart.canvas.focus();
    }
  }

  // --- tools ---

  renderTools() {
    if (document.activeElement !== this.box) this.box.value = state.s;
    const depends = JSON.stringify([state.case, state.color, state.by, state.dir, state.inv, state.inline, state.nodes, state.lines, state.dm, state.dv]);
    if (depends === this.toolsFor) {
      this.renderFound();
      return;
    }
    this.toolsFor = depends;
    const colors = [["type", "Colour: type"], ["module", "Colour: module"], ["package", "Colour: package"]];
    const by = state.by === "exe" ? "" : state.by, groups = groupings([["", "By executable"], ["none", "Not grouped"]], by);
    const nodes = [["2000", "2 000 boxes"], ["5000", "5 000 boxes"], ["20000", "20 000 boxes"], ["100000", "100 000 boxes"]];
    if (!nodes.some(([v]) => v === state.nodes)) nodes.push([state.nodes, `${count(+state.nodes)} boxes`]);
    const presets = [["", "Hide…"], ...Object.entries(PRESETS).map(([id, p]) => [id, p.title])];
    const parts = [
      h("div", { class: "search" }, this.box, toggle("Aa", "Upper and lower case are different", state.case === "1", () => set({ case: state.case ? "" : "1" }, true)), this.found),
      h("div", { class: "controls" },
        ...this.extra.map((make) => make()),
        !this.isDiff && select("Colour of boxes", colors, state.color, (color) => set({ color })),
        !this.isDiff && select("Group by", groups, by, (by) => set({ by, z: "", w: "" })),
        select("Hide what is not of interest", presets, "", (id) => id && this.step(`preset:${id}`)),
        toggle(state.dir === "flame" ? "Flame" : "Icicle", "Root below or above", state.dir === "flame", () => set({ dir: state.dir === "flame" ? "icicle" : "flame" }), "i"),
        toggle("Inverted", "Callers below the functions that took the time", state.inv === "1", () => this.invert(), "v"),
        !this.isDiff && toggle("Lines", "Tell a function's calls apart by line", state.lines === "1", () => set({ lines: state.lines ? "" : "1", z: "", w: "" })),
        toggle("Inlined", "Show inlined calls as boxes of their own", state.inline === "1", () => set({ inline: state.inline === "1" ? "0" : "1" }), "I"),
        select("How many boxes at most", nodes, state.nodes, (n) => set({ nodes: n }))),
    ];
    const focused = document.activeElement, index = [...this.tools.querySelectorAll("select, button.toggle")].indexOf(focused);
    replace(this.tools, parts);
    if (focused === this.box) this.box.focus();
    if (index >= 0) {
      const again = this.tools.querySelectorAll("select, button.toggle")[index];
      if (again) again.focus();
    }
    this.renderFound();
  }

  invert() {
    set({ inv: state.inv ? "" : "1", z: "", w: "" });
  }

  renderPath() {
    const t = this.tree, z = Math.max(0, t.find(state.z));
    const crumb = (i) => h("button", { type: "button", class: "crumb", title: t.name(i), "aria-current": i === z ? "true" : null, onclick: () => this.zoom(i) }, t.name(i));
    const path = t.path(z), shown = path.length > 7 ? [...path.slice(0, 2), -1, ...path.slice(-4)] : path;
    replace(this.crumbs,
      state.x.map((step, k) => h("span", { class: "step", title: (KINDS[step.split(":")[0]] || {}).says }, label(step),
        button("×", "Undo this step", () => set({ x: state.x.filter((_, j) => j !== k), z: "", w: "" })))),
      shown.map((i, k) => [k > 0 && h("span", { class: "quiet" }, "›"), i < 0 ? h("span", { class: "quiet" }, "…") : crumb(i)]),
      h("span", { class: "quiet share" }, z > 0 ? percent(t.value[z], t.value[0]) : this.summary()));
  }

  summary() {
    const a = this.answer, t = this.tree;
    return t.isDiff ? `${count(t.n)} boxes` : `${weight(t.total[0], a)} · ${count(a.events)} samples · ${count(t.n)} boxes${a.cut_nodes ? `, ${count(a.cut_nodes)} more as (other)` : ""}`;
  }

  renderLegend() {
    const t = this.tree;
    if (this.isDiff) {
      const mark = (part) => {
        const i = h("i", { class: "swatch" });
        i.style.backgroundColor = diffColor(part, isDark());
        return i;
      };
      replace(this.legend, h("span", { class: "scale" }, "less in B ", [-1, -0.4, -0.1, 0, 0.1, 0.4, 1].map(mark), " more in B"), h("span", null, this.verdict()));
      return;
    }
    if (state.color !== "type") {
      replace(this.legend, h("span", { class: "quiet" }, `one colour for each ${state.color}`));
      return;
    }
    typeLegend(this.legend, state.x.length ? this.kindsShown() : kindShares(this.answer.types), t.total[0], (k) => this.step(`type:${k}`));
  }

  // Of a difference, in words.
  verdict() {
    const { noise } = this.answer;
    if (!noise) return "asking what is noise…";
    if (!this.tree.scale.isShares) return "grey: as much in both; what is noise is known of shares alone";
    return `grey: within noise · ${count(noise.changed)} of ${count(noise.judged)} functions changed, of ${noise.runs[0]} and ${noise.runs[1]} pieces of time`;
  }

  // What the boxes of each type weigh by themselves in a graph that steps have changed, of which the server knows nothing.
  kindsShown() {
    const t = this.tree, self = {}, kinds = t.functions.name.map((name, f) => kindOf(t.functions.type[f], name));
    for (let i = 1; i < t.n; i++) self[kinds[t.fn[i]]] = (self[kinds[t.fn[i]]] || 0) + t.self[i];
    return self;
  }

  // --- what can be done with a box ---

  selected(i) {
    dock(this.dock, this.tree, i, this.actions(i));
    this.mark();
  }

  step(step) {
    if (!step) return;
    set({ x: [...state.x, step], z: "", w: "" });
    say(`${label(step)}: one step; u takes it back.`);
  }

  undo() {
    if (state.x.length) set({ x: state.x.slice(0, -1), z: "", w: "" });
  }

  sandwich(i) {
    if (i > 0) set({ view: "sandwich", fn: this.tree.name(i), mod: this.tree.module(i) });
  }

  stack(i) {
    return this.tree.path(i).slice(1).map((p) => this.text(p)).join("\n");
  }

  text(i) {
    const module = this.tree.module(i);
    return this.tree.name(i) + (module ? ` (${module})` : "");
  }

  escaped(i) {
    return this.tree.name(i).replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  }

  items(i) {
    const step = (kind) => {
      const made = stepFor(kind, this.tree, i);
      return { text: KINDS[kind].title, key: KINDS[kind].key, says: KINDS[kind].says, run: made ? () => this.step(made) : null };
    };
    return [
      { text: "Zoom in", key: "Enter", run: () => this.zoom(i) },
      { text: "Callers and callees", key: "s", says: "sandwich", run: i > 0 ? () => this.sandwich(i) : null },
      { text: "Search for it", key: "/", run: () => set({ s: `^${this.escaped(i)}$` }) },
      null,
      ...["focus", "subtree", "merge", "drop", "collapse", "library", "hidelib", "recursion"].map(step),
      null,
      { text: "Only stacks with it, in all views", says: "asks the server with focus=", run: i > 0 ? () => set({ focus: `^${this.escaped(i)}$`, z: "", w: "" }) : null },
      { text: "Slowest traces with it", says: "traces whose samples have this function", run: i > 0 ? () => set({ view: "trace", tv: "traces", ts: "slowest", q: withoutLabels(state.q, ["trace_id", "span_id"]), focus: `^${this.escaped(i)}$`, z: "", w: "" }) : null },
      { text: "Copy name", key: "y", run: () => copy(this.tree.name(i)) },
      { text: "Copy stack", key: "Y", run: () => copy(this.stack(i)) },
      { text: "Copy link to it", run: () => copy(location.origin + location.pathname + link({ z: this.tree.id(i), w: "" })) },
    ];
  }

  menu(i, x, y) {
    this.tooltip.hide();
    showMenu(this.items(i), x, y, this.tree.name(i));
  }

  actions(i) {
    if (i < 0) return [];
    const more = h("button", { type: "button", title: "All that can be done with this box (.)", onclick: (e) => {
      const r = e.target.getBoundingClientRect();
      this.menu(i, r.left, r.top - 8);
    } }, "More…");
    return [i > 0 && button("Callers and callees", "s", () => this.sandwich(i)),
      i > 0 && button("Focus", "Only what this function calls (f)", () => this.step(stepFor("focus", this.tree, i))),
      i > 0 && button("Hide", "Its time goes to its callers (m)", () => this.step(stepFor("merge", this.tree, i))), more];
  }

  // Keys while the graph has the focus, and (by the app) when nothing else takes them. True: taken.
  key(e) {
    if (!this.tree || (e.ctrlKey && e.key !== "f") || e.metaKey || e.altKey) return false;
    const i = this.chart.selected >= 0 ? this.chart.selected : this.chart.zoomed, size = this.chart.to - this.chart.from;
    const kind = Object.keys(KINDS).find((k) => KINDS[k].key === e.key);
    const acts = {
      Enter: () => this.zoom(i),
      Escape: () => (state.s ? set({ s: "" }, true) : state.z || state.w ? set({ z: "", w: "" }) : this.chart.select(-1)),
      Backspace: () => this.out(),
      n: () => this.jump(1), N: () => this.jump(-1),
      i: () => set({ dir: state.dir === "flame" ? "icicle" : "flame" }),
      v: () => this.invert(),
      I: () => set({ inline: state.inline === "1" ? "0" : "1" }),
      u: () => this.undo(),
      s: () => this.sandwich(i),
      y: () => copy(this.tree.name(i)), Y: () => copy(this.stack(i)),
      "+": () => this.chart.nearer(1.5, 0.5), "-": () => this.chart.nearer(1 / 1.5, 0.5),
      "[": () => (this.chart.pan(this.chart.from - size / 4), this.chart.later()),
      "]": () => (this.chart.pan(this.chart.from + size / 4), this.chart.later()),
      ".": () => {
        const place = this.chart.placeOf(i), r = this.chart.canvas.getBoundingClientRect();
        this.menu(i, r.left + (place ? place.x : 0), r.top + (place ? place.y - this.chart.el.scrollTop + 20 : 0));
      },
      "/": () => this.searchFor(),
    };
    if (this.chart.move(e.key)) this.tooltip.hide();
    else if (e.ctrlKey) this.searchFor();
    else if (kind) this.step(stepFor(kind, this.tree, i));
    else if (acts[e.key]) acts[e.key]();
    else return false;
    e.preventDefault();
    e.stopPropagation();
    return true;
  }

  searchFor() {
    this.box.focus();
    this.box.select();
  }

  // The heaviest calls below what is zoomed into, as a table for those who do not see the picture.
  readable() {
    const t = this.tree, z = Math.max(0, t.find(state.z)), rows = [];
    const queue = [z];
    while (queue.length && rows.length < READ_ROWS) {
      const i = queue.shift();
      rows.push(i);
      queue.push(...t.children(i).slice(0, 8));
      queue.sort((a, b) => t.value[b] - t.value[a]);
    }
    replace(this.table, h("caption", null, `Heaviest calls below ${t.name(z)}`),
      h("thead", null, h("tr", null, ["Function", "Called by", "Depth", "Total", "Self"].map((x) => h("th", { scope: "col" }, x)))),
      h("tbody", null, rows.map((i) => h("tr", null, h("th", { scope: "row" }, this.text(i)), h("td", null, t.parent[i] >= 0 ? t.name(t.parent[i]) : ""),
        h("td", null, String(t.depth[i])), h("td", null, percent(t.value[i], t.value[0])), h("td", null, percent(t.self[i], t.total[0]))))));
  }
}
