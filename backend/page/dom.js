// SPDX-License-Identifier: Apache-2.0
// Elements made from data. Text always goes in as text nodes: nothing here reads markup, so no name can become any.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, props, children) {
  for (const [key, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked" || key === "disabled" || key === "selected") element[key] = value;
    else if (key === "style") for (const [name, v] of Object.entries(value)) element.style.setProperty(name, v);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

// h("button", { class: "quiet", onclick: f }, "text", h("b", null, "more"))
export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);
export const svg = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(3).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

export const button = (text, title, onclick, props) => h("button", { type: "button", title, onclick, ...props }, text);

// A <select> of [value, text] pairs.
export const select = (label, options, value, onchange) =>
  h("select", { "aria-label": label, title: label, onchange: (e) => onchange(e.target.value) },
    options.map(([v, text]) => h("option", { value: v, selected: v === value }, text)));

export function toggle(text, title, on, onclick, key) {
  return h("button", { type: "button", class: "toggle", title: key ? `${title} (${key})` : title, "aria-pressed": String(on), onclick }, text);
}

// A canvas as large as its box in device pixels; returns its context in CSS pixels.
export function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1, w = Math.max(1, Math.round(width * ratio)), hh = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w || canvas.height !== hh) {
    canvas.width = w;
    canvas.height = hh;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch (e) {
    // Without a secure origin there is no clipboard: the old way.
    const area = h("textarea", { class: "offscreen", value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  say("Copied.");
}

// A short message that goes away, also for screen readers.
let timer = 0;
export function say(text) {
  const place = document.getElementById("said");
  place.textContent = text;
  place.classList.add("shown");
  clearTimeout(timer);
  timer = setTimeout(() => place.classList.remove("shown"), 2500);
}

export const isTyping = (target) => /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
