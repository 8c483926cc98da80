// The page of an annotation sheet. Text of skills is untrusted: it is only ever set as textContent.

const NOTE_DELAY = 500; // milliseconds of quiet after which a note is saved
const PLACE_COLUMNS = ["skill", "headings"]; // shown on one line; the others are texts to read

const $ = (id) => document.getElementById(id);

let sheet = { name: "", guide: "", columns: [], choices: [], cases: [] };
let position = 0;
const answersBefore = []; // for undo: { id, label }, the latest last
const unsaved = new Set(); // ids of cases whose answer is not in the sheet yet
let saving = false;
let noteTimer = 0;

// ---- reading and saving

async function ask(path, options) {
  const response = await fetch(path, options);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.detail);
  return answer;
}

async function load() {
  try {
    sheet = await ask("sheet");
  } catch (error) {
    showProblem(`The sheet cannot be read. ${error.message}`);
    return;
  }
  showProblem("");
  showChoices();
  position = Math.max(0, sheet.cases.findIndex((item) => !item.label));
  show();
  // a reader who starts should know what the labels mean
  if (sheet.cases.length && !sheet.cases.some((item) => item.label)) showHelp();
}

// Saves one case after the other, and each until what is in the sheet is what is on the page.
async function save(item) {
  unsaved.add(item.id);
  if (saving) return;
  saving = true;
  showCount();
  try {
    for (const id of unsaved) {
      const { label, note } = sheet.cases.find((other) => other.id === id);
      await post({ case: id, label, note });
      const now = sheet.cases.find((other) => other.id === id);
      unsaved.delete(id);
      if (now.label !== label || now.note !== note) unsaved.add(id);
    }
    showProblem("");
  } catch (error) {
    showProblem(`Not saved. ${error instanceof TypeError ? "The server does not answer." : error.message}`);
  }
  saving = false;
  showCount();
}

function post(answer) {
  return ask("answer", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(answer),
  });
}

function saveAgain() {
  const [id] = unsaved;
  if (id === undefined) load();
  else save(sheet.cases.find((item) => item.id === id));
}

// ---- answering

function answer(label) {
  const item = sheet.cases[position];
  if (!item) return;
  keepNote();
  answersBefore.push({ id: item.id, label: item.label });
  item.label = label;
  save(item);
  if (label) goToUnlabelled();
  else show();
}

function undo() {
  const before = answersBefore.pop();
  if (!before) return;
  keepNote();
  position = sheet.cases.findIndex((item) => item.id === before.id);
  const item = sheet.cases[position];
  item.label = before.label;
  save(item);
  show();
}

function keepNote() {
  clearTimeout(noteTimer);
  const item = sheet.cases[position];
  if (!item || item.note === $("note").value) return;
  item.note = $("note").value;
  save(item);
}

// ---- moving

function go(to) {
  if (to < 0 || to >= sheet.cases.length) return;
  keepNote();
  position = to;
  show();
}

// Goes to the next case without a label, from the first again after the last; stays when there is none.
function goToUnlabelled() {
  const count = sheet.cases.length;
  for (let step = 1; step <= count; step++) {
    const to = (position + step) % count;
    if (!sheet.cases[to].label) return go(to);
  }
  show();
}

// ---- showing

function make(tag, text, parent) {
  const element = document.createElement(tag);
  element.textContent = text;
  parent.append(element);
  return element;
}

function showChoices() {
  $("choices").replaceChildren();
  $("meanings").replaceChildren();
  $("guide").textContent = sheet.guide;
  for (const choice of sheet.choices) {
    const name = choice.label.replaceAll("_", " ");
    const button = make("button", "", $("choices"));
    button.type = "button";
    button.title = choice.meaning;
    button.dataset.label = choice.label;
    make("kbd", choice.keys[0], button);
    button.append(name);
    button.addEventListener("click", () => answer(choice.label));
    const term = make("dt", `${name} `, $("meanings"));
    for (const key of choice.keys) {
      make("kbd", key, term);
      term.append(" ");
    }
    make("dd", choice.meaning, $("meanings"));
  }
}

function show() {
  const item = sheet.cases[position];
  $("texts").replaceChildren();
  $("place").textContent = "This sheet has no cases.";
  if (item) {
    const texts = sheet.columns.map((column, number) => [column, item.texts[number]]);
    const isPlace = ([column, text]) => PLACE_COLUMNS.includes(column) && text;
    const place = texts.filter(isPlace).map(([, text]) => text);
    $("place").textContent = [`Case ${position + 1} of ${sheet.cases.length}`, ...place].join(" · ");
    for (const [column, text] of texts) {
      if (!PLACE_COLUMNS.includes(column) && text.trim()) showText(column, text);
    }
  }
  $("note").value = item?.note ?? "";
  for (const button of $("choices").children) {
    button.setAttribute("aria-pressed", String(button.dataset.label === item?.label));
    button.disabled = !item;
  }
  $("previous").disabled = position === 0;
  $("next").disabled = position >= sheet.cases.length - 1;
  showCount();
  $("main").focus({ preventScroll: true });
  $("main").scrollTop = 0;
  $("texts").querySelector("[data-column=node]")?.scrollIntoView({ block: "nearest" });
}

function showText(column, text) {
  const section = make("section", "", $("texts"));
  section.dataset.column = column;
  make("h2", column, section);
  // blank lines at the ends would only push the text apart
  make("pre", text.replace(/^(\s*\n)+/, "").trimEnd(), section).dir = "auto";
}

function showCount() {
  const count = sheet.cases.length;
  const labelled = sheet.cases.filter((item) => item.label).length;
  $("name").textContent = sheet.name;
  $("progress").max = Math.max(1, count);
  $("progress").value = labelled;
  $("count").textContent = `${labelled} of ${count}`;
  $("saved").textContent = saving ? "saving…" : unsaved.size ? "not saved" : labelled < count ? "saved" : "all done";
  $("undo").disabled = answersBefore.length === 0;
  $("to-do").disabled = labelled === count;
  document.title = `${labelled}/${count} · ${sheet.name}`;
}

function showHelp() {
  $("help").showModal();
  $("help-title").focus(); // else the button at the end is focused, and small screens show the end
}

function showProblem(text) {
  $("problem").hidden = !text;
  $("problem-text").textContent = text;
}

// ---- keys and buttons

const ACTIONS = {
  ArrowLeft: () => go(position - 1),
  ArrowRight: () => go(position + 1),
  Backspace: () => answer(""),
  t: goToUnlabelled,
  u: undo,
  "/": () => $("note").focus(),
  "?": showHelp,
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if ($("help").open) {
    if (event.key === "Enter") $("help").close();
    return;
  }
  if (event.target === $("note")) {
    if (event.key === "Escape") $("main").focus();
    return;
  }
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const choice = sheet.choices.find((item) => item.keys.includes(key));
  const action = choice ? () => answer(choice.label) : ACTIONS[key];
  if (!action || (event.repeat && !key.startsWith("Arrow"))) return;
  event.preventDefault();
  action();
}

document.addEventListener("keydown", onKey);
$("previous").addEventListener("click", () => go(position - 1));
$("next").addEventListener("click", () => go(position + 1));
$("to-do").addEventListener("click", goToUnlabelled);
$("undo").addEventListener("click", undo);
$("retry").addEventListener("click", saveAgain);
$("help-button").addEventListener("click", showHelp);
$("note").addEventListener("blur", keepNote);
$("note").addEventListener("input", () => {
  clearTimeout(noteTimer);
  noteTimer = setTimeout(keepNote, NOTE_DELAY);
});
addEventListener("beforeunload", (event) => {
  keepNote();
  if (unsaved.size) event.preventDefault();
});

load();
