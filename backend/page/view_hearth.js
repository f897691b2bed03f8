// SPDX-License-Identifier: Apache-2.0
// hearth about itself: its messages, and for those who work on it or send to it, its store, requests and counters.
import { h, replace, button, select, say } from "./dom.js";
import { address, ask } from "./api.js";
import { selection } from "./state.js";
import { bytes, count, moment, percent, seconds } from "./format.js";

const LEVELS = ["debug", "info", "warning", "error"];

export class LogView {
  constructor() {
    this.isOfHearth = true;
    this.least = "debug";
    this.box = h("input", { type: "search", placeholder: "Messages with…  /", "aria-label": "Only messages with this text", spellcheck: "false", oninput: () => this.render() });
    this.list = h("ol", { class: "log" });
    this.el = h("div", { class: "scroll padded" }, h("div", { class: "toolbar" }, h("div", { class: "search" }, this.box),
      select("Least level", LEVELS.map((l) => [l, l === "debug" ? "All messages" : l === "error" ? "Errors" : `From ${l}`]), "debug", (l) => {
        this.least = l;
        this.render();
      })), this.list);
  }

  query() {
    return { path: "status" };
  }

  show(data) {
    this.data = data;
    this.render();
  }

  render() {
    const text = this.box.value.toLowerCase(), from = LEVELS.indexOf(this.least);
    const shown = ((this.data && this.data.log) || []).filter((m) => LEVELS.indexOf(m.level) >= from && m.text.toLowerCase().includes(text));
    replace(this.list, shown.length ? shown.slice().reverse().map((m) => h("li", { class: m.level }, h("time", null, moment(m.time)), h("span", { class: "level" }, m.level), h("span", null, m.text)))
      : h("li", { class: "quiet" }, "No message."));
  }

  key(e) {
    if (e.key !== "/") return false;
    this.box.focus();
    e.preventDefault();
    return true;
  }
}

export class DeveloperView {
  constructor(app) {
    this.app = app;
    this.isOfHearth = true;
    this.before = null;
    this.box = h("input", { type: "search", placeholder: "Counters with…  /", "aria-label": "Only counters with this text", spellcheck: "false", oninput: () => this.render() });
    this.store = h("dl", { class: "facts" });
    this.requests = h("div");
    this.inside = null;
    this.tables = h("tbody");
    this.counters = h("tbody");
    const table = (heads, body) => h("table", { class: "grid" }, h("thead", null, h("tr", null, heads.map(([text, cls]) => h("th", { scope: "col", class: cls }, text)))), body);
    this.el = h("div", { class: "scroll padded developer" },
      h("section", null, h("h2", null, "Store"), this.store, h("p", { class: "row" }, button("Clear stored data…", "Takes all samples out of the store; asks before", () => this.askToClear()))),
      h("section", null, h("h2", null, "Last requests"), this.requests),
      h("section", null, h("h2", null, "Bytes by table"), table([["Bytes", "number"], ["Share", "number"], ["Table or index"]], this.tables)),
      h("section", null, h("h2", null, "Counters"), h("div", { class: "toolbar" }, h("div", { class: "search" }, this.box), h("a", { href: "/metrics" }, "/metrics")),
        table([["Value", "number"], ["A second", "number"], ["Name"]], this.counters)));
  }

  // What takes the whole store to find out is asked once.
  async askInside() {
    this.inside = {};
    try {
      this.inside = (await ask(address("inside", selection()))).data;
    } catch (e) {
      this.inside = { error: e.message };
    }
    this.render();
  }

  // The last requests as a tree: paths, below each its answers by status, below those the requests, each with its headers.
  renderRequests(requests) {
    const open = new Set([...this.requests.querySelectorAll("details[open]")].map((d) => d.dataset.key)), groups = new Map();
    for (const r of requests.slice().reverse()) {
      const of = groups.get(r.path) || groups.set(r.path, new Map()).get(r.path);
      (of.get(r.status) || of.set(r.status, []).get(r.status)).push(r);
    }
    const sums = (list) => `${count(list.length)} × · ${bytes(list.reduce((a, r) => a + r.bytes, 0))} · last ${moment(list[0].time)}`;
    const branch = (key, head, says, children) => {
      const d = h("details", { open: open.has(key) }, h("summary", null, head, h("span", { class: "quiet" }, ` ${says}`)), children);
      d.dataset.key = key;
      return d;
    };
    replace(this.requests, groups.size === 0 ? h("p", { class: "quiet" }, "None that brought something or failed.")
      : [...groups].map(([path, of]) => branch(path, h("code", null, path), sums([...of.values()].flat().sort((a, b) => b.time - a.time)),
        [...of].map(([status, list]) => branch(`${path} ${status}`, h("span", { class: status >= 400 ? "trouble" : null }, `status ${status}`), sums(list),
          list.map((r) => branch(`${path} ${r.time}`, `${moment(r.time)} · ${bytes(r.bytes)}`, "", h("ul", { class: "headers" }, r.headers.map((text) => h("li", null, text))))))))));
  }

  // Asks, and then empties the store.
  askToClear() {
    const s = this.data && this.data.store, said = h("p", { role: "alert" });
    if (!s) return;
    const end = () => {
      box.close();
      box.remove();
    };
    const box = h("dialog", { class: "help ask", "aria-labelledby": "ask-title", oncancel: () => box.remove() }, h("h2", { id: "ask-title" }, "Clear stored data?"),
      h("p", null, `${count(s.events)} samples${s.events ? ` from ${moment(s.first)} to ${moment(s.last)}` : ""} in ${s.place} go, for everybody who looks at them. This cannot be undone.`), said,
      h("p", { class: "row" }, button("Keep them", "Changes nothing", end, { autofocus: true }), button("Clear", "All samples go", async () => {
        said.textContent = "";
        try {
          const answer = await fetch(`${location.origin}/api/v1/clear`, { method: "POST" }), text = await answer.text();
          let told = {};
          try {
            told = JSON.parse(text);
          } catch (e) {
            told = { error: text };
          }
          if (!answer.ok) throw new Error(told.error || String(answer.status));
          end();
          say(`${count(told.cleared)} samples are gone.`);
          this.inside = null;
          await this.app.refresh(true);
          this.app.status = this.data;
          this.app.timeline.refresh(true);
        } catch (e) {
          said.textContent = `Not cleared: ${e.message}`;
        }
      }, { class: "danger" })));
    document.body.append(box);
    box.showModal();
  }

  query() {
    return { path: "status" };
  }

  show(data) {
    if (this.data && this.data.now < data.now) this.before = this.data;
    this.data = data;
    this.render();
  }

  render() {
    const d = this.data;
    if (!d) return;
    if (!this.inside) this.askInside();
    const s = d.store, { events, stacks } = this.inside, rows = [["hearth", `${d.version}, up ${seconds(d.uptime_seconds)}, ${d.live ? "an agent profiles this machine" : "no agent in this process"}`],
      ["store", `${s.kind}, ${s.place}`], ["size", `${bytes(s.bytes)}${s.events ? `, ${(s.bytes / s.events).toFixed(1)} bytes a sample` : ""}`],
      ["samples", count(s.events)], ["stacks", stacks ? `${count(stacks)} different ones in the chosen time, each met ${(events / stacks).toFixed(1)} times on average` : stacks === 0 ? "none" : "…"], ["range", s.events ? `${moment(s.first)} – ${moment(s.last)}` : "none"],
      ["series", count(s.series)], ["stack nodes", count(s.nodes)], ["frames", count(s.frames)],
      ...d.kinds.map((k) => [`kind ${k.type}`, `${k.unit}, ${count(k.events)} samples, period ${k.period_unit === "nanoseconds" ? seconds(k.period / 1e9) : `${k.period} ${k.period_unit}`}`])];
    replace(this.store, rows.map(([k, v]) => [h("dt", null, k), h("dd", null, v)]));
    this.renderRequests(d.requests || []);
    const tables = this.inside.tables || [], all = tables.reduce((a, t) => a + t.bytes, 0);
    replace(this.tables, tables.length ? tables.map((t) => h("tr", null, h("td", { class: "number" }, bytes(t.bytes)), h("td", { class: "number" }, percent(t.bytes, all)), h("td", { class: "name" }, t.name)))
      : h("tr", null, h("td", { colspan: 3, class: "quiet" }, this.inside.error || (this.inside.tables ? "This store does not tell." : "asking…"))));
    const text = this.box.value.toLowerCase(), span = this.before ? d.now - this.before.now : 0;
    replace(this.counters, Object.entries(d.counters).filter(([name]) => name.toLowerCase().includes(text)).map(([name, value]) => {
      const rate = span && name in this.before.counters ? (value - this.before.counters[name]) / span : 0;
      return h("tr", { class: value ? null : "none" }, h("td", { class: "number" }, Number.isInteger(value) ? count(value) : String(+value.toPrecision(6))), h("td", { class: "number" }, rate ? `${rate > 0 ? "+" : ""}${rate.toFixed(1)}` : ""), h("td", { class: "name" }, name));
    }));
  }

  key(e) {
    if (e.key !== "/") return false;
    this.box.focus();
    e.preventDefault();
    return true;
  }
}
