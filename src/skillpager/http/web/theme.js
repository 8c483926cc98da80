/** Light, dark, or as the system. */

import { byId } from "./dom.js";

const KEY = "skillpager-theme";
const NEXT = { auto: "light", light: "dark", dark: "auto" };

/**
 * Apply the theme that was chosen last, and let the button choose.
 * @param {() => void} changed Called when colours change.
 */
export function startTheme(changed) {
  apply(localStorage.getItem(KEY) ?? "auto");
  byId("theme").addEventListener("click", () => {
    const theme = NEXT[document.documentElement.dataset.theme];
    localStorage.setItem(KEY, theme);
    apply(theme);
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}

function apply(theme) {
  const known = theme in NEXT ? theme : "auto";
  document.documentElement.dataset.theme = known;
  byId("theme").textContent = `Theme: ${known}`;
}
