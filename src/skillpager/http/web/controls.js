/** Skill, query, strategy and the limits of a page. */

import { byId, debounced, el } from "./dom.js";
import { DEFAULTS } from "./state.js";
import { snippet } from "./words.js";

const QUERY_WAIT = 300;
const KNOB_WAIT = 120;
const MOST_NODES = 120;
// a page from several skills is limited by these alone
const LIBRARY_KNOBS = ["max_tokens", "sufficiency", "fill"];

const KNOBS = {
  mmr_lambda: {
    label: "Relevance or variety", title: "1 is relevance only, 0 is variety only",
    least: 0, most: 1, step: 0.05, start: 0.7, shown: (value) => value.toFixed(2),
  },
  max_nodes: {
    label: "Most parts", title: "Most parts to pick", least: 1, most: 60, step: 1, start: 20, shown: String,
  },
  max_tokens: {
    label: "Token budget", title: "Most tokens of the page, marks included",
    least: 50, most: 4000, step: 10, start: 1000, shown: (value) => value.toLocaleString("en"),
  },
  sufficiency: {
    label: "Sufficiency", title: "Picking stops at this estimated chance that the page holds all that is needed",
    least: 0.5, most: 0.99, step: 0.01, start: 0.9, shown: (value) => `${Math.round(value * 100)} %`,
  },
};

/** The controls; they change the store and show what is in it. */
export class Controls {
  /** @param {import("./state.js").Store} store */
  constructor(store) {
    this.store = store;
    this.strategies = [];
    this.names = [];
    // values of sliders that still move; the state gets them later
    this.moved = {};
    this.send = debounced(() => {
      const change = { ...this.moved, step: null };
      this.moved = {};
      store.set(change);
    }, KNOB_WAIT);
    this.knobs = new Map(Object.keys(KNOBS).map((name) => [name, this.#knob(name)]));
    byId("knobs").open = [...Object.keys(KNOBS), "strategy"].some((name) => store.state[name] !== DEFAULTS[name]);
    const field = byId("skill");
    const chosen = () => {
      const skill = this.#named(field.value.trim());
      if (!skill) return;
      field.value = skill;
      store.set({ skill, step: null, max_nodes: null, max_tokens: null });
    };
    field.addEventListener("change", chosen);
    // a name taken from the list is an event without typing
    field.addEventListener("input", (event) => { if (!event.inputType || event.inputType === "insertReplacementText") chosen(); });
    // the list offers names that hold what is typed: typing replaces the name that is there
    field.addEventListener("focus", () => field.select());
    field.addEventListener("blur", () => { field.value = store.state.skill; });
    byId("strategy").addEventListener("change", (event) => store.set({ strategy: event.target.value, step: null }));
    byId("argument").addEventListener("change", (event) => {
      const name = byId("strategy").value;
      const argument = event.target.value.trim();
      store.set({ strategy: argument ? `${name}:${argument}` : name, step: null });
    });
    byId("fill").addEventListener("change", (event) => store.set({ fill: event.target.checked, step: null }));
    const send = () => store.set({ query: byId("query").value.trim(), step: null });
    byId("query").addEventListener("input", debounced(send, QUERY_WAIT));
    byId("ask").addEventListener("submit", (event) => {
      event.preventDefault();
      send();
    });
  }

  /** @param {any[]} skills @param {any[]} strategies */
  offer(skills, strategies) {
    this.strategies = strategies;
    this.names = skills.map(({ name }) => name);
    byId("skill-names").replaceChildren(...skills.map(({ name, description }) => el("option", { value: name }, snippet(description, 80))));
    // an unavailable one says why
    byId("strategy").replaceChildren(...strategies.map(({ name, problem }) => (
      el("option", { value: name, disabled: problem !== null, title: problem }, name)
    )));
  }

  /** Set the ranges of the limits to the size of the skill. @param {{nodes: any[], full_tokens: number}} outline */
  fit(outline) {
    this.knobs.get("max_nodes").range.max = Math.max(2, Math.min(MOST_NODES, outline.nodes.length));
    this.knobs.get("max_tokens").range.max = Math.max(100, Math.ceil(outline.full_tokens / 10) * 10);
    this.show();
  }

  /** Show the state. */
  show() {
    const { state } = this.store;
    if (document.activeElement !== byId("skill")) byId("skill").value = state.skill;
    if (document.activeElement !== byId("query")) byId("query").value = state.query;
    const [name, argument] = splitStrategy(state.strategy);
    const strategy = this.strategies.find((each) => each.name === name);
    byId("strategy").value = name;
    byId("argument-knob").hidden = !strategy?.argument;
    byId("argument").value = argument;
    byId("argument").placeholder = strategy?.argument?.sample ?? "";
    byId("argument").title = strategy?.argument?.kind ?? "";
    byId("argument-label").textContent = strategy?.argument?.name.replace("_", " ") ?? "Argument";
    byId("fill").checked = state.fill;
    const heeds = this.#heeds(name);
    byId("fill-knob").hidden = !heeds.includes("fill");
    for (const [knob, parts] of this.knobs) {
      showKnob(knob, parts, this.moved[knob] ?? state[knob], heeds.includes(knob));
    }
  }

  /**
   * Return the arguments of a page that a strategy uses.
   * @param {string} strategy
   */
  heeded(strategy) {
    const { state } = this.store;
    const heeds = this.#heeds(splitStrategy(strategy)[0]);
    // what is not chosen is left to the service
    const chosen = heeds.filter((name) => state[name] !== null && state[name] !== false);
    return Object.fromEntries(chosen.map((name) => [name, state[name]]));
  }

  /** The limits that a strategy uses in the current view. @param {string} name */
  #heeds(name) {
    const heeds = this.strategies.find((each) => each.name === name)?.heeds ?? [];
    return this.store.state.view === "library" ? heeds.filter((knob) => LIBRARY_KNOBS.includes(knob)) : heeds;
  }

  /** Return the only skill whose name holds what was typed, else what was typed. @param {string} typed */
  #named(typed) {
    const found = this.names.filter((name) => name.includes(typed));
    return found.length === 1 ? found[0] : typed;
  }

  #knob(name) {
    const { label, title, least, most, step, start } = KNOBS[name];
    const range = el("input", { type: "range", id: name, min: least, max: most, step, value: start });
    const output = el("output", { for: name });
    const said = `Leave ${label} to the service`;
    const reset = el("button", { type: "button", class: "reset", "aria-label": said, title: said }, "×");
    range.addEventListener("input", () => {
      this.moved[name] = Number(range.value);
      showKnob(name, this.knobs.get(name), this.moved[name], true);
      this.send();
    });
    reset.addEventListener("click", () => {
      delete this.moved[name];
      this.store.set({ [name]: DEFAULTS[name], step: null });
      range.focus();
    });
    document.querySelector(`[data-knob="${name}"]`).append(
      el("div", { class: "knob-head" }, el("label", { for: name, title }, label), output, reset), range,
    );
    return { range, output, reset };
  }
}

/** Return a strategy's name and its argument, possibly empty. @param {string} strategy */
function splitStrategy(strategy) {
  const [name, ...rest] = strategy.split(":");
  return [name, rest.join(":")];
}

function showKnob(name, { range, output, reset }, value, heeded) {
  const { start, shown } = KNOBS[name];
  range.value = value ?? Math.min(start, Number(range.max));
  output.textContent = value === null ? "auto" : shown(value);
  range.setAttribute("aria-valuetext", output.textContent);
  reset.hidden = value === null;
  const place = range.closest(".knob");
  place.classList.toggle("auto", value === null);
  place.hidden = !heeded;
}
