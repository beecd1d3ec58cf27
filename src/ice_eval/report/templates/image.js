// The chosen example as a picture: drawn by hand on a canvas, since a page cannot take a picture of itself.

const PAPER = { ink: "#1b1f24", soft: "#565d66", line: "#d9dde2", bar: "#aab2bd", on: "#eef4f8", accent: "#0f5f8c", paper: "#ffffff" };
const FONT = "system-ui, sans-serif";
const PICTURE = { width: 1040, pad: 28, label: 190, row: 27, scale: 2 };

function exampleCanvas(example) {
  const operator = controls.operator.value === "all" ? operators()[0] : controls.operator.value;
  const room = PICTURE.width - 2 * PICTURE.pad;
  const strokes = [];
  let y = PICTURE.pad;
  const write = (text, size, style = "soft", weight = "") => {
    for (const line of wrapped(text, `${weight} ${size}px ${FONT}`, room)) {
      const at = y + size;
      strokes.push((pen) => inked(pen, line, PICTURE.pad, at, `${weight} ${size}px ${FONT}`, PAPER[style]));
      y += Math.round(1.45 * size);
    }
  };
  write(`${ofClaims() ? "Claim" : ofChains() ? "Chain" : "Example"} ${example.id}`, 21, "ink", "600");
  write(`${run().title} · ${word("direction", controls.direction.value)}, ${word("k", controls.k.value)}${isExplained() ? ` · under ${operator}` : ""}`, 14);
  if (ofChains() || ofClaims()) write(short(beginning(example), 400), 15, "ink");
  else if (example.target !== null) write(`explained label ${label(example.target)}, gold ${label(example.gold)}`, 14);
  y += 10;
  if (isExplained()) {
    y = paintStack(strokes, example, operator, room, y) + 14;
    y = paintStrips(strokes, example, room, y);
    if (state.own.length) for (const sentence of ownSentences(example)) write(`◆ ${sentence}`, 13);
    write(`${capital(scoreName())} across. ${axisWords()}`, 12);
  }
  const canvas = el("canvas", { width: PICTURE.width * PICTURE.scale, height: (y + PICTURE.pad) * PICTURE.scale });
  const pen = canvas.getContext("2d");
  pen.scale(PICTURE.scale, PICTURE.scale);
  pen.fillStyle = PAPER.paper;
  pen.fillRect(0, 0, PICTURE.width, y + PICTURE.pad);
  for (const stroke of strokes) stroke(pen);
  return canvas;
}

function inked(pen, text, x, y, font, colour, align = "left") {
  pen.font = font;
  pen.fillStyle = colour;
  pen.textAlign = align;
  pen.fillText(text, x, y);
}

function wrapped(text, font, room) {
  const lines = [""];
  for (const part of text.split(/(?<=\s)/u)) {
    if (lines.at(-1) && measured(lines.at(-1) + part, font) > room) lines.push("");
    lines[lines.length - 1] += part;
  }
  return lines;
}

function fitted(text, font, room) {
  let shown = text;
  while (shown.length > 1 && measured(shown, font) > room) shown = `${shown.slice(0, shown.endsWith("…") ? -2 : -1)}…`;
  return shown;
}

function paintStack(strokes, example, operator, room, top) {
  const { all, rows, lines, wide } = stackLines(example, operator, room - PICTURE.label);
  const rtl = !ofChains() && !ofClaims() && FROM_RIGHT.test(textOf(example));
  let y = top;
  for (const line of lines) {
    const columns_ = (shown) => {
      let x = 0;
      return line.map((place) => { const at = x; x += wide[place]; return { pieces: shown?.[place] ?? all[place], x: PICTURE.pad + (rtl ? room - PICTURE.label - at - wide[place] : PICTURE.label + at), width: wide[place] }; });
    };
    const side = rtl ? PICTURE.pad + room - PICTURE.label + 8 : PICTURE.pad;
    const base = y + 18;
    strokes.push((pen) => columns_(null).forEach((column) => paintColumn(pen, column, base, rtl, "soft")));
    y += PICTURE.row;
    for (const row of rows) {
      const at = y;
      strokes.push((pen) => {
        if (row.chosen) { pen.fillStyle = PAPER.on; pen.fillRect(PICTURE.pad - 8, at, room + 16, PICTURE.row); pen.fillStyle = PAPER.accent; pen.fillRect(PICTURE.pad - 8, at, 3, PICTURE.row); }
        const rate = row.cell.win_rate === undefined ? "" : `  ${percent(row.cell.win_rate)}`;
        const font = `${row.chosen ? "600 " : ""}14px ${FONT}`;
        inked(pen, `${fitted(`${row.letter}  ${row.name}`, font, PICTURE.label - 60)}${rate}`, side, at + 18, font, PAPER.ink);
        if (row.shown) columns_(row.shown).forEach((column) => paintColumn(pen, column, at + 18, rtl, "ink"));
      });
      y += PICTURE.row;
    }
    y += 8;
  }
  return y;
}

// Each piece is the whole column seen through a slit, so that joined letters keep their forms.
function paintColumn(pen, { pieces, x, width }, base, rtl, style) {
  const font = `15px ${FONT}`;
  const text = pieces.map((piece) => piece.text).join("");
  const whole = measured(text, font);
  const from = rtl ? x + width - 7 - whole : x + 7;
  pen.direction = rtl ? "rtl" : "ltr";
  let done = "";
  for (const piece of pieces) {
    const start = measured(done, font);
    done += piece.text;
    const long = measured(done, font) - start;
    const left = rtl ? from + whole - start - long : from + start;
    const faded = piece.kind === "gone" || piece.kind === "filled";
    pen.save();
    pen.beginPath();
    pen.rect(left - 1, base - 16, long + 2, 22);
    pen.clip();
    inked(pen, text, from, base, `${piece.kind === "filled" && pieces.length === 1 ? "italic " : ""}${font}`, PAPER[faded ? "soft" : style]);
    pen.restore();
    pen.strokeStyle = faded ? PAPER.soft : PAPER.ink;
    pen.lineWidth = 1.3;
    pen.setLineDash(piece.kind === "filled" ? [2, 2] : []);
    if (piece.kind === "kept") pen.strokeRect(left - 3, base - 15, long + 6, 20);
    if (faded) { const at = piece.kind === "gone" ? base - 5 : base + 4; pen.beginPath(); pen.moveTo(left, at); pen.lineTo(left + long, at); pen.stroke(); }
    pen.setLineDash([]);
  }
  pen.direction = "ltr";
}

function paintStrips(strokes, example, room, top) {
  const found = stripsLayout(example, room - 240);
  const shift = PICTURE.pad + 240;
  let y = top;
  for (const row of found.rows) {
    const above = MARK * Math.max(1, ...row.marks.map(({ level }) => level + 1)) + 10;
    const at = y + above;
    strokes.push((pen) => {
      inked(pen, `Under ${row.operator}`, PICTURE.pad, at + 14, `600 14px ${FONT}`, PAPER.ink);
      wrapped(`${capital(chosen())} ${act()}: ${shownScore(row.cell.score)}. ${outcome(row.cell, row.sets.length)}`, `13px ${FONT}`, 215).forEach((line, n) => inked(pen, line, PICTURE.pad, at + 33 + 17 * n, `13px ${FONT}`, PAPER.soft));
      pen.fillStyle = PAPER.bar;
      for (const each of row.cells) pen.fillRect(shift + each.x + 0.5, at + each.y + 0.5, each.wide - 1, Math.max(each.high - 1, 0.8));
      pen.fillStyle = PAPER.ink;
      pen.fillRect(shift + PAD, at + TALL, found.width - 2 * PAD, 1);
      for (const mark of row.marks) {
        inked(pen, mark.letter, shift + mark.at, at - 9 - MARK * mark.level, `${mark.chosen ? "700" : ""} 12px ${FONT}`, PAPER.ink, "center");
        pen.fillRect(shift + mark.at - (mark.chosen ? 1 : 0.5), at - 8, mark.chosen ? 2 : 1, mark.chosen ? TALL + 8 : 11);
      }
    });
    y = at + TALL + 6;
  }
  strokes.push((pen) => found.ticks.forEach(({ at, text }) => inked(pen, text, shift + at, y + 10, `12px ${FONT}`, PAPER.soft, "center")));
  return y + 24;
}

const asBlob = (canvas) => new Promise((done) => { canvas.toBlob(done, "image/png"); });

async function copyImage(example) {
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": asBlob(exampleCanvas(example)) })]);
    tell("Image copied.");
  } catch {
    await saveImage(example); // no clipboard, or not for pictures
  }
}

async function saveImage(example) {
  saveAs(fileName(`example ${example.id}`, "png"), URL.createObjectURL(await asBlob(exampleCanvas(example))));
  tell("Image saved.");
}

async function copyLink() {
  remember();
  try {
    await navigator.clipboard.writeText(location.href);
    tell("Link copied.");
  } catch {
    tell("The link is in the address of this page.");
  }
}

function tell(text) {
  byId("told").textContent = text;
}
