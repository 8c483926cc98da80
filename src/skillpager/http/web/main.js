/** The explorer: requests and shows what a change of the state needs. */

import { ask, Latest, Problem } from "./api.js";
import { Controls } from "./controls.js";
import { DocumentView } from "./document_view.js";
import { byId, listenTabs, showTab } from "./dom.js";
import { GraphView } from "./graph_view.js";
import { LibraryView } from "./library_view.js";
import { boundedStep, Picks } from "./picks.js";
import { litAt, readPage } from "./reading.js";
import { copy, showSummary, showText } from "./side.js";
import { readHash, Store, writeHash } from "./state.js";
import { startTheme } from "./theme.js";
import { coverage } from "./words.js";

const PAGE_FIELDS = ["skill", "query", "strategy", "mmr_lambda", "max_nodes", "max_tokens", "sufficiency", "fill"];
const LIBRARY_FIELDS = PAGE_FIELDS.filter((name) => name !== "skill");
const NO_SKILL = { nodes: [], headings: [], files: [], byId: new Map() };

const store = new Store(readHash(location.hash));
const controls = new Controls(store);
const documentView = new DocumentView(byId("document"), byId("legend"), choose);
const graphView = new GraphView(byId("view-graph"), openInDocument);
const libraryView = new LibraryView(byId("view-library"), (skill) => store.set({ skill, view: "document", step: null }));
const picks = new Picks(byId("panel-picks"), { step: goTo, choose });
const [skills, pages, graphs, libraries] = [new Latest(), new Latest(), new Latest(), new Latest()];

/**
 * The last answers of the service.
 * @type {{outline: any, reading: any, graph: any}}
 */
const known = { outline: null, reading: null, graph: null };
// which of them are to be asked for when their view is shown
const stale = { skill: true, page: true, library: true };

/** Start. */
async function start() {
  startTheme(() => graphView.recolor());
  listen();
  const [{ skills: found, left_out: leftOut }, { strategies }, words] = await Promise.all([
    ask("/v1/skills"), ask("/v1/strategies"), ask("/v1/explorer/words"),
  ]);
  picks.signals = words.signals;
  [coverage.seemsNot, coverage.mayNot] = words.covered;
  controls.offer(found, strategies);
  libraryView.name(leftOut);
  if (!found.length) throw new Problem("The service offers no skills: start it with a folder of skills.");
  store.listener = (changed) => run(() => update(changed));
  if (store.state.skill) await update(new Set(Object.keys(store.state)));
  else store.set({ skill: found[0].name });
}

function listen() {
  listenTabs(byId("view-tabs"), (view) => store.set({ view }));
  listenTabs(byId("side-tabs"), (side) => store.set({ side }));
  byId("fold").addEventListener("click", () => store.set({ fold: !store.state.fold }));
  byId("copy-link").addEventListener("click", (event) => copy(location.href, event.currentTarget));
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("views").focus();
  });
  byId("side-toggle").addEventListener("click", (event) => {
    const toggle = event.currentTarget;
    toggle.setAttribute("aria-expanded", String(toggle.getAttribute("aria-expanded") === "false"));
  });
  addEventListener("hashchange", () => {
    const state = readHash(location.hash);
    store.set({ ...state, skill: state.skill || store.state.skill });
  });
  addEventListener("keydown", step);
}

/** Show the changes. @param {Set<string>} changed */
async function update(changed) {
  const { state } = store;
  history.replaceState(null, "", writeHash(state));
  controls.show();
  showTab(byId("view-tabs"), state.view);
  const isLibrary = state.view === "library";
  byId("columns").classList.toggle("wide", isLibrary);
  byId("side").hidden = isLibrary;
  stale.skill ||= changed.has("skill");
  stale.page ||= PAGE_FIELDS.some((name) => changed.has(name));
  stale.library ||= LIBRARY_FIELDS.some((name) => changed.has(name));
  if (isLibrary) {
    byId("fold").hidden = true;
    if (stale.library) await loadLibrary();
    return;
  }
  if (stale.skill) await loadSkill();
  if (!known.outline) return;
  if (stale.page) await loadPage();
  else if (["step", "fold", "side", "view"].some((name) => changed.has(name))) show();
  if (state.view === "graph") await loadGraph();
}

async function loadSkill() {
  stale.skill = false;
  const name = encodeURIComponent(store.state.skill);
  pages.stop();
  Object.assign(known, { outline: null, reading: null, graph: null });
  const asked = skills.run((signal) => ask(`/v1/skills/${name}/outline`, { signal }));
  const outline = await asked.catch((error) => {
    documentView.load(NO_SKILL);
    showSummary(null, NO_SKILL);
    throw error;
  });
  if (!outline) return;
  known.outline = { ...outline, byId: new Map(outline.nodes.map((node) => [node.id, node])) };
  documentView.load(known.outline);
  controls.fit(known.outline);
}

async function loadPage() {
  stale.page = false;
  const { skill, step } = store.state;
  const page = await answerTo("/v1/page", { skill, explain: true }, pages, () => showReading(null));
  if (!page) return;
  showReading(readPage(page, known.outline));
  const first = known.reading.picks[0]?.nodes[0];
  if (first && step === null && document.activeElement !== byId("query")) documentView.reveal(first);
  byId("status").textContent = byId("side-line").textContent;
}

async function loadLibrary() {
  stale.library = false;
  const answer = await answerTo("/v1/ask", {}, libraries, () => libraryView.show(null));
  if (answer) byId("status").textContent = libraryView.show(answer);
}

/**
 * Return the answer to the query; null without a query, or when a later request has taken this one's place.
 * @param {string} path
 * @param {object} more Fields of the request besides query, strategy and limits.
 * @param {Latest} latest
 * @param {() => void} showNone Called if there is no query, or no answer to it.
 */
async function answerTo(path, more, latest, showNone) {
  const { query, strategy } = store.state;
  byId("status").textContent = "";
  if (!query) {
    latest.stop();
    showNone();
    return null;
  }
  document.body.setAttribute("aria-busy", "true");
  const body = { ...more, query, strategy, ...controls.heeded(strategy) };
  const asked = latest.run((signal) => ask(path, { body, signal }));
  const answer = await asked.catch((error) => {
    showNone();
    throw error;
  });
  if (answer) document.body.removeAttribute("aria-busy");
  return answer;
}

function showReading(reading) {
  known.reading = reading;
  showSummary(reading, known.outline);
  if (reading) showText(reading.page);
  picks.load(reading, known.outline);
  show();
}

/** Show the picks up to the current step. */
function show() {
  const { reading } = known;
  const { fold, side, view } = store.state;
  const step = reading && store.state.step !== null ? boundedStep(store.state.step, reading.picks.length) : null;
  if (reading) showTab(byId("side-tabs"), side);
  byId("fold").hidden = !reading || view !== "document";
  byId("fold").textContent = fold ? "Show what is left out" : "Fold what is left out";
  documentView.show(reading, step, fold);
  picks.show(step);
  graphView.light(reading && litAt(reading, step));
  const now = step !== null && reading.picks[step - 1].nodes[0];
  if (now) documentView.reveal(now);
}

async function loadGraph() {
  if (known.graph) return;
  const path = `/v1/skills/${encodeURIComponent(store.state.skill)}/graph`;
  const graph = await graphs.run((signal) => ask(path, { signal }));
  if (!graph) return;
  known.graph = graph;
  graphView.load(graph);
}

function goTo(target) {
  if (known.reading) store.set({ step: target === null ? null : boundedStep(target, known.reading.picks.length) });
}

/** Step through the picks with the arrow keys, except where they have another meaning. @param {KeyboardEvent} event */
function step(event) {
  const taken = event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, dialog, pre");
  if (!known.reading || taken || store.state.view === "library") return;
  const at = store.state.step ?? known.reading.picks.length + 1;
  const targets = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 1, End: null, Escape: null };
  if (!(event.key in targets)) return;
  event.preventDefault();
  goTo(targets[event.key]);
}

/** Describe the node that the user chose; null for none. @param {string|null} id */
function choose(id) {
  if (id && known.reading) documentView.reveal(id, { chosen: true });
  else documentView.choose(null);
  if (known.reading) store.set({ side: "picks" });
  picks.describe(id);
}

function openInDocument(id) {
  store.set({ view: "document" });
  documentView.reveal(id, { chosen: true });
  picks.describe(id);
}

/** Run work that may fail, and show the error. @param {() => Promise<void>} work */
async function run(work) {
  byId("problem").hidden = true;
  try {
    await work();
  } catch (error) {
    document.body.removeAttribute("aria-busy");
    byId("problem").textContent = error.message;
    byId("problem").hidden = false;
    if (!(error instanceof Problem)) throw error;
  }
}

run(start);
