// SPDX-License-Identifier: Apache-2.0
// A menu at a place of the window: [{ text, key, says, run }], null for a line between. Arrows, Enter, Escape, or the item's key.
import { h } from "./dom.js";

let open = null;

export function closeMenu() {
  if (!open) return;
  const { el, before } = open;
  open = null;
  el.remove();
  if (before && before.isConnected) before.focus();
}

export function showMenu(items, x, y, title) {
  closeMenu();
  const before = document.activeElement;
  const buttons = [];
  const el = h("div", { class: "menu", role: "menu", "aria-label": title || "Menu" },
    title && h("div", { class: "menu-title" }, title),
    items.map((item) => {
      if (!item) return h("hr");
      const b = h("button", { type: "button", role: "menuitem", title: item.says, disabled: item.run === null, onclick: () => {
        closeMenu();
        item.run();
      } }, h("span", null, item.text), item.key && h("kbd", null, item.key));
      buttons.push(b);
      return b;
    }));
  document.body.append(el);
  const r = el.getBoundingClientRect();
  el.style.left = `${Math.max(4, Math.min(x, innerWidth - r.width - 4))}px`;
  el.style.top = `${Math.max(4, Math.min(y, innerHeight - r.height - 4))}px`;
  el.addEventListener("keydown", (e) => {
    const enabled = buttons.filter((b) => !b.disabled), at = enabled.indexOf(document.activeElement);
    if (e.key === "Escape" || e.key === "Tab") closeMenu();
    else if (e.key === "ArrowDown") enabled[(at + 1) % enabled.length].focus();
    else if (e.key === "ArrowUp") enabled[(at - 1 + enabled.length) % enabled.length].focus();
    else if (e.key === "Home" || e.key === "End") enabled[e.key === "Home" ? 0 : enabled.length - 1].focus();
    else {
      const item = items.find((i) => i && i.key === e.key && i.run);
      if (!item) return;
      closeMenu();
      item.run();
    }
    e.preventDefault();
    e.stopPropagation();
  });
  open = { el, before };
  const firstOne = buttons.find((b) => !b.disabled);
  if (firstOne) firstOne.focus({ preventScroll: true });
}

document.addEventListener("pointerdown", (e) => {
  if (open && !open.el.contains(e.target)) closeMenu();
}, true);
window.addEventListener("blur", () => open && !open.el.contains(document.activeElement) && closeMenu());
