/** Small helpers for elements. */

/**
 * Return a new element. Strings become text, never markup.
 * @param {string} tag
 * @param {Record<string, string|number|boolean|null|undefined|((event: any) => void)>} [attributes]
 *   `onclick` and the like are listeners; null and false leave an attribute out.
 * @param {...(Node|string|number|null)} children
 * @returns {HTMLElement}
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child) => child !== null).map((child) => child instanceof Node ? child : String(child)));
  return element;
}

/**
 * Return the element of this id.
 * @param {string} id
 * @returns {any}
 */
export const byId = (id) => document.getElementById(id);

/**
 * Return a function that runs `work` once calls have ceased for so many milliseconds.
 * @param {() => void} work
 * @param {number} milliseconds
 */
export function debounced(work, milliseconds) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, milliseconds);
  };
}

/**
 * Make the buttons of a tab list choose; arrow keys move between them.
 * @param {HTMLElement} list
 * @param {(value: string) => void} choose
 */
export function listenTabs(list, choose) {
  const tabs = [...list.querySelectorAll("[role=tab]")];
  for (const tab of tabs) tab.addEventListener("click", () => choose(tab.dataset.value));
  list.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    const next = tabs[(tabs.indexOf(document.activeElement) + move + tabs.length) % tabs.length];
    next.focus();
    choose(next.dataset.value);
  });
}

/**
 * Show which tab is chosen, and its panel alone.
 * @param {HTMLElement} list
 * @param {string} value
 */
export function showTab(list, value) {
  for (const tab of list.querySelectorAll("[role=tab]")) {
    const chosen = tab.dataset.value === value;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
    byId(tab.getAttribute("aria-controls")).hidden = !chosen;
  }
}
