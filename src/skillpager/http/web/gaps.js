/** Stretches of the document that are not on the page: each can be folded. */

import { el } from "./dom.js";
import { counted, lines, typeName } from "./words.js";

/** The gaps of the document, and their bars. */
export class Gaps {
  gaps = [];

  /** Remove all bars, and show all folded items. */
  clear() {
    for (const gap of this.gaps) {
      setFolded(gap, false);
      gap.bar.remove();
    }
    this.gaps = [];
  }

  /**
   * Put a bar before every stretch of items that are off.
   * @param {HTMLElement[]} items Nodes and headings in document order.
   * @param {Map<string, any>} nodes By id.
   * @param {boolean} folded
   */
  put(items, nodes, folded) {
    const runs = runsOf(items).filter((run) => run.some((item) => item.dataset.node));
    this.gaps = runs.map((run) => ({ items: run, ...makeBar(run, nodes) }));
    for (const gap of this.gaps) {
      gap.button.addEventListener("click", () => setFolded(gap, gap.button.ariaExpanded === "true"));
      setFolded(gap, folded);
    }
  }

  /** Unfold the gap that holds an element. @param {HTMLElement} item */
  open(item) {
    const gap = this.gaps.find((each) => each.items.includes(item));
    if (gap) setFolded(gap, false);
  }
}

/** Stretches of neighbours that are off; a stretch ends with its file. */
function runsOf(items) {
  const runs = [];
  let before = null;
  for (const item of items) {
    const off = item.classList.contains("off");
    const file = item.closest(".file");
    if (off && before === file) runs.at(-1).push(item);
    else if (off) runs.push([item]);
    before = off ? file : null;
  }
  return runs;
}

function makeBar(run, nodes) {
  const ids = run.map((item) => item.dataset.node).filter(Boolean);
  const inside = ids.map((id) => nodes.get(id));
  const tokens = inside.reduce((sum, node) => sum + node.tokens, 0);
  const first = Math.min(...inside.map((node) => node.start_line));
  const last = Math.max(...inside.map((node) => node.end_line));
  const types = [...new Set(inside.map((node) => typeName(node.type)))];
  const place = lines({ start_line: first, end_line: last });
  const said = `${place} · ${counted(ids.length, "part")} · ${counted(tokens, "token")} left out`;
  const button = el("button", { type: "button", "aria-expanded": "true", title: `Left out: ${types.join(", ")}` }, said);
  const bar = el("div", { class: "gap" }, button);
  run[0].before(bar);
  return { bar, button };
}

function setFolded(gap, folded) {
  gap.button.setAttribute("aria-expanded", String(!folded));
  for (const item of gap.items) item.classList.toggle("folded", folded);
}
