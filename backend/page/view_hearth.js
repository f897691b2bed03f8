// SPDX-License-Identifier: Apache-2.0
// hearth about itself: its messages, and for those who work on it or send to it, its store, requests and counters.
import { h, replace, select } from "./dom.js";
import { state } from "./state.js";
import { bytes, count, moment, seconds } from "./format.js";

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
  constructor() {
    this.isOfHearth = true;
    this.before = null;
    this.box = h("input", { type: "search", placeholder: "Counters with…  /", "aria-label": "Only counters with this text", spellcheck: "false", oninput: () => this.render() });
    this.store = h("dl", { class: "facts" });
    this.requests = h("tbody");
    this.counters = h("tbody");
    const table = (heads, body) => h("table", { class: "grid" }, h("thead", null, h("tr", null, heads.map(([text, cls]) => h("th", { scope: "col", class: cls }, text)))), body);
    this.el = h("div", { class: "scroll padded developer" },
      h("section", null, h("h2", null, "Store"), this.store),
      h("section", null, h("h2", null, "Last requests"), table([["Time"], ["Path"], ["Status", "number"], ["Bytes", "number"]], this.requests)),
      h("section", null, h("h2", null, "Counters"), h("div", { class: "toolbar" }, h("div", { class: "search" }, this.box), h("a", { href: "/metrics" }, "/metrics")),
        table([["Value", "number"], ["A second", "number"], ["Name"]], this.counters)));
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
    const s = d.store, rows = [["hearth", `${d.version}, up ${seconds(d.uptime_seconds)}, ${d.live ? "an agent profiles this machine" : "no agent in this process"}`],
      ["store", `${s.kind}, ${s.place}`], ["size", `${bytes(s.bytes)}${s.events ? `, ${(s.bytes / s.events).toFixed(1)} bytes a sample` : ""}`],
      ["samples", count(s.events)], ["range", s.events ? `${moment(s.first)} – ${moment(s.last)}` : "none"],
      ["series", count(s.series)], ["stack nodes", count(s.nodes)], ["frames", count(s.frames)],
      ...d.kinds.map((k) => [`kind ${k.type}`, `${k.unit}, ${count(k.events)} samples, period ${k.period_unit === "nanoseconds" ? seconds(k.period / 1e9) : `${k.period} ${k.period_unit}`}`])];
    replace(this.store, rows.map(([k, v]) => [h("dt", null, k), h("dd", null, v)]));
    const none = h("tr", null, h("td", { colspan: 4, class: "quiet" }, "None that brought something or failed."));
    replace(this.requests, !(d.requests || []).length ? none : d.requests.slice().reverse().map((r) => h("tr", { class: r.status >= 400 ? "some" : null }, h("td", null, moment(r.time)), h("td", { class: "name" }, r.path),
      h("td", { class: "number" }, String(r.status)), h("td", { class: "number" }, bytes(r.bytes)))));
    const text = this.box.value.toLowerCase(), span = this.before ? d.now - this.before.now : 0;
    replace(this.counters, Object.entries(d.counters).filter(([name]) => name.toLowerCase().includes(text)).map(([name, value]) => {
      const rate = span && name in this.before.counters ? (value - this.before.counters[name]) / span : 0;
      return h("tr", { class: value ? null : "none" }, h("td", { class: "number" }, Number.isInteger(value) ? count(value) : String(+value.toPrecision(6))), h("td", { class: "number" }, rate ? `${rate > 0 ? "+" : ""}${rate.toFixed(1)}` : ""), h("td", { class: "name" }, name));
    }));
  }

  key(e) {
    if (e.key !== "/" || state.view !== "developer") return false;
    this.box.focus();
    e.preventDefault();
    return true;
  }
}
