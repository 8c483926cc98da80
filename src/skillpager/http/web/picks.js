/** The picks in the order of picking, with their numbers, and stepping through them. */

import { el } from "./dom.js";
import { counted, lines, measureName, notCovered, percent, pickReasons, skipReason, snippet, typeName } from "./words.js";

const MEASURES = ["relevance", "redundancy", "marginal"];

/** Shows the picks, the current one with its reasons. */
export class Picks {
  /**
   * @param {HTMLElement} place
   * @param {{step: (step: number|null) => void, choose: (id: string) => void}} actions
   */
  constructor(place, actions) {
    this.place = place;
    this.actions = actions;
    this.signals = {};
    this.part = el("div");
    this.stepper = new Stepper(actions.step);
    this.list = el("ol", { class: "picks" });
  }

  /**
   * Show a page's picks.
   * @param {import("./reading.js").Reading|null} reading
   * @param {any} outline
   */
  load(reading, outline) {
    this.reading = reading;
    this.outline = outline;
    this.place.hidden = !reading;
    this.part.replaceChildren();
    if (!reading) return;
    const scales = Object.fromEntries(MEASURES.map((name) => [name, Math.max(1, ...reading.picks.map((pick) => pick[name]))]));
    this.rows = reading.picks.map((pick) => this.#row(pick, scales));
    this.list.replaceChildren(...this.rows.map(({ item }) => item));
    const hint = el("p", { class: "hint" }, "This strategy picks windows of text: the parts that a window touches are highlighted.");
    hint.hidden = !reading.windows;
    this.place.replaceChildren(this.part, this.stepper.element, hint, barKeys(reading.page.selection.score_kind), this.list, this.#leftOut());
  }

  /** Show how far the picks are stepped through. @param {number|null} step */
  show(step) {
    if (!this.reading) return;
    this.stepper.show(step, this.reading.picks);
    this.rows.forEach(({ item, button, pick }, place) => {
      const now = step !== null && place === step - 1;
      button.classList.toggle("later", step !== null && place >= step);
      if (now) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
      item.querySelector(".why")?.remove();
      if (now) {
        item.append(this.#why(pick));
        item.scrollIntoView({ block: "nearest" });
      }
    });
  }

  /** Describe a node that the user chose in the document. @param {string|null} id */
  describe(id) {
    const node = this.outline?.byId.get(id);
    this.part.replaceChildren();
    if (!node || !this.reading) return;
    const close = el("button", { type: "button", "aria-label": "Close", onclick: () => this.actions.choose(null) }, "×");
    this.part.append(el(
      "section", { class: "part", "data-type": node.type, "aria-label": `Part ${id}` },
      el(
        "header", {}, el("span", { class: "chip" }, typeName(node.type)),
        `${id} · ${lines(node)} · ${counted(node.tokens, "token")}`, close,
      ),
      el("p", {}, this.#verdict(id)),
      el("p", {}, `Estimated chance that the type is right: ${percent(node.type_confidence)}.`),
    ));
  }

  #verdict(id) {
    const { page, ranks, shown, skipped } = this.reading;
    const skip = skipped.get(id);
    const numbers = skip ? ` Numbers: ${MEASURES.map((name) => `${measureName(name, page.selection.score_kind)} ${skip[name].toFixed(2)}`).join(", ")}.` : "";
    if (ranks.has(id)) return `On the page: pick ${ranks.get(id) + 1} of ${this.reading.picks.length}.`;
    if (shown.has(id)) return `On the page, though not picked: its text costs no more than a mark for the gap.${numbers}`;
    return skip ? `Left out: ${skipReason(skip.reason)}.${numbers}` : "Left out.";
  }

  #row(pick, scales) {
    const node = pick.node ?? this.outline.byId.get(pick.id);
    const type = this.reading.windows ? null : node?.type;
    const button = el(
      "button", { type: "button", class: "pick", "data-type": type, onclick: () => this.actions.step(pick.rank + 1) },
      el("span", { class: "rank" }, pick.rank + 1),
      el(
        "span", { class: "what" },
        el("span", { class: "snippet" }, node ? snippet(node.text) : pick.id),
        type ? el("span", { class: "chip" }, typeName(type)) : el("span", { class: "chip" }, "window"),
        el("span", { class: "where" }, node ? ` ${pick.id} · ${lines(node)}` : " dropped: it did not fit"),
      ),
      bars(pick, scales, this.reading.page.selection.score_kind),
    );
    return { pick, button, item: el("li", {}, button) };
  }

  #why(pick) {
    const unsaid = pick.sufficiency === null || notCovered(this.reading.page.covered);
    const chance = unsaid ? "" : ` Chance that nothing is missing then: ${percent(pick.sufficiency)}.`;
    return el(
      "div", { class: "why" },
      ...pickReasons(pick, this.signals).map((reason) => el("p", {}, reason)),
      el("p", {}, `Adds ${counted(pick.tokens, "token")}; ${counted(pick.total_tokens, "token")} so far.${chance}`),
    );
  }

  #leftOut() {
    const skipped = [...this.reading.skipped.values()].filter((skip) => !this.reading.shown.has(skip.node));
    const summary = el("summary", {}, `${counted(skipped.length, "part")} left out, and why`);
    const details = el("details", { class: "left-out", hidden: !skipped.length }, summary);
    // there may be a thousand rows: make them when they are opened
    details.addEventListener("toggle", () => {
      details.append(el("ul", {}, ...skipped.map((skip) => this.#skipRow(skip))));
    }, { once: true });
    return details;
  }

  #skipRow(skip) {
    const node = this.outline.byId.get(skip.node);
    return el("li", {}, el(
      "button", { type: "button", onclick: () => this.actions.choose(skip.node) },
      `${skip.node} ${snippet(node.text, 60)}`, el("br"),
      el("small", {}, `relevance ${skip.relevance.toFixed(2)}: ${skipReason(skip.reason)}`),
    ));
  }
}

/** Buttons that step through the picks. */
class Stepper {
  /** @param {(step: number|null) => void} go */
  constructor(go) {
    this.output = el("output", { "aria-live": "polite" });
    const button = (said, sign, target) => el(
      "button", { type: "button", "aria-label": said, title: said, onclick: () => go(target()) }, sign,
    );
    this.back = button("Step back (←)", "‹", () => this.at - 1);
    this.first = button("First pick (Home)", "«", () => 1);
    this.ahead = button("Step on (→)", "›", () => this.at + 1);
    this.all = button("All picks (End)", "»", () => null);
    this.element = el(
      "div", { class: "stepper", role: "group", "aria-label": "Step through the picks" },
      this.first, this.back, this.output, this.ahead, this.all,
    );
  }

  show(step, picks) {
    this.at = step ?? picks.length + 1;
    this.first.disabled = !picks.length || step === 1;
    this.back.disabled = this.at <= 1;
    this.ahead.disabled = step === null;
    this.all.disabled = step === null;
    const reached = picks[Math.min(step ?? 0, picks.length) - 1];
    this.output.textContent = reached
      ? `Pick ${step} of ${picks.length} · ${counted(reached.total_tokens, "token")}` : `All ${counted(picks.length, "pick")}`;
  }
}

/**
 * Return the step within the picks that a move leads to; null, after the last one, for the whole page.
 * @param {number} target
 * @param {number} picks
 * @returns {number|null}
 */
export function boundedStep(target, picks) {
  return !picks || target > picks ? null : Math.max(1, target);
}

function bars(pick, scales, kind) {
  return el("span", { class: "bars" }, ...MEASURES.map((name) => {
    const bar = el("span", { class: name });
    bar.style.width = `${Math.max(0, Math.min(1, pick[name] / scales[name])) * 100}%`;
    const value = pick[name].toFixed(2);
    return el(
      "span", { role: "img", title: `${measureName(name, kind)} ${pick[name].toFixed(4)}`, "aria-label": `${measureName(name, kind)} ${value}` },
      el("span", { class: "track" }, bar), value,
    );
  }));
}

function barKeys(kind) {
  const keys = MEASURES.map((name) => el("span", {}, el("i", { class: name }), measureName(name, kind)));
  return el("div", { class: "keys", "aria-hidden": "true" }, ...keys);
}
