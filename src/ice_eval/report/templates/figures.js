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

async function draw(name = theme()) {
  const own = ++latest;
  for (const box of document.querySelectorAll("[data-figure]")) {
    views.get(box)?.finalize();
    const spec = { ...specs[box.dataset.figure], config: themes[name], description: box.getAttribute("aria-label") };
    // Into a box of its own: Vega names what it draws into, and the region keeps its name.
    views.set(box, await window.vegaEmbed(box.firstElementChild, spec, { ...options, tooltip: { theme: name } }));
    if (own !== latest) return; // asked to draw in other colours meanwhile
  }
  document.documentElement.dataset.drawn = name;
}

new MutationObserver(() => draw()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
dark.addEventListener("change", () => draw());
// Paper is white, whatever the screen is.
addEventListener("beforeprint", () => draw("light"));
addEventListener("afterprint", () => draw());
draw();
