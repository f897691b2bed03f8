// SPDX-License-Identifier: Apache-2.0
// The frame around the views: which one is shown, what it asks, when it asks again, and the keys that work everywhere. A view is
//   { el, query(): { path, params } | null, show(data, answer), render(changed), key(event): taken?, free() }
// all but `el` optional. The server is asked when a view's question changes, and in live mode every few seconds.
import { h, replace, button, isTyping, copy } from "./dom.js";
import { state, set, link, onChange, isLive, range } from "./state.js";
import { address, ask, Loader } from "./api.js";
import { bytes, count, span } from "./format.js";
import { Header } from "./header.js";
import { Timeline } from "./timeline.js";
import { FlameView } from "./view_flame.js";
import { TopView } from "./view_top.js";
import { SandwichView } from "./view_sandwich.js";
import { DiffView } from "./view_diff.js";
import { HeatView } from "./view_heat.js";
import { TraceView } from "./view_trace.js";
import { WhoView } from "./view_who.js";
import { HealthView } from "./view_health.js";
import { truthPill } from "./view_truth.js";
import { showHelp, hideHelp, isHelp } from "./help.js";
import { emptyStore, emptyRange } from "./empty.js";

const LIVE_MS = 5000;
const VIEWS = [
  ["flame", "Flame graph", FlameView], ["top", "Top", TopView], ["sandwich", "Sandwich", SandwichView], ["diff", "Diff", DiffView],
  ["heat", "Heat map", HeatView], ["who", "Who", WhoView], ["health", "Health", HealthView], ["trace", "Traces", TraceView],
];

const place = Object.fromEntries(["views", "main", "foot"].map((id) => [id, document.getElementById(id)]));
const app = { status: null, refresh, view: null };
let shown = "", busy = 0;

// --- the view ---

const loader = new Loader(
  (data, answer) => {
    place.main.classList.remove("failed");
    tellFoot(answer);
    header.query.tell(data.word);
    const hasNone = !data.total && !data.total2, isStoreEmpty = app.status && !app.status.store.events;
    const isEmpty = hasNone && (app.view.countsEvents || (app.view.countsSides && isStoreEmpty));
    if (!isEmpty) mount(app.view.el);
    else if (isStoreEmpty) mount(emptyStore(app.status));
    else mount(emptyRange(app.status, data));
    if (!isEmpty) app.view.show(data, answer);
  },
  (error) => {
    place.main.classList.add("failed");
    mount(h("div", { class: "card error", role: "alert" }, h("h2", null, "No answer"), h("p", null, error.message),
      button("Ask again", "Ask again", () => refresh(true))));
    tellFoot(null);
  },
  (is) => place.main.classList.toggle("busy", is),
);

function mount(el) {
  if (place.main.firstElementChild !== el || place.main.childElementCount !== 1) replace(place.main, el);
}

function show(name) {
  const found = VIEWS.find(([id]) => id === name) || VIEWS[0];
  if (shown === found[0]) return;
  loader.stop();
  if (app.view && app.view.free) app.view.free();
  shown = found[0];
  app.view = new found[2](app);
  document.title = `${found[1]} · hearth`;
  mount(app.view.el);
  for (const tab of place.views.children) {
    const is = tab.dataset.view === shown;
    if (is) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
    if (is) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}

function renderTabs() {
  replace(place.views, VIEWS.map(([id, title], i) => {
    const tab = h("a", { href: link({ view: id }), title: `${title} (${i + 1})`, onclick: (e) => {
      if (e.metaKey || e.ctrlKey || e.shiftKey) return;
      e.preventDefault();
      set({ view: id });
    } }, title);
    tab.dataset.view = id;
    return tab;
  }));
}

async function refresh(force) {
  const question = app.view.query ? app.view.query() : null;
  if (!question) return;
  await loader.load(address(question.path, question.params), force, question.first && address(question.path, question.first));
}

// Every number on the page comes from the question shown below it.
function tellFoot(answer) {
  const { from, to } = answer && answer.data.from ? answer.data : {};
  replace(place.foot,
    answer ? h("a", { href: answer.url, class: "question", title: "The question behind this view; opens the answer" }, `GET ${decodeURIComponent(answer.url)}`) : h("span"),
    answer && h("span", { class: "quiet" }, [from ? span(from, to) : "", answer.data.events !== undefined ? `${count(answer.data.events)} samples` : "",
      bytes(answer.size_bytes), `${Math.round(answer.took_ms)} ms`].filter(Boolean).join(" · ")),
    truthPill(app.truth));
}

// --- time ---

async function poll() {
  try {
    app.status = (await ask(address("status"))).data;
    app.truth = (await ask(address("truth", { ...range() }))).data;
    header.status(app.status);
    timeline.refresh(false); // a lane for each kind of samples
    document.body.classList.remove("offline");
  } catch (e) {
    document.body.classList.add("offline");
    header.status(app.status, e.message);
  }
  if (loader.last) tellFoot(loader.last);
}

async function tick() {
  if (busy || document.hidden) return;
  busy = 1;
  try {
    await poll();
    if (isLive() && !isHelp()) await Promise.all([timeline.refresh(true), app.view.isStill ? null : refresh(true)]);
    else if (app.view.isOfHearth) await refresh(true);
  } finally {
    busy = 0;
  }
}

// Holds the moment: what is relative to now becomes fixed, or again follows.
function freeze() {
  const last = timeline.loader.last && timeline.loader.last.data;
  if (isLive() && last) set({ live: "", from: String(last.from), to: String(last.to) });
  else set({ live: "1", from: /^(now|recent)/.test(state.from) ? state.from : "recent", to: "now", sel: "" });
}

// A link to what is seen now, with times that do not move.
function share() {
  const last = timeline.loader.last && timeline.loader.last.data;
  const fixed = last && /now|first|last|recent/.test(state.from + state.to) ? { from: String(last.from), to: String(last.to), live: "" } : {};
  copy(location.origin + location.pathname + link(fixed));
}

// --- keys ---

function onKey(e) {
  if (e.defaultPrevented) return;
  if (e.key === "Escape" && isHelp()) return hideHelp();
  if (isTyping(e.target)) {
    if (e.key !== "Escape") return;
    e.target.blur(); // and keeps its text, which a browser would clear
    e.preventDefault();
    return;
  }
  if (e.key === "?") return showHelp();
  if (isHelp() || (app.view.key && app.view.key(e))) return;
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const acts = {
    z: freeze, t: () => header.theme(), q: () => header.query.focus(), L: share, D: () => header.downloads(),
    R: () => { timeline.refresh(true); refresh(true); }, T: () => timeline.focus(),
  };
  const tab = VIEWS[+e.key - 1];
  if (/^[1-9]$/.test(e.key) && tab) set({ view: tab[0] });
  else if (acts[e.key]) acts[e.key]();
  else return;
  e.preventDefault();
}

// --- start ---

const header = new Header({ freeze, share, app });
const timeline = new Timeline(document.getElementById("timeline"), app);
timeline.onload = () => app.view.waits && app.view.ready();
app.header = header;
window.hearth = app; // for the console, and for tests
app.timeline = timeline;

onChange((changed) => {
  if (changed.has("view")) show(state.view);
  renderTabHrefs();
  header.render();
  timeline.refresh(false);
  timeline.render();
  const before = loader.url;
  refresh(false);
  if (loader.url === before && loader.last && app.view.render && place.main.firstElementChild === app.view.el) app.view.render(changed);
});

function renderTabHrefs() {
  for (const tab of place.views.children) tab.href = link({ view: tab.dataset.view });
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => app.repaint());
app.repaint = () => {
  timeline.render();
  if (app.view.repaint) app.view.repaint();
  else if (app.view.render && loader.last) app.view.render(new Set(["theme"]));
};
document.addEventListener("keydown", onKey);
document.addEventListener("visibilitychange", () => !document.hidden && tick());
renderTabs();
show(state.view);
header.render();
poll().then(() => {
  if (!loader.last) refresh(true);
});
timeline.refresh(true);
refresh(true);
header.findSession();
setInterval(tick, LIVE_MS);
