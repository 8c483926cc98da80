/** The document as its author wrote it: nodes on the page highlighted by type, the others dimmed. */

import { el } from "./dom.js";
import { Gaps } from "./gaps.js";
import { litAt } from "./reading.js";
import { counted, lines, TYPES, typeName } from "./words.js";

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
   * @param {{path: string, front_matter: string, html: string}[]} files
   */
  load(outline, files) {
    this.outline = outline;
    this.place.replaceChildren(...files.map((file) => fileElement(file, files.length > 1)));
    this.items = [...this.place.querySelectorAll("[data-node], [data-heading]")];
    /** @type {Map<string, HTMLElement[]>} */
    this.elements = new Map(outline.nodes.map((node) => [node.id, []]));
    for (const item of this.items) {
      const node = outline.byId.get(item.dataset.node);
      if (!node) continue;
      item.dataset.type = node.type;
      item.title = `${node.id} · ${typeName(node.type)} · ${lines(node)} · ${counted(node.tokens, "token")}`;
      this.elements.get(node.id).push(item);
    }
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
    for (const [id, elements] of this.elements) this.#mark(id, elements, reading, lit, step);
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
    const [first] = this.elements.get(id) ?? [];
    if (chosen) this.choose(id);
    if (!first) return;
    this.gaps.open(first);
    const near = Math.abs(first.getBoundingClientRect().top) < SMOOTH_SCREENS * innerHeight;
    const smooth = near && matchMedia("(prefers-reduced-motion: no-preference)").matches;
    first.scrollIntoView({ block: "center", behavior: smooth ? "smooth" : "auto" });
  }

  /** Outline a node, or none. @param {string|null} id */
  choose(id) {
    for (const item of this.place.querySelectorAll(".chosen")) item.classList.remove("chosen");
    for (const item of this.elements.get(id) ?? []) item.classList.add("chosen");
  }

  #mark(id, elements, reading, lit, step) {
    const rank = reading?.ranks.get(id);
    const on = lit?.has(id) ?? false;
    elements.forEach((element, place) => {
      element.classList.toggle("lit", on);
      element.classList.toggle("off", reading !== null && !on);
      element.classList.toggle("picked", on && rank !== undefined);
      element.classList.toggle("now", on && step !== null && rank === step - 1);
      const labelled = element.matches("tr") ? element.firstElementChild : element;
      if (on && place === 0) labelled.dataset.label = label(this.outline.byId.get(id).type, rank);
      else delete labelled.dataset.label;
    });
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
    const link = event.target.closest("[data-file]");
    if (link) {
      event.preventDefault();
      const file = [...this.place.children].find((each) => each.dataset.path === link.dataset.file);
      file?.scrollIntoView();
      return;
    }
    const node = event.target.closest("[data-node]");
    if (node && !event.target.closest("a[href], .gap") && getSelection().isCollapsed) choose(node.dataset.node);
  }
}

/** Return the label of a node: its pick's number and its type. */
function label(type, rank) {
  return rank === undefined ? `${typeName(type)}, filled in` : `${rank + 1} ${typeName(type)}`;
}

function fileElement({ path, front_matter: front, html }, named) {
  const body = el("div", { class: "body" });
  // made by the service, which escapes all text of the skill
  body.innerHTML = html;
  // an item keeps its number when those before it are folded
  for (const list of body.querySelectorAll("ol")) {
    [...list.children].forEach((item, place) => { item.value = list.start + place; });
  }
  return el(
    "article", { class: "file", "data-path": path, "aria-label": path },
    named ? el("p", { class: "path" }, path) : null,
    front.trim() ? el("details", {}, el("summary", {}, "Front matter"), el("pre", {}, el("code", {}, front.trim()))) : null,
    body,
  );
}
