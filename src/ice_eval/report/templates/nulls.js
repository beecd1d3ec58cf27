// The null under each operator on a common axis: a cell for every random set, marks for the rationale of each method.

const TICKS = [0.0001, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999];
const TALL = 64;
const MARK = 15;
const PAD = 12;
const SIX = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// A character stands for six units, the first of them the lowest bit.
function unitsOf(text) {
  const units = [];
  for (let at = 0; at < text.length; at += 1) {
    const code = SIX.indexOf(text[at]);
    for (let bit = 0; bit < 6; bit += 1) if ((code >> bit) & 1) units.push(6 * at + bit);
  }
  return units;
}

// The random sets of a cell with units, score and number; the null leaves out a set that is the rationale itself.
function randomSets(example, cell) {
  const [left, text] = example.sets[cell.sets];
  const wide = Math.ceil(example.size / 6);
  return example.nulls[cell.null].map((score, index) => ({
    units: unitsOf(text.slice(index * wide, (index + 1) * wide)),
    score,
    draw: index + (left >= 0 && index >= left ? 1 : 0),
  }));
}

// A reply to a chain is one of three things, which have places of their own.
const placed = (score) => (ofChains() ? 1000 * Math.sign(score) : score);

// All that a picture of the nulls needs, at a width in pixels.
function stripsLayout(example, width) {
  const rows = operators().map((operator) => ({ operator, cell: cellOf(example, placeOf(operator)) })).filter(({ cell }) => cell.error === undefined);
  for (const row of rows) {
    row.sets = randomSets(example, row.cell);
    row.methods = methods(example, row.operator).filter(({ cell }) => cell.error === undefined);
    row.near = state.own.length ? neighbour(example, state.own, row.operator) : null;
  }
  const all = rows.flatMap(({ sets, methods, near }) => [...sets, ...methods.map(({ cell }) => cell), ...(near ? [near] : [])]).map(({ score }) => placed(score));
  const middle = all.length ? (Math.min(...all) + Math.max(...all)) / 2 : 0;
  const half = all.length ? Math.max((Math.max(...all) - Math.min(...all)) / 2, 50) * 1.04 : 1;
  const [low, high] = ofChains() ? [-1200, 1200] : [middle - half, middle + half];
  const x = (score) => PAD + ((width - 2 * PAD) * (placed(score) - low)) / (high - low);
  const most = Math.max(1, ...rows.map(({ sets }) => sets.length));
  // An odd number: where all sets tie with the rationale, it is in the middle of their bar and not at an edge.
  const bins = ofChains() ? 9 : Math.min(Math.max(7, Math.floor((width - 2 * PAD) / 12)), Math.max(9, Math.ceil(2.5 * Math.sqrt(most)))) | 1;
  rows.forEach((row) => Object.assign(row, cellsOf(row.sets, bins, x, width), { marks: marksOf(row, x) }));
  return { rows, x, ticks: ticksOf(low, high, x), width };
}

function cellsOf(sets, bins, x, width) {
  const wide = (width - 2 * PAD) / bins;
  const counts = new Array(bins).fill(0);
  const order = sets.map((_, index) => index).sort((a, b) => sets[a].score - sets[b].score);
  const cells = order.map((index) => {
    const bin = Math.min(bins - 1, Math.max(0, Math.floor((x(sets[index].score) - PAD) / wide)));
    counts[bin] += 1;
    return { index, bin, level: counts[bin] - 1 };
  });
  const high = Math.min(12, TALL / Math.max(...counts, 1));
  return { order, cells: cells.map(({ index, bin, level }) => ({ index, x: PAD + bin * wide, wide, y: TALL - (level + 1) * high, high })) };
}

// Marks above the cells: letters of methods, in as many lines as they need.
function marksOf(row, x) {
  const ends = [];
  const found = row.methods.map(({ letter, name, chosen, cell }) => ({ letter, name, chosen, at: x(cell.score) }));
  if (row.near) found.push({ letter: "◆", name: "the recorded set next to yours", at: x(row.near.score) });
  found.sort((a, b) => a.at - b.at);
  for (const mark of found) {
    mark.level = ends.findIndex((end) => mark.at - end > 15);
    if (mark.level < 0) mark.level = ends.length;
    ends[mark.level] = mark.at;
  }
  return found;
}

function nullsPart(example) {
  const box = el("div", { id: "nulls" });
  const described = `Scores of random ${ofChains() ? "sets of steps" : "sets"} under each operator`;
  const found = stripsLayout(example, Math.min(820, Math.max(280, byId("detail").clientWidth - (innerWidth > 830 ? 250 : 30))));
  const lost = operators().filter((name) => !found.rows.some(({ operator }) => operator === name));
  box.append(
    el("h4", {}, described),
    ...found.rows.map((row, at) => strip(example, row, found, at === found.rows.length - 1)),
    ...lost.map((name) => el("p", { class: "missing" }, `Under ${name} there are no numbers: ${cellOf(example, placeOf(name)).error}.`)),
    el("p", { class: "seen", id: "seen" }, SEEN),
    el("p", { class: "legend" }, `${capital(scoreName())} across, the same for all; ${keeps() ? "further right" : "further left"} is better. ${axisWords()}`),
  );
  return box;
}

const SEEN = "Point at a random set, or move through them with the arrow keys, to see what it holds.";
const axisWords = () => `A cell is a random set; letters are the ${chosen()} of methods, ▼ that of ${controls.attribution.value}.`;

function strip(example, row, found, last) {
  const { operator, cell } = row;
  const top = MARK * Math.max(1, ...row.marks.map(({ level }) => level + 1)) + 10;
  const picture = svg(
    "svg",
    {
      class: "null", width: found.width, height: top + TALL + (last ? 22 : 4), viewBox: `0 0 ${found.width} ${top + TALL + (last ? 22 : 4)}`,
      role: "slider", tabindex: 0, "data-operator": operator, "aria-label": `Random sets under ${operator}, by score`, "aria-orientation": "horizontal",
      "aria-valuemin": 1, "aria-valuemax": row.sets.length, "aria-valuenow": 1, "aria-valuetext": described(row),
    },
    found.ticks.map(({ at }) => svg("line", { class: "grid", x1: at, x2: at, y1: top, y2: top + TALL })),
    row.cells.map((each) => svg("rect", { class: "bar", "data-index": each.index, x: each.x + 0.5, y: top + each.y + 0.5, width: each.wide - 1, height: Math.max(each.high - 1, 0.8) })),
    svg("line", { class: "axis", x1: PAD, x2: found.width - PAD, y1: top + TALL + 0.5, y2: top + TALL + 0.5 }),
    last ? found.ticks.map(({ at, text }) => svg("text", { class: "tick", x: Math.min(Math.max(at, 4 * text.length), found.width - 4 * text.length), y: top + TALL + 16 }, text)) : null,
    row.marks.map((mark) => markOf(mark, top)),
  );
  const show = (index) => showSet(example, row, index, picture);
  let at = -1;
  picture.addEventListener("pointermove", (event) => { if (event.target.dataset.index) show(Number(event.target.dataset.index)); });
  picture.addEventListener("pointerdown", (event) => { if (event.target.dataset.index) show(Number(event.target.dataset.index)); });
  picture.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hideSet(picture); });
  picture.addEventListener("blur", () => hideSet(picture));
  picture.addEventListener("keydown", (event) => {
    const wanted = { ArrowRight: at + 1, ArrowUp: at + 1, ArrowLeft: Math.max(at, 1) - 1, ArrowDown: Math.max(at, 1) - 1, Home: 0, End: row.order.length - 1 }[event.key];
    if (wanted === undefined) return;
    event.preventDefault();
    at = Math.min(wanted, row.order.length - 1);
    picture.setAttribute("aria-valuenow", at + 1);
    show(row.order[at]);
  });
  const effects = cell.effect_size === null || ofChains() ? "" : `, effect ${number(cell.effect_size)}`;
  const line = `${capital(chosen())} ${act()}: ${shownScore(cell.score)}. ${outcome(cell, row.sets.length)}; p = ${cell.p.toFixed(3)}${effects}.`;
  return el(
    "section",
    { class: "strip" },
    el("div", {}, el("h5", {}, `Under ${operator}`), el("p", { class: "outcome" }, line, cell.disagree === 1 ? el("em", {}, " The operators disagree here.") : null), ofChains() ? tally(row.sets.map(({ score }) => score)) : null),
    picture,
  );
}

function markOf({ letter, name, chosen, at, level }, top) {
  const y = top - 8 - MARK * level;
  return svg(
    "g",
    { class: chosen ? "own" : "other" },
    svg("title", {}, name),
    svg("line", { x1: at, x2: at, y1: chosen ? top - 8 : y + 1, y2: chosen ? top + TALL : top + 3 }),
    chosen ? svg("path", { d: `M${at - 5} ${top - 8}h10l-5 8z` }) : null,
    svg("text", { x: at, y: y - 1 }, letter),
  );
}

const described = ({ sets, cell }) =>
  `${sets.length} random sets, from ${shownScore(Math.min(...sets.map(({ score }) => score)))} to ${shownScore(Math.max(...sets.map(({ score }) => score)))}; the ${chosen()}: ${shownScore(cell.score)}`;
const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);

// A random set: its units in the text, its number and score in words.
function showSet(example, row, index, picture) {
  const { units, score, draw } = row.sets[index];
  hideSet(picture);
  picture.querySelector(`[data-index="${index}"]`).classList.add("on");
  for (const unit of units) byId("detail").querySelectorAll(`[data-unit="${unit}"]`).forEach((node) => node.classList.add("drawn"));
  const names = unitNames(example);
  const said = [`Random set ${draw + 1} under ${row.operator}, ${act()}: `, el("b", {}, shownScore(score)), " · ", units.map((unit, at) => [at ? ", " : "", el("bdi", {}, short(names[unit] ?? "", 60))])];
  byId("seen").replaceChildren(...said.flat(Infinity));
  picture.setAttribute("aria-valuetext", byId("seen").textContent);
}

function hideSet(picture) {
  picture.querySelectorAll(".on").forEach((node) => node.classList.remove("on"));
  byId("detail").querySelectorAll(".drawn").forEach((node) => node.classList.remove("drawn"));
  byId("seen").textContent = SEEN;
}

// Ticks that have room; where none falls inside, the two ends.
function ticksOf(low, high, x) {
  if (ofChains()) return [-1000, 0, 1000].map((at) => ({ at: x(at), text: replied(at) }));
  let shown = TICKS.map((p) => ({ at: 1000 * Math.log(p / (1 - p)), text: percent(p, p === 0.9999 || p === 0.0001 ? 2 : p > 0.99 || p < 0.01 ? 1 : 0) }));
  if (ofClaims()) shown = evenTicks(low, high);
  shown = shown.filter(({ at }) => at > low && at < high);
  if (shown.length < 2) shown = [low + 0.06 * (high - low), high - 0.06 * (high - low)].map((at) => ({ at, text: shownScore(at) }));
  let last = -Infinity;
  return shown.map(({ at, text }) => ({ at: x(at), text })).filter(({ at }) => at - last >= 44 && (last = at));
}

// Round numbers on a scale of log-probabilities.
function evenTicks(low, high) {
  const step = [20, 50, 100, 200, 500, 1000, 2000, 5000].find((each) => (high - low) / each <= 6) ?? 10000;
  const count = Math.floor(high / step) - Math.ceil(low / step) + 1;
  return Array.from({ length: count }, (_, index) => (Math.ceil(low / step) + index) * step).map((at) => ({ at, text: decimal(at) }));
}
