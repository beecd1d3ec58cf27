// Elements of a page, and numbers as they are written in it.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

const probability = (thousandths) => 1 / (1 + Math.exp(-thousandths / 1000));
const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;

// Near 0 and 1 a whole percent hides what is compared.
function chance(thousandths) {
  const p = probability(thousandths);
  return percent(p, p > 0.99 || p < 0.01 ? 2 : p > 0.95 || p < 0.05 ? 1 : 0);
}

// Two decimals with a minus sign that is as wide as a digit.
function decimal(thousandths) {
  const value = Math.round(thousandths / 10) / 100;
  return `${value < 0 ? "−" : ""}${Math.abs(value).toFixed(2)}`;
}

const number = (value, digits = 2) =>
  value === null ? "–" : `${value < 0 ? "−" : "+"}${Math.abs(value).toPrecision(digits)}`;
