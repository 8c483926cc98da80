/** The library: the skills that a query needs, with their chances and reasons, and one page from them. */

import { el } from "./dom.js";
import { pageHead } from "./side.js";
import { chanceWords, counted, notCovered, percent, snippet, sureness } from "./words.js";

const MOST_TERMS = 6;

/** Shows the ranked skills beside the page that is made from some of them. */
export class LibraryView {
  /**
   * @param {HTMLElement} place
   * @param {(skill: string) => void} open Called with the skill that the user chose.
   */
  constructor(place, open) {
    this.open = open;
    this.told = el("p", { class: "verdict" });
    this.ranked = el("section", { class: "ranked", "aria-label": "Skills by chance" });
    this.leftOut = el("div");
    this.page = el("section", { class: "library-page", "aria-label": "Page from these skills" });
    const left = el("div", {}, this.ranked, this.leftOut);
    place.append(this.told, el("div", { class: "library" }, left, this.page));
    this.show(null);
  }

  /**
   * Name the skills that were found and are not offered.
   * @param {any[]} skills
   */
  name(skills) {
    const why = ({ problem, shadowed_by: other }) => problem ?? `another skill of this name was found first: ${other}`;
    const rows = skills.map((skill) => el("li", {}, el("strong", {}, skill.name), ` ${skill.path}: ${why(skill)}`));
    const summary = el("summary", {}, `${counted(skills.length, "skill")} not offered, and why`);
    this.leftOut.replaceChildren(el("details", { class: "not-offered", hidden: !skills.length }, summary, el("ul", {}, ...rows)));
  }

  /**
   * Show an answer of `/v1/ask`; null for none.
   * @param {any} answer
   * @returns {string} What it says, in a sentence.
   */
  show(answer) {
    for (const part of [this.ranked, this.page]) part.replaceChildren();
    this.told.textContent = answer ? verdict(answer)
      : "Type what an agent is about to do: here are the skills that it needs, among all, and one page from them.";
    this.told.classList.toggle("none", answer !== null && !answer.has_fit);
    if (!answer) return "";
    const entries = rank(answer);
    this.ranked.append(
      el("h2", {}, "Skills"),
      entries.length ? el("ol", { class: "routed" }, ...entries.map((entry) => this.#row(entry)))
        : el("p", { class: "hint" }, "No skill shares a word with the query."),
    );
    this.page.append(...this.#pageOf(answer));
    return this.told.textContent;
  }

  #row({ skill, chance, part, refused, routed }) {
    const said = chanceWords(chance);
    const bar = el("span");
    bar.style.width = `${100 * chance}%`;
    const state = part ? `On the page: ${counted(part.page.tokens, "token")}` : refused ? `Refused: ${refused.detail}` : "Not among the candidates";
    return el(
      "li", { class: part ? "on" : null },
      el(
        "button", { type: "button", class: "skill-row", onclick: () => this.open(skill.name), "aria-label": `${skill.name}, chance ${said}. ${state}` },
        el("span", { class: "name" }, skill.name),
        el("span", { class: "chance" }, el("span", { class: "track" }, bar), said),
        el("span", { class: "about" }, snippet(skill.description, 160)),
        el("span", { class: "reason" }, reason(routed)),
        el("span", { class: "state" }, skill.user_only && refused?.reason !== "user_only" ? `${state} (only the user may start it)` : state),
      ),
    );
  }

  #pageOf(answer) {
    const { text, parts } = answer;
    const head = pageHead(answer, "copy-library-page");
    if (parts.length < 2) return [el("h2", {}, "Page"), head, ...parts.map((part) => this.#partHead(part)), textOf(text)];
    return [el("h2", {}, "Page"), head, ...parts.map((part) => el(
      "article", { class: "skill-part", "aria-label": `Part of ${part.name}` }, this.#partHead(part), textOf(part.page.text),
    ))];
  }

  #partHead(part) {
    const { tokens, full_tokens: full, complete } = part.page;
    const share = complete ? "the whole skill" : `${percent(1 - tokens / Math.max(1, full))} saved`;
    const attributes = { type: "button", class: "quiet", "aria-label": `Open ${part.name}`, onclick: () => this.open(part.name) };
    return el(
      "header", {}, el("strong", {}, part.name),
      el("span", {}, `${counted(tokens, "token")} · ${share}${sureness(part.page)}`), el("span", { class: "spacer" }), el("button", attributes, "Open"),
    );
  }
}

/** Return the skills of an answer, the likeliest first. */
function rank({ route, parts, refused }) {
  const entries = new Map();
  const add = (skill, found) => {
    const entry = entries.get(skill.path) ?? { skill, chance: 0, part: null, refused: null, routed: null };
    entries.set(skill.path, { ...entry, ...found, chance: Math.max(entry.chance, skill.chance) });
  };
  for (const skill of route.skills) add(skill, { routed: skill });
  for (const part of parts) add(part, { part });
  for (const skill of refused) add(skill, { refused: skill });
  return [...entries.values()].sort((a, b) => b.chance - a.chance);
}

function verdict(answer) {
  const searched = `${answer.route.searched.toLocaleString("en")} searched`;
  if (answer.least_tokens !== null) return `Nothing fits: the smallest page with any content has ${counted(answer.least_tokens, "token")}.`;
  if (!answer.has_fit) return `No skill fits (${searched}).`;
  const uncovered = notCovered(answer.covered);
  const sure = answer.sufficiency === null ? "" : `, ${chanceWords(answer.sufficiency)} sure to hold all that is needed`;
  return `${counted(answer.tokens, "token")} from ${counted(answer.parts.length, "skill")} of ${searched}: ${percent(answer.token_reduction)} saved${uncovered ? `, but ${uncovered}` : sure}.`;
}

function reason(routed) {
  if (!routed) return "";
  if (!routed.terms.length) return "phrases of its description";
  const fields = routed.fields.join(", ").replace(/, ([^,]*)$/, " and $1");
  return `${routed.terms.slice(0, MOST_TERMS).join(", ")} in its ${fields}`;
}

const textOf = (text) => el("pre", { class: "library-text", tabindex: 0 }, text);
