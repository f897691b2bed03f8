// SPDX-License-Identifier: Apache-2.0
// The flame graph of the selection.
import { state, selection } from "./state.js";
import { FlamePane } from "./flamepane.js";

export class FlameView {
  constructor() {
    this.pane = new FlamePane();
    this.el = this.pane.el;
    this.countsEvents = true;
  }

  query() {
    return { path: "flamegraph", params: { ...selection(), by: state.by, max_nodes: state.nodes, lines: state.lines } };
  }

  show(data) {
    this.pane.show(data);
  }

  render() {
    this.pane.render();
  }

  key(e) {
    return this.pane.key(e);
  }

  free() {
    this.pane.free();
  }
}
