// SPDX-License-Identifier: Apache-2.0
// A call tree in flat arrays. Nodes are in pre-order, the root is node 0, siblings are the heaviest first; so a subtree is the
// nodes i .. end[i] - 1, and what comes after a sibling that is too narrow to see is narrower still.

export class Tree {
  // @functions: { name, module, file, type, build_id }, arrays of one length. @nodes: { fn, parent, line, inlined, self, self2 },
  // parents before their children; self2 makes it a difference. @scale: what a weight of A and of B counts in widths.
  constructor(functions, nodes, answer, scale) {
    const n = nodes.fn.length, isDiff = Boolean(nodes.self2);
    const total = Float64Array.from(nodes.self), total2 = isDiff ? Float64Array.from(nodes.self2) : null;
    for (let i = n - 1; i > 0; i--) {
      total[nodes.parent[i]] += total[i];
      if (isDiff) total2[nodes.parent[i]] += total2[i];
    }
    const value = isDiff ? total.map((t, i) => t * scale[0] + total2[i] * scale[1]) : total;
    const order = preOrder(nodes.parent, value);

    this.functions = functions;
    this.answer = answer; // what the numbers are of: kind, weight_ns, from, to
    this.n = n;
    this.isDiff = isDiff;
    this.scale = scale;
    this.fn = new Int32Array(n);
    this.parent = new Int32Array(n);
    this.end = new Int32Array(n);
    this.depth = new Uint16Array(n);
    this.line = new Int32Array(n);
    this.inlined = new Uint8Array(n);
    this.self = new Float64Array(n);
    this.total = new Float64Array(n);
    this.self2 = isDiff ? new Float64Array(n) : null;
    this.total2 = isDiff ? new Float64Array(n) : null;
    this.value = new Float64Array(n); // widths, and where boxes begin
    this.start = new Float64Array(n);
    this.kids = new Float64Array(n); // the widths of all children
    this.hash = new Uint32Array(n); // of the names from the root down: finds a node again in another tree
    this.place(nodes, order, total, total2, value);
  }

  place(nodes, order, total, total2, value) {
    const now = new Int32Array(this.n), names = this.nameHashes();
    order.forEach((old, i) => (now[old] = i));
    this.deepest = 0;
    for (let i = 0; i < this.n; i++) {
      const old = order[i], p = i ? now[nodes.parent[old]] : 0;
      this.fn[i] = nodes.fn[old];
      this.parent[i] = i ? p : -1;
      this.line[i] = nodes.line ? nodes.line[old] : 0;
      this.inlined[i] = nodes.inlined ? nodes.inlined[old] : 0;
      this.self[i] = nodes.self[old];
      this.total[i] = total[old];
      this.value[i] = value[old];
      if (this.isDiff) {
        this.self2[i] = nodes.self2[old];
        this.total2[i] = total2[old];
      }
      this.hash[i] = i ? Math.imul(this.hash[p] ^ names[this.fn[i]], 0x01000193) + this.line[i] : 1;
      if (i) {
        this.depth[i] = this.depth[p] + 1;
        this.start[i] = this.start[p] + this.kids[p];
        this.kids[p] += this.value[i];
        if (this.depth[i] > this.deepest) this.deepest = this.depth[i];
      }
    }
    for (let i = this.n - 1; i >= 0; i--) {
      if (!this.end[i]) this.end[i] = i + 1;
      const p = this.parent[i];
      if (p >= 0 && this.end[i] > this.end[p]) this.end[p] = this.end[i];
    }
  }

  nameHashes() {
    const { name, module } = this.functions;
    return Uint32Array.from(name, (text, f) => {
      let hash = 0x811c9dc5;
      for (const s of [text, module[f]]) for (let i = 0; i < s.length; i++) hash = Math.imul(hash ^ s.charCodeAt(i), 0x01000193);
      return hash;
    });
  }

  name(i) {
    return this.functions.name[this.fn[i]];
  }

  module(i) {
    return this.functions.module[this.fn[i]];
  }

  type(i) {
    return this.functions.type[this.fn[i]];
  }

  id(i) {
    return this.hash[i].toString(16);
  }

  find(id) {
    return id ? this.hash.indexOf(parseInt(id, 16)) : 0;
  }

  // From the root to @i.
  path(i) {
    const out = [];
    for (; i >= 0; i = this.parent[i]) out.unshift(i);
    return out;
  }

  children(i) {
    const out = [];
    for (let c = i + 1; c < this.end[i]; c = this.end[c]) out.push(c);
    return out;
  }

  // How much more of the whole it is in B than in A: -1 .. 1.
  change(i) {
    return this.total2[i] * this.scale[1] - this.total[i] * this.scale[0];
  }

  // The parts of A and of B that it is, and how far noise reaches; null where that was not judged.
  noise(i) {
    const { answer } = this;
    if (!this.isDiff || !answer.noise) return null;
    const a = answer.total ? this.total[i] / answer.total : 0, b = answer.total2 ? this.total2[i] / answer.total2 : 0;
    const { noise = [], part = [] } = this.functions, f = this.fn[i];
    return { a, b, band: noiseBand(answer.noise, noise[f], part[f], (a + b) / 2) };
  }

  // Shares are judged; of absolute widths it is not known what is noise.
  isNoise(i) {
    const n = this.isDiff && this.scale.isShares ? this.noise(i) : null;
    return Boolean(n) && Math.abs(n.b - n.a) <= n.band;
  }
}

// How far noise reaches around the difference of what takes @part of both sides on average; @own and @whole: of its function, by
// which most of a function is judged (docs/api.md, noise).
function noiseBand({ factor, least }, own, whole, part) {
  return Math.max((own && part >= whole / 2 ? own : factor) * Math.sqrt(Math.max(0, part * (1 - part))), least);
}

// The order in which nodes stand when each is followed by its children, the widest first.
function preOrder(parent, value) {
  const n = parent.length, first = new Int32Array(n).fill(-1), next = new Int32Array(n).fill(-1);
  for (let i = n - 1; i > 0; i--) {
    next[i] = first[parent[i]];
    first[parent[i]] = i;
  }
  const order = new Int32Array(n), stack = [0];
  for (let k = 0; stack.length; k++) {
    const i = stack.pop(), children = [];
    order[k] = i;
    let sorted = true;
    for (let c = first[i]; c >= 0; c = next[c]) {
      if (children.length && value[c] > value[children[children.length - 1]]) sorted = false;
      children.push(c);
    }
    if (!sorted) children.sort((a, b) => value[b] - value[a] || a - b);
    for (let c = children.length - 1; c >= 0; c--) stack.push(children[c]);
  }
  return order;
}

// The tree of an answer of /flamegraph, /sandwich or /diff. @mode of a diff: "share" (of each whole) or "absolute".
export function treeOf(answer, mode, part) {
  const { functions, nodes } = part || answer;
  const isDiff = Boolean(nodes.self2);
  const given = { fn: nodes.function, parent: nodes.parent, line: nodes.line, inlined: nodes.inlined, self: nodes.self, self2: nodes.self2 };
  return new Tree(functions, given, answer, isDiff ? scaleOf(answer, mode) : null);
}

// Widths of a difference: half of A's and half of B's share; or both per second, so that a busier time is wider.
function scaleOf(answer, mode) {
  const a = answer.total || 1, b = answer.total2 || 1;
  if (mode !== "absolute") return Object.assign([0.5 / a, 0.5 / b], { isShares: true });
  const seconds = answer.covered_seconds || Math.max(1e-9, answer.to - answer.from);
  const seconds2 = answer.covered_seconds2 || Math.max(1e-9, (answer.to2 || answer.to) - (answer.from2 || answer.from));
  const all = a / seconds + b / seconds2;
  return [1 / seconds / all, 1 / seconds2 / all];
}

// --- search ---

// A regular expression, or several with commas between them. Throws SyntaxError.
export function pattern(text, withCase) {
  if (!text) return null;
  const parts = text.split(/,(?![^{]*\})/).map((p) => p.trim()).filter(Boolean);
  parts.forEach((p) => new RegExp(p));
  return new RegExp(parts.map((p) => `(?:${p})`).join("|"), withCase ? "" : "i");
}

// Why pattern() takes no such @text, in a sentence.
export function whyWrong(text) {
  if (/(^|[|(,]\s*)[?*+]/.test(text)) {
    const sign = text.match(/(?:^|[|(,]\s*)([?*+])/)[1];
    return `"${sign}" repeats what stands before it, and here nothing does: write \\${sign} for the sign itself, .* for any text.`;
  }
  if (/(^|[^\\])(\\\\)*\\$/.test(text)) return "A \\ at the end escapes nothing: write \\\\ for the sign itself.";
  const bare = text.replace(/\\./g, "");
  if (/\[[^\]]*$/.test(bare)) return "A [ is not closed: write \\[ for the sign itself.";
  const rest = bare.replace(/\[[^\]]*\]/g, "");
  const open = rest.split("(").length - rest.split(")").length;
  if (open) return `A ${open > 0 ? "( is not closed" : ") closes nothing"}: write \\${open > 0 ? "(" : ")"} for the sign itself.`;
  return "This is no regular expression: write \\ before a sign that is meant as it stands.";
}

// Which functions match, the nodes of them in order, and what they weigh with each moment counted once, in all of the tree
// and below @below.
export function search(tree, regex, below) {
  const matches = Uint8Array.from(tree.functions.name, (name) => (regex.test(name) ? 1 : 0));
  const nodes = [];
  let covered = 0, inside = 0, until = 0;
  for (let i = 1; i < tree.n; i++) {
    if (!matches[tree.fn[i]]) continue;
    nodes.push(i);
    if (i < until) continue;
    until = tree.end[i];
    covered += tree.value[i];
    if (i >= below && i < tree.end[below]) inside += tree.value[i];
  }
  for (let i = below; i > 0; i = tree.parent[i]) if (matches[tree.fn[i]]) inside = tree.value[below];
  return { matches, nodes, covered, inside };
}
