// Draws the figures. The library before this script has set window.vegaEmbed.
const { themes, specs } = JSON.parse(document.getElementById("figure-data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const views = new Map();
let latest = 0;

function theme() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen : dark.matches ? "dark" : "light";
}

// `ast` makes Vega interpret its expressions, so that the page's policy needs not allow eval.
const options = { actions: false, ast: true, renderer: "svg", defaultStyle: false };

// Figures use the width of the page: panels grow with it, up to a size at which they still look like one figure.
function widened(spec, box) {
  const room = box.clientWidth - 200; // labels and legends
  const inner = spec.spec ?? spec;
  if (room < 500 || typeof inner.width !== "number") return spec;
  const columns = spec.facet?.column ? new Set(spec.datasets[spec.data.name].map((row) => row.column)).size : 1;
  const width = Math.max(inner.width, Math.min(860, Math.floor(room / columns) - 24));
  return spec.spec ? { ...spec, spec: { ...inner, width } } : { ...spec, width };
}

async function draw(name = theme()) {
  const own = ++latest;
  for (const box of document.querySelectorAll("[data-figure]")) {
    views.get(box)?.finalize();
    const spec = { ...widened(specs[box.dataset.figure], box), config: themes[name], description: box.getAttribute("aria-label") };
    // Into a box of its own: Vega names what it draws into, and the region keeps its name.
    views.set(box, await window.vegaEmbed(box.firstElementChild, spec, { ...options, tooltip: { theme: name } }));
    // Parts without a name are decoration; the figure has one.
    for (const part of box.querySelectorAll("[role=graphics-symbol]:not([aria-label])")) part.removeAttribute("role");
    if (own !== latest) return; // asked to draw in other colours meanwhile
  }
  document.documentElement.dataset.drawn = name;
}

// On white, whatever the page's colours are: what is saved goes into documents.
async function save(box, kind) {
  const spec = { ...specs[box.dataset.figure], config: { ...themes.light, background: "#ffffff" } };
  const drawn = el("div", { style: `width: ${box.clientWidth}px` });
  const { view, finalize } = await window.vegaEmbed(drawn, spec, options);
  saveAs(`${box.dataset.figure}.${kind}`, await view.toImageURL(kind, kind === "png" ? 3 : 1));
  finalize();
}

for (const box of document.querySelectorAll("[data-figure]")) {
  addTools(box.closest("figure").firstElementChild, box.getAttribute("aria-label"), { SVG: () => save(box, "svg"), PNG: () => save(box, "png") });
}
new MutationObserver(() => draw()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
dark.addEventListener("change", () => draw());
// What was folded had no width.
document.addEventListener("toggle", (event) => { if (event.target.open && event.target.querySelector("[data-figure]")) draw(); }, true);
// Paper is white, whatever the screen is.
addEventListener("beforeprint", () => draw("light"));
addEventListener("afterprint", () => draw());
draw();
