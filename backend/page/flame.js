// SPDX-License-Identifier: Apache-2.0
// The flame graph itself: a tree drawn on a canvas as wide and as high as what is in view. Only boxes in view and at least a
// pixel wide are drawn, each once: a subtree outside is stepped over, and from the first sibling that is too narrow on,
// the rest is one grey box. So a frame costs what can be seen, not what is in the tree.
import { h, sized, css } from "./dom.js";

const GAP = 1, NARROWEST = 0.7, LETTERS_FROM = 26, GLIDE_MS = 140;
const FONT = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace";

export class FlameChart {
  // @on: { zoom(i), reset(), window(from, to), hover(i, x, y), select(i), menu(i, x, y), key(event) }
  constructor(on, label) {
    this.on = on;
    this.canvas = h("canvas", { class: "flame", tabindex: 0, role: "application", "aria-roledescription": "flame graph", "aria-label": label });
    this.hoverBox = h("div", { class: "box hover", hidden: true });
    this.selectBox = h("div", { class: "box selected", hidden: true });
    this.space = h("div", { class: "flame-space" }, this.hoverBox, this.selectBox);
    this.el = h("div", { class: "flame-scroll" }, h("div", { class: "flame-stick" }, this.canvas), this.space);
    this.tree = null;
    this.from = 0; // the window, in widths of the tree
    this.to = 1;
    this.up = false; // root at the bottom
    this.zoomed = 0;
    this.selected = -1;
    this.hovered = -1;
    this.hasCentre = false; // the root is what all is about: a colour of its own
    this.matches = null;
    this.drawn = 0;
    this.row = 19; // height, px
    this.glide = 0;
    this.listen();
    this.resize = new ResizeObserver(() => this.fit());
    this.resize.observe(this.el);
  }

  free() {
    this.resize.disconnect();
    cancelAnimationFrame(this.frame);
  }

  // --- what is shown ---

  set({ tree, coloring, up, matches }) {
    const isNew = tree !== this.tree, isFirst = !this.tree;
    if (isNew) {
      const chosen = this.tree && this.selected >= 0 ? this.tree.id(this.selected) : "";
      this.tree = tree;
      this.selected = chosen ? tree.find(chosen) : -1;
      this.hovered = -1;
      this.zoomed = 0;
      this.from = 0;
      this.to = tree.value[0] || 1;
    }
    const wasUp = this.up;
    this.up = up;
    this.coloring = coloring;
    this.matches = matches;
    this.fit();
    if (isFirst ? up : up !== wasUp) this.el.scrollTop = up ? this.el.scrollHeight : 0;
    this.outline();
  }

  // Shows node @i as wide as the canvas; at once, or gliding.
  zoom(i, gliding) {
    const t = this.tree;
    this.zoomed = i;
    this.show(t.start[i], t.start[i] + (t.value[i] || 1), gliding);
  }

  show(from, to, gliding) {
    cancelAnimationFrame(this.glide);
    const still = !gliding || matchMedia("(prefers-reduced-motion: reduce)").matches;
    const a = this.from, b = this.to, began = performance.now();
    const step = (now) => {
      const t = still ? 1 : Math.min(1, (now - began) / GLIDE_MS), ease = 1 - (1 - t) ** 3;
      this.from = a + (from - a) * ease;
      this.to = b + (to - b) * ease;
      if (t < 1) this.glide = requestAnimationFrame(step);
      else [this.from, this.to] = [from, to];
      this.draw();
    };
    if (still) step(0);
    else this.glide = requestAnimationFrame(step);
  }

  select(i, told) {
    this.selected = i;
    if (i >= 0) this.reveal(i);
    this.outline();
    if (!told) this.on.select(i);
  }

  // Scrolls so that the row of @i is in view.
  reveal(i) {
    const y = this.rowY(this.tree.depth[i]), top = this.el.scrollTop, room = this.el.clientHeight;
    if (y < top) this.el.scrollTop = y - this.row;
    else if (y + this.row > top + room) this.el.scrollTop = y + 2 * this.row - room;
  }

  rowY(depth) {
    return (this.up ? this.tree.deepest - depth : depth) * this.row + this.lift;
  }

  // --- drawing ---

  fit() {
    if (!this.tree) return;
    this.width = this.el.clientWidth;
    this.height = this.el.clientHeight;
    this.row = innerWidth >= 2400 ? 24 : 19;
    this.font = `${innerWidth >= 2400 ? 14.5 : 11.5}px ${FONT}`;
    const high = (this.tree.deepest + 1) * this.row;
    this.lift = this.up ? Math.max(0, this.height - high) : 0; // the root stands on the ground
    this.space.style.height = `${high + this.lift}px`;
    this.draw();
  }

  redraw() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    if (!this.tree || !this.width || !this.height) return;
    const c = sized(this.canvas, this.width, this.height);
    c.clearRect(0, 0, this.width, this.height);
    const boxes = this.collect();
    this.paint(c, boxes);
    this.letter(c, boxes);
    this.drawn = boxes.count;
    this.outline();
  }

  // The boxes in view: arrays of node, x, y, width; node -1: siblings too narrow to draw.
  collect() {
    const { tree, from, to, width } = this, { start, value, end, depth, parent, kids, n } = tree;
    const scale = width / (to - from), top = this.el.scrollTop, bottom = top + this.height, row = this.row;
    const b = this.boxes || (this.boxes = { node: [], x: [], y: [], w: [], count: 0 });
    let k = 0, i = 0;
    const put = (node, x, y, w) => {
      const left = Math.max(0, Math.round(x)), right = Math.min(width, Math.round(x + w));
      b.node[k] = node;
      b.x[k] = left;
      b.y[k] = y - top;
      b.w[k++] = Math.max(1, right - left);
    };
    while (i < n) {
      const w = value[i] * scale, x = (start[i] - from) * scale, y = this.rowY(depth[i]);
      if (x >= width) {
        i = i ? end[parent[i]] : n;
      } else if (w < NARROWEST) {
        const p = parent[i], rest = i ? (start[p] + kids[p] - start[i]) * scale : w;
        if (rest >= NARROWEST && x + rest > 0 && y + row > top && y < bottom) put(-1, x, y, rest);
        i = i ? end[p] : n;
      } else if (x + w <= 0 || (this.up ? y + row <= top : y >= bottom)) {
        i = end[i];
      } else {
        if (y + row > top && y < bottom) put(i, x, y, w);
        i++;
      }
    }
    b.count = k;
    return b;
  }

  // One colour after the other: setting a colour costs more than a box.
  paint(c, b) {
    const { of, palette } = this.coloring, { fn, depth } = this.tree, least = this.tree.depth[this.zoomed];
    const buckets = new Map(), matched = this.matches ? this.matches.matches : null;
    for (let k = 0; k < b.count; k++) {
      const i = b.node[k];
      let key;
      if (i < 0) key = "rest";
      else if (i === 0 && this.hasCentre) key = "centre";
      else if (matched && matched[fn[i]]) key = "match";
      else key = of[i] * 2 + (depth[i] < least || matched ? 1 : 0);
      const list = buckets.get(key);
      if (list) list.push(k);
      else buckets.set(key, [k]);
    }
    for (const [key, list] of buckets) {
      const own = { rest: "--rest", match: "--match", centre: "--ink" }[key];
      c.globalAlpha = key === "rest" ? 0.5 : !own && key & 1 ? 0.42 : 1;
      c.fillStyle = own ? css(own) : palette[key >> 1];
      for (const k of list) c.fillRect(b.x[k], b.y[k], b.w[k] > 3 ? b.w[k] - GAP : b.w[k], this.row - GAP);
    }
    c.globalAlpha = 1;
  }

  letter(c, b) {
    const { tree } = this, ink = css("--box-ink"), quiet = css("--ink");
    c.font = this.font;
    c.textBaseline = "middle";
    if (this.lettersOf !== this.font) this.letterWidth = c.measureText("mmmmmmmmmm").width / 10;
    this.lettersOf = this.font;
    const least = tree.depth[this.zoomed], matched = this.matches ? this.matches.matches : null;
    for (const faded of [false, true]) {
      c.fillStyle = faded ? quiet : ink;
      for (let k = 0; k < b.count; k++) {
        const i = b.node[k], w = b.w[k];
        if (i < 0 || w < LETTERS_FROM) continue;
        if ((tree.depth[i] < least || Boolean(matched && !matched[tree.fn[i]])) !== faded) continue;
        if (i === 0 && this.hasCentre) c.fillStyle = css("--page");
        const name = this.text(i), room = Math.floor((w - 8) / this.letterWidth);
        c.fillText(name.length <= room ? name : `${name.slice(0, Math.max(1, room - 1))}\u2026`, b.x[k] + 4, b.y[k] + this.row / 2);
        if (i === 0) c.fillStyle = faded ? quiet : ink;
      }
    }
  }

  text(i) {
    const line = this.tree.line[i];
    return i && line ? `${this.tree.name(i)}:${line}` : this.tree.name(i);
  }

  // Frames around the box below the pointer and around the chosen one are elements: they move without drawing.
  outline() {
    for (const [box, i] of [[this.hoverBox, this.hovered], [this.selectBox, this.selected]]) {
      const place = i >= 0 && this.tree ? this.placeOf(i) : null;
      box.hidden = !place;
      if (!place) continue;
      box.style.transform = `translate(${place.x}px, ${place.y}px)`;
      box.style.width = `${place.w}px`;
      box.style.height = `${this.row - GAP}px`;
    }
  }

  // Where box @i is, y within the scrolled space; null outside the window.
  placeOf(i) {
    const scale = this.width / (this.to - this.from), t = this.tree;
    const left = Math.max(0, (t.start[i] - this.from) * scale);
    const right = Math.min(this.width, (t.start[i] + t.value[i] - this.from) * scale);
    return right - left < 0.5 ? null : { x: Math.round(left), y: this.rowY(t.depth[i]), w: Math.max(2, Math.round(right) - Math.round(left) - GAP) };
  }

  // --- pointer ---

  // The node at a place of the canvas, or -1.
  at(x, y) {
    const t = this.tree;
    if (!t) return -1;
    const row = Math.floor((y + this.el.scrollTop - this.lift) / this.row), depth = this.up ? t.deepest - row : row;
    const v = this.from + (x / this.width) * (this.to - this.from);
    if (depth < 0 || v < t.start[0] || v >= t.start[0] + t.value[0]) return -1;
    for (let i = 0, end = t.n; i < end; ) {
      if (v < t.start[i] + t.value[i]) {
        if (t.depth[i] === depth) return i;
        end = t.end[i];
        i++;
        continue;
      }
      i = t.end[i];
    }
    return -1;
  }

  point(event) {
    const r = this.canvas.getBoundingClientRect();
    return [event.clientX - r.left, event.clientY - r.top];
  }

  hover(i, x, y) {
    if (i !== this.hovered) {
      this.hovered = i;
      this.outline();
    }
    this.on.hover(i, x, y);
  }

  listen() {
    const c = this.canvas;
    let drag = null;
    c.addEventListener("pointermove", (e) => {
      if (drag) {
        const dx = e.clientX - drag.x;
        if (Math.abs(dx) > 4) drag.moved = true;
        if (drag.moved && this.to - this.from < this.tree.value[0]) this.pan(drag.from - (dx / this.width) * (this.to - this.from));
        return;
      }
      if (e.pointerType === "mouse") this.hover(this.at(...this.point(e)), e.clientX, e.clientY);
    });
    c.addEventListener("pointerleave", () => this.hover(-1, 0, 0));
    c.addEventListener("pointerdown", (e) => {
      if (e.button === 0) drag = { x: e.clientX, from: this.from, moved: false, type: e.pointerType };
      if (e.button === 0 && e.pointerType === "mouse") c.setPointerCapture(e.pointerId);
    });
    c.addEventListener("pointercancel", () => (drag = null));
    c.addEventListener("pointerup", (e) => {
      const was = drag;
      drag = null;
      if (!was) return;
      if (was.moved) {
        if (was.type === "mouse") this.on.window(this.from, this.to);
        return;
      }
      const i = this.at(...this.point(e));
      if (i < 0) return;
      this.select(i);
      this.on.zoom(i);
    });
    c.addEventListener("dblclick", () => this.on.reset());
    c.addEventListener("contextmenu", (e) => {
      const i = this.at(...this.point(e));
      if (i < 0) return;
      e.preventDefault();
      this.select(i);
      this.on.menu(i, e.clientX, e.clientY);
    });
    c.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    c.addEventListener("keydown", (e) => this.on.key(e));
    this.el.addEventListener("scroll", () => this.redraw(), { passive: true });
  }

  // With ctrl (or a pinch): nearer or farther around the pointer. Sideways: along.
  wheel(e) {
    if (e.ctrlKey || e.metaKey) {
      e.preventDefault();
      this.nearer(Math.exp(-e.deltaY * 0.004), this.point(e)[0] / this.width);
    } else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      e.preventDefault();
      this.pan(this.from + (((e.deltaX || e.deltaY) / this.width) * (this.to - this.from)));
      this.later();
    }
  }

  // @factor > 1: nearer, with what is at @part (0 .. 1) of the canvas staying there.
  nearer(factor, part) {
    const all = this.tree.value[0] || 1, size = Math.min(all, Math.max(all / 1e6, (this.to - this.from) / factor));
    const at = this.from + part * (this.to - this.from);
    const from = Math.max(0, Math.min(all - size, at - part * size));
    cancelAnimationFrame(this.glide);
    [this.from, this.to] = [from, from + size];
    this.zoomed = this.deepestAround(from, from + size);
    this.redraw();
    this.later();
  }

  // The deepest node that is the only one as wide as the window.
  deepestAround(from, to) {
    const t = this.tree, slack = (to - from) * 1e-6;
    let i = 0;
    for (let c = 1; c < t.end[i]; ) {
      if (t.start[c] <= from + slack && t.start[c] + t.value[c] >= to - slack) {
        i = c;
        c++;
      } else if (t.start[c] > from) break;
      else c = t.end[c];
    }
    return i;
  }

  pan(from) {
    const size = this.to - this.from;
    cancelAnimationFrame(this.glide);
    this.from = Math.max(0, Math.min((this.tree.value[0] || 1) - size, from));
    this.to = this.from + size;
    this.redraw();
  }

  // The window is told when it has come to rest.
  later() {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.on.window(this.from, this.to), 200);
  }

  // --- keyboard: from box to box ---

  // Arrows, and h j k l as in vi; false: another key.
  move(pressed) {
    const key = { h: "ArrowLeft", j: "ArrowDown", k: "ArrowUp", l: "ArrowRight" }[pressed] || pressed;
    if (!/^Arrow/.test(key)) return false;
    if (this.selected < 0) this.select(this.zoomed);
    else this.step(key);
    return true;
  }

  step(key) {
    const t = this.tree;
    const i = this.selected, deeper = this.up ? "ArrowUp" : "ArrowDown", p = t.parent[i];
    if (key === deeper) {
      if (t.end[i] > i + 1) this.select(this.inWindow(i + 1));
    } else if (key === "ArrowUp" || key === "ArrowDown") {
      if (p >= 0) this.select(p);
    } else if (p >= 0) {
      const row = t.children(p), next = row[row.indexOf(i) + (key === "ArrowRight" ? 1 : -1)];
      if (next !== undefined) this.select(next);
    }
  }

  // The first of @i's siblings that is in the window.
  inWindow(i) {
    const t = this.tree, end = t.end[t.parent[i]];
    for (let c = i; c < end; c = t.end[c]) if (t.start[c] + t.value[c] > this.from && t.start[c] < this.to) return c;
    return i;
  }
}

// The whole tree in little, with the window on it.
export class Minimap {
  constructor(onmove) {
    this.canvas = h("canvas", { class: "minimap", "aria-hidden": "true" });
    this.window = h("div", { class: "minimap-window" });
    this.el = h("div", { class: "minimap-frame", title: "The whole graph; drag to move the window" }, this.canvas, this.window);
    const go = (e) => {
      const r = this.el.getBoundingClientRect();
      onmove((e.clientX - r.left) / r.width);
    };
    this.el.addEventListener("pointerdown", (e) => {
      this.el.setPointerCapture(e.pointerId);
      go(e);
    });
    this.el.addEventListener("pointermove", (e) => e.buttons && go(e));
  }

  draw(tree, coloring, up) {
    const width = this.el.clientWidth, height = this.el.clientHeight, c = sized(this.canvas, width, height);
    const row = Math.max(0.5, Math.min(4, height / (tree.deepest + 1))), scale = width / (tree.value[0] || 1);
    c.clearRect(0, 0, width, height);
    for (let i = 0; i < tree.n; ) {
      const w = tree.value[i] * scale;
      if (w < 1 || tree.depth[i] * row > height) {
        i = w < 1 && i ? tree.end[tree.parent[i]] : tree.end[i];
        continue;
      }
      c.fillStyle = coloring.palette[coloring.of[i]];
      c.fillRect(tree.start[i] * scale, up ? height - (tree.depth[i] + 1) * row : tree.depth[i] * row, w, row);
      i++;
    }
  }

  mark(from, to) {
    this.window.style.left = `${from * 100}%`;
    this.window.style.width = `${Math.max(0.5, (to - from) * 100)}%`;
  }
}
