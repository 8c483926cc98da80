/** The document part by part, in its source text: nodes on the page highlighted by type, the others dimmed. */

import { el } from "./dom.js";
import { Gaps } from "./gaps.js";
import { litAt } from "./reading.js";
import { counted, lines, TYPES, typeName } from "./words.js";

// kinds of nodes whose columns matter
const CODE = new Set(["code", "table", "html"]);
// longer distances are jumped
const SMOOTH_SCREENS = 3;

/** Shows one skill and the parts of it on a page. */
export class DocumentView {
  /**
   * @param {HTMLElement} place
   * @param {HTMLElement} legend
   * @param {(id: string) => void} choose Called with the node that is clicked.
   */
  constructor(place, legend, choose) {
    this.place = place;
    this.legend = legend;
    this.gaps = new Gaps();
    place.addEventListener("click", (event) => this.#click(event, choose));
  }

  /**
   * Show a skill without a page.
   * @param {any} outline
   */
  load(outline) {
    this.outline = outline;
    this.items = [];
    /** @type {Map<string, HTMLElement>} */
    this.elements = new Map();
    const { files } = outline;
    this.place.replaceChildren(...files.map((path) => this.#file(path, files.length > 1)));
    const counts = Object.groupBy(outline.nodes, (node) => node.type);
    this.legend.replaceChildren(...TYPES.filter((type) => counts[type]).map((type) => el(
      "li", { "data-type": type }, el("span", { class: "chip" }, typeName(type)), counts[type].length,
    )));
  }

  /**
   * Show the parts on a page.
   * @param {import("./reading.js").Reading|null} reading null for no page.
   * @param {number|null} step Picks to show.
   * @param {boolean} fold Whether gaps are folded.
   */
  show(reading, step, fold) {
    this.gaps.clear();
    this.place.classList.toggle("paged", reading !== null);
    const lit = reading && litAt(reading, step);
    for (const [id, element] of this.elements) this.#mark(id, element, reading, lit, step);
    if (!reading) {
      for (const item of this.items) item.classList.remove("off");
      return;
    }
    this.#markHeadings();
    this.gaps.put(this.items, this.outline.byId, fold);
  }

  /**
   * Bring a node into view, and outline it if the user chose it.
   * @param {string} id
   * @param {{chosen?: boolean}} [options]
   */
  reveal(id, { chosen = false } = {}) {
    const element = this.elements.get(id);
    if (chosen) this.choose(id);
    if (!element) return;
    this.gaps.open(element);
    const near = Math.abs(element.getBoundingClientRect().top) < SMOOTH_SCREENS * innerHeight;
    const smooth = near && matchMedia("(prefers-reduced-motion: no-preference)").matches;
    element.scrollIntoView({ block: "center", behavior: smooth ? "smooth" : "auto" });
  }

  /** Outline a node, or none. @param {string|null} id */
  choose(id) {
    for (const item of this.place.querySelectorAll(".chosen")) item.classList.remove("chosen");
    this.elements.get(id)?.classList.add("chosen");
  }

  /** Return the element of a file, with a heading or paragraph for each of its parts. */
  #file(path, named) {
    const parts = [...this.outline.headings, ...this.outline.nodes].filter((part) => part.file === path);
    parts.sort((one, other) => one.start_line - other.start_line);
    const items = parts.map((part) => part.id ? this.#node(part) : el(`h${part.level}`, { "data-heading": part.level }, part.title));
    this.items.push(...items);
    return el(
      "article", { class: "file", "data-path": path, "aria-label": path },
      named ? el("p", { class: "path" }, path) : null,
      el("div", { class: "body" }, ...items),
    );
  }

  #node(node) {
    const title = `${node.id} · ${typeName(node.type)} · ${lines(node)} · ${counted(node.tokens, "token")}`;
    const element = el(
      CODE.has(node.kind) ? "pre" : "p", { "data-node": node.id, "data-type": node.type, title }, node.text,
    );
    this.elements.set(node.id, element);
    return element;
  }

  #mark(id, element, reading, lit, step) {
    const rank = reading?.ranks.get(id);
    const on = lit?.has(id) ?? false;
    element.classList.toggle("lit", on);
    element.classList.toggle("off", reading !== null && !on);
    element.classList.toggle("picked", on && rank !== undefined);
    element.classList.toggle("now", on && step !== null && rank === step - 1);
    if (on) element.dataset.label = label(element.dataset.type, rank);
    else delete element.dataset.label;
  }

  /** Dim the headings without highlighted nodes. */
  #markHeadings() {
    const open = [];
    for (const item of this.items) {
      if (item.dataset.heading) {
        const level = Number(item.dataset.heading);
        while (open.length && open.at(-1).level >= level) open.pop();
        open.push({ level, item });
        item.classList.add("off");
      } else if (item.classList.contains("lit")) {
        for (const heading of open) heading.item.classList.remove("off");
      }
    }
  }

  #click(event, choose) {
    const node = event.target.closest("[data-node]");
    if (node && getSelection().isCollapsed) choose(node.dataset.node);
  }
}

/** Return the label of a node: its pick's number and its type. */
function label(type, rank) {
  return rank === undefined ? `${typeName(type)}, filled in` : `${rank + 1} ${typeName(type)}`;
}
