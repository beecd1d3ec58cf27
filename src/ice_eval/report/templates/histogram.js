// The null as a histogram: log-odds across, so that scores near 0 and 1 stay apart.

const WIDTH = 320;
const HEIGHT = 96;
const TICKS = [0.0001, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999];

function histogram(scores, own, keeps) {
  const all = [...scores, own];
  const middle = (Math.min(...all) + Math.max(...all)) / 2;
  const half = Math.max((Math.max(...all) - Math.min(...all)) / 2, 50) * 1.04;
  const [low, high] = [middle - half, middle + half];
  const x = (score) => 8 + ((WIDTH - 16) * (score - low)) / (high - low);
  // An odd number: where all sets tie with the rationale, it stands in the middle of their bar and not at an edge.
  const bins = new Array(Math.min(21, Math.max(7, Math.ceil(1.6 * Math.sqrt(scores.length)) | 1))).fill(0);
  for (const score of scores) bins[Math.min(bins.length - 1, Math.floor((bins.length * (score - low)) / (high - low)))] += 1;
  const tallest = Math.max(...bins);
  const wide = (WIDTH - 16) / bins.length;
  const bars = bins.map((count, index) => {
    const tall = (62 * count) / tallest;
    return svg("rect", { class: "bar", x: 8 + index * wide + 0.5, y: 76 - tall, width: wide - 1, height: tall });
  });
  const described =
    `Scores of ${scores.length} random sets, from ${shownScore(Math.min(...scores))} to ${shownScore(Math.max(...scores))}; ` +
    `the ${chosen()}: ${shownScore(own)}.`;
  const picture = svg(
    "svg",
    { class: "null", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": described },
    bars,
    svg("line", { class: "axis", x1: 8, x2: WIDTH - 8, y1: 76.5, y2: 76.5 }),
    ticks(low, high, x),
    svg("line", { class: "own", x1: x(own), x2: x(own), y1: 6, y2: 76 }),
    svg("path", { class: "own", d: `M${x(own) - 5} 2h10l-5 8z` }),
  );
  const better = keeps ? "further right is better" : "further left is better";
  return el("figure", { class: "null" }, picture, el("figcaption", {}, `${scoreName()}; ▼ the ${chosen()}, bars the random sets; ${better}`));
}

// Ticks that have room; where none falls inside, the two ends.
function ticks(low, high, x) {
  if (ofClaims()) return drawnTicks(evenTicks(low, high), x);
  let shown = TICKS.map((p) => ({ at: 1000 * Math.log(p / (1 - p)), text: percent(p, p === 0.9999 || p === 0.0001 ? 2 : p > 0.99 || p < 0.01 ? 1 : 0) }));
  shown = shown.filter(({ at }) => at > low && at < high);
  if (shown.length < 2) shown = [low + 0.06 * (high - low), high - 0.06 * (high - low)].map((at) => ({ at, text: shownScore(at) }));
  return drawnTicks(shown, x);
}

// Round numbers on a scale of log-probabilities.
function evenTicks(low, high) {
  const step = [20, 50, 100, 200, 500, 1000, 2000, 5000].find((each) => (high - low) / each <= 6) ?? 10000;
  const count = Math.floor(high / step) - Math.ceil(low / step) + 1;
  return Array.from({ length: count }, (_, index) => (Math.ceil(low / step) + index) * step).map((at) => ({ at, text: decimal(at) }));
}

function drawnTicks(shown, x) {
  let last = -Infinity;
  const marks = [];
  for (const { at, text } of shown) {
    if (x(at) - last < 40) continue;
    last = x(at);
    const place = Math.min(Math.max(last, 20), WIDTH - 22);
    marks.push(svg("line", { class: "axis", x1: last, x2: last, y1: 76, y2: 80 }), svg("text", { x: place, y: 92 }, text));
  }
  return marks;
}
