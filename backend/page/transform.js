// SPDX-License-Identifier: Apache-2.0
// Trees made from trees. A step is "KIND:ARGUMENT", as it stands in the page's address; steps are taken one after the other.
// Weight that a step takes out of the tree (drop, focus) leaves the total; weight that it merges stays in it.
import { Tree } from "./tree.js";
import { UNNAMED, kindOf } from "./colors.js";

export const KINDS = {
  focus: { key: "f", title: "Focus on function", text: "only", says: "only what this function calls, wherever it is called from" },
  subtree: { key: "F", title: "Focus on this subtree", text: "subtree", says: "only this call and what it calls" },
  merge: { key: "m", title: "Hide function", text: "hide", says: "its time goes to its callers, what it calls moves up" },
  drop: { key: "d", title: "Drop samples with function", text: "drop", says: "stacks with this function are left out" },
  collapse: { key: "c", title: "Collapse function", text: "collapse", says: "the function and all it calls become one box" },
  library: { key: "C", title: "Collapse library", text: "library", says: "calls within this module become one box" },
  hidelib: { key: "M", title: "Hide library", text: "hide", says: "the functions of this module are merged into their callers" },
  recursion: { key: "r", title: "Collapse recursion", text: "no direct recursion", says: "a function that calls itself is one box", alone: true },
  preset: { title: "Preset", text: "" },
  type: { title: "Hide type", text: "hide", says: "functions of this type are merged into their callers" },
};

// What people hide all the time. Modules by name, or functions by name.
export const PRESETS = {
  libc: { title: "Hide libc", module: /^(libc|libpthread|ld-linux.*|ld-musl.*|libm)([.-].*)?\.so/ },
  kernel: { title: "Hide kernel", type: /^kernel$/ },
  python: { title: "Hide Python's interpreter", module: /^(libpython|python3?)/, type: /^(?!cpython)/ },
  v8: { title: "Hide V8's inside", name: /^(v8::|node::|Builtins_|uv_)/ },
  tokio: { title: "Hide tokio", name: /^(<?tokio::|<?std::panic|core::ops::function|<core::pin)/ },
  jvm: { title: "Hide the JVM's inside", module: /^(libjvm|libjli|libjava|libnio|libnet|libzip)\.so/ },
  go: { title: "Hide Go's runtime", name: /^(runtime|runtime\/internal\/\w+|internal\/runtime\/\w+)\./ },
  erlang: { title: "Hide Erlang's VM", module: /^beam(\.\w+)*$/, type: /^(?!beam)/ },
  unnamed: { title: "Hide unnamed", name: UNNAMED },
};

export function label(step) {
  const [kind, argument] = split(step);
  if (kind === "preset") return PRESETS[argument] ? PRESETS[argument].title.toLowerCase() : argument;
  const name = kind === "subtree" ? argument.slice(argument.indexOf(":") + 1) : argument;
  return KINDS[kind] ? `${KINDS[kind].text} ${name}`.trim() : step;
}

const split = (step) => {
  const at = step.indexOf(":");
  return at < 0 ? [step, ""] : [step.slice(0, at), step.slice(at + 1)];
};

// Nodes of a new tree, merged where caller and function are the same.
class Builder {
  constructor(tree) {
    this.tree = tree;
    this.functions = Object.fromEntries(Object.entries(tree.functions).map(([k, v]) => [k, v.slice()]));
    this.nodes = { fn: [tree.fn[0]], parent: [0], line: [0], inlined: [0], self: [0], self2: tree.isDiff ? [0] : undefined };
    this.known = new Map();
  }

  // The child of @parent for the function @fn; @like: the old node that it is made for.
  child(parent, fn, like) {
    const { nodes, tree } = this, line = tree.line[like];
    const key = line ? `${parent},${fn},${line}` : parent * 0x2000000 + fn;
    let at = this.known.get(key);
    if (at === undefined) {
      at = nodes.fn.push(fn) - 1;
      this.known.set(key, at);
      nodes.parent.push(parent);
      nodes.line.push(line);
      nodes.inlined.push(tree.inlined[like]);
      nodes.self.push(0);
      if (nodes.self2) nodes.self2.push(0);
    } else if (!tree.inlined[like]) {
      nodes.inlined[at] = 0;
    }
    return at;
  }

  add(at, old) {
    this.nodes.self[at] += this.tree.self[old];
    if (this.nodes.self2) this.nodes.self2[at] += this.tree.self2[old];
  }

  named(name, module, type) {
    const f = this.functions;
    for (const key of Object.keys(f)) f[key].push("");
    const at = f.name.length - 1;
    Object.assign(f, { name: f.name, module: f.module, type: f.type });
    f.name[at] = name;
    f.module[at] = module;
    f.type[at] = type;
    return at;
  }

  done() {
    return new Tree(this.functions, this.nodes, this.tree.answer, this.tree.scale);
  }
}

// @to(i, at, b): the new node of @i, whose parent's is @at (-1 where it is dropped); -1 drops it too.
function rebuild(tree, to) {
  const b = new Builder(tree), at = new Int32Array(tree.n);
  b.add(0, 0);
  for (let i = 1; i < tree.n; i++) {
    at[i] = to(i, at[tree.parent[i]], b, at);
    if (at[i] >= 0) b.add(at[i], i);
  }
  return b.done();
}

const byFunction = (tree, test) => Uint8Array.from(tree.functions.name, (_, f) => (test(f, tree.functions) ? 1 : 0));

// A root of its own keeps no self weight that is not under it.
function withoutRootSelf(tree) {
  const copy = Object.create(tree, { self: { value: tree.self.slice() }, self2: { value: tree.self2 && tree.self2.slice() } });
  copy.self[0] = 0;
  if (copy.self2) copy.self2[0] = 0;
  return copy;
}

function focusFunction(tree, name) {
  const is = byFunction(tree, (f, { name: names }) => names[f] === name), within = new Uint8Array(tree.n);
  return rebuild(withoutRootSelf(tree), (i, at, b) => {
    if (within[tree.parent[i]]) within[i] = 1;
    else if (is[tree.fn[i]]) {
      within[i] = 1;
      return b.child(0, tree.fn[i], i);
    }
    return within[i] ? b.child(at, tree.fn[i], i) : -1;
  });
}

function focusSubtree(tree, argument) {
  const root = tree.find(argument.slice(0, argument.indexOf(":")));
  if (root <= 0) return tree;
  return rebuild(withoutRootSelf(tree), (i, at, b) => {
    if (i < root || i >= tree.end[root]) return -1;
    return b.child(i === root ? 0 : at, tree.fn[i], i);
  });
}

const mergeWhere = (tree, is) => rebuild(tree, (i, at, b) => (is[tree.fn[i]] ? at : b.child(at, tree.fn[i], i)));

// A tree whose only group is taken out: what is of one process needs no name of it above all.
export function withoutGroup(tree) {
  const below = tree.children(0);
  if (below.length !== 1 || tree.type(below[0]) !== "label") return tree;
  return mergeWhere(tree, byFunction(tree, (f, { type }) => type[f] === "label"));
}

function drop(tree, name) {
  const is = byFunction(tree, (f, { name: names }) => names[f] === name);
  return rebuild(tree, (i, at, b) => (at < 0 || is[tree.fn[i]] ? -1 : b.child(at, tree.fn[i], i)));
}

function collapse(tree, name) {
  const is = byFunction(tree, (f, { name: names }) => names[f] === name), within = new Uint8Array(tree.n);
  return rebuild(tree, (i, at, b) => {
    const p = tree.parent[i];
    within[i] = within[p] || is[tree.fn[i]];
    return within[p] ? at : b.child(at, tree.fn[i], i);
  });
}

function collapseLibrary(tree, module) {
  const is = byFunction(tree, (f, { module: modules }) => modules[f] === module);
  let name = -1;
  return rebuild(tree, (i, at, b) => {
    if (!is[tree.fn[i]]) return b.child(at, tree.fn[i], i);
    if (name < 0) name = b.named(`[${module}]`, module, tree.type(i));
    return b.nodes.fn[at] === name ? at : b.child(at, name, i);
  });
}

const collapseRecursion = (tree) =>
  rebuild(tree, (i, at, b) => (b.nodes.fn[at] === tree.fn[i] && at > 0 ? at : b.child(at, tree.fn[i], i)));

function preset(tree, id) {
  const p = PRESETS[id];
  if (!p) return tree;
  const test = (f, fs) =>
    fs.type[f] !== "label" && (!p.module || p.module.test(fs.module[f])) && (!p.name || p.name.test(fs.name[f])) && (!p.type || p.type.test(fs.type[f]));
  return mergeWhere(tree, byFunction(tree, test));
}

const STEPS = {
  focus: focusFunction,
  subtree: focusSubtree,
  merge: (tree, name) => mergeWhere(tree, byFunction(tree, (f, { name: names }) => names[f] === name)),
  hidelib: (tree, module) => mergeWhere(tree, byFunction(tree, (f, { module: modules }) => modules[f] === module)),
  drop,
  collapse,
  library: collapseLibrary,
  recursion: collapseRecursion,
  preset,
  type: (tree, kind) => mergeWhere(tree, byFunction(tree, (f, { type, name }) => kindOf(type[f], name[f]) === kind)),
};

export function transformed(tree, steps) {
  for (const step of steps) {
    const [kind, argument] = split(step);
    if (STEPS[kind]) tree = STEPS[kind](tree, argument);
  }
  return tree;
}

// The step for a node, or null where it makes no sense.
export function stepFor(kind, tree, i) {
  if (kind === "recursion") return "recursion";
  if (i <= 0) return null;
  if (kind === "subtree") return `subtree:${tree.id(i)}:${tree.name(i)}`;
  if (kind === "library" || kind === "hidelib") return tree.module(i) ? `${kind}:${tree.module(i)}` : null;
  return `${kind}:${tree.name(i)}`;
}

// Callers first: below the root stand the functions where time was spent, below each its callers. The whole of it would have
// as many nodes as all stacks have frames; so only branches of at least 1 / FINE of the root are followed, and below the
// node with the path @ids (hashes from the root) of at least 1 / FINE of that node. The rest is callers without a box.
const FINE = 3000, MOST_NODES = 200000;
export function inverted(tree, ids) {
  const b = new Builder(tree), total = tree.value[0] || 1, path = new Set(ids);
  const own = (i) => (tree.isDiff ? tree.self[i] * tree.scale[0] + tree.self2[i] * tree.scale[1] : tree.self[i]);
  // An entry: old nodes whose caller chain so far is the same, each with the node whose self weight it carries.
  const start = { at: 0, from: [], where: [], least: total / FINE, hash: 1 };
  for (let i = 1; i < tree.n; i++)
    if (tree.self[i] || (tree.isDiff && tree.self2[i])) {
      start.from.push(i);
      start.where.push(i);
    }
  b.add(0, 0);
  const names = tree.nameHashes(), queue = [start];
  for (let k = 0; k < queue.length && b.nodes.fn.length < MOST_NODES; k++) {
    const entry = queue[k], groups = new Map();
    queue[k] = null;
    for (let j = 0; j < entry.from.length; j++) {
      const where = entry.where[j];
      if (where <= 0) {
        if (entry.at) b.add(entry.at, entry.from[j]);
        continue;
      }
      let group = groups.get(tree.fn[where]);
      if (!group) groups.set(tree.fn[where], (group = { from: [], where: [], weight: 0, like: where }));
      group.from.push(entry.from[j]);
      group.where.push(tree.parent[where]);
      group.weight += own(entry.from[j]);
    }
    for (const [fn, group] of groups) {
      const hash = (Math.imul(entry.hash ^ names[fn], 0x01000193) + 0) >>> 0;
      if (group.weight < entry.least && !path.has(hash.toString(16))) {
        for (const i of group.from) b.add(entry.at, i);
        continue;
      }
      const at = b.child(entry.at, fn, group.like);
      b.nodes.line[at] = 0;
      const least = path.has(hash.toString(16)) ? Math.min(entry.least, group.weight / FINE) : entry.least;
      queue.push({ at, from: group.from, where: group.where, least, hash });
    }
  }
  for (const entry of queue) if (entry) for (const i of entry.from) b.add(entry.at, i);
  return b.done();
}
