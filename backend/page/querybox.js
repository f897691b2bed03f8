// SPDX-License-Identifier: Apache-2.0
// The box for a selector, with the labels and values that there are offered while typing.
import { h, replace } from "./dom.js";
import { state, set, readQuery, writeQuery, range } from "./state.js";
import { address, ask } from "./api.js";
import { chips } from "./header.js";

const SHORT = ["comm", "exe", "pid", "tid", "cpu", "container"];
const MOST = 12;
const HOW = 'One word, in quotes where it has spaces ("GC Thread"), or LABEL="VALUE", commas between them: exe="java", container=~"web.*"';

// What is being typed at the end of @text: a label, or the value of one.
export function typedAt(text) {
  const value = text.match(/([A-Za-z_][\w.]*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)$/);
  if (value) return { what: "value", label: value[1], part: value[3], at: text.length - value[3].length };
  const label = text.match(/(?:^|[{,])\s*([\w.]*)$/);
  if (label) return { what: "label", part: label[1], at: text.length - label[1].length };
  return null;
}

export class QueryBox {
  constructor() {
    this.input = h("input", { type: "text", id: "selector", placeholder: 'Everything: narrow it, as in java or comm="nginx"  q', spellcheck: "false", autocomplete: "off", autocapitalize: "off",
      role: "combobox", "aria-label": "Selector of series", "aria-expanded": "false", "aria-controls": "offers", "aria-autocomplete": "list",
      oninput: () => this.offer(), onfocus: () => this.offer(), onblur: () => setTimeout(() => this.close(), 120), onkeydown: (e) => this.key(e) });
    this.list = h("ul", { id: "offers", role: "listbox", class: "offers", hidden: true });
    this.chips = h("div", { class: "chips" });
    this.el = h("div", { class: "query" }, this.input, this.list, this.chips);
    this.offers = [];
    this.at = -1;
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  render() {
    if (document.activeElement !== this.input) {
      this.input.value = state.q;
      this.input.classList.remove("wrong");
    }
    this.say();
  }

  // What the last answer says of the word in it.
  tell(word) {
    this.word = word;
    this.say();
  }

  // Below the box: what narrows the selection, or how to write that.
  say() {
    replace(this.chips, this.input.classList.contains("wrong") ? h("span", { class: "why", role: "alert" }, HOW) : chips(this.word));
  }

  apply() {
    const text = this.input.value.trim();
    const read = readQuery(text);
    this.input.classList.toggle("wrong", !read);
    this.say();
    if (!read) return false;
    set({ q: writeQuery(read), z: "", w: "" });
    return true;
  }

  // Asks for what could stand here.
  async offer() {
    if (this.input.classList.contains("wrong")) {
      this.input.classList.remove("wrong");
      this.say();
    }
    const text = this.input.value.slice(0, this.input.selectionStart).replace(/\}\s*$/, ""), typed = typedAt(text);
    const turn = (this.turn = (this.turn || 0) + 1);
    if (!typed) return this.close();
    let found = [];
    try {
      if (typed.what === "label") {
        const labels = (await ask(address("labels", range()))).data.labels;
        found = [...new Set([...SHORT, ...labels])].filter((l) => l.includes(typed.part)).map((l) => ({ text: l, insert: `${l}="` }));
      } else {
        const values = (await ask(address("values", { ...range(), label: typed.label, prefix: typed.part, limit: MOST }))).data.values;
        found = values.map((v) => ({ text: v.value || "(none)", insert: `${v.value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"` }));
      }
    } catch (e) {
      return this.close();
    }
    if (turn !== this.turn || document.activeElement !== this.input) return;
    this.typed = typed;
    this.offers = found.slice(0, MOST);
    this.at = -1;
    this.draw();
  }

  draw() {
    replace(this.list, this.offers.map((o, i) => h("li", { id: `offer${i}`, role: "option", "aria-selected": String(i === this.at), onpointerdown: (e) => {
      e.preventDefault();
      this.take(i);
    } }, o.text)));
    this.list.hidden = !this.offers.length;
    this.input.setAttribute("aria-expanded", String(this.offers.length > 0));
    if (this.at >= 0) this.input.setAttribute("aria-activedescendant", `offer${this.at}`);
    else this.input.removeAttribute("aria-activedescendant");
  }

  take(i) {
    const before = this.input.value.slice(0, this.typed.at) + this.offers[i].insert;
    this.input.value = before;
    this.input.setSelectionRange(before.length, before.length);
    if (this.typed.what === "value") this.close();
    else this.offer();
  }

  close() {
    this.turn = (this.turn || 0) + 1;
    this.offers = [];
    this.at = -1;
    this.draw();
  }

  key(e) {
    const n = this.offers.length;
    if (e.key === "ArrowDown" && n) this.at = (this.at + 1) % n;
    else if (e.key === "ArrowUp" && n) this.at = (this.at - 1 + n) % n;
    else if ((e.key === "Enter" || e.key === "Tab") && this.at >= 0) this.take(this.at);
    else if (e.key === "Enter") {
      if (this.apply()) this.close();
    } else if (e.key === "Escape" && n) this.close();
    else return;
    e.preventDefault();
    e.stopPropagation();
    if (this.offers.length) this.draw();
  }
}
