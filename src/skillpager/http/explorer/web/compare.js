/** Two strategies side by side: the parts on each page, differences highlighted. */

import { el } from "./dom.js";
import { splitStrategy, strategyOptions } from "./controls.js";
import { counted, lines, percent, typeName } from "./words.js";

const LONGEST = 1200;

/** Compares the page with that of another strategy. */
export class Compare {
  /**
   * @param {HTMLElement} place
   * @param {(strategy: string) => void} choose Called with the other strategy.
   */
  constructor(place, choose) {
    this.select = el("select", { "aria-label": "Strategy to compare with", onchange: () => this.#chosen(choose) });
    this.left = el("div", { class: "contender", "data-side": "a" });
    this.numbers = el("p");
    this.right = el("div", { class: "contender", "data-side": "b" }, el("h3", {}, this.select), this.numbers);
    this.told = el("p", { class: "sides", role: "status" });
    this.rows = el("div", { class: "rows" });
    place.append(el("div", { class: "compare-head" }, this.left, this.right), this.told, this.rows);
  }

  /** @param {any[]} strategies */
  offer(strategies) {
    this.strategies = strategies;
    this.select.replaceChildren(...strategyOptions(strategies));
  }

  /** Show the chosen strategy. @param {string} other */
  name(other) {
    this.select.value = splitStrategy(other)[0];
  }

  /**
   * Show two pages of one skill; null for a missing one.
   * @param {any} outline
   * @param {import("./reading.js").Reading|null} left
   * @param {import("./reading.js").Reading|null} right
   */
  show(outline, left, right) {
    this.left.replaceChildren(el("h3", {}, left?.page.selection.strategy ?? "–"), el("p", {}, left ? numbers(left) : ""));
    this.numbers.textContent = right ? numbers(right) : "";
    this.rows.replaceChildren();
    this.told.textContent = left && right ? "" : "Type a query to compare what two strategies show for it.";
    if (!left || !right) return;
    const names = [left, right].map((reading) => reading.page.selection.strategy);
    this.rows.append(...rows(outline.nodes, left, right, names));
    this.told.textContent = said(left.shown, right.shown, names);
  }

  #chosen(choose) {
    const strategy = this.strategies.find((each) => each.name === this.select.value);
    const { argument } = strategy;
    choose(argument?.required && argument.sample ? `${strategy.name}:${argument.sample}` : strategy.name);
  }
}

function numbers({ page, shown }) {
  const chance = page.sufficiency === null ? "" : `, ${percent(page.sufficiency)} estimated sufficiency`;
  return `${counted(page.tokens, "token")}, ${percent(page.token_reduction, 1)} saved, ${counted(shown.size, "part")}${chance}`;
}

function said(left, right, names) {
  const both = left.intersection(right).size;
  const alone = [left, right].map((shown, side) => `${shown.size - both} only with ${names[side]}`);
  return `${counted(both, "part")} on both pages; ${alone.join(", ")}.`;
}

function* rows(nodes, left, right, names) {
  let neither = 0;
  for (const node of nodes) {
    const held = [left.shown.has(node.id), right.shown.has(node.id)];
    if (!held.includes(true)) {
      neither += 1;
      continue;
    }
    if (neither) yield neitherRow(neither);
    neither = 0;
    const both = held[0] && held[1];
    const cells = ["a", "b"].map((side, place) => cell(node, side, held[place], both, names[place]));
    yield el("div", { class: both ? "row both" : "row" }, ...cells);
  }
  if (neither) yield neitherRow(neither);
}

function cell(node, side, held, both, name) {
  if (!held) return el("div", { class: "cell none", "data-side": side }, "not shown");
  const text = node.text.length > LONGEST ? `${node.text.slice(0, LONGEST)} …` : node.text;
  return el(
    "div", { class: both ? "cell" : "cell alone", "data-side": side, "data-type": node.type },
    el("span", { class: "chip" }, typeName(node.type)),
    el("span", { class: "who" }, ` ${node.id} · ${lines(node)} · ${both ? "both" : `only ${name}`}`),
    el("pre", { class: node.kind === "code" ? "code" : null }, text),
  );
}

const neitherRow = (count) => el("p", { class: "neither" }, `${counted(count, "part")} on neither page`);
