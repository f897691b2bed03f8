// SPDX-License-Identifier: Apache-2.0
// The flame graph of the selection.
import { state, selection, grouping } from "./state.js";
import { FlamePane } from "./flamepane.js";

const SMALL = 2000; // boxes of the first picture

export class FlameView {
  constructor() {
    this.pane = new FlamePane();
    this.el = this.pane.el;
    this.countsEvents = true;
  }

  query() {
    const params = { ...selection(), by: grouping(), max_nodes: state.nodes, lines: state.lines };
    return { path: "flamegraph", params, first: +state.nodes > SMALL ? { ...params, max_nodes: SMALL } : null };
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
