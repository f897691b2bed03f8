// SPDX-License-Identifier: Apache-2.0
// A call tree on one page: flame graph, callers, table. The tree comes in pre-order as columns (name, depth, self, kind; second, of
// a tree of two sides: what of self is of the second one); all that is drawn is found by walking it, skipping what is narrower than
// half a pixel together with everything below. How a frame looks and what is said of it is makeLook()'s, which stands before this:
//   colour(tree, i), alpha(tree, i), describe(tree, i): of a node;  found(total, second): of the nodes that a search found;
//   legend(tree): [[CSS colour, text]...];  functions(tree): the table's rows, with name (an index);
//   orders: what each of its buttons sorts by;  cells(row): [[text, class]...], the last one the function.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id), data = JSON.parse(byId("data").textContent);
  const { names } = data;
  const ROW = 18, canvas = byId("canvas"), main = byId("main"), info = byId("info"), box = byId("search"), found = byId("found");

  // --- trees ---
  // Columns, and what follows from them: end (the first node behind the subtree), parent, total and totalSecond, x (where it begins).
  function complete(tree) {
    const n = tree.name.length, path = [];
    tree.end = new Int32Array(n).fill(n);
    tree.parent = new Int32Array(n).fill(-1);
    tree.total = Float64Array.from(tree.self);
    tree.totalSecond = tree.second ? Float64Array.from(tree.second) : new Float64Array(n);
    tree.x = new Float64Array(n);
    tree.rows = 0;
    for (let i = 0; i < n; i++) {
      const depth = tree.depth[i];
      while (path.length > depth) tree.end[path.pop()] = i;
      if (depth) tree.parent[i] = path[depth - 1];
      path.push(i);
      tree.rows = Math.max(tree.rows, depth + 1);
    }
    for (let i = n - 1; i > 0; i--) {
      tree.total[tree.parent[i]] += tree.total[i];
      tree.totalSecond[tree.parent[i]] += tree.totalSecond[i];
    }
    const next = new Float64Array(n);
    for (let i = 1; i < n; i++) {
      const p = tree.parent[i];
      tree.x[i] = tree.x[p] + next[p];
      next[p] += tree.total[i];
    }
    return tree;
  }

  // The other way round: below each function those that called it. By name only, as a function may be of several kinds.
  function invert(tree) {
    const root = { self: 0, second: 0, kids: new Map(), kind: 0 }, out = { name: [], depth: [], self: [], second: [], kind: [] };
    for (let i = 1; i < tree.name.length; i++) {
      if (!tree.self[i]) continue;
      let at = root;
      for (let k = i; k > 0; k = tree.parent[k]) {
        let kid = at.kids.get(tree.name[k]);
        if (!kid) at.kids.set(tree.name[k], (kid = { self: 0, second: 0, weight: 0, kids: new Map(), kind: tree.kind[k] }));
        kid.weight += tree.self[i];
        at = kid;
      }
      at.self += tree.self[i];
      at.second += tree.second ? tree.second[i] : 0;
    }
    const todo = [[0, 0, root]];
    while (todo.length) {
      const [name, depth, node] = todo.pop();
      out.name.push(name);
      out.depth.push(depth);
      out.self.push(node.self);
      out.second.push(node.second);
      out.kind.push(node.kind);
      for (const [kid, below] of [...node.kids].sort((a, b) => a[1].weight - b[1].weight)) todo.push([kid, depth + 1, below]);
    }
    return complete(out);
  }

  const flame = complete(data.tree);
  let callers = null, tree = flame, zoomed = 0, selected = -1, marks = null, view = "flame", dark = false;

  // --- text ---
  const look = makeLook(data, flame);
  const describe = (i) => look.describe(tree, i) +
    (zoomed ? `, ${((100 * tree.total[i]) / tree.total[zoomed]).toFixed(2)} % of what is shown` : "");
  const idle = "A click zooms, Esc goes back, / searches, n and N go to the next and the last match, arrows move, c copies the name.";
  const say = (i) => (info.textContent = i >= 0 ? describe(i) : idle);

  // --- drawing ---
  const pen = canvas.getContext("2d");
  const widthOf = (i, width) => (tree.total[i] / tree.total[zoomed]) * width;
  const placeOf = (i, width) => ((tree.x[i] - tree.x[zoomed]) / tree.total[zoomed]) * width;
  const isAround = (i) => i < zoomed && tree.end[i] >= tree.end[zoomed] && tree.depth[i] < tree.depth[zoomed];

  // Calls fn(node, x, width) for all that can be seen in rows [from, to).
  function each(width, from, to, fn) {
    for (let i = zoomed; tree.parent[i] >= 0; i = tree.parent[i]) fn(tree.parent[i], 0, width);
    for (let i = zoomed; i < tree.end[zoomed];) {
      const w = widthOf(i, width);
      if (tree.depth[i] >= from) fn(i, placeOf(i, width), w);
      i = w < 0.5 || tree.depth[i] >= to ? tree.end[i] : i + 1;
    }
  }

  function drawFrame(i, x, w, y, page) {
    const hit = marks && marks[tree.name[i]];
    pen.globalAlpha = isAround(i) ? 0.4 : look.alpha(tree, i);
    pen.fillStyle = hit ? "#c078d8" : look.colour(tree, i);
    pen.fillRect(x, y, Math.max(w - (w > 2 ? 0.5 : 0), 0.5), ROW - 1);
    pen.globalAlpha = 1;
    if (i === selected) {
      pen.strokeStyle = page ? "#fff" : "#000";
      pen.strokeRect(x + 0.5, y + 0.5, Math.max(w - 1, 1), ROW - 2);
    }
    const room = Math.floor((w - 6) / 6.7);
    if (room < 3) return;
    const name = names[tree.name[i]] || "?";
    pen.fillStyle = dark && isAround(i) ? "#e6e6e6" : "#1a1a1a";
    pen.fillText(name.length <= room ? name : name.slice(0, room - 1) + "\u2026", x + 3, y + 13);
  }

  function draw() {
    const width = main.clientWidth, height = main.clientHeight, ratio = window.devicePixelRatio || 1;
    if (view === "table" || !width) return;
    byId("graph").style.height = Math.max(tree.rows * ROW + 8, height - 1) + "px";
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = '11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
    const from = Math.floor(main.scrollTop / ROW), to = Math.ceil((main.scrollTop + height) / ROW);
    each(width, from, to, (i, x, w) => {
      const y = tree.depth[i] * ROW - main.scrollTop;
      if (y > -ROW && y < height) drawFrame(i, x, w, y, dark);
    });
  }
  let asked = false;
  function redraw() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  }

  function nodeAt(event) {
    const rect = canvas.getBoundingClientRect(), width = main.clientWidth;
    const row = Math.floor((event.clientY - rect.top + main.scrollTop) / ROW), at = event.clientX - rect.left;
    let hit = -1;
    each(width, row, row, (i, x, w) => {
      if (tree.depth[i] === row && at >= x && at < x + Math.max(w, 0.5)) hit = i;
    });
    return hit;
  }

  // --- doing ---
  function zoom(i) {
    zoomed = i < 0 ? 0 : i;
    selected = zoomed || -1;
    byId("reset").hidden = !zoomed;
    say(selected);
    redraw();
  }

  // What part of everything lies in frames that match, each moment counted once.
  function search(text) {
    let pattern = null;
    marks = null;
    found.textContent = "";
    try {
      pattern = text ? new RegExp(text, "i") : null;
    } catch (e) {
      found.textContent = "no regular expression";
    }
    if (pattern) {
      let sum = 0, second = 0, hits = 0;
      marks = names.map((name) => pattern.test(name));
      marks[0] = false;
      for (let i = 0; i < tree.name.length; i++) hits += marks[tree.name[i]] ? 1 : 0;
      for (let i = 0; i < tree.name.length;) {
        if (marks[tree.name[i]]) {
          sum += tree.total[i];
          second += tree.totalSecond[i];
        }
        i = marks[tree.name[i]] ? tree.end[i] : i + 1;
      }
      found.textContent = `${look.found(sum, second)} in ${hits.toLocaleString("en")} frames`;
    }
    if (view === "table") fillTable();
    redraw();
  }

  function select(i) {
    if (i < 0) return;
    selected = i;
    if (i < zoomed || i >= tree.end[zoomed]) zoomed = isAround(i) ? zoomed : 0;
    byId("reset").hidden = !zoomed;
    const y = tree.depth[i] * ROW;
    if (y < main.scrollTop || y + ROW > main.scrollTop + main.clientHeight) main.scrollTop = y - main.clientHeight / 2;
    say(i);
    redraw();
  }

  function nextMatch(step) {
    const n = tree.name.length;
    if (!marks) return;
    for (let k = 1, i = Math.max(selected, 0); k <= n; k++) {
      i = (i + step + n) % n;
      if (marks[tree.name[i]]) return select(i);
    }
  }

  // Among those that are drawn.
  function move(key) {
    const i = selected < 0 ? zoomed : selected;
    if (key === "ArrowUp") return select(tree.parent[i]);
    if (key === "ArrowDown") return i + 1 < tree.end[i] ? select(heaviest(i)) : undefined;
    const p = tree.parent[i];
    if (p < 0) return;
    let before = -1;
    for (let k = p + 1; k < tree.end[p]; k = tree.end[k]) {
      if (k === i && key === "ArrowLeft") return select(before);
      if (before === i && key === "ArrowRight") return select(k);
      before = k;
    }
  }
  function heaviest(i) {
    let best = i + 1;
    for (let k = i + 1; k < tree.end[i]; k = tree.end[k]) if (tree.total[k] > tree.total[best]) best = k;
    return best;
  }

  function copy() {
    const i = selected >= 0 ? selected : zoomed, text = names[tree.name[i]];
    const area = document.createElement("textarea");
    if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text).then(() => (info.textContent = "copied: " + text));
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    info.textContent = "copied: " + text;
  }

  // --- the table ---
  let functions = null, order = "self";
  function fillTable() {
    functions = functions || look.functions(flame);
    const of = look.orders[order];
    const sorted = functions.filter((f) => !marks || marks[f.name]).sort((a, b) => of(b) - of(a) || look.orders.total(b) - look.orders.total(a) ||
      (names[a.name] < names[b.name] ? -1 : 1));
    const body = byId("rows");
    body.textContent = "";
    for (const f of sorted.slice(0, 1000)) {
      const row = body.insertRow();
      for (const [text, className] of look.cells(f)) {
        const cell = row.insertCell();
        cell.textContent = text;
        cell.className = className || "";
      }
      row.classList.toggle("marked", !!marks);
      row.lastChild.addEventListener("click", () => {
        show("flame");
        box.value = "^" + names[f.name].replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$";
        search(box.value);
      });
    }
    byId("more").textContent = sorted.length > 1000 ? `${(sorted.length - 1000).toLocaleString("en")} more: search for them` : "";
  }

  function show(which) {
    view = which;
    for (const b of byId("views").children) b.setAttribute("aria-pressed", b.dataset.view === which);
    byId("graph").hidden = which === "table";
    byId("table").hidden = which !== "table";
    if (which === "callers") callers = callers || invert(flame);
    tree = which === "callers" ? callers : flame;
    main.scrollTop = 0;
    zoom(0);
    search(box.value);
    if (which === "table") fillTable();
  }

  function setTheme(theme) {
    if (theme) document.documentElement.dataset.theme = theme;
    dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    redraw();
  }

  // --- wiring ---
  canvas.addEventListener("click", (event) => {
    const i = nodeAt(event);
    if (i >= 0) zoom(i);
  });
  canvas.addEventListener("mousemove", (event) => {
    const i = nodeAt(event);
    if (i === selected) return;
    selected = i;
    say(i);
    redraw();
  });
  canvas.addEventListener("mouseleave", () => {
    selected = zoomed || -1;
    say(selected);
    redraw();
  });
  main.addEventListener("scroll", redraw);
  window.addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(document.documentElement.dataset.theme));
  let waiting = 0;
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    if (flame.name.length < 200000) search(box.value); // a large tree takes a while: not after each letter
    else waiting = setTimeout(() => search(box.value), 250);
  });
  byId("reset").addEventListener("click", () => zoom(0));
  byId("copy").addEventListener("click", copy);
  byId("theme").addEventListener("click", () => setTheme(dark ? "light" : "dark"));
  for (const b of byId("views").children) b.addEventListener("click", () => show(b.dataset.view));
  for (const b of document.querySelectorAll("th button"))
    b.addEventListener("click", () => {
      order = b.dataset.by;
      fillTable();
    });
  window.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      if (box.value) search((box.value = ""));
      else zoom(0);
      box.blur();
    } else if (event.target === box) {
      if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
    } else if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    } else if (event.key === "/") {
      box.focus();
      event.preventDefault();
    } else if (event.key === "n" || event.key === "N") nextMatch(event.key === "n" ? 1 : -1);
    else if (event.key === "c") copy();
    else if (view !== "table" && event.key.startsWith("Arrow")) {
      move(event.key);
      event.preventDefault();
    } else if (view !== "table" && event.key === "Enter" && event.target === document.body && selected >= 0) zoom(selected);
  });

  for (const [colour, text] of look.legend(flame)) {
    const entry = document.createElement("span"), sample = document.createElement("i");
    sample.style.background = colour;
    entry.append(sample, text);
    byId("legend").append(entry);
  }
  setTheme(null);
  say(-1);
  draw();
})();
