/** The state of the explorer: one object, stored in the hash of the address so that a link restores it. */

/**
 * @typedef {object} State
 * @property {string} skill
 * @property {string} query
 * @property {string} strategy Name, and argument behind a colon.
 * @property {number|null} mmr_lambda null leaves it to the service, as for the next three.
 * @property {number|null} max_nodes
 * @property {number|null} max_tokens
 * @property {number|null} sufficiency
 * @property {boolean} fill Whether the page goes on to its limits.
 * @property {string} view document, graph or library.
 * @property {string} side picks or page.
 * @property {number|null} step Picks that are shown; null for all.
 * @property {boolean} fold Whether gaps are folded.
 */

/** @type {State} */
export const DEFAULTS = Object.freeze({
  skill: "", query: "", strategy: "navigator", mmr_lambda: null, max_nodes: null, max_tokens: null,
  sufficiency: null, fill: false, view: "document", side: "picks", step: null, fold: true,
});
const NUMBERS = { mmr_lambda: [0, 1], max_nodes: [0, 1e9], max_tokens: [0, 1e9], sufficiency: [0.01, 1], step: [1, 1e9] };
const CHOICES = { view: ["document", "graph", "library"], side: ["picks", "page"] };

/**
 * Return the state that a hash tells; what is not there or wrong is as by default.
 * @param {string} hash
 * @returns {State}
 */
export function readHash(hash) {
  const told = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { ...DEFAULTS };
  for (const name of Object.keys(DEFAULTS)) {
    const text = told.get(name);
    if (text === null) continue;
    if (name in NUMBERS) state[name] = boundedNumber(text, NUMBERS[name]);
    else if (name in CHOICES) state[name] = CHOICES[name].includes(text) ? text : DEFAULTS[name];
    else state[name] = typeof DEFAULTS[name] === "boolean" ? text === "1" : text;
  }
  return state;
}

/**
 * Return the hash that tells a state.
 * @param {State} state
 */
export function writeHash(state) {
  const told = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (value !== DEFAULTS[name]) told.set(name, typeof value === "boolean" ? String(Number(value)) : String(value));
  }
  return `#${told}`;
}

/** Holds the state and notifies one listener of changes. */
export class Store {
  /** @type {(changed: Set<string>) => void} */
  listener = () => {};

  /** @param {State} state */
  constructor(state) {
    this.state = state;
  }

  /** @param {Partial<State>} change */
  set(change) {
    const changed = new Set(Object.keys(change).filter((name) => change[name] !== this.state[name]));
    if (!changed.size) return;
    this.state = { ...this.state, ...change };
    this.listener(changed);
  }
}

function boundedNumber(text, [least, most]) {
  const number = Number(text);
  return text !== "" && Number.isFinite(number) && number >= least && number <= most ? number : null;
}
