/** A page joined with the nodes of the skill's outline. */

/**
 * @typedef {object} Pick
 * @property {number} rank
 * @property {string} id
 * @property {string[]} nodes Ids of the outline's nodes that it shows.
 * @property {any} node The node, or window, that was picked; null if it did not fit the page.
 * @property {number} relevance
 * @property {number} redundancy
 * @property {number} marginal
 * @property {number} tokens
 * @property {number} total_tokens
 * @property {number|null} sufficiency
 * @property {Record<string, number>|null} reasons
 *
 * @typedef {object} Reading
 * @property {any} page The answer.
 * @property {Pick[]} picks
 * @property {Map<string, number>} ranks Rank of the pick that shows a node, by the node's id.
 * @property {Set<string>} shown Ids of the nodes on the page.
 * @property {Map<string, any>} skipped By id.
 * @property {boolean} windows Whether picks are windows of text, not nodes.
 */

/**
 * Return a page in the form that the views need.
 * @param {any} page
 * @param {{nodes: any[], byId: Map<string, any>}} outline
 * @returns {Reading}
 */
export function readPage(page, outline) {
  const windows = page.nodes.some((node) => outline.byId.get(node.id)?.text !== node.text);
  const onPage = new Map(page.nodes.map((node) => [node.id, node]));
  const covered = (node) => windows ? touched(node, outline.nodes) : [node.id];
  const reasons = page.reasons ?? {};
  const picks = page.selection.picks.map((pick) => ({
    ...pick,
    id: pick.node,
    node: onPage.get(pick.node) ?? null,
    nodes: onPage.has(pick.node) ? covered(onPage.get(pick.node)) : [],
    reasons: reasons[pick.node] ?? null,
  }));
  const ranks = new Map();
  for (const pick of picks) for (const id of pick.nodes) if (!ranks.has(id)) ranks.set(id, pick.rank);
  return {
    page, picks, ranks, windows,
    shown: new Set(page.nodes.flatMap(covered)),
    skipped: new Map(windows ? [] : page.selection.skipped.map((skip) => [skip.node, skip])),
  };
}

/**
 * Return the nodes that are highlighted after some of the picks; all of the page when `step` is null.
 * @param {Reading} reading
 * @param {number|null} step
 * @returns {Set<string>}
 */
export function litAt(reading, step) {
  if (step === null) return reading.shown;
  return new Set(reading.picks.slice(0, step).flatMap((pick) => pick.nodes));
}

/** Ids of the nodes whose lines a window touches. */
function touched(window, nodes) {
  return nodes
    .filter((node) => node.file === window.file && node.start_line <= window.end_line && node.end_line >= window.start_line)
    .map((node) => node.id);
}
