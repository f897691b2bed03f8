// SPDX-License-Identifier: Apache-2.0
// Traces and spans, by the links that samples carry. Without a trace in the question: the traces that the selection was spent in,
// heaviest first. With one: its spans in order of time, each a bar as long as it took, filled with what its samples were: on a CPU,
// waiting, waiting for a CPU; what stays empty nobody has explained. A click on a span leads to its flame graph.
import { h, replace, button } from "./dom.js";
import { state, set, selection, range, readQuery, withMatcher, withoutMatcher } from "./state.js";
import { count, kindName, percent, seconds, weight } from "./format.js";
import { bar } from "./view_top.js";

const NONE = "No sample here has a span. They come with programs that publish their threads' context (OTEP 4947), with Go programs that give their goroutines labels, and in profiles that are sent here.";

const PARTS = { samples: "cpu", cpu: "cpu", off_cpu: "wait", runnable: "queue" }, MOST_DEEP = 20;

// The trace that the question asks for; "": none.
const asked = () => ((readQuery(state.q) || { matchers: [] }).matchers.find((m) => m.label === "trace_id" && m.op === "=") || { value: "" }).value;

function withoutLabel(query, label) {
  const at = (readQuery(query) || { matchers: [] }).matchers.findIndex((m) => m.label === label && m.op === "=");
  return at < 0 ? query : withoutMatcher(query, at);
}

export class TraceView {
  constructor() {
    this.tools = h("div", { class: "toolbar" });
    this.head = h("thead");
    this.body = h("tbody");
    this.el = h("div", { class: "scroll" }, this.tools, h("table", { class: "grid" }, this.head, this.body));
    this.at = -1;
  }

  query() {
    const id = asked();
    return id ? { path: `trace/${id}`, params: range() } : { path: "values", params: { ...selection(), label: "trace_id", limit: "200" } };
  }

  show(data) {
    this.data = data;
    this.render();
  }

  render() {
    if (!this.data) return;
    if (this.data.spans) this.showSpans(this.data);
    else if (this.data.values) this.showTraces(this.data);
    this.mark();
  }

  headings(...names) {
    replace(this.head, h("tr", null, names.map((name, i) => h("th", { scope: "col", class: i < 2 ? "number" : "" }, name))));
  }

  showTraces(d) {
    const rows = d.values.filter((v) => v.value), total = d.values.reduce((a, v) => a + v.weight, 0);
    replace(this.tools, h("span", { class: "quiet" }, rows.length ? `${count(rows.length)} traces, heaviest first` : NONE));
    this.headings("Share", kindName(d.kind.type), "Trace");
    this.rows = rows.map((v) => ({ go: () => set({ q: withMatcher(state.q, "trace_id", "=", v.value), z: "", w: "" }) }));
    replace(this.body, rows.map((v, i) => h("tr", { onclick: () => this.rows[i].go() }, h("td", { class: "number" }, bar(v.weight / total), percent(v.weight, total)),
      h("td", { class: "number" }, weight(v.weight, d)), h("td", { class: "name" }, v.value))));
  }

  // A span as a bar within the time of its trace, from @t0 on for @whole seconds.
  waterfall(d, s, t0, whole) {
    const parts = d.kinds.filter((k) => s.kinds[k.type] && PARTS[k.type]).map((k) => ({ kind: k.type, ns: s.kinds[k.type].weight * k.weight_ns }));
    const sum = parts.reduce((a, p) => a + p.ns, 0), length = Math.max(s.duration_ns, sum, 1); // work of several threads may be more than the time
    const says = [...parts.map((p) => `${kindName(p.kind)} ${seconds(p.ns / 1e9)}`), sum < s.duration_ns ? `not explained ${seconds((s.duration_ns - sum) / 1e9)}` : ""].filter(Boolean).join(", ");
    const fill = h("span", { class: "fill", style: { left: `${(100 * (s.start - t0)) / whole}%`, width: `${Math.max(0.3, s.duration_ns / 1e7 / whole)}%` } },
      parts.map((p) => h("i", { class: PARTS[p.kind], style: { width: `${(100 * p.ns) / length}%` } })));
    return h("span", { class: "fall", title: says, role: "img", "aria-label": says }, fill);
  }

  // How deep a span is below the first one.
  depth(byId, s) {
    let n = 0;
    for (let at = byId.get(s.parent); at && n < MOST_DEEP; at = byId.get(at.parent)) n++;
    return n;
  }

  showSpans(d) {
    const timed = d.spans.filter((s) => s.start), t0 = Math.min(...timed.map((s) => s.start)), byId = new Map(d.spans.map((s) => [s.span_id, s]));
    const whole = Math.max(1e-9, ...timed.map((s) => s.start - t0 + s.duration_ns / 1e9));
    const most = Math.max(1, ...d.spans.map((s) => s.ns)), trace = d.trace_id;
    replace(this.tools, button("All traces", "The traces of the selection", () => set({ q: withoutLabel(withoutLabel(state.q, "trace_id"), "span_id") })),
      button("Flame graph", "Of the whole trace", () => this.flame(trace, "")),
      h("span", { class: "quiet" }, d.spans.length ? `Trace ${trace}: ${count(d.spans.length)} spans, samples joined by link` : `No sample has a link to trace ${trace}. ${NONE}`));
    this.headings("Share", "Samples", ...d.kinds.map((k) => kindName(k.type)), ...(timed.length ? ["Took", `Within ${seconds(whole)}`] : []), "Span");
    this.rows = d.spans.map((s) => ({ go: () => this.flame(trace, s.span_id) }));
    replace(this.body, d.spans.map((s, i) => h("tr", { onclick: () => this.rows[i].go() }, h("td", { class: "number" }, bar(s.ns / most)),
      h("td", { class: "number" }, seconds(s.ns / 1e9)),
      d.kinds.map((k) => h("td", null, s.kinds[k.type] ? weight(s.kinds[k.type].weight, { weight_ns: k.weight_ns, kind: k }) : "")),
      timed.length ? [h("td", null, s.start ? seconds(s.duration_ns / 1e9) : ""), h("td", { class: "falls" }, s.start ? this.waterfall(d, s, t0, whole) : "")] : [],
      h("td", { class: "name", style: { "padding-left": `${8 + 14 * (s.start ? this.depth(byId, s) : 0)}px` } },
        s.name ? [s.name, h("small", null, [s.service, s.status === 2 ? "error" : ""].filter(Boolean).join(" · "))] : s.span_id || h("span", { class: "quiet" }, "(no span)")))));
  }

  flame(trace, span) {
    const q = withMatcher(state.q, "trace_id", "=", trace);
    set({ q: span ? withMatcher(q, "span_id", "=", span) : withoutLabel(q, "span_id"), view: "flame", z: "", w: "" });
  }

  mark() {
    [...this.body.children].forEach((tr, i) => tr.classList.toggle("chosen", i === this.at));
    if (this.body.children[this.at]) this.body.children[this.at].scrollIntoView({ block: "nearest" });
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || !this.rows) return false;
    if (e.key === "ArrowDown" || e.key === "j") this.at = Math.min(this.rows.length - 1, this.at + 1);
    else if (e.key === "ArrowUp" || e.key === "k") this.at = Math.max(0, this.at - 1);
    else if (e.key === "Enter" && this.rows[this.at]) this.rows[this.at].go();
    else return false;
    this.mark();
    e.preventDefault();
    return true;
  }
}
