/** The nodes of a skill and the four kinds of edges: zoom, pan, filters, and moves from node to node. */

import { el } from "./dom.js";
import { draw, readColors } from "./graph_draw.js";
import { HEIGHT, layOut, WIDTH } from "./graph_layout.js";
import { pointAt } from "./graph_pointer.js";
import { counted, KINDS, lines, snippet, TYPES, typeName } from "./words.js";

const ZOOM = 1.25;
const LEAST_SCALE = 0.04;
const MOST_SCALE = 3;
const MARGIN = 24;
const READABLE_SCALE = 1;

/**
 * @typedef {object} Picture The input of `draw`.
 * @property {import("./graph_layout.js").Placed[]} placed
 * @property {import("./graph_layout.js").Title[]} titles
 * @property {Map<string, import("./graph_layout.js").Placed>} places By id.
 * @property {any[]} edges
 * @property {number} scale
 * @property {number} left
 * @property {number} top
 * @property {number} ratio Pixels of the device to one of the page.
 * @property {number} width
 * @property {number} height
 * @property {Record<string, string>} colors
 * @property {Set<string>|null} lit Nodes on the page.
 * @property {{nodes: Set<string>, edges: Set<any>}|null} near The neighbours and edges of the current node.
 * @property {string|null} current
 */

/** Shows the graph of one skill. */
export class GraphView {
  /**
   * @param {HTMLElement} place
   * @param {(id: string) => void} open Called with a node to show in the document.
   */
  constructor(place, open) {
    this.open = open;
    this.hidden = new Set();
    this.lit = null;
    this.current = null;
    this.canvas = el("canvas", {
      tabindex: 0, role: "application", "aria-describedby": "graph-told", "aria-label": "Graph of the parts",
    });
    this.filters = el("div");
    this.told = el("p", { class: "told", id: "graph-told", "aria-live": "polite" });
    const button = (said, sign, work) => el("button", { type: "button", "aria-label": said, title: said, onclick: work }, sign);
    const zoom = el(
      "div", { class: "zoom" }, button("Zoom in (+)", "+", () => this.zoom(ZOOM)),
      button("Zoom out (−)", "−", () => this.zoom(1 / ZOOM)), button("Show all (0)", "⤢", () => this.fit()),
    );
    place.append(this.filters, el("div", { class: "stage" }, this.canvas, zoom), this.told);
    this.context = this.canvas.getContext("2d");
    pointAt(this.canvas, this);
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#resize()).observe(this.canvas);
  }

  /** @param {{nodes: any[], edges: any[]}} graph */
  load(graph) {
    this.graph = graph;
    this.hidden.clear();
    this.filters.replaceChildren(
      this.#filter("Parts", TYPES, graph.nodes, (node) => node.type),
      this.#filter("Links", KINDS, graph.edges, (edge) => edge.kind),
    );
    this.#arrange();
  }

  /** Show which nodes are on the page. @param {Set<string>|null} lit */
  light(lit) {
    this.lit = lit;
    this.redraw();
  }

  /** Read the colors again and draw. */
  recolor() {
    this.colors = null;
    this.redraw();
  }

  /** Draw once before the next frame, for any number of calls. */
  redraw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.#draw();
    });
  }

  /** Show the whole graph, or from its beginning as much as the least scale allows. @param {number} [least] */
  fit(least = LEAST_SCALE) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width) return;
    const scale = Math.min((width - 2 * MARGIN) / this.layout.width, (height - 2 * MARGIN) / this.layout.height, 1.2);
    this.scale = Math.max(least, scale);
    this.left = Math.max((width - this.layout.width * this.scale) / 2, MARGIN);
    this.top = Math.max((height - this.layout.height * this.scale) / 2, MARGIN);
    this.redraw();
  }

  /** Show the graph at a readable size: all of it if it fits, else from the first part of the page, or its beginning. */
  #begin() {
    this.fit(READABLE_SCALE);
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const first = this.layout.placed.find(({ node }) => this.lit?.has(node.id));
    if (!first || !width) return;
    this.#bring(first);
    // no empty space beside the graph where there is more of it
    this.left = Math.min(this.left, Math.max((width - this.layout.width * this.scale) / 2, MARGIN));
    this.top = Math.min(this.top, Math.max((height - this.layout.height * this.scale) / 2, MARGIN));
  }

  /**
   * Zoom about a point, by default the middle.
   * @param {number} factor
   * @param {number} [x]
   * @param {number} [y]
   */
  zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const scale = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, this.scale * factor));
    this.left = x - ((x - this.left) * scale) / this.scale;
    this.top = y - ((y - this.top) * scale) / this.scale;
    this.scale = scale;
    this.redraw();
  }

  /** @param {number} x @param {number} y */
  pan(x, y) {
    this.left += x;
    this.top += y;
    this.redraw();
  }

  /** Return the id of the node at a point of the canvas, or null. @param {number} x @param {number} y */
  at(x, y) {
    const [u, v] = [(x - this.left) / this.scale, (y - this.top) / this.scale];
    const found = this.layout.placed.find((each) => u >= each.x && u <= each.x + WIDTH && v >= each.y && v <= each.y + HEIGHT);
    return found?.node.id ?? null;
  }

  /** Make a node the current one: highlight its edges and describe it. @param {string|null} id */
  choose(id) {
    this.current = id;
    const edges = new Set(this.edges.filter((edge) => edge.source === id || edge.target === id));
    this.near = id && { edges, nodes: new Set([id, ...[...edges].flatMap((edge) => [edge.source, edge.target])]) };
    this.told.replaceChildren(...(id ? this.#describe(this.places.get(id).node, edges) : [overview(this.layout, this.edges)]));
    this.redraw();
  }

  #describe(node, edges) {
    const links = KINDS.map((kind) => {
      const ends = [...edges].filter((edge) => edge.kind === kind)
        .map((edge) => edge.source === node.id ? `→ ${edge.target}` : `← ${edge.source}`);
      return ends.length ? `${kind} ${ends.join(", ")}` : null;
    }).filter(Boolean);
    const page = this.lit ? (this.lit.has(node.id) ? ", on the page" : ", left out") : "";
    return [
      el("strong", {}, `${node.id} · ${typeName(node.type)} · ${lines(node)}${page}: `), snippet(node.text, 160),
      el("br"), links.join("; ") || "No links are shown.", " ",
      el("button", { type: "button", class: "quiet", onclick: () => this.open(node.id) }, "Show in the document"),
    ];
  }

  #filter(title, names, things, nameOf) {
    const counts = Object.groupBy(things, nameOf);
    return el("fieldset", { class: "filters" }, el("legend", {}, title), ...names.filter((name) => counts[name]).map((name) => {
      const box = el("input", { type: "checkbox", name, checked: true, onchange: () => this.#toggle(name, box.checked) });
      const count = counts[name].length;
      if (TYPES.includes(name)) return el("label", {}, box, el("span", { class: "chip", "data-type": name }, typeName(name)), count);
      return el("label", {}, box, el("span", { class: "stroke", "data-kind": name }), `${name} ${count}`);
    }));
  }

  #toggle(name, shown) {
    if (shown) this.hidden.delete(name);
    else this.hidden.add(name);
    this.#arrange();
  }

  #arrange() {
    this.layout = layOut(this.graph.nodes.filter((node) => !this.hidden.has(node.type)));
    this.places = new Map(this.layout.placed.map((placed) => [placed.node.id, placed]));
    this.edges = this.graph.edges.filter(({ kind, source, target }) => (
      !this.hidden.has(kind) && this.places.has(source) && this.places.has(target)
    ));
    this.canvas.dataset.nodes = this.layout.placed.length;
    this.canvas.dataset.edges = this.edges.length;
    this.choose(this.places.has(this.current) ? this.current : null);
    this.#begin();
  }

  #key(event) {
    const order = this.layout.placed;
    const place = order.findIndex((each) => each.node.id === this.current);
    const works = {
      "+": () => this.zoom(ZOOM), "=": () => this.zoom(ZOOM), "-": () => this.zoom(1 / ZOOM), 0: () => this.fit(),
      ArrowDown: () => this.#go(order[Math.min(order.length - 1, place + 1)]),
      ArrowUp: () => this.#go(order[Math.max(0, place - 1)]),
      ArrowRight: () => this.#go(beside(order, order[Math.max(0, place)], 1)),
      ArrowLeft: () => this.#go(beside(order, order[Math.max(0, place)], -1)),
      Enter: () => this.current && this.open(this.current),
      Escape: () => this.choose(null),
    };
    const work = event.ctrlKey || event.metaKey ? null : works[event.key];
    if (!work || !order.length) return;
    event.preventDefault();
    event.stopPropagation();
    work();
  }

  /** Make a node the current one and bring it into view. */
  #go(placed) {
    if (!placed) return;
    this.#bring(placed);
    this.choose(placed.node.id);
  }

  /** Bring a node into view. */
  #bring(placed) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const [x, y] = [placed.x * this.scale + this.left, placed.y * this.scale + this.top];
    if (x < 0 || y < 0 || x + WIDTH * this.scale > width || y + HEIGHT * this.scale > height) {
      this.left += width / 2 - x - (WIDTH * this.scale) / 2;
      this.top += height / 2 - y;
    }
  }

  #resize() {
    const ratio = devicePixelRatio;
    const before = this.canvas.width;
    this.canvas.width = this.canvas.clientWidth * ratio;
    this.canvas.height = this.canvas.clientHeight * ratio;
    if (!this.layout) return;
    if (!before || before !== this.canvas.width) this.#begin();
    this.#draw();
  }

  #draw() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !this.layout) return;
    this.colors ??= readColors(this.canvas.parentElement);
    this.canvas.dataset.scale = this.scale.toFixed(3);
    draw(this.context, {
      ...this.layout, places: this.places, edges: this.edges, scale: this.scale, left: this.left, top: this.top,
      ratio: devicePixelRatio, width, height, colors: this.colors, lit: this.lit, near: this.near, current: this.current,
    });
  }
}

/** The node of the next column at about the same height. */
function beside(placed, from, direction) {
  const columns = placed.map((each) => each.x).filter((x) => direction > 0 ? x > from.x : x < from.x);
  if (!columns.length) return from;
  const x = direction > 0 ? Math.min(...columns) : Math.max(...columns);
  const column = placed.filter((each) => each.x === x);
  return column.reduce((best, each) => Math.abs(each.y - from.y) < Math.abs(best.y - from.y) ? each : best);
}

function overview({ placed, titles }, edges) {
  const size = `${counted(placed.length, "part")} in ${counted(titles.length, "section")}, ${counted(edges.length, "link")}.`;
  return `${size} Choose a part to see its links; drag to move, scroll or pinch to zoom.`;
}
