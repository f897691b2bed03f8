// SPDX-License-Identifier: Apache-2.0
// Programs and libraries: whether their functions have names, and what to do where they have not. Files with symbols can be
// dropped here; where the page asks for a token, its session is what the server takes them by.
import { h, replace, button, say } from "./dom.js";
import { selection } from "./state.js";
import { count, percent, bytes } from "./format.js";

const STATUS = { named: ["named", "good"], partly: ["partly named", "fair"], unnamed: ["unnamed", "bad"] };

export class ExecutablesView {
  constructor(app) {
    this.app = app;
    this.body = h("tbody");
    this.summary = h("p", { class: "lead" });
    this.told = h("p", { role: "status" });
    this.names = h("div", { class: "named" });
    this.file = h("input", { type: "file", class: "offscreen", multiple: true, "aria-label": "Files with symbols", onchange: () => this.push(this.file.files) });
    this.drop = h("form", { class: "drop", onsubmit: (e) => e.preventDefault() }, h("span", null, h("b", null, "Drop files with symbols here"), " (executables, .debug files): names come for the same build id, also for what was stored before. "),
      button("Choose files…", "Files with symbols", () => this.file.click()), this.file, this.told, this.names);
    this.el = h("div", { class: "scroll padded" }, this.summary, h("table", { class: "grid executables" }, h("thead", null, h("tr", null,
      h("th", { scope: "col", class: "number" }, "Samples"), h("th", { scope: "col" }, "File"), h("th", { scope: "col" }, "Symbols"),
      h("th", { scope: "col", class: "wide" }, "What to do"))), this.body), this.drop);
    this.el.addEventListener("dragover", (e) => {
      e.preventDefault();
      this.drop.classList.add("over");
    });
    this.el.addEventListener("dragleave", () => this.drop.classList.remove("over"));
    this.el.addEventListener("drop", (e) => {
      e.preventDefault();
      this.drop.classList.remove("over");
      this.push(e.dataTransfer.files);
    });
  }

  query() {
    const { from, to, query, kind } = selection();
    return { path: "executables", params: { from, to, query, kind } };
  }

  show(data) {
    this.data = data;
    this.render();
  }

  render() {
    const d = this.data;
    if (!d) return;
    const total = d.executables.reduce((a, e) => a + e.events, 0) || 1, bad = d.executables.filter((e) => e.status !== "named");
    replace(this.summary, d.executables.length === 0 ? "No executable in this range." : bad.length ? `${count(bad.length)} of ${count(d.executables.length)} files could have better names.`
      : `All ${count(d.executables.length)} files have names.`);
    replace(this.body, d.executables.map((e) => {
      const [text, tone] = STATUS[e.status] || [e.status, "fair"], slash = e.path.lastIndexOf("/") + 1;
      return h("tr", null,
        h("td", { class: "number", title: `${percent(e.events, total)} of what these files have` }, count(e.events)),
        h("td", { class: "file" }, h("span", { class: "quiet" }, e.path.slice(0, slash)), h("b", null, e.path.slice(slash)),
          h("small", { title: `${e.id_kind} build id` }, e.build_id ? `${e.id_kind} ${e.build_id}` : "no build id")),
        h("td", null, h("span", { class: `pill ${tone}` }, text), h("small", null, ` ${e.self ? `${percent(e.named_self, e.self)} of its time, ` : ""}${count(e.named_frames)} of ${count(e.frames)} frames`), e.advice && h("small", { class: "narrow" }, e.advice)),
        h("td", { class: "wide advice" }, e.advice));
    }));
  }

  // Which functions got names, and what is inlined in them there.
  tell(names, more) {
    if (!names.length) return;
    replace(this.names, h("table", { class: "grid" }, h("thead", null, h("tr", null, h("th", { scope: "col", class: "number" }, "Addresses"), h("th", { scope: "col" }, "Named now"))),
      h("tbody", null, names.slice().sort((a, b) => b.addresses - a.addresses).map((n) => h("tr", null, h("td", { class: "number" }, count(n.addresses)),
        h("td", { class: "name" }, n.function, n.inlined.length > 0 && h("span", { class: "quiet" }, ` › ${n.inlined.join(" › ")} (inlined)`)))), more > 0 && h("tr", null, h("td", { class: "number" }, count(more)), h("td", { class: "quiet" }, "of other functions")))));
  }

  async push(files) {
    for (const file of files) {
      this.told.textContent = `${file.name}, ${bytes(file.size)}: on its way…`;
      try {
        const answer = await fetch(`${location.origin}/api/v1/symbols`, { method: "POST", body: file, headers: { "Content-Type": "application/octet-stream" } });
        const text = await answer.text();
        let said = {};
        try {
          said = JSON.parse(text);
        } catch (e) {
          said = { error: text.slice(0, 200) };
        }
        this.told.textContent = answer.ok ? `${file.name}: taken for build id ${said.build_id}: ${count(said.functions)} functions, of which ${count(said.named)} addresses here have their names now.` : `${file.name}: not taken: ${said.error || answer.status}`;
        if (answer.ok) this.tell(said.names || [], said.more);
        if (answer.ok) say(`${file.name}: taken.`);
      } catch (e) {
        this.told.textContent = `${file.name}: hearth does not answer`;
      }
    }
    this.app.refresh(true);
  }
}
