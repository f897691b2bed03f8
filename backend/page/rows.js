// SPDX-License-Identifier: Apache-2.0
// A table whose rows lead somewhere: by a click, or by the arrow keys and Enter.
import { replace } from "./dom.js";

export class Rows {
  constructor(body) {
    this.body = body;
    this.go = []; // of each row
    this.at = -1;
  }

  // @rows: [element, function]...
  fill(rows) {
    this.go = rows.map(([, go]) => go);
    rows.forEach(([tr, go]) => tr.addEventListener("click", go));
    replace(this.body, rows.map(([tr]) => tr));
    this.mark();
  }

  mark() {
    [...this.body.children].forEach((tr, i) => tr.classList.toggle("chosen", i === this.at));
    if (this.body.children[this.at]) this.body.children[this.at].scrollIntoView({ block: "nearest" });
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return false;
    if (e.key === "ArrowDown" || e.key === "j") this.at = Math.min(this.go.length - 1, this.at + 1);
    else if (e.key === "ArrowUp" || e.key === "k") this.at = Math.max(0, this.at - 1);
    else if (e.key === "Enter" && this.go[this.at]) this.go[this.at]();
    else return false;
    this.mark();
    e.preventDefault();
    return true;
  }
}
