// The example browser. Whatever comes from the data reaches the page through textContent only.
// It is one script with elements.js, words.js, nulls.js, image.js and chain.js, which stand before it.

const data = JSON.parse(document.getElementById("browser-data").textContent);
const PAGE = 50;
const byId = (id) => document.getElementById(id);
const controls = byId("controls").elements;
const state = { run: 0, example: null, page: 0, found: [], own: [] };

// --- what is asked ----------------------------------------------------------------------------------------------

const SELECTORS = ["attribution", "operator", "direction", "k", "null"];
const run = () => data.runs[state.run];

// Sizes depend on the attribution: some have a size of their own.
function offered(name) {
  const attribution = controls.attribution.value;
  const fitting = run().configurations.filter((each) => name !== "k" || each.attribution === attribution);
  return [...new Set(fitting.map((each) => String(each[name])))];
}

const WORDS = {
  operator: { all: "all, averaged" },
  direction: { sufficiency: "keep the rationale", necessity: "remove the rationale" },
  null: { size: "same size" },
};
const OF_CLAIMS = { direction: { sufficiency: "keep the chosen passages", necessity: "remove the chosen passages" } };
const OF_STEPS = { direction: { sufficiency: "show the chosen steps alone", necessity: "remove the chosen steps" } };

function word(name, value) {
  if (name === "k" && value === "dynamic") return "its peaks";
  if (name === "k") return value === "null" ? "its own" : `top ${Math.round(1000 * Number(value)) / 10} %`;
  if (ofChains() && OF_STEPS[name]) return OF_STEPS[name][value];
  if (ofClaims() && OF_CLAIMS[name]) return OF_CLAIMS[name][value];
  return WORDS[name]?.[value] ?? (name === "null" ? `matched by ${value}` : value);
}

function fillSelectors() {
  for (const name of SELECTORS) {
    const before = controls[name].value;
    const values = offered(name);
    controls[name].replaceChildren(...values.map((value) => el("option", { value }, word(name, value))));
    if (values.includes(before)) controls[name].value = before;
    controls[name].closest(".control").hidden = values.length < 2;
  }
}

function placeOf(operator = controls.operator.value) {
  const wanted = Object.fromEntries(SELECTORS.map((name) => [name, controls[name].value]));
  wanted.operator = operator;
  return run().configurations.findIndex((each) => SELECTORS.every((name) => String(each[name]) === wanted[name]));
}

// A cell as an object with names; { error } where there are no numbers.
function cellOf(example, place = placeOf()) {
  const cell = example.cells[place];
  if (cell === undefined || typeof cell === "string") return { error: cell ?? example.skip ?? "not evaluated" };
  return Object.fromEntries(data.columns.map((name, index) => [name, cell[index]]));
}

// Of a step-level run: examples are chains, units are steps, and a score is one of three things.
const ofChains = () => run().chains;
// Of cited answers: examples are claims, units are passages, and a score is a log-probability per token.
const ofClaims = () => run().claims;
const shownScore = (thousandths) => (ofChains() ? replied(thousandths) : ofClaims() ? decimal(thousandths) : chance(thousandths));
const scoreName = () => (ofChains() ? "answer" : ofClaims() ? "log-probability per token" : "score of the label");
const chosen = () => (ofChains() ? "chosen steps" : ofClaims() ? "chosen passages" : "rationale");
const isExplained = () => run().configurations.length > 0;

const operators = () => offered("operator").filter((name) => name !== "all");

function gap(example) {
  const rates = operators().map((name) => cellOf(example, placeOf(name)).win_rate).filter((rate) => rate !== undefined);
  return rates.length < 2 ? -1 : Math.max(...rates) - Math.min(...rates);
}

// --- the list -----------------------------------------------------------------------------------------------------

const textOf = (example) => example.fields.map((field) => field.pieces.join("")).join(" / ");
const label = (index) => (index === null ? "unknown" : run().labels[index]);

const FILTERS = {
  all: () => true,
  anti: (example, cell) => cell.win_rate < 0.5,
  disagree: (example, cell) => cell.disagree === 1,
  wrong: (example) => example.gold !== null && example.target !== null && example.gold !== example.target,
  weak_signal: (example) => example.flags.includes("weak_signal"),
  skipped: (example, cell) => cell.error !== undefined,
};

const ORDERS = {
  data: null,
  low: (item) => item.cell.win_rate ?? 2,
  high: (item) => -(item.cell.win_rate ?? -1),
  gap: (item) => -gap(item.example),
  long: (item) => -textOf(item.example).length,
};

function search() {
  const query = controls.query.value.trim().toLowerCase();
  const place = placeOf();
  const keep = FILTERS[controls.filter.value];
  const items = [];
  for (const example of run().examples) {
    const cell = cellOf(example, place);
    if (!keep(example, cell)) continue;
    if (query && !(example.searched ??= `${example.id} ${label(example.target)} ${textOf(example)}`.toLowerCase()).includes(query)) continue;
    items.push({ example, cell });
  }
  const order = ORDERS[controls.sort.value];
  if (order) {
    const keys = new Map(items.map((item) => [item, order(item)]));
    items.sort((a, b) => keys.get(a) - keys.get(b));
  }
  state.found = items;
}

function drawList() {
  const pages = Math.max(1, Math.ceil(state.found.length / PAGE));
  state.page = Math.min(Math.max(state.page, 0), pages - 1);
  const start = state.page * PAGE;
  byId("list").replaceChildren(...state.found.slice(start, start + PAGE).map(listed));
  (byId("list").querySelector("[aria-current]") ?? byId("list").querySelector("button"))?.setAttribute("tabindex", 0);
  const n = state.found.length;
  const one = ofChains() ? "chain" : ofClaims() ? "claim" : "example";
  byId("count").textContent = `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;
  byId("page-of").textContent = `${state.page + 1} of ${pages}`;
  // Not `disabled`, which would take the focus from whoever has just pressed the button.
  byId("page-back").setAttribute("aria-disabled", state.page === 0);
  byId("page-on").setAttribute("aria-disabled", state.page === pages - 1);
  byId("page-on").closest("p").hidden = pages === 1;
}

// Claims of one answer begin alike; what they claim does not.
function beginning(example) {
  const claim = ofClaims() ? example.fields.find((field) => field.name === "claim") : undefined;
  return claim ? claim.pieces.join("") : textOf(example);
}

function listed({ example, cell }) {
  const text = beginning(example);
  const rate = example.chain ? mattering(example.chain) : cell.error === undefined ? percent(cell.win_rate) : "–";
  const what = example.chain ? "steps whose removal changes the answer, of all" : "win rate";
  const button = el(
    "button",
    { type: "button", tabindex: -1, "data-id": example.id, "aria-current": example === state.example ? "true" : null },
    el("span", { class: "rate", title: what }, rate),
    el("span", { class: "id" }, example.id),
    el("span", { class: "start", dir: "auto", lang: run().language }, short(text, 160)),
  );
  button.addEventListener("click", () => choose(example));
  return el("li", {}, button);
}

// --- the example -----------------------------------------------------------------------------------------------

function choose(example, { scroll = false } = {}) {
  if (example !== state.example) state.own = [];
  state.example = example;
  const place = state.found.findIndex((item) => item.example === example);
  if (place >= 0) state.page = Math.floor(place / PAGE);
  const inList = byId("list").contains(document.activeElement);
  drawList();
  drawExample();
  const current = byId("list").querySelector("[aria-current]");
  if (inList) current?.focus(); // the entry that had the focus is gone: the list is new
  current?.scrollIntoView({ block: "nearest" });
  remember();
  if (scroll) byId("examples").scrollIntoView();
}

function remember() {
  history.replaceState(null, "", link(state.example));
  state.address = location.hash;
}

// The whole view: what is as at the start is left out.
const VIEW = [...SELECTORS, "filter", "sort"];

function link(example) {
  const parts = example ? { example: example.id } : {};
  if (data.runs.length > 1) parts.run = state.run;
  for (const name of VIEW) if (controls[name].selectedIndex > 0) parts[name] = controls[name].value;
  if (controls.query.value) parts.query = controls.query.value;
  if (state.own.length && example === state.example) parts.set = state.own.join(".");
  return `#${new URLSearchParams(parts)}`;
}

function drawExample() {
  const example = state.example;
  const box = byId("detail");
  if (!example) {
    box.replaceChildren(el("p", { class: "missing" }, "No example fits. Choose another filter or search."));
    return;
  }
  const cell = cellOf(example);
  const told = el("span", { id: "told", role: "status", class: "told" });
  box.replaceChildren(...[heading(example), told, ...(ofChains() ? chainParts(example, cell) : textParts(example, cell))].filter(Boolean));
  drawSets(example); // their width is that of the box, known now
  const picked = box.querySelector(".pick");
  if (picked) picked.tabIndex = 0;
  addTools(told, `example ${example.id}`, { "Copy link": copyLink, "Copy image": () => copyImage(example), "Save image": () => saveImage(example) });
}

const slots = () => [el("div", { id: "own" }), el("div", { id: "stack" }), el("div", { id: "nulls" })];

function textParts(example, cell) {
  const shade = example.skip === null ? [legend(example)] : [];
  const texts = (fields) => fields.map((field) => fieldText(example, field, cell));
  const numbers = cell.error !== undefined ? [el("p", { class: "missing" }, `No numbers: ${cell.error}.`)] : [...slots(), wording(example), strongest(example)];
  // Many long passages would push the numbers of a claim out of sight.
  const behind = ofClaims() ? example.fields.filter((field) => field.name === "answer" || field.units.some((unit) => unit >= 0)) : [];
  const before = texts(example.fields.filter((field) => !behind.includes(field)));
  const parts = behind.length ? [...before, ...numbers, el("h4", {}, "The answer and its passages"), ...shade, ...texts(behind)] : [...shade, ...before, ...numbers];
  return [facts(example), ...parts];
}

function heading(example) {
  return el("h3", {}, ofChains() ? "Chain " : ofClaims() ? "Claim " : "Example ", el("bdi", {}, example.id));
}

const FLAGS = {
  weak_signal: "weak signal: the text hardly changes the score",
  negative_signal: "negative signal: the text lowers the score of this label",
  truncated: "the end of the text was cut off",
};
const CLAIM_FLAGS = {
  weak_signal: "weak signal: the passages hardly change the score",
  negative_signal: "negative signal: the passages lower the score",
};

function facts(example) {
  const pairs = ofClaims() ? [] : [["explained label", label(example.target)], ["gold label", label(example.gold)]];
  if (example.full !== null) {
    const names = ofClaims() ? [`${scoreName()}, all passages`, "closed book"] : ["score of the whole text", "of no text"];
    pairs.push([names[0], shownScore(example.full)], [names[1], shownScore(example.empty)]);
  }
  const list = pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, el("bdi", {}, value))));
  const flags = example.flags.map((flag) => el("li", {}, (ofClaims() && CLAIM_FLAGS[flag]) || (FLAGS[flag] ?? flag)));
  return el("div", {}, el("dl", { class: "facts" }, list), flags.length ? el("ul", { class: "flags" }, flags) : null);
}

function legend(example) {
  const values = example.vectors[controls.attribution.value] ?? [];
  const signed = values.some((value) => value < 0);
  const parts = [el("span", { class: "unit", style: "--support: 60%" }, signed && !ofChains() && !ofClaims() ? "for the label" : "more important")];
  if (signed) parts.push(el("span", { class: "unit against", style: "--against: 60%" }, "against it"));
  parts.push(el("span", { class: "unit rationale" }, chosen()));
  return el("p", { class: "legend" }, "Colour: ", parts);
}

// The original text, cut at its units: what a tokenizer writes inside words is never seen.
function fieldText(example, field, cell) {
  const values = example.vectors[controls.attribution.value];
  const rationale = new Set(cell.error === undefined ? example.rationales[cell.rationale] : []);
  const largest = Math.max(...(values ?? []).map((value) => Math.abs(value ?? 0)), 0);
  const nodes = field.pieces.map((piece, index) => {
    const unit = field.units[index];
    const value = unit < 0 ? undefined : values?.[unit];
    if (value === undefined) return document.createTextNode(piece);
    return unitSpan(piece, value, largest, rationale.has(unit), unit);
  });
  const name = example.fields.length > 1 ? el(ofClaims() && field.units.some((unit) => unit >= 0) ? "h5" : "h4", {}, field.name) : null;
  const human = field.human.length
    ? el("p", { class: "human" }, "Marked by people: ", field.human.map((text) => [el("q", { dir: "auto", lang: run().language }, text), " "]))
    : null;
  return el("div", {}, name, el("p", { class: `text${ofClaims() ? " compact" : ""}`, dir: "auto", lang: run().language }, nodes), human);
}

function unitSpan(piece, value, largest, inside, unit) {
  const strength = largest > 0 && value !== null ? Math.round((70 * Math.abs(value)) / largest) : 0;
  const side = value < 0 ? "against" : "support";
  const classes = ["unit", "pick", value < 0 ? "against" : "", inside ? "rationale" : "", state.own.includes(unit) ? "picked" : ""].filter(Boolean).join(" ");
  const title = `${number(value, 3)}${inside ? `, ${ofChains() || ofClaims() ? "chosen" : "in the rationale"}` : ""}`;
  return el(inside ? "strong" : "span", { class: classes, style: `--${side}: ${strength}%`, title, ...pickable(unit) }, piece);
}

const short = (text, most) => (text.length > most ? `${text.slice(0, most)}…` : text);

// The colours again, in numbers.
function strongest(example) {
  const values = example.vectors[controls.attribution.value];
  const texts = new Map();
  for (const field of example.fields) field.units.forEach((unit, index) => texts.set(unit, field.pieces[index]));
  const ranked = values.map((value, unit) => ({ value, unit })).filter(({ value }) => value !== null);
  ranked.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const items = ranked.slice(0, 8).map(({ value, unit }) => el("li", {}, el("bdi", {}, short(texts.get(unit) ?? "", 100)), ` ${number(value, 2)}`));
  return el("details", { class: "strongest" }, el("summary", {}, `Strongest ${ofChains() ? "steps" : ofClaims() ? "passages" : "units"}, in numbers`), el("ol", {}, items));
}

// Half of the sets that tie are in the win rate, but nobody beat them.
function outcome(cell, n) {
  const rate = `${percent(cell.win_rate)} of ${n} random sets`;
  if (cell.ties === 0) return `Beats ${rate}`;
  const counted = run().strict ? `Beats ${rate}, ties counted as lost` : `Wins against ${rate}, ties counted half`;
  return `${counted} (${percent(cell.ties, cell.ties < 0.01 ? 1 : 0)} tie)`;
}

// Replies, and texts of rows with words of their own: units and fills do not say what these show.
function wording(example) {
  const found = operators().map((operator) => {
    const cell = cellOf(example, placeOf(operator));
    if (cell.error !== undefined || cell.text === null) return null;
    const row = (index) => (index === null || index === undefined ? null : example.texts[index]);
    return el(
      "section",
      {},
      el("h5", {}, `Under ${operator}`),
      el(
        "dl",
        { class: "rows" },
        counterfactual(example, `${chosen()} ${act()}`, row(cell.text), cell.score, "own"),
        cell.random.map((text, index) => counterfactual(example, `random ${ofChains() ? "steps" : "set"} ${act()}`, row(text), example.nulls[cell.null][index], "")),
      ),
    );
  }).filter(Boolean);
  return found.length ? el("div", {}, el("h4", {}, ofChains() ? "Replies" : "Texts of rows"), el("div", { class: "operators" }, found)) : null;
}

const act = () => (!keeps() ? "removed" : ofChains() || ofClaims() ? "alone" : "kept");

// A text that is written from the right stays so where its first word has become "<unk>".
const FROM_RIGHT = /^\P{L}*[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

function counterfactual(example, name, text, score, kind) {
  const shown = text === null ? "–" : text.trim() === "" ? "(nothing)" : text.trim();
  const dir = FROM_RIGHT.test(textOf(example)) ? "rtl" : "auto";
  return [el("dt", { class: kind }, name, " ", el("b", {}, shownScore(score))), el("dd", { class: kind, dir, lang: run().language }, shown)];
}

// --- moving about -------------------------------------------------------------------------------------------------

// Another attribution or operator is looked at for the same example; another filter or order starts at the top.
function update({ keep }) {
  fillSelectors();
  search();
  const still = keep && state.found.some((item) => item.example === state.example);
  state.page = 0;
  choose(still ? state.example : (begun() ?? null));
}

// The most telling example where it is among those found and nothing else is asked for; else the first.
function begun() {
  const plain = controls.filter.value === "all" && controls.sort.value === "data" && !controls.query.value;
  return (plain ? state.found.find(({ example }) => example.id === run().opens) : undefined)?.example ?? state.found[0]?.example;
}

function step(by) {
  const place = state.found.findIndex((item) => item.example === state.example);
  const next = state.found[Math.min(Math.max(place + by, 0), state.found.length - 1)];
  if (next) choose(next.example);
}

function turn(name) {
  const options = controls[name].options.length;
  controls[name].selectedIndex = (controls[name].selectedIndex + 1) % options;
  update({ keep: true });
}

function openRun(index) {
  state.run = index;
  controls.run.value = String(index);
  state.example = null;
  fillSelectors();
  offerChoices();
}

// Filters and orders by what explanations did, or by signals, are of no use where there is no such thing.
const OF_EXPLANATIONS = ["anti", "disagree", "low", "high", "gap"];

function offerChoices() {
  for (const select of [controls.filter, controls.sort]) {
    for (const option of select.options) {
      const idle = (ofChains() && option.value === "weak_signal") || (ofClaims() && option.value === "wrong") || (!isExplained() && OF_EXPLANATIONS.includes(option.value));
      option.hidden = option.disabled = idle;
      if (idle && option.selected) select.selectedIndex = 0;
    }
  }
}

function follow() {
  if (location.hash === state.address) return; // the event of an earlier address came late
  const wanted = new URLSearchParams(location.hash.slice(1));
  if (!["example", "run", "query", "set", ...VIEW].some((name) => wanted.has(name))) return;
  const index = Number(wanted.get("run") ?? 0);
  if (data.runs[index] && index !== state.run) openRun(index);
  for (const name of VIEW) controls[name].selectedIndex = 0;
  fillSelectors();
  for (const name of VIEW) {
    const option = [...controls[name].options].find(({ value, disabled }) => value === wanted.get(name) && !disabled);
    if (option) controls[name].value = option.value;
    if (name === "attribution") fillSelectors(); // sizes depend on it
  }
  controls.query.value = wanted.get("query") ?? "";
  search();
  const example = wanted.has("example") ? run().examples.find((each) => each.id === wanted.get("example")) : begun();
  if (!example) {
    byId("count").textContent = wanted.has("example") ? `Example ${wanted.get("example")} is not in this file.` : "0 examples";
    return;
  }
  state.example = example;
  state.own = [...new Set((wanted.get("set") ?? "").split(".").filter(Boolean).map(Number))].filter((unit) => Number.isInteger(unit) && unit >= 0 && unit < example.size).sort((a, b) => a - b);
  choose(example, { scroll: true });
}

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  a: () => turn("attribution"),
  o: () => turn("operator"),
  "/": () => controls.query.focus(),
  "?": () => byId("help").showModal(),
};

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "Escape" && event.target === controls.query) event.target.blur();
  const inList = byId("list").contains(event.target);
  const arrow = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (inList && arrow) {
    event.preventDefault();
    step(arrow);
  } else if (event.target.closest(".pick, [role=slider]") && (event.key.length > 1 || event.key === " ")) {
    pickWithKeys(event);
  } else if (!typing && KEYS[event.key]) {
    event.preventDefault();
    KEYS[event.key]();
  }
}

// Choose the method that is furthest ahead in the example that the page opens with.
function lead() {
  const example = run().examples.find(({ id }) => id === run().opens);
  const worst = (name) => {
    controls.attribution.value = name;
    fillSelectors(); // sizes depend on it
    return Math.min(...operators().map((operator) => cellOf(example, placeOf(operator)).win_rate ?? 0));
  };
  const names = offered("attribution").filter((name) => name !== "random");
  if (!example || names.length < 2) return;
  const rates = names.map(worst);
  controls.attribution.value = names[rates.indexOf(Math.max(...rates))];
  fillSelectors();
}

function start() {
  controls.run.replaceChildren(...data.runs.map((each, index) => el("option", { value: index }, each.title)));
  controls.run.closest(".control").hidden = data.runs.length < 2;
  openRun(0);
  byId("browser").hidden = false;
  controls.run.addEventListener("change", () => { openRun(Number(controls.run.value)); update({ keep: false }); });
  for (const name of SELECTORS) controls[name].addEventListener("change", () => update({ keep: true }));
  for (const name of ["filter", "sort"]) controls[name].addEventListener("change", () => update({ keep: false }));
  controls.query.addEventListener("input", () => update({ keep: false }));
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("page-back").addEventListener("click", () => { state.page -= 1; drawList(); });
  byId("page-on").addEventListener("click", () => { state.page += 1; drawList(); });
  byId("help-open").addEventListener("click", KEYS["?"]);
  document.addEventListener("keydown", pressed);
  byId("detail").addEventListener("click", (event) => { const unit = event.target.closest(".pick"); if (unit && getSelection().isCollapsed) toggled(unit); });
  let width = byId("detail").clientWidth;
  addEventListener("resize", () => { if (state.example && width !== byId("detail").clientWidth) { width = byId("detail").clientWidth; drawSets(state.example); } });
  addEventListener("hashchange", follow);
  lead();
  search();
  show();
  follow();
}

// An example, without a mark in the address: nobody asked for it yet.
function show() {
  state.example = begun() ?? null;
  state.page = Math.max(0, Math.floor(state.found.findIndex(({ example }) => example === state.example) / PAGE));
  drawList();
  drawExample();
}

start();
