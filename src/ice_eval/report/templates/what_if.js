// Questions to the model of a run: read a text, pick units, compare them with random sets.
{
  const at = (id) => document.getElementById(id);
  const form = at("question");
  const areas = [...form.querySelectorAll("textarea")];
  const fields = () => Object.fromEntries(areas.map((area) => [area.dataset.name, area.value]));
  const two = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
  const rate = (share) => percent(share, share > 0.999 || share < 0.001 ? 3 : 1);
  let read = null; // the fields that the units belong to
  let isReady = form.dataset.ready === "yes";
  let asked = 0;

  async function ask(units) {
    const turn = ++asked;
    at("said").textContent = isReady ? "asking the model …" : "loading model …";
    const body = JSON.stringify({ fields: fields(), units, operator: at("operator").value });
    let found;
    try {
      const reply = await fetch(location.pathname, { method: "POST", headers: { "Content-Type": "application/json" }, body });
      found = await reply.json();
    } catch {
      found = { error: "The server does not answer; start `ice view` again." };
    }
    if (turn !== asked) return null; // a later question has been asked
    at("said").textContent = found.error ?? "";
    if (found.error) return null;
    isReady = true;
    at("said").textContent = `The model predicts “${found.label}” with ${rate(found.probability)} (log-odds ${two(found.log_odds)}).${found.truncated ? " The text is cut at the longest input of the model." : ""}`;
    return found;
  }

  const picked = () => [...at("units").querySelectorAll('[aria-pressed="true"]')].map((unit) => Number(unit.dataset.unit));

  function showUnits(found) {
    const lines = found.fields.filter((field) => field.pieces.some(([, unit]) => unit >= 0)).map((field) =>
      el("p", { class: "text", dir: "auto", role: "group", "aria-label": `Units of ${field.name}` }, field.pieces.map(([text, unit]) =>
        unit < 0 ? text : el("button", { type: "button", class: "pick", "aria-pressed": "false", "data-unit": unit }, text))));
    at("units").replaceChildren(...lines);
    lines.forEach((line) => roving(line, [...line.querySelectorAll("button")]));
    at("picking").hidden = false;
    at("answer").replaceChildren();
  }

  // Every random set is a dot on the scale of log-odds, and the own set a line.
  function dots(found) {
    const all = [...found.null, found.log_odds];
    const middle = (Math.min(...all) + Math.max(...all)) / 2;
    const half = Math.max(Math.max(...all) - middle, 0.05);
    const [low, high] = [middle - half, middle + half];
    const x = (value) => 14 + (292 * (value - low)) / (high - low);
    const stacks = {};
    const marks = found.null.map((value) => {
      const place = Math.round(x(value) / 6);
      stacks[place] = (stacks[place] ?? 0) + 1;
      return svg("circle", { class: "bar", cx: 6 * place, cy: 74 - 5 * Math.min(stacks[place], 13), r: 2.4 });
    });
    const described = `Log-odds of ${found.null.length} random sets, from ${two(Math.min(...found.null))} to ${two(Math.max(...found.null))}; the picked units: ${two(found.log_odds)}.`;
    const ends = [[low, "start"], [high, "end"]].map(([value, anchor]) => svg("text", { x: x(value), y: 92, style: `text-anchor: ${anchor}` }, two(value)));
    return el("figure", { class: "null" },
      svg("svg", { class: "null", viewBox: "0 0 320 96", role: "img", "aria-label": described }, marks,
        svg("line", { class: "axis", x1: 8, x2: 312, y1: 76.5, y2: 76.5 }), svg("line", { class: "own", x1: x(found.log_odds), x2: x(found.log_odds), y1: 2, y2: 76 }), ends),
      el("figcaption", {}, `log-odds of the label; the line is the picked units, dots are random sets; further ${found.direction === "sufficiency" ? "right" : "left"} is better`));
  }

  function showAnswer({ label, compared }) {
    const act = compared.direction === "sufficiency" ? "kept" : "removed";
    const ties = compared.tie_rate > 0 ? `, ${percent(compared.tie_rate)} tie` : "";
    at("answer").replaceChildren(
      el("h3", {}, `${compared.units.length} unit${compared.units.length > 1 ? "s" : ""} ${act}, under ${compared.operator}`),
      el("p", { class: "said" }, `${compared.units.length > 1 ? "They win" : "It wins"} against ${percent(compared.win_rate)} of ${compared.null.length} random sets of the same size${ties} (p = ${compared.p_value.toFixed(3)}).`),
      el("dl", { class: "facts" }, ...[[`probability of “${label}”`, rate(compared.probability)], ["log-odds", two(compared.log_odds)]].map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
      dots(compared));
  }

  async function readText() {
    const found = await ask([]);
    if (!found) return;
    read = JSON.stringify(fields());
    showUnits(found);
  }

  async function compareUnits() {
    const units = picked();
    if (JSON.stringify(fields()) !== read) return readText();
    if (!units.length) { at("said").textContent = "Pick a unit first."; return; }
    const found = await ask(units);
    if (found) showAnswer(found);
  }

  function start() {
    const chosen = Object.fromEntries(JSON.parse(at("example").selectedOptions[0].dataset.fields));
    areas.forEach((area) => { area.value = chosen[area.dataset.name]; });
    readText();
  }

  at("units").addEventListener("click", (event) => {
    const unit = event.target.closest("button");
    if (unit) unit.setAttribute("aria-pressed", unit.getAttribute("aria-pressed") !== "true");
  });
  at("clear").addEventListener("click", () => at("units").querySelectorAll("button").forEach((unit) => unit.setAttribute("aria-pressed", "false")));
  at("compare").addEventListener("click", compareUnits);
  at("example").addEventListener("change", start);
  at("operator").addEventListener("change", () => { if (picked().length) compareUnits(); });
  form.addEventListener("submit", (event) => { event.preventDefault(); readText(); });
  start();
}
