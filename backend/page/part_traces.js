// SPDX-License-Identifier: Apache-2.0
// Traces and spans. Without a trace in the question: the traces of the selection, those that came in and those that samples have
// links to, the slowest first. With one: its spans in order of time, each a bar as long as it took, filled with what its samples
// were: on a CPU, waiting, waiting for a CPU, and its children's time; what stays empty nobody has explained. A click on a span
// leads to its flame graph.
import { h, replace, button, select } from "./dom.js";
import { state, set, selection, readQuery, withMatcher } from "./state.js";
import { count, kindName, moment, seconds, weight } from "./format.js";
import { Rows } from "./rows.js";
import { JOINED, foreign, goToSamples, goToTrace, withoutIds } from "./joined.js";
import { bar } from "./view_top.js";

const NONE = "Nothing here has a span. They come with programs that publish their threads' context (OTEP 4947), with Go programs that give their goroutines labels, and with traces that are sent here by OTLP.";
const PARTS = { samples: "cpu", cpu: "cpu", off_cpu: "wait", runnable: "queue" }, MOST_DEEP = 20;
const SORTS = [["slowest", "Slowest first"], ["heaviest", "Heaviest first"], ["newest", "Newest first"]];

// The trace that the question asks for; "": none.
const asked = () => ((readQuery(state.q) || { matchers: [] }).matchers.find((m) => m.label === "trace_id" && m.op === "=") || { value: "" }).value;

// The nanoseconds of span @s that children have, where they overlap once.
function covered(s, children) {
  const begin = s.start * 1e9, end = begin + s.duration_ns;
  let sum = 0, at = begin;
  for (const c of children.filter((one) => one.start).sort((a, b) => a.start - b.start)) {
    const from = Math.max(at, c.start * 1e9), to = Math.min(end, c.start * 1e9 + c.duration_ns);
    if (to > from) sum += to - from;
    at = Math.max(at, to);
  }
  return sum;
}

// What span @s was made of: [class, name, nanoseconds]..., the last what nobody explains. By time a span has its children's
// samples itself.
export function partsOf(d, s, children) {
  const parts = d.kinds.filter((k) => s.kinds[k.type] && PARTS[k.type]).map((k) => [PARTS[k.type], kindName(k.type), s.kinds[k.type].weight * k.weight_ns]);
  if (s.joined !== "time" && children.length) parts.push(["child", "in its child spans", covered(s, children)]);
  const rest = s.duration_ns - parts.reduce((a, [, , ns]) => a + ns, 0);
  return [...parts, ["", "not explained", Math.max(0, rest)]];
}

export class TracesPart {
  constructor(app) {
    this.app = app;
    this.tools = h("div", { class: "toolbar" });
    this.head = h("thead");
    const body = h("tbody");
    this.rows = new Rows(body);
    this.el = h("div", { class: "scroll traces" }, this.tools, h("table", { class: "grid" }, this.head, body));
  }

  query() {
    const id = asked(), slow = state.ts === "slowest" ? "" : state.ts;
    return id ? { path: `trace/${id}` } : { path: "traces", params: { ...selection(), sort: slow } };
  }

  show(data) {
    this.data = data;
    this.render();
  }

  render() {
    if (!this.data) return;
    if (Array.isArray(this.data.spans)) this.showSpans(this.data);
    else if (this.data.traces) this.showTraces(this.data);
  }

  headings(...names) {
    replace(this.head, h("tr", null, names.map(([name, isNumber]) => h("th", { scope: "col", class: isNumber ? "number" : "" }, name))));
  }

  outside(id) {
    const url = foreign(this.app.status, id);
    return url && h("a", { href: url, target: "_blank", rel: "noopener noreferrer", onclick: (e) => e.stopPropagation() }, "Open elsewhere");
  }

  showTraces(d) {
    const most = Math.max(1, ...d.traces.map((t) => t.duration_ns || 0)), hasWeight = d.traces.some((t) => t.events);
    replace(this.tools, select("Order", SORTS, state.ts, (ts) => set({ ts })),
      h("span", { class: "quiet" }, d.traces.length ? `${count(d.traces.length)}${d.more ? " of more" : ""} traces${state.focus ? ` with ${state.focus}` : ""}` : NONE));
    this.headings(["Took", true], ...(hasWeight ? [[kindName(d.kind.type), true]] : []), ["Spans", true], ["Began"], ["Trace"]);
    this.rows.fill(d.traces.map((t) => [h("tr", null,
      h("td", { class: "number" }, t.spans ? [bar(t.duration_ns / most), seconds(t.duration_ns / 1e9)] : ""),
      hasWeight && h("td", { class: "number" }, t.events ? weight(t.weight, d) : ""),
      h("td", { class: "number" }, t.spans ? count(t.spans) : ""), h("td", null, t.spans ? moment(t.start) : ""),
      h("td", { class: "name" }, t.name || t.trace_id, h("small", null, [t.service, t.errors ? `${count(t.errors)} errors` : "", t.name ? t.trace_id : ""].filter(Boolean).join(" · ")))),
    () => goToTrace(state.q, t.trace_id)]));
  }

  // A span as a bar within the time of its trace, from @t0 on for @whole seconds.
  waterfall(s, parts, t0, whole) {
    const length = Math.max(s.duration_ns, parts.reduce((a, [, , ns]) => a + ns, 0), 1); // work of several threads may be more than the time
    const says = [...parts.filter(([, , ns]) => ns).map(([, name, ns]) => `${name} ${seconds(ns / 1e9)}`), s.joined ? JOINED[s.joined] : JOINED.none].join(", ");
    const fill = h("span", { class: "fill", style: { left: `${(100 * (s.start - t0)) / whole}%`, width: `${Math.max(0.3, s.duration_ns / 1e7 / whole)}%` } },
      parts.filter(([mark]) => mark).map(([mark, , ns]) => h("i", { class: mark, style: { width: `${(100 * ns) / length}%` } })));
    return h("span", { class: "fall", title: says, role: "img", "aria-label": says }, fill);
  }

  // The spans as a tree, each behind its parent, as { span, deep, children }.
  ordered(spans) {
    const children = new Map(), ids = new Set(spans.map((s) => s.span_id)), out = [];
    for (const s of spans) {
      const parent = ids.has(s.parent) && s.parent !== s.span_id ? s.parent : "";
      children.set(parent, [...(children.get(parent) || []), s]);
    }
    const seen = new Set(), walk = (s, deep) => {
      if (seen.has(s)) return;
      seen.add(s);
      const below = children.get(s.span_id) || [];
      out.push({ span: s, deep: Math.min(deep, MOST_DEEP), children: below });
      if (s.span_id) below.forEach((c) => walk(c, deep + 1));
    };
    (children.get("") || []).forEach((s) => walk(s, 0));
    spans.forEach((s) => walk(s, 0)); // those of a circle
    return out;
  }

  showSpans(d) {
    const timed = d.spans.filter((s) => s.start), t0 = Math.min(...timed.map((s) => s.start));
    const whole = Math.max(1e-9, ...timed.map((s) => s.start - t0 + s.duration_ns / 1e9)), trace = d.trace_id;
    const legend = ["cpu", "wait", "queue", "child"].map((mark, i) => h("span", { class: "fall-key" }, h("i", { class: mark }), ["on a CPU", "waiting", "waiting for a CPU", "in child spans"][i]));
    replace(this.tools, button("All traces", "The traces of the selection", () => set({ q: withoutIds(state.q) })),
      d.joined === "link" && button("Flame graph", "Of the whole trace, by links", () => this.flame(trace, { joined: "link" })),
      button("Logs", "Log lines of this trace", () => set({ tv: "logs" })), this.outside(trace),
      h("span", { class: "quiet" }, d.spans.length ? `Trace ${trace}: ${count(d.spans.length)} spans; samples ${JOINED[d.joined]}` : `Nothing is known of trace ${trace}. ${NONE}`),
      timed.length ? h("span", { class: "fall-keys" }, legend) : null);
    this.headings(["Span"], ...(timed.length ? [["Took", true], [`Within ${seconds(whole)}`]] : []), ...d.kinds.map((k) => [kindName(k.type), true]), ...(timed.length ? [["Not explained", true]] : []));
    this.rows.fill(this.ordered(d.spans).map(({ span: s, deep, children }) => {
      const parts = s.start ? partsOf(d, s, children) : [], rest = s.start ? parts[parts.length - 1][2] : 0;
      return [h("tr", null,
        h("td", { class: "name", style: { "padding-left": `${8 + 14 * deep}px` } }, s.name || s.span_id || h("span", { class: "quiet" }, "(no span)"),
          h("small", null, [s.service, s.status === 2 ? "error" : "", s.joined === "time" ? "by time" : ""].filter(Boolean).join(" · "))),
        timed.length ? [h("td", { class: "number" }, s.start ? seconds(s.duration_ns / 1e9) : ""), h("td", { class: "falls" }, s.start ? this.waterfall(s, parts, t0, whole) : "")] : [],
        d.kinds.map((k) => h("td", { class: "number" }, s.kinds[k.type] ? weight(s.kinds[k.type].weight, { weight_ns: k.weight_ns, kind: k }) : "")),
        timed.length ? h("td", { class: "number" }, s.start ? seconds(rest / 1e9) : "") : []), () => this.flame(trace, s)];
    }));
  }

  flame(trace, s) {
    if (s.joined !== "link") {
      goToSamples(`span/${s.span_id}`);
      return;
    }
    const q = withMatcher(withoutIds(state.q), "trace_id", "=", trace);
    set({ q: s.span_id ? withMatcher(q, "span_id", "=", s.span_id) : q, view: "flame", z: "", w: "" });
  }

  key(e) {
    return this.rows.key(e);
  }
}
