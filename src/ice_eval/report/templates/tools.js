// A bar of small buttons above a table or a figure.

// One tab stop for all controls of a group; arrow keys move between them.
function roving(group, controls) {
  controls.forEach((control, index) => { control.tabIndex = index ? -1 : 0; });
  group.addEventListener("keydown", (event) => {
    const at = controls.indexOf(event.target);
    const next = controls[at + { ArrowRight: 1, ArrowLeft: -1 }[event.key]];
    if (at < 0 || !next) return;
    event.preventDefault();
    controls.forEach((control) => { control.tabIndex = control === next ? 0 : -1; });
    next.focus();
  });
}

function addTools(before, title, actions, ...others) {
  const buttons = Object.entries(actions).map(([name, act]) => {
    const button = el("button", { type: "button", "aria-label": `${name}: ${title}` }, name);
    button.addEventListener("click", () => act());
    return button;
  });
  const bar = el("div", { role: "toolbar", "aria-label": `Tools: ${title}` }, ...buttons);
  roving(bar, buttons);
  before.before(el("div", { class: "tools" }, ...others, bar));
}

function saveAs(name, url) {
  el("a", { href: url, download: name }).click();
  if (url.startsWith("blob:")) setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

const fileName = (title, kind) => `${title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "table"}.${kind}`;
