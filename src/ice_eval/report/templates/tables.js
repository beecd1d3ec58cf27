// Tools of every table: sort, filter, copy, download. Without this script tables are plain.

// The numbers of a cell: none, one, the limits of an interval, or one and its limits; `data-value` has them unrounded.
const NUMBER = /[+\-−]?\d[\d,]*(?:\.\d+)?/g;
function numbersIn(cell) {
  if (cell.dataset.value !== undefined) return cell.dataset.value.split(" ").filter(Boolean).map(Number);
  const [, before, limits] = /^([^[]*)(?:\[(.*)\])?/.exec(cell.textContent.trim());
  const texts = [...(before.match(NUMBER)?.slice(0, 1) ?? []), ...(limits ? limits.split(", ") : [])];
  return texts.map((text) => Number(text.replaceAll(",", "").replace("−", "-")));
}

// A column as data: numbers without units, which move to the header; an interval has two columns.
const ENDS = { 2: [", low", ", high"], 3: ["", ", low", ", high"] };
function dataColumns(header, cells, isNumber) {
  const shown = cells.map((cell) => cell.textContent.trim());
  if (!isNumber) return [[header, ...shown]];
  const numbers = cells.map(numbersIn);
  const isRaw = cells.some((cell) => cell.dataset.value !== undefined);
  const unit = isRaw ? undefined : ["%", "pp"].find((each) => shown.some((text) => text.endsWith(` ${each}`)));
  const ends = ENDS[Math.max(...numbers.map((each) => each.length))] ?? [""];
  return ends.map((end, index) => [`${header}${end}${unit ? ` (${unit})` : ""}`, ...numbers.map((each) => each[index] ?? "")]);
}

// A spreadsheet reads a text that begins with one of these as a formula.
const csvCell = (value) => {
  const text = typeof value === "string" && /^[=+\-@\t]/.test(value) ? `'${value}` : String(value);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", { "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

function toolsOf(table) {
  const title = table.caption.textContent;
  const headers = [...table.tHead.rows[0].cells];
  const names = headers.map((header) => header.textContent);
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const isNumber = headers.map((header) => header.classList.contains("number"));
  const shown = () => [...body.rows].filter((row) => !row.hidden);

  const compare = (column) => (a, b) => {
    const texts = [a, b].map((row) => row.cells[column].textContent.trim());
    const values = [a, b].map((row) => numbersIn(row.cells[column])[0]);
    // Cells without a number are last, in both directions.
    if (isNumber[column]) return { missing: values.map((value) => value === undefined), order: values[0] - values[1] };
    return { missing: texts.map((text) => text === "–"), order: texts[0].localeCompare(texts[1], undefined, { numeric: true }) };
  };

  function sort(column) {
    const before = headers[column].getAttribute("aria-sort");
    const [first, second] = isNumber[column] ? ["descending", "ascending"] : ["ascending", "descending"];
    const direction = { [first]: second, [second]: null }[before] ?? (before ? null : first);
    headers.forEach((header) => header.removeAttribute("aria-sort"));
    if (direction) headers[column].setAttribute("aria-sort", direction);
    const sign = direction === "descending" ? -1 : 1;
    const ordered = direction ? [...rows].sort((a, b) => {
      const { missing, order } = compare(column)(a, b);
      return missing[0] || missing[1] ? missing[0] - missing[1] : sign * order;
    }) : rows;
    body.append(...ordered);
  }

  const buttons = headers.map((header, column) => {
    const button = el("button", { type: "button", class: "sort" }, ...header.childNodes);
    button.addEventListener("click", () => sort(column));
    header.append(button);
    return button;
  });
  roving(table.tHead, buttons);

  const said = el("span", { role: "status" });
  const filter = [];
  if (rows.length > 8) {
    const input = el("input", { type: "search", placeholder: "filter rows", "aria-label": `Filter: ${title}`, autocomplete: "off", spellcheck: "false" });
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
      said.textContent = words.length ? `${shown().length} of ${rows.length} rows` : "";
    });
    filter.push(input);
  }

  const cells = () => shown().map((row) => [...row.cells]);
  const asText = () => [names, ...cells().map((row) => row.map((cell) => cell.textContent.trim()))].map((row) => row.join("\t")).join("\n");
  const asCsv = () => {
    const found = cells();
    const columns = names.flatMap((name, index) => dataColumns(name, found.map((row) => row[index]), isNumber[index]));
    return columns[0].map((_, line) => columns.map((column) => csvCell(column[line])).join(",")).join("\n") + "\n";
  };
  addTools(table.closest(".wide") ?? table, title, {
    Copy: async () => {
      await copy(asText());
      said.textContent = "copied";
    },
    CSV: () => saveAs(fileName(title, "csv"), URL.createObjectURL(new Blob(["\ufeff", asCsv()], { type: "text/csv" }))),
  }, said, ...filter);
}

document.querySelectorAll(".wide > table").forEach(toolsOf);
