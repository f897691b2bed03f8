// SPDX-License-Identifier: Apache-2.0
// The top of the page: which series, which time, which kind of samples; following or frozen; share, download, theme, help.
import { h, replace, button, select } from "./dom.js";
import { state, set, isLive, selection, readQuery, withoutMatcher, withoutWord } from "./state.js";
import { address } from "./api.js";
import { kindName, span } from "./format.js";
import { QueryBox } from "./querybox.js";
import { showMenu } from "./menu.js";
import { showHelp } from "./help.js";

const WAITS = /^(off_cpu|waker)$/, LOCKS = '{syscall.name="futex"}';
const RANGES = [["now-5m", "5 m"], ["recent", "15 m"], ["now-1h", "1 h"], ["now-6h", "6 h"], ["now-24h", "24 h"], ["now-7d", "7 d"], ["first", "All"]];
const FILES = [["otlp", "OTLP", "otlp"], ["pprof", "pprof", "pb.gz"], ["folded", "Folded stacks", "folded"], ["svg", "Flame graph as SVG", "svg"],
  ["speedscope", "speedscope", "speedscope.json"], ["html", "Flame graph as a page", "html"], ["firefox", "Firefox Profiler", "json.gz"]];
const THEMES = { "": "System", light: "Light", dark: "Dark" };

export class Header {
  constructor({ freeze, share, app }) {
    this.freeze = freeze;
    this.share = share;
    this.app = app;
    this.query = new QueryBox();
    this.filters = h("div", { class: "filters" });
    replace(document.getElementById("query"), this.query.el);
    this.range = document.getElementById("range");
    this.tools = document.getElementById("tools");
    this.kinds = [];
    this.setTheme(localStorage.getItem("theme") || "");
  }

  setTheme(theme) {
    localStorage.setItem("theme", theme);
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  }

  // The next of system, light, dark.
  theme() {
    const all = Object.keys(THEMES), now = localStorage.getItem("theme") || "";
    this.setTheme(all[(all.indexOf(now) + 1) % all.length]);
    this.render();
    this.app.repaint();
  }

  status(status, trouble) {
    const kinds = status ? status.kinds.map((k) => k.type) : [], before = this.seen;
    this.seen = JSON.stringify([kinds, status && status.live, trouble]);
    this.kinds = kinds;
    this.trouble = trouble;
    if (this.seen !== before) this.render();
  }

  downloads() {
    const params = selection();
    const items = FILES.map(([format, text, ending]) => ({
      text, says: `hearth.${ending}`,
      run: () => {
        const a = h("a", { href: address("export", { ...params, format }), download: `hearth.${ending}` });
        document.body.append(a);
        a.click();
        a.remove();
      },
    }));
    const r = this.tools.getBoundingClientRect();
    showMenu(items, r.right - 230, r.bottom + 4, "Download this selection");
  }

  // Whether a token was shown for this browser (docs/api.md): then there is something to end.
  async findSession() {
    try {
      this.hasSession = (await (await fetch(`${location.origin}/session`)).json()).session;
    } catch (e) {
      return; // the page says elsewhere that nobody answers
    }
    if (this.hasSession) this.render();
  }

  async logOut() {
    await fetch(`${location.origin}/logout`, { method: "POST" });
    location.reload();
  }

  render() {
    this.query.render();
    const relative = state.to === "now" || state.from === "first";
    replace(this.range,
      h("div", { class: "segments", role: "group", "aria-label": "Range" }, RANGES.map(([from, text]) => button(text, from === "first" ? "All that is kept" : from === "recent" ? "The last 15 m, or since samples have been coming" : `The last ${text}`,
        () => set({ from, to: from === "first" ? "last" : "now", sel: "", live: from === "first" ? "" : "1" }),
        { "aria-pressed": String(state.from === from && relative) }))),
      !relative && h("span", { class: "fixed", title: "A fixed range" }, span(+state.from, +state.to)),
      this.kinds.length > 1 && select("Kind of samples", this.kinds.map((k, i) => [i ? k : "", kindName(k)]), this.kinds.indexOf(state.kind) > 0 ? state.kind : "", (kind) => set({ kind, z: "", w: "" })),
      WAITS.test(state.kind) && button("Idle waits", "Also show waits of threads that have no work: event loops, servers that listen, worker pools", () => set({ idle: state.idle ? "" : "0", z: "", w: "" }), { "aria-pressed": String(!state.idle) }),
      this.kinds.includes("waker") && button("Locks", "Waits for locks of programs, each with who let it go", () => set({ kind: "waker", view: "flame", q: LOCKS, by: "wait.target", z: "", w: "" }), { "aria-pressed": String(state.kind === "waker" && state.q === LOCKS) }));
    const live = isLive(), theme = localStorage.getItem("theme") || "";
    replace(this.tools,
      this.trouble ? h("span", { class: "trouble", title: this.trouble }, "no answer") : null,
      button(live ? "Following" : "Frozen", live ? "New samples are shown as they come; freeze (z)" : "Follow again (z)", this.freeze, { class: live ? "live on" : "live", "aria-pressed": String(live) }),
      button("Share", "Copy a link to exactly this (L)", this.share),
      button("Download", "As OTLP, pprof, folded, SVG, HTML, for speedscope or Firefox (D)", () => this.downloads(), { "aria-haspopup": "menu" }),
      button({ "": "◐", light: "○", dark: "●" }[theme], `Theme: ${THEMES[theme]} (t)`, () => this.theme(), { class: "icon", "aria-label": `Theme: ${THEMES[theme]}` }),
      this.hasSession && button("Log out", "End this browser's session", () => this.logOut()),
      button("?", "All keys (?)", showHelp, { class: "icon", "aria-label": "Help" }));
  }
}

// What the server took a word for: an answer's "word".
function wordMeans({ as, values }) {
  if (as === "function") return "functions with it in their name";
  return `${as} ${values.slice(0, 3).join(", ")}${values.length > 3 ? ", ..." : ""}`;
}

// What narrows the selection, as chips that can be taken away; @told: "word" of the last answer, or undefined.
export function chips(told) {
  const out = [], chip = (text, undo) => out.push(h("span", { class: "chip" }, text, button("×", "Take this away", undo)));
  const { matchers, word } = readQuery(state.q) || { matchers: [], word: "" };
  matchers.forEach((m, i) => chip(m.text, () => set({ q: withoutMatcher(state.q, i), z: "", w: "" })));
  if (word) chip(told && told.text === word ? `${word}: ${wordMeans(told)}` : word, () => set({ q: withoutWord(state.q), z: "", w: "" }));
  if (state.focus) chip(`only stacks with ${state.focus}`, () => set({ focus: "" }));
  if (state.idle && WAITS.test(state.kind)) chip("without idle waits", () => set({ idle: "" }));
  if (state.ignore) chip(`without ${state.ignore}`, () => set({ ignore: "" }));
  return out;
}
