// SPDX-License-Identifier: Apache-2.0
// The picture is complete without this. Each frame is a <g> with a <title>, a <rect> and a <text>; its place in the whole is
// kept in data-x and data-w (parts of 1), its row in data-y.
"use strict";
(() => {
  const svg = document.documentElement, byId = (id) => document.getElementById(id);
  const frames = [...byId("frames").children], info = byId("info"), found = byId("found"), box = byId("search");
  const margin = +svg.dataset.margin, letter = +svg.dataset.letter, idle = info.textContent;
  const slack = 1e-9; // places are written with ten digits, and frames are 1e-4 wide at least
  const place = (g) => ({ x: +g.dataset.x, w: +g.dataset.w, y: +g.dataset.y });
  const atEnd = [...svg.querySelectorAll("[text-anchor=end]")];
  let zoomed = frames[0], width = 0;

  const label = (g, w) => {
    const name = g.dataset.name, room = Math.floor((w - 6) / letter);
    return room < 3 ? "" : name.length <= room ? name : name.slice(0, room - 1) + "\u2026";
  };

  function zoom(to) {
    const z = place(to);
    zoomed = to;
    for (const g of frames) {
      const f = place(g);
      const around = f.y < z.y && f.x <= z.x + slack && f.x + f.w >= z.x + z.w - slack;
      const inside = f.y >= z.y && f.x >= z.x - slack && f.x + f.w <= z.x + z.w + slack;
      const x = around ? margin : margin + ((f.x - z.x) / z.w) * width, w = around ? width : (f.w / z.w) * width;
      const shown = around || (inside && w >= 0.1);
      g.classList.toggle("around", around);
      g.style.display = shown ? "" : "none";
      if (!shown) continue;
      const [, rect, text] = g.children;
      rect.setAttribute("x", x);
      rect.setAttribute("width", w);
      text.setAttribute("x", x + 3);
      text.textContent = label(g, w);
    }
    byId("reset").style.display = to === frames[0] ? "none" : "";
  }

  // As wide as the window.
  function fit() {
    svg.setAttribute("width", "100%");
    const whole = Math.max(320, svg.clientWidth), height = svg.getAttribute("height");
    width = whole - 2 * margin;
    svg.setAttribute("viewBox", `0 0 ${whole} ${height}`);
    for (const text of atEnd) text.setAttribute("x", whole - margin);
    zoom(zoomed);
  }

  // What part of everything lies in frames that match, each moment counted once.
  function search(text) {
    let pattern = null, sum = 0, end = -1, wrong = "";
    try {
      pattern = text ? new RegExp(text, "i") : null;
    } catch (e) {
      wrong = "no regular expression";
    }
    const hits = frames.filter((g) => {
      const hit = pattern !== null && pattern.test(g.dataset.name);
      g.classList.toggle("found", hit);
      return hit;
    });
    for (const f of hits.map(place).sort((a, b) => a.x - b.x || b.w - a.w)) {
      sum += Math.max(0, f.x + f.w - Math.max(f.x, end));
      end = Math.max(end, f.x + f.w);
    }
    found.textContent = wrong || (pattern ? `${(100 * sum).toFixed(2)} % in ${hits.length} frames` : "");
  }

  const frameOf = (event) => event.target.closest && event.target.closest("#frames > g");
  svg.addEventListener("click", (event) => {
    const g = frameOf(event);
    if (g) zoom(g);
  });
  svg.addEventListener("mouseover", (event) => {
    const g = frameOf(event);
    info.textContent = g ? g.querySelector("title").textContent.replace("\n", "  ") : idle;
  });
  svg.addEventListener("focusin", (event) => {
    const g = frameOf(event);
    if (g) info.textContent = g.querySelector("title").textContent.replace("\n", "  ");
  });
  window.addEventListener("resize", fit);
  byId("reset").addEventListener("click", () => zoom(frames[0]));
  box.addEventListener("input", () => search(box.value));
  window.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      if (box.value) search((box.value = ""));
      else zoom(frames[0]);
      box.blur();
    } else if (event.key === "/" && event.target !== box) {
      box.focus();
      event.preventDefault();
    } else if (event.key === "Enter" && frameOf(event)) {
      zoom(frameOf(event));
    } else if (event.key === "c" && event.target !== box && navigator.clipboard) {
      const g = frames.find((f) => f.matches(":hover")) || zoomed;
      navigator.clipboard.writeText(g.dataset.name);
    }
  });
  fit();
})();
