// A chain of thought: every step with what the answer does when it is gone.

const SAID = { true: "another answer", false: "the same answer", null: "cannot be read" };
// The three scores that a reply may have: it is the chain's own answer, another one, or not to be read.
const replied = (score) => SAID[score === 0 ? null : score < 0];
const mattering = (chain) => (chain.remark ? "all" : `${chain.steps.filter((step) => step.effect > 0).length}/${chain.steps.length}`);

function chainParts(example, cell) {
  const [question, chain] = ["question", "chain"].map((name) => example.fields.find((field) => field.name === name));
  const parts = [];
  if (question) parts.push(el("p", { class: "question", dir: "auto" }, question.pieces.join("")));
  if (!example.chain) {
    parts.push(el("p", { class: "missing" }, `Skipped: ${example.skip}.`));
    if (chain) parts.push(el("p", { class: "text", dir: "auto" }, chain.pieces.join("")));
    return parts;
  }
  parts.push(chainFacts(example.chain), stepsLegend(example.chain));
  if (example.chain.remark) parts.push(el("p", { class: "missing" }, example.chain.remark));
  parts.push(steps(example, chain));
  if (!isExplained()) return parts;
  parts.push(el("h4", {}, `What ${controls.attribution.value} says about the steps`), legend(example), fieldText(example, chain, cell));
  if (cell.error !== undefined) parts.push(el("p", { class: "missing" }, `No numbers: ${cell.error}.`));
  else parts.push(...slots(), wording(example), strongest(example));
  return parts;
}

function chainFacts(chain) {
  const judged = chain.right === null ? "" : chain.right ? " (right)" : " (wrong)";
  const pairs = [["own answer", [`${chain.answer}${judged}`]]];
  if (chain.gold !== null) pairs.push(["right answer", [chain.gold]]);
  pairs.push(["whole chain", chain.whole.map(reply)], ["no steps", chain.empty.map(reply)]);
  return el("dl", { class: "facts" }, pairs.map(([name, values]) => el("div", {}, el("dt", {}, name), values.map((value) => el("dd", {}, el("bdi", {}, value))))));
}

function stepsLegend(chain) {
  const how = chain.alone ? "when it alone is removed" : "when it is among the steps removed";
  return el(
    "p",
    { class: "legend" },
    `Number and colour: how much more often the answer changes ${how} (${chain.operator}), from −1 to +1. `,
    el("span", { class: "unit", style: "--support: 70%" }, "+1: always changes"),
    el("span", { class: "unit" }, "0: makes no difference"),
    el("span", { class: "unit against", style: "--against: 70%" }, "−1: changes without it less"),
  );
}

function steps(example, field) {
  const texts = new Map(field.units.map((unit, index) => [unit, field.pieces[index]]));
  return el("ol", { class: "steps" }, example.chain.steps.map((step, index) => stepItem(step, index, texts.get(index) ?? "")));
}

function stepItem(step, index, text) {
  const value = step.effect ?? 0;
  const classes = value < 0 ? "unit against" : "unit";
  const style = `--${value < 0 ? "against" : "support"}: ${Math.round(70 * Math.abs(value))}%`;
  return el(
    "li",
    {},
    el("span", { class: "number" }, `${index + 1}.`),
    el("span", { class: "effect" }, step.effect === null ? "–" : effect(value), el("small", { title: "replies with another answer, of those read" }, ` ${step.changed}/${step.read}`)),
    el("span", { class: classes, style, dir: "auto" }, text),
    el("ul", { class: "replies" }, step.replies.map((each) => el("li", {}, "without it: ", reply(each)))),
  );
}

const effect = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

function reply([text, changed, count]) {
  return el("span", {}, el("q", { dir: "auto" }, text === "" ? "(nothing)" : text), ` ${SAID[changed]}${count > 1 ? `, ${count} times` : ""}`);
}

function tally(scores) {
  const counts = [true, false, null].map((kind) => [SAID[kind], scores.filter((score) => replied(score) === SAID[kind]).length]);
  const said = counts.filter(([, count]) => count > 0).map(([name, count]) => `${count} ${name}`).join(", ");
  return el("p", { class: "tally" }, `${scores.length} random sets of steps ${act()}: ${said}.`);
}
