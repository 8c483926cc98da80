/** The side panel of the explorer: the numbers of the page, and its text. */

import { byId, el } from "./dom.js";
import { chanceWords, counted, notCovered, percent, sureness } from "./words.js";

const COPIED_FOR = 1500;

/**
 * Show the tokens and the estimates of a page; a hint when there is none.
 * @param {import("./reading.js").Reading|null} reading
 * @param {any} outline
 */
export function showSummary(reading, outline) {
  byId("side-tabs").hidden = !reading;
  const said = "Type what an agent is about to do: the page shows the parts that it needs, and this side shows why.";
  const hint = el("p", { class: "hint" }, said);
  byId("summary").replaceChildren(...(reading ? summary(reading, outline) : [hint]));
  byId("side-line").textContent = reading ? line(reading) : "No page yet";
  if (!reading) for (const id of ["panel-picks", "panel-page"]) byId(id).hidden = true;
}

/** Show the exact text of a page. @param {any} page */
export function showText(page) {
  byId("panel-page").replaceChildren(pageHead(page, "copy-page"), el("pre", { id: "page-text", tabindex: 0 }, page.text));
}

/** Return the head of a page's text: its tokens, and a button of this id that copies it. @param {any} page @param {string} id */
export function pageHead(page, id) {
  const button = el("button", { type: "button", id, onclick: () => copy(page.text, button) }, "Copy page");
  const said = `Text for the agent: ${page.tokens_exact ? "" : "about "}${counted(page.tokens, "token")}`;
  return el("div", { class: "page-head" }, said, el("span", { class: "spacer" }), button);
}

/**
 * Copy a text; the button says so for a moment.
 * @param {string} text
 * @param {HTMLElement} button
 */
export async function copy(text, button) {
  const said = button.textContent;
  try {
    await write(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => { button.textContent = said; }, COPIED_FOR);
}

/** Write to the clipboard; without TLS browsers have only the old way. */
async function write(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const field = el("textarea", { class: "hidden" });
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("the browser does not copy");
}

const summary = (reading, outline) => [
  figures(reading, outline), meter(reading.page), ...[...notes(reading)].map((said) => el("p", { class: "note" }, said)),
];

function figures({ page, shown }, outline) {
  const about = page.tokens_exact ? "" : "≈ ";
  const entries = [
    [`of ${page.full_tokens.toLocaleString("en")} tokens`, about + page.tokens.toLocaleString("en")],
    ["of the tokens saved", percent(page.token_reduction, 1)],
    [`of ${counted(outline.nodes.length, "part")} shown`, shown.size],
    ["chance that nothing is missing", page.sufficiency === null || notCovered(page.covered) ? "–" : chanceWords(page.sufficiency)],
    ...(page.covered === null ? [] : [["chance that the skill covers the query", chanceWords(page.covered)]]),
  ];
  const shownEntries = entries.map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value)));
  return el("dl", { class: "figures" }, ...shownEntries);
}

function meter(page) {
  const fill = el("span");
  fill.style.width = `${Math.min(1, page.tokens / Math.max(1, page.full_tokens)) * 100}%`;
  return el("div", { class: "meter", "aria-hidden": "true" }, fill);
}

function* notes({ page, picks }) {
  const uncovered = notCovered(page.covered);
  if (uncovered) yield `The skill ${uncovered}.`;
  if (page.least_tokens !== null) {
    yield `Nothing fits: the smallest page with any content has ${counted(page.least_tokens, "token")}.`;
    return;
  }
  if (page.complete) yield "The whole skill: it fits.";
  const dropped = picks.filter((pick) => !pick.node).length;
  if (dropped && !page.complete) yield `${counted(dropped, "pick")} did not fit and were dropped.`;
}

function line({ page }) {
  return `${page.tokens.toLocaleString("en")} tokens · ${percent(page.token_reduction)} saved${sureness(page)}`;
}
