// SPDX-License-Identifier: Apache-2.0
// Colours of boxes. Types differ in lightness as well as in hue, so that they can be told apart with any eyes; a difference goes
// from blue (less) over grey to orange (more). Each colour has a few shades, by name, so that neighbours differ.

const SHADES = 4;

// hue, saturation, lightness on a light page and on a dark one; tests/browser/page_looks.py measures how far they are apart for all eyes
export const TYPES = {
  native: { title: "native", light: [37, 86, 72], dark: [37, 65, 66] },
  kernel: { title: "kernel", light: [218, 58, 64], dark: [220, 48, 62] },
  go: { title: "Go", light: [170, 42, 48], dark: [175, 43, 40] },
  python: { title: "Python", light: [84, 46, 52], dark: [85, 40, 46] },
  ruby: { title: "Ruby", light: [17, 67, 71], dark: [15, 66, 70] },
  php: { title: "PHP", light: [247, 74, 71], dark: [265, 73, 66] },
  perl: { title: "Perl", light: [201, 69, 86], dark: [178, 72, 84] },
  lua: { title: "Lua", light: [233, 60, 58], dark: [233, 74, 50] },
  erlang: { title: "Erlang", light: [329, 44, 76], dark: [309, 39, 50] },
  script: { title: "interpreted", light: [104, 33, 76], dark: [97, 74, 50] },
  java: { title: "Java", light: [286, 42, 77], dark: [290, 46, 78] },
  javascript: { title: "JavaScript", light: [42, 74, 79], dark: [60, 74, 84] },
  dotnet: { title: ".NET", light: [255, 74, 58], dark: [261, 53, 50] },
  jit: { title: "JIT", light: [303, 26, 58], dark: [319, 33, 67] },
  unnamed: { title: "unnamed", light: [30, 7, 84], dark: [30, 3, 72] },
  label: { title: "group", light: [225, 14, 88], dark: [225, 10, 74] },
  marker: { title: "cut stack", light: [352, 72, 72], dark: [352, 55, 62] },
};

// Which of TYPES a frame's type of OpenTelemetry is, or of other profilers; a function's that is none of these is native.
const LANGUAGES = {
  kernel: "kernel", go: "go", cpython: "python", python: "python", ruby: "ruby", php: "php", phpjit: "php", "php-jit": "php", perl: "perl",
  lua: "lua", luajit: "lua", beam: "erlang", script: "script", jvm: "java", hotspot: "java", v8js: "javascript", dotnet: "dotnet", jit: "jit",
};

// How hearth calls code without a name: a range or an address of a file, its module, generated code.
export const UNNAMED = /\+0x[0-9a-f]+(\.\.0x[0-9a-f]+)?$| \(no symbols\)$|^\[JIT code\]|^\[unknown\]$|^0x/;

// Which of TYPES a function is.
export function kindOf(type, name) {
  if (type === "label") return "label";
  if (type === "abort-marker" || type === "abort_marker") return "marker";
  if (!type && (name === "all" || name === "(other)")) return "label";
  if (UNNAMED.test(name)) return "unnamed";
  return Object.hasOwn(LANGUAGES, type) ? LANGUAGES[type] : "native";
}

// What each of TYPES weighs by itself, of an answer's `types`: { kernel: 7, unnamed: 2 }.
export function kindShares(types) {
  const out = {};
  for (const { type, self, unnamed } of types) {
    const kind = kindOf(type, "a name"), bare = kind === "marker" ? 0 : unnamed;
    out[kind] = (out[kind] || 0) + self - bare;
    out.unnamed = (out.unnamed || 0) + bare;
  }
  return out;
}

export function hashOf(text) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}

const hsl = (h, s, l) => `hsl(${h} ${s}% ${l}%)`;
export const isDark = () => getComputedStyle(document.documentElement).colorScheme === "dark";

// --- palettes: lists of colours, and for each node an index into them ---

function typePalette(dark) {
  const list = [];
  for (const type of Object.values(TYPES)) {
    const [h, s, l] = dark ? type.dark : type.light;
    for (let k = 0; k < SHADES; k++) list.push(hsl(h - k * 2, s, l + k * (dark ? 2 : 3)));
  }
  return list;
}

const KINDS = Object.keys(TYPES);

function huePalette(dark) {
  const list = [];
  for (let k = 0; k < 24; k++) list.push(hsl((k * 137.5) % 360, dark ? 34 : 52, (dark ? 54 : 70) + (k % 3) * 5));
  list.push(dark ? hsl(30, 4, 62) : hsl(30, 6, 80));
  return list;
}

const STEPS = 7; // each way
export function diffColor(part, dark) {
  const k = Math.sign(part) * Math.min(1, Math.sqrt(Math.abs(part))), grey = dark ? 52 : 86;
  if (Math.abs(k) < 0.02) return hsl(40, 6, grey);
  const strong = Math.abs(k);
  return k > 0 ? hsl(26, 25 + 65 * strong, grey - strong * (dark ? 0 : 26)) : hsl(212, 20 + 55 * strong, grey - strong * (dark ? 2 : 24));
}

function diffPalette(dark) {
  const list = [];
  for (let k = -STEPS; k <= STEPS; k++) list.push(diffColor(Math.sign(k) * (k / STEPS) ** 2, dark));
  return list;
}

// How much of its own weight changed, with the change in the whole beside it: a box that doubled, but is nothing, is pale.
function diffStep(tree, i) {
  if (tree.isNoise(i)) return STEPS;
  const change = tree.change(i), both = tree.value[i] || 1;
  const strength = Math.sign(change) * Math.sqrt(Math.abs(change) / both) * Math.min(1, Math.sqrt(both / (tree.value[0] || 1)) * 4 + 0.25);
  return Math.round(strength * STEPS) + STEPS;
}

// { palette, of: Uint8Array by node }
export function coloring(mode, tree, dark) {
  const of = new Uint8Array(tree.n), { name, module, type } = tree.functions;
  if (mode === "diff" && tree.isDiff) {
    for (let i = 0; i < tree.n; i++) of[i] = diffStep(tree, i);
    return { palette: diffPalette(dark), of };
  }
  if (mode === "module" || mode === "package") {
    const palette = huePalette(dark), known = palette.length - 1;
    const byFunction = name.map((text, f) => {
      const key = mode === "module" ? module[f] : packageOf(text, module[f]);
      return key ? hashOf(key) % known : known;
    });
    for (let i = 0; i < tree.n; i++) of[i] = byFunction[tree.fn[i]];
    return { palette, of };
  }
  const byFunction = name.map((text, f) => KINDS.indexOf(kindOf(type[f], text)) * SHADES + (hashOf(text) % SHADES));
  for (let i = 0; i < tree.n; i++) of[i] = byFunction[tree.fn[i]];
  return { palette: typePalette(dark), of };
}

// What a function belongs to by its name: Go's import path, a C++ or Rust name space, a Java package; else its module.
export function packageOf(name, module) {
  const plain = name.replace(/<.*|\(.*/, "");
  const slash = plain.lastIndexOf("/"), dot = plain.indexOf(".", slash + 1);
  if (slash >= 0 && dot > 0) return plain.slice(0, dot);
  const colons = plain.indexOf("::");
  if (colons > 0) return plain.slice(0, colons);
  if (dot > 0 && !plain.includes(" ")) return plain.slice(0, plain.lastIndexOf("."));
  return module;
}

export function swatch(kind, dark) {
  const [h, s, l] = dark ? TYPES[kind].dark : TYPES[kind].light;
  return hsl(h, s, l);
}
