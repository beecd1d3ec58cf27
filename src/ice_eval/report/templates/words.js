// What the model saw: the rationales of all methods one above another, and a set that the reader picks.

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const NO_SPACES = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]$/u;
const REMOVING = ["delete", "blank", "truncate"];
const keeps = () => controls.direction.value === "sufficiency";

// Every attribution under the chosen setting; those with sizes of their own have another k.
function methods(example, operator) {
  const wanted = { operator, direction: controls.direction.value, null: controls.null.value };
  return [...controls.attribution.options].map(({ value: name }, index) => {
    const fitting = (each) => each.attribution === name && Object.entries(wanted).every(([key, value]) => String(each[key]) === value);
    const same = run().configurations.findIndex((each) => fitting(each) && String(each.k) === controls.k.value);
    const place = same >= 0 ? same : run().configurations.findIndex(fitting);
    return { name, letter: LETTERS[index] ?? String(index + 1), chosen: name === controls.attribution.value, cell: cellOf(example, place), place };
  });
}

// Names of units: words, numbers of steps, or passages with their sentences.
function unitNames(example) {
  const names = [];
  for (const field of example.fields) {
    const own = field.units.filter((unit) => unit >= 0);
    const passage = field.name.replace(/^passage /, "");
    field.units.forEach((unit, at) => {
      if (unit < 0) return;
      const sentence = own.length > 1 ? `.${own.indexOf(unit) + 1}` : "";
      names[unit] ??= ofChains() ? `step ${unit + 1}` : ofClaims() ? `[${passage}]${sentence}` : field.pieces[at];
    });
  }
  return names;
}

// Columns of words: what no space divides stays together, so that letters join and accents stay in their place.
function columns(example) {
  if (ofChains() || ofClaims()) return unitNames(example).map((text, unit) => [{ unit, text: text.replace("step ", "") }]);
  const found = [[]];
  for (const field of example.fields.filter(({ units }) => units.some((unit) => unit >= 0))) {
    if (found.length > 1) found.push([{ unit: -1, text: "/" }], []);
    field.pieces.forEach((piece, index) => {
      const unit = field.units[index];
      for (const text of unit < 0 ? piece.split(/(?<=\s)|(?=\s)/u) : [piece]) {
        if (text.trim() === "") found.push([]);
        else found.at(-1).push({ unit, text });
        if (NO_SPACES.test(text)) found.push([]);
      }
    });
  }
  return found.filter((column) => column.length);
}

function fillsOf(example, operator, draw) {
  const texts = example.fills[operator];
  if (texts === undefined) return () => (REMOVING.includes(operator.split("@")[0]) ? null : "…");
  const words = texts[draw % texts.length].split("\t");
  return (unit) => (words.length === 1 ? words[0] : words[unit]);
}

// A column as a row shows it: each piece with its text and what became of it.
function shownColumn(column, kept, filled) {
  const found = [];
  for (const { unit, text } of column) {
    const fill = unit < 0 || kept(unit) ? undefined : filled(unit);
    const piece = fill === undefined ? { kind: unit < 0 ? "" : "kept", text, unit } : fill === null ? { kind: "gone", text, unit } : { kind: "filled", text: fill, unit, before: text };
    const last = found.at(-1);
    // A fill is a unit of its own: it must not look like a part of the word beside it.
    const filling = piece.kind === "filled" || last?.kind === "filled";
    if (filling && /[\p{L}\p{M}\p{N}]$/u.test(last?.text ?? "") && /^[\p{L}\p{N}]/u.test(piece.text)) found.push({ kind: "", text: " " });
    found.push(piece);
  }
  return found;
}

// Lines of columns with a row for every method, and one for the reader's own set.
function stackLines(example, operator, width) {
  const all = columns(example);
  const filled = fillsOf(example, operator, 0);
  const row = (units) => {
    const inside = new Set(units);
    return all.map((column) => shownColumn(column, (unit) => inside.has(unit) === keeps(), filled));
  };
  const rows = methods(example, operator).map((each) => ({ ...each, shown: each.cell.error === undefined ? row(example.rationales[each.cell.rationale]) : null }));
  if (state.own.length) rows.push({ name: "your own", letter: "◆", own: true, cell: {}, shown: row(state.own) });
  const wide = all.map((column, at) => Math.max(...[column, ...rows.map(({ shown }) => shown?.[at] ?? [])].map((pieces) => measured(pieces.map(({ text }) => text).join("")))) + 14);
  const lines = [];
  let used = Infinity;
  wide.forEach((w, at) => {
    if (used + w > width) { lines.push([]); used = 0; }
    lines.at(-1).push(at);
    used += w;
  });
  return { all, rows, lines, wide };
}

const brush = document.createElement("canvas").getContext("2d");
function measured(text, font = "600 15px system-ui, sans-serif") {
  brush.font = font;
  return brush.measureText(text).width;
}

function stackPart(example) {
  const operator = controls.operator.value === "all" ? operators()[0] : controls.operator.value;
  const box = el("div", { id: "stack" });
  const label = innerWidth > 830 ? 190 : 96;
  const { all, rows, lines } = stackLines(example, operator, Math.max(150, byId("detail").clientWidth - label - 24));
  const dir = FROM_RIGHT.test(textOf(example)) && !ofChains() && !ofClaims() ? "rtl" : null;
  box.append(
    el("h4", {}, `What the model saw under ${operator}, by method`),
    el("p", { class: "legend" }, el("b", { class: "kept" }, "kept"), el("i", { class: "filled" }, "filled with another"), el("s", { class: "gone" }, "removed"), " The chosen method has the bar; a line under a word is its attribution."),
    ...lines.map((line, at) => el(
      "table",
      { class: "stack", dir, style: `--label: ${label}px` },
      el("caption", {}, lines.length > 1 ? `Line ${at + 1} of ${lines.length}` : "All methods"),
      el("thead", {}, el("tr", {}, el("td", {}), line.map((place) => el("th", { scope: "col", lang: run().language }, all[place].map(({ text }) => text).join(""))))),
      el("tbody", {}, rows.map((row) => stackRow(example, row, line, all))),
    )),
  );
  return box;
}

function stackRow(example, row, line, all) {
  const rate = row.cell.win_rate === undefined ? null : el("small", {}, ` ${percent(row.cell.win_rate)}`);
  const values = (example.vectors[row.name] ?? []).map((value) => value ?? 0);
  const largest = Math.max(...values.map(Math.abs), 0);
  const name = el("th", { scope: "row", dir: "ltr" }, el("span", { class: "letter" }, row.letter), " ", el("bdi", { title: row.name }, row.name), rate);
  const cells = row.shown === null
    ? [el("td", { colspan: line.length, class: "none" }, row.cell.error)]
    : line.map((place) => el("td", { lang: run().language, class: all[place].length > 1 ? "joined" : null }, row.shown[place].map((piece) => marked(piece, row.own ? 0 : values[piece.unit] ?? 0, largest))));
  return el("tr", { "data-method": row.own ? null : row.name, class: row.own ? "mine" : null, "aria-current": row.chosen ? "true" : null }, name, cells);
}

function marked({ kind, text, unit, before }, value, largest) {
  if (!kind) return text;
  const side = value < 0 ? "against" : "support";
  const style = largest > 0 ? `--${side}: ${Math.round((100 * Math.abs(value)) / largest)}%` : null;
  const node = el({ kept: "b", filled: "i", gone: "s" }[kind], { class: kind, "data-unit": unit, style, title: before === undefined ? null : `in place of ${before}` }, text);
  if (value < 0) node.classList.add("against");
  return node;
}

// --- a set of one's own -------------------------------------------------------------------------------------------

const overlap = (a, b) => { const both = a.filter((unit) => b.includes(unit)).length; return both / (a.length + b.length - both); };

// Size and null of a recorded set, where they are not the chosen ones.
function settingOf(configuration) {
  const told = Object.entries({ k: "size", null: "null" }).filter(([name]) => String(configuration[name]) !== controls[name].value);
  return told.length ? ` (${told.map(([name, what]) => `${what}: ${word(name, String(configuration[name]))}`).join(", ")})` : "";
}

// Random sets that match more than a common size belong to one method.
function ownerOf({ attribution, k, null: matched }) {
  const shared = matched === "size" && Number.isFinite(parseFloat(k));
  return shared || attribution === controls.attribution.value ? "" : ` of ${attribution}`;
}

// The recorded set that shares most: of the chosen setting before others, a rationale before random sets.
function neighbour(example, own, operator) {
  const current = placeOf(operator);
  const fitting = (place) => run().configurations[place].operator === operator && run().configurations[place].direction === controls.direction.value;
  const places = [current, ...run().configurations.keys()].filter((place, at) => place >= 0 && fitting(place) && (at === 0 || place !== current));
  let best = null;
  const consider = (found) => { const share = overlap(own, found.units); if (best === null || share > best.share) best = { ...found, share }; };
  for (const place of places) {
    const cell = cellOf(example, place);
    if (cell.error !== undefined) continue;
    const configuration = run().configurations[place];
    const setting = settingOf(configuration);
    consider({ units: example.rationales[cell.rationale], score: cell.score, win_rate: cell.win_rate, ties: cell.ties, n: example.nulls[cell.null].length, name: `the ${chosen()} of ${configuration.attribution}${setting}` });
    const sets = randomSets(example, cell);
    sets.forEach((each, at) => consider({ ...each, name: `random set ${each.draw + 1}${ownerOf(configuration)}${setting}`, rest: () => sets.filter((_, other) => other !== at) }));
  }
  if (best?.rest) Object.assign(best, wins(best.score, best.rest()));
  return best;
}

function wins(score, others) {
  const side = keeps() ? 1 : -1;
  const beaten = others.filter((other) => side * score > side * other.score).length;
  const tied = others.filter((other) => score === other.score).length;
  const n = others.length;
  return { n, win_rate: n ? (beaten + (run().strict ? 0 : tied / 2)) / n : null, ties: n ? tied / n : 0 };
}

function ownSentences(example) {
  return operators().map((operator) => {
    const near = neighbour(example, state.own, operator);
    if (near === null) return null;
    const place = `${ofChains() ? "" : "score "}${shownScore(near.score)}, ${near.win_rate === null ? "with no other set to compare with" : outcome(near, near.n).replace(/^./, (first) => first.toLowerCase())}`;
    const shared = near.units.filter((unit) => state.own.includes(unit)).length;
    if (near.share === 1) return `Under ${operator}, this very set was scored: it is ${near.name}; ${place}.`;
    return `Under ${operator}, the nearest recorded set is ${near.name} (${shared} shared, ${near.units.length} in all, overlap ${percent(near.share)}): ${place}.`;
  }).filter(Boolean);
}

function ownPart(example) {
  const box = el("div", { id: "own", role: "status", "aria-live": "polite" });
  const units = ofChains() ? "steps" : ofClaims() ? "passages" : "words";
  if (!state.own.length) {
    box.append(el("p", {}, `Your own rationale: click ${units}, or move with the arrow keys and press Space, to see where a set of your own is.`));
    return box;
  }
  const names = unitNames(example);
  const clear = el("button", { type: "button" }, "Clear");
  clear.addEventListener("click", () => { pick(example, []); byId("detail").querySelector(".pick[tabindex='0']")?.focus(); });
  const sentences = ownSentences(example);
  const neighbours = sentences.some((each) => each.includes("nearest"));
  box.append(
    el("p", {}, el("b", {}, `◆ Your own ${chosen()}: `), state.own.map((unit, at) => [at ? ", " : "", el("bdi", {}, short(names[unit] ?? "", 60))]), " ", clear),
    el("ul", {}, sentences.map((each) => el("li", {}, each))),
    ...(neighbours ? [el("p", { class: "note" }, "This page has no model: the neighbour was scored, not your own set.")] : []),
  );
  return box;
}

function pick(example, units) {
  state.own = [...units].sort((a, b) => a - b);
  const own = new Set(state.own);
  for (const node of byId("detail").querySelectorAll(".pick")) {
    const inside = own.has(Number(node.dataset.unit));
    node.setAttribute("aria-pressed", inside);
    node.classList.toggle("picked", inside);
  }
  drawSets(example);
  remember();
}

// What depends on the reader's own set is drawn anew; the text, which may have the focus, is not.
function drawSets(example) {
  byId("own")?.replaceWith(ownPart(example));
  byId("stack")?.replaceWith(stackPart(example));
  byId("nulls")?.replaceWith(nullsPart(example));
}

const pickable = (unit) => ({ "data-unit": unit, role: "button", tabindex: -1, "aria-pressed": String(state.own.includes(unit)) });

function toggled(target) {
  const unit = Number(target.dataset.unit);
  pick(state.example, state.own.includes(unit) ? state.own.filter((each) => each !== unit) : [...state.own, unit]);
}

// One tab stop for all units; arrow keys move between them, Space or Enter picks.
function pickWithKeys(event) {
  const target = event.target.closest(".pick");
  if (!target) return;
  const all = [...byId("detail").querySelectorAll(".pick")];
  const rtl = getComputedStyle(target).direction === "rtl" ? -1 : 1;
  const by = { ArrowRight: rtl, ArrowLeft: -rtl, ArrowDown: 1, ArrowUp: -1 }[event.key];
  const next = by ? all[all.indexOf(target) + by] : undefined;
  if (event.key === "Escape" && state.own.length) pick(state.example, []);
  else if (event.key === " " || event.key === "Enter") toggled(target);
  else if (!by) return;
  event.preventDefault();
  if (!next) return;
  all.forEach((each) => { each.tabIndex = each === next ? 0 : -1; });
  next.focus();
}
