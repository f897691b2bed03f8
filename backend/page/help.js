// SPDX-License-Identifier: Apache-2.0
// All keys, over the page.
import { h, button } from "./dom.js";
import { KINDS } from "./transform.js";

const GROUPS = [
  ["Everywhere", [["1 … 8", "the views"], ["/", "search"], ["q", "question: labels, as in exe=\"java\", or a word that process, container or function have in their name"], ["T", "timeline: arrows move, shift selects, Enter shows"], ["z", "freeze, follow"],
    ["L", "copy a link to exactly this"], ["D", "download"], ["t", "light, dark"], ["R", "ask again"], ["?", "this list"]]],
  ["Flame graph", [["← → ↑ ↓ or h j k l", "from box to box"], ["Enter", "zoom to the box"], ["Backspace", "one step out"], ["Escape", "leave the search, clear it, then zoom"], ["double click", "the whole graph again"], ["+ −", "nearer, farther; also ctrl and wheel"],
    ["[ ]", "left, right; also drag"], ["n N", "next, previous match"], ["i", "icicle, flame"], ["v", "inverted: callers below"], ["I", "inlined calls as boxes"], ["s", "callers and callees of the box"],
    ["y Y", "copy name, copy stack"], [".", "menu of the box; also the right button"]]],
  ["Steps that change the graph", [...Object.values(KINDS).filter((k) => k.key).map((k) => [k.key, `${k.title.toLowerCase()}: ${k.says}`]), ["u", "take the last step back"]]],
  ["Tables", [["↑ ↓ or j k", "from row to row"], ["Enter", "go there"]]],
  ["Diff", [["x", "swap A and B"]]],
];

let dialog = null;
export const isHelp = () => Boolean(dialog && dialog.open);

export function hideHelp() {
  if (dialog) dialog.close();
}

export function showHelp() {
  if (!dialog) {
    dialog = h("dialog", { class: "help", "aria-labelledby": "help-title" }, h("div", { class: "help-head" }, h("h2", { id: "help-title" }, "Keys"), button("×", "Close (Escape)", hideHelp, { "aria-label": "Close", class: "icon" })),
      h("div", { class: "help-groups" }, GROUPS.map(([title, keys]) => h("section", null, h("h3", null, title),
        h("dl", null, keys.map(([key, says]) => [h("dt", null, key.split(" ").map((k) => (/^(…|or)$/.test(k) ? ` ${k} ` : h("kbd", null, k.replace(/,$/, ""))))), h("dd", null, says)]))))));
    dialog.addEventListener("click", (e) => e.target === dialog && hideHelp());
    document.body.append(dialog);
  }
  if (!dialog.open) dialog.showModal();
}
