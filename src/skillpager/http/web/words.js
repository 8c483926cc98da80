/** Names of types and links, number formats, and the reasons why a node is on a page or not. */

export const TYPES = ["step", "example", "param", "precondition", "error_handling", "concept"];
export const KINDS = ["sequence", "semantic", "reference", "condition"];

/** @param {string} type */
export const typeName = (type) => type.replace("_", " ");

/** @param {number} share @param {number} [digits] */
export const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)}\u00a0%`;

// smaller and larger chances are all shown alike, as on the command line
const [LEAST_CHANCE, LARGEST_CHANCE] = [0.01, 0.99];

/** @param {number} chance */
export const chanceWords = (chance) => chance < LEAST_CHANCE ? `under ${percent(LEAST_CHANCE)}`
  : chance > LARGEST_CHANCE ? `over ${percent(LARGEST_CHANCE)}` : percent(chance);

/** The chances below which a skill seems not to cover a query, and may not: those of the service. */
export const coverage = { seemsNot: 0, mayNot: 0 };

/**
 * Return what a page says of a skill that seems not to answer the query; empty if it may.
 * @param {number|null} covered
 */
export function notCovered(covered) {
  if (covered === null || covered >= coverage.mayNot) return "";
  return `${covered < coverage.seemsNot ? "seems not to" : "may not"} cover the query (chance ${chanceWords(covered)})`;
}

/**
 * Return how sure it is that a page suffices, with ` · ` before it; that its skill seems not to cover the query, if so.
 * @param {{sufficiency: number|null, covered: number|null}} page
 */
export function sureness({ sufficiency, covered }) {
  const said = notCovered(covered) || (sufficiency === null ? "" : `${chanceWords(sufficiency)} sure`);
  return said && ` · ${said}`;
}

/** @param {number} count @param {string} noun */
export const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

/** @param {{start_line: number, end_line: number}} place */
export const lines = ({ start_line: first, end_line: last }) => first === last ? `L${first}` : `L${first}–${last}`;

/**
 * Return a text on one line, without the Markdown signs at its beginning.
 * @param {string} text
 * @param {number} [length]
 */
export function snippet(text, length = 110) {
  const bare = text.slice(0, 4 * length).replace(/^[\s>|#*+-]+|`{3,}\S*|\*\*|^[\s|:-]+$/gm, "").replace(/[`\s]+/g, " ").trim();
  return bare.length > length ? `${bare.slice(0, length - 1)}…` : bare;
}

// what the number is called by which a strategy decides
const VALUES = {
  need: "need", mmr_margin: "relevance less repetition", cosine: "relevance", section: "relevance of its section", bm25: "BM25 score",
  rank_fusion: "score of two rankings", diversity: "score", model: "score of the model", own: "score",
};

/**
 * Return the name of a number of a pick.
 * @param {string} measure relevance, redundancy or marginal.
 * @param {string} kind What `marginal` is.
 */
export const measureName = (measure, kind) => ({ relevance: "relevance", redundancy: "repetition" })[measure] ?? VALUES[kind] ?? kind;

// smaller shares are not shown
const LEAST_SHARE = 0.1;

const SKIPS = {
  max_nodes: "the page already had the most parts allowed",
  max_tokens: "it did not fit into the token budget",
  negative_marginal: "it repeats more than it adds",
  sufficiency: "the parts picked before it suffice, by the estimate",
  below_threshold: "its score is below the threshold of the strategy",
  not_reached: "the strategy stopped before this part",
  not_in_pool: "the strategy does not consider parts of this type",
};

/** @param {string} reason A reason of `skipped`. */
export const skipReason = (reason) => SKIPS[reason] ?? reason.replaceAll("_", " ");

/**
 * Return why a node was picked, one sentence each.
 * @param {import("./reading.js").Pick} pick
 * @param {Record<string, string>} signals The wording for each kind of signal.
 * @returns {string[]}
 */
export function pickReasons(pick, signals) {
  const ranked = Object.entries(pick.reasons ?? {}).filter(([, share]) => share >= LEAST_SHARE).sort((a, b) => b[1] - a[1]);
  if (pick.reasons) {
    const shown = ranked.map(([name, share]) => `${signals[name] ?? name} (${percent(share)})`);
    const because = shown.length ? `Reasons: ${shown.join(", ")}.` : "No signal supports it by itself.";
    return [`Estimated need: ${percent(pick.marginal)}.`, because];
  }
  const first = pick.rank === 0 ? "It was picked first." : "Of the parts left at that point, the strategy gave it the highest value.";
  return [first, `Relevance ${pick.relevance.toFixed(2)}; largest similarity to an earlier pick ${pick.redundancy.toFixed(2)}.`];
}
