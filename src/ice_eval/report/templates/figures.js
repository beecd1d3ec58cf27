// Draws the figures. The library before this script has set window.vegaEmbed.
const { themes, specs } = JSON.parse(document.getElementById("figure-data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");

function theme() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen : dark.matches ? "dark" : "light";
}

// `ast` makes Vega interpret its expressions, so that the page's policy needs not allow eval.
const options = { actions: false, ast: true, renderer: "svg", defaultStyle: false, tooltip: false };

async function draw(name = theme()) {
  for (const box of document.querySelectorAll("[data-figure]")) {
    const spec = { ...specs[box.dataset.figure], config: themes[name] };
    await window.vegaEmbed(box, spec, options);
  }
  document.documentElement.dataset.drawn = name;
}

new MutationObserver(() => draw()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
dark.addEventListener("change", () => draw());
// Paper is white, whatever the screen is.
addEventListener("beforeprint", () => draw("light"));
addEventListener("afterprint", () => draw());
draw();
