// The pen for the browser: charts are drawn from numbers; nothing here computes one of them.
//
// `mountChart(el, chart, tell)` knows nothing of Jupyter, so that widgets, notebooks and saved
// pages use this same file; a view of its own draws with it where it stands before that. `chart`
// is what `chart.pack` makes, read as JSON, with `label` (what it shows, in words), `source` (the
// call that gives it), `theme`, `serial` (a number that messages carry), `coarse` (whether a
// fuller one follows) and `ways` (what keys do, where that is the view's own). tell({kind:
// "click", serial, panel, mark, place}) says that somebody chose a place of a mark, tell({kind:
// "move", serial, panel, mark, value}) to where somebody drags a level that `moves`. It returns
// `load(chart)`, which draws what differs from the chart before (panels with other axes or texts,
// and marks that are other objects), `change(panel, mark, values)`, which draws one mark with
// other numbers, `hold(hit)`, which goes to a place as keys do, `whole()`, which shows all again,
// and `close()`. `mountBook(el, made)` shows one of many charts, with the controls that choose it.

const NARROW = 700; // pixels below which panels stand in one column
const NEAR = 12,
  BESIDE = 16; // pixels within which a point, and a place of a curve, answer to the mouse
const MANY = 200; // dots that are one path, which is drawn sooner than as many circles
const GRIP = 5; // pixels within which a level can be dragged
const MOST_LINES = 8,
  MOST_ROWS = 500; // that a tooltip lists, and that a table shows
const BOOK_STYLE = `
.replay-book {
  display: flex;
  flex-wrap: wrap;
  gap: 6px 22px;
  margin: 0 0 10px;
}
.replay-book label {
  display: flex;
  align-items: center;
  gap: 8px;
  min-width: 0;
}
.replay-book input[type="range"] {
  width: 190px;
  accent-color: #0072b2;
}
.replay-book output {
  min-width: 2.6em;
  font-variant-numeric: tabular-nums;
  font-weight: 600;
}
.replay-book select {
  font: inherit;
  max-width: 100%;
}
.replay-book label[hidden] {
  display: none;
}
.replay-book button {
  font: inherit;
  color: inherit;
  background: transparent;
  border: 1px solid color-mix(in srgb, currentColor 30%, transparent);
  border-radius: 999px;
  padding: 1px 11px;
  cursor: pointer;
}
.replay-book button:disabled {
  opacity: 0.6;
  cursor: default;
}
.replay-book p {
  margin: 0;
  width: 100%;
}
@media print {
  .replay-book button {
    display: none;
  }
}
`;
const CHART_STYLE = `
.replay-chart .panels {
  display: grid;
  gap: 14px 26px;
  outline-offset: 0;
}
.replay-chart .panels:focus {
  outline: none;
}
.replay-chart .panels:focus-visible {
  outline: 2px solid #0072b2;
}
.replay-chart .one {
  display: flex;
  flex-direction: column;
  justify-content: space-between;
  min-width: 0;
}
.replay-chart .joined {
  margin-bottom: -14px;
}
.replay-chart .one b {
  display: block;
}
.replay-chart .one p {
  margin: 0;
  font-size: 12px;
  opacity: 0.85;
}
.replay-chart .legend {
  display: flex;
  flex-wrap: wrap;
  gap: 1px 14px;
  font-size: 12px;
  margin-top: 2px;
}
.replay-chart .legend button {
  font: inherit;
  color: inherit;
  background: none;
  border: 0;
  padding: 0;
  cursor: pointer;
  text-align: left;
}
.replay-chart .legend button[aria-pressed="false"] {
  opacity: 0.75;
  text-decoration: line-through;
}
.replay-chart .legend svg {
  overflow: visible;
  display: inline-block;
  vertical-align: -1px;
  margin-right: 5px;
}
.replay-chart .head {
  font-size: 14px;
  margin: 0 0 6px;
}
.replay-chart .takes {
  font-size: 12px;
  margin: 2px 0 0;
  border: 0;
}
.replay-chart .takes summary {
  font-size: inherit;
  padding: 0;
  border: 0;
  background: none;
  cursor: pointer;
  width: max-content;
  opacity: 0.8;
}
.replay-chart .takes button {
  font: inherit;
  color: inherit;
  background: transparent;
  border: 1px solid color-mix(in srgb, currentColor 30%, transparent);
  border-radius: 999px;
  padding: 0 10px;
  margin: 4px 6px 4px 0;
  cursor: pointer;
}
.replay-chart .takes .numbers:empty {
  display: none;
}
.replay-chart .takes .numbers {
  max-height: 260px;
  overflow: auto;
}
.replay-chart .takes td,
.replay-chart .takes th {
  padding: 1px 10px 1px 0;
  text-align: left;
  border: 0;
  font-size: 12px;
}
.replay-chart .waits {
  position: absolute;
  right: 2px;
  top: -3px;
  font-size: 12px;
  font-style: italic;
}
.replay-chart .waits {
  background: var(--ground, var(--jp-layout-color0, Canvas));
  padding: 0 4px;
}
.replay-chart .message {
  padding: 18px 4px;
  max-width: 80ch;
}
.replay-chart .tip {
  white-space: pre-wrap;
  overflow-wrap: anywhere;
  width: max-content;
}
.replay-chart svg .still {
  cursor: default;
}
.replay-chart svg .opens {
  cursor: pointer;
}
.replay-chart svg .moves {
  cursor: ns-resize;
}
.replay-chart svg text.over {
  paint-order: stroke;
  stroke: var(--ground, var(--jp-layout-color0, Canvas));
  stroke-width: 3.5px;
  stroke-linejoin: round;
}
.replay-chart .words {
  margin: 6px 0 4px;
  max-width: 110ch;
}
@media print {
  .replay-chart .one > svg {
    max-width: 100%; /* paper may be narrower than the page was */
    height: auto;
  }
  .replay-chart .tip,
  .replay-chart .takes:not([open]) {
    display: none;
  }
  .replay-chart .panels:focus-visible {
    outline: none;
  }
  .replay-chart .takes .numbers {
    max-height: none;
  }
}
`;

const ARROW = 4; // half the width of an arrow at the frame, in pixels
const SPARE = 10; // pixels around a panel into which marks at its edge reach
const SPARE_OF_LINES = 2; // and lines: a curve that goes on beyond an axis ends at the frame
const WAYS =
  "arrow keys go from mark to mark, page up and page down from group to group, Enter chooses one";
const NOTHING = { kind: "rule", color: "ink" }; // a mark that is hidden
const FAINT = "color-mix(in srgb, currentColor 38%, transparent)";
const NAMED = { ink: "currentColor", faint: FAINT };
const inkOf = (color) => NAMED[color] || inked(color);
const known = (value) => typeof value === "number" && Number.isFinite(value);
const within = (value, [from, to]) => value >= Math.min(from, to) && value <= Math.max(from, to);
// Whether a part of the page is read in light ink: as JupyterLab says, else by its colour.
function isDark(part) {
  const theme = document.body.dataset.jpThemeLight;
  if (theme) return theme === "false";
  return Math.max(...getComputedStyle(part).color.match(/\d+/g).slice(0, 3)) > 128;
}
// Whether two places are one.
const same = (a, b) => a.panel === b.panel && a.mark === b.mark && a.place === b.place;
// One for all places, or one each.
const pick = (value, k) => (Array.isArray(value) ? value[k] : value);
const colorOf = (mark, k) => inkOf(pick(mark.color, k));

// The width of a text in pixels, measured once.
const pen = document.createElement("canvas").getContext("2d");
pen.font = '11.5px system-ui, -apple-system, "Segoe UI", sans-serif';
const widths = new Map();
function wide(text) {
  if (!widths.has(text)) {
    if (widths.size > 9999) widths.clear();
    const lines = String(text).split("\n");
    widths.set(text, Math.max(...lines.map((line) => pen.measureText(line).width)));
  }
  return widths.get(text);
}
// A text, cut in its middle to at most so many pixels: names differ at their ends.
function middleCut(text, most) {
  if (wide(text) <= most) return text;
  let kept = text.length;
  const shown = () =>
    `${text.slice(0, Math.ceil(kept / 2))}…${text.slice(text.length - Math.floor(kept / 2))}`;
  while (kept > 2 && wide(shown()) > most) kept -= 1;
  return shown();
}

// A text in lines no wider than so many pixels, broken after blanks and punctuation, where it has
// them.
function lined(text, most) {
  const lines = [""];
  for (const piece of text.match(/[^\s_./-]*[\s_./-]+|[^\s_./-]+/g) || []) {
    if (lines.at(-1) && wide((lines.at(-1) + piece).trimEnd()) > most) lines.push("");
    lines[lines.length - 1] += piece;
  }
  return lines.map((line) => line.trimEnd()).join("\n");
}
// The lines of a text, each in lines no wider than so many pixels.
function rowsOf(text, most) {
  return text.split("\n").flatMap((line) => lined(line, most).split("\n"));
}

function scaleOf(axis, part, start, end) {
  if (axis.scale !== "log") return linear(...part, start, end);
  const scale = ratios(...part, start, end),
    least = Math.min(...part) / 1e3;
  const made = (value) => scale(Math.max(value, least)); // an interval may end below zero
  return Object.assign(made, { back: scale.back });
}
function ticksOf(axis, part, most) {
  if (axis.ticks) return axis.ticks.filter(([value]) => within(value, part));
  const [from, to] = [...part].sort((a, b) => a - b);
  let found = (axis.scale === "log" ? ratioTicks : evenTicks)(from, to, Math.max(2, most));
  if (axis.whole) found = found.filter(Number.isInteger);
  const texts = tickTexts(found);
  return found.map((value, k) => [value, texts[k]]);
}

// The column of each panel: the first that is free, as the page and `pen.py` place them.
function acrossOf(panels, columns) {
  const taken = Array(columns).fill(0); // rows of each column
  return panels.map(({ rows = 1 }) => {
    const column = taken.indexOf(Math.min(...taken));
    taken[column] += columns > 1 ? rows : 1;
    return column;
  });
}

// The position of a place of a mark in pixels; null where nothing is drawn.
const LOCATE = {
  line: (mark, k, { x, y }) =>
    known(mark.x[k]) && known(mark.y[k]) ? [x(mark.x[k]), y(mark.y[k])] : null,
  points: (mark, k, at) => LOCATE.line(mark, k, at),
  bars: (mark, k, { x, y }) =>
    known(mark.x0[k]) && known(mark.x1[k])
      ? [(x(mark.x0[k]) + x(mark.x1[k])) / 2, y(mark.y[k])]
      : null,
  polylines: (mark, k, { x, y }) => {
    const last = mark.rows[k].findLastIndex(known); // where lines that begin together have parted
    return last < 0 ? null : [x(mark.x[last]), y(mark.rows[k][last])];
  },
  spans: (mark, k, plan) => {
    const [x0, y0, x1, y1] = boxOf(mark, k, plan);
    return [x0, y0, x1, y1].every(known) ? [(x0 + x1) / 2, (y0 + y1) / 2] : null;
  },
  cells: (mark, k, plan) => {
    const [row, column] = cellAt(mark, k),
      [x0, y0, x1, y1] = boxOf(mark, k, plan);
    return isCell(mark, row, column) ? [(x0 + x1) / 2, (y0 + y1) / 2] : null;
  },
};
const COUNT = {
  line: (mark) => mark.x.length,
  points: (mark) => mark.x.length,
  bars: (mark) => mark.x0.length,
  polylines: (mark) => mark.rows.length,
  spans: (mark) => (mark.x0 || mark.y0).length,
  cells: (mark) => (mark.texts ? mark.values.length * (mark.values[0]?.length || 0) : 0),
};
const holds = (mark) => COUNT[mark.kind]?.(mark) !== 0;
// A cell without a value is grey where there is something to say of it.
const isCell = (mark, row, column) =>
  known(mark.values[row][column]) || Boolean(mark.texts?.[row][column]);
const GREY = [136, 136, 136];
const LEAST = 9; // pixels of a text that is written in a cell
const cellAt = (mark, k) => [Math.floor(k / mark.values[0].length), k % mark.values[0].length];

// The tooltip of a place of a mark.
function textOf(panel, mark, k) {
  if (mark.kind === "cells") {
    const [row, column] = cellAt(mark, k);
    return mark.texts?.[row][column] || "";
  }
  if (mark.texts) return mark.texts[k];
  if (mark.kind === "line" && mark.hover) {
    const head = mark.label ? `${mark.label}: ` : "";
    const value = ranged(mark.y[k], mark.low?.[k] ?? NaN, mark.high?.[k] ?? NaN);
    const most = Math.max(...panel.x.domain.map(Math.abs)),
      [at] = tickTexts([+mark.x[k].toPrecision(4), Math.min(most, 1e4)]); // as the axis does
    return `${head}${value} at ${at}${mark.note ? `, ${mark.note}` : ""}`;
  }
  return "";
}

// The rectangle of a bar, a span or a cell in pixels.
function boxOf(mark, k, { x, y, left, right, top, bottom }) {
  let across, down;
  if (mark.kind === "cells") {
    const [row, column] = cellAt(mark, k);
    const wide = (mark.x1 - mark.x0) / mark.values[0].length,
      high = (mark.y1 - mark.y0) / mark.values.length;
    across = [x(mark.x0 + wide * column), x(mark.x0 + wide * (column + 1))];
    down = [y(mark.y0 + high * row), y(mark.y0 + high * (row + 1))];
  } else if (mark.kind === "spans") {
    across = mark.x0 ? [x(mark.x0[k]), x(mark.x1[k])] : [left, right];
    down = mark.y0 ? [y(mark.y0[k]), y(mark.y1[k])] : [top, bottom];
  } else {
    across = [x(mark.x0[k]), x(mark.x1[k])];
    down = [y(mark.y[k] - pick(mark.thickness, k) / 2), y(mark.y[k] + pick(mark.thickness, k) / 2)];
  }
  const [[a, b], [c, d]] = [across, down].map((ends) => ends.sort((p, q) => p - q));
  return [a, c, b, d];
}

// Places of a line, split where a value is missing.
function pieces(xs, ...columns) {
  const found = [];
  let piece = null;
  for (let k = 0; k < xs.length; k++) {
    if (!known(xs[k]) || !columns.every((column) => known(column[k]))) piece = null;
    else if (piece) piece.push(k);
    else found.push((piece = [k]));
  }
  return found;
}

// Places without those that lie within pixels of the one before: a long line is soon drawn.
function sparse(piece, across, ...heights) {
  if (piece.length < 100) return piece;
  let [at, ys] = [NaN, []];
  return piece.filter((k, n) => {
    const [x, here] = [across(k), heights.map((height) => height(k))];
    const same = Math.abs(x - at) < 3 && here.every((y, side) => Math.abs(y - ys[side]) < 1);
    if (same && n + 1 < piece.length) return false;
    [at, ys] = [x, here];
    return true;
  });
}

// Names points, each at the first of four corners where no point and no other name lies, if there
// is one.
function nameAll(mark, { x, y }, parent) {
  const r = pick(mark.size, 0),
    far = r + 2,
    tall = 12;
  const taken = mark.x.map((value, k) => [
    x(value) - r,
    y(mark.y[k]) - r,
    x(value) + r,
    y(mark.y[k]) + r,
  ]);
  const free = (box) =>
    taken.every(([x0, y0, x1, y1]) => x1 <= box[0] || x0 >= box[2] || y1 <= box[1] || y0 >= box[3]);
  mark.labels.forEach((text, k) => {
    if (!text || !known(mark.x[k]) || !known(mark.y[k])) return;
    const [px, py, w] = [x(mark.x[k]), y(mark.y[k]), wide(text)];
    const corners = [
      [-far - w, 3 - far - tall],
      [far, 3 - far - tall],
      [far, far - 3],
      [-far - w, far - 3],
    ];
    const [left, top] =
      corners
        .map(([dx, dy]) => [px + dx, py + dy])
        .find(([a, b]) => free([a, b, a + w, b + tall])) || [];
    if (left === undefined) return;
    taken.push([left, top, left + w, top + tall]);
    svg("text", { x: left, y: top + tall - 2, class: "over" }, parent, text);
  });
}

// Names a level line above or below it, where the fewest points are, the right end first.
function nameRule(mark, plan, parent) {
  const { left, right, top, bottom, panel } = plan,
    at = plan.y(mark.y),
    size = wide(mark.text) + 4;
  const beside = []; // where points lie that the name might hide, along the line and across
  for (const each of panel.marks)
    if (each.kind === "points")
      each.y.forEach((value, k) => {
        const height = known(value) ? plan.y(value) : NaN;
        if (Math.abs(height - at) < 20) beside.push([plan.x(each.x[k]), height]);
      });
  const heights = [at - 4, at + 13].filter((base) => base > top + 12 && base < bottom - 3);
  let least = Infinity,
    best = [right - size, at - 4];
  for (let from = right - size; from >= left + 4 && least; from -= 20)
    for (const base of heights) {
      const hides = ([px, py]) =>
        px > from - 4 && px < from + size + 4 && py > base - 15 && py < base + 6;
      const hidden = beside.filter(hides).length;
      if (hidden < least) [least, best] = [hidden, [from, base]];
    }
  svg("text", { x: best[0], y: best[1], class: "over" }, parent, mark.text);
}

// The outlines of points, as paths around a place; dots are wide strokes without a length.
const SHAPES = {
  dot: (x, y) => `M${x} ${y}h0`,
  later: (x, y, r) => `M${x - r} ${y - r}l${2 * r} ${r}l${-2 * r} ${r}z`,
  below: (x, y, r) => `M${x - r} ${y - r}h${2 * r}l${-r} ${2 * r}z`,
  above: (x, y, r) => `M${x - r} ${y + r}h${2 * r}l${-r} ${-2 * r}z`,
  diamond: (x, y, r) => `M${x} ${y - r}l${r} ${r}l${-r} ${r}l${-r} ${-r}z`,
  slim: (x, y, r) =>
    `M${x} ${y - 1.2 * r}l${0.75 * r} ${1.2 * r}l${-0.75 * r} ${1.2 * r}l${-0.75 * r} ${-1.2 * r}z`,
  square: (x, y, r) => `M${x - 0.9 * r} ${y - 0.9 * r}h${1.8 * r}v${1.8 * r}h${-1.8 * r}z`,
  frame: (x, y, r) => `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
  cross: (x, y, r) => `M${x - r} ${y - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}`,
  plus: (x, y, r) =>
    `M${x - 0.35 * r} ${y - r}h${0.7 * r}v${0.65 * r}h${0.65 * r}v${0.7 * r}` +
    `h${-0.65 * r}v${0.65 * r}h${-0.7 * r}v${-0.65 * r}h${-0.65 * r}v${-0.7 * r}` +
    `h${0.65 * r}z`,
  times: (x, y, r) =>
    `M${x - r} ${y - 0.5 * r}l${0.5 * r} ${-0.5 * r}l${0.5 * r} ${0.5 * r}l${0.5 * r} ${-0.5 * r}` +
    `l${0.5 * r} ${0.5 * r}l${-0.5 * r} ${0.5 * r}l${0.5 * r} ${0.5 * r}l${-0.5 * r} ${0.5 * r}` +
    `l${-0.5 * r} ${-0.5 * r}l${-0.5 * r} ${0.5 * r}l${-0.5 * r} ${-0.5 * r}` +
    `l${0.5 * r} ${-0.5 * r}z`,
  hexagon: (x, y, r) =>
    `M${x} ${y - r}l${0.87 * r} ${0.5 * r}v${r}l${-0.87 * r} ${0.5 * r}l${-0.87 * r} ${-0.5 * r}` +
    `v${-r}z`,
};
const HOLLOW = { ring: 2.4, frame: 1.2, cross: 1.6 }; // widths of the lines that they are made of
function lookOf(shape, color, r) {
  if (shape === "dot")
    return { fill: "none", stroke: color, "stroke-width": 2 * r, "stroke-linecap": "round" };
  if (!HOLLOW[shape]) return { fill: color };
  return { fill: "none", stroke: color, "stroke-width": HOLLOW[shape] };
}

const DRAW = {
  line(mark, { x, y }, parent) {
    const stroke = inkOf(mark.color),
      { x: xs, step, low, high } = mark;
    const spot = (k, ys, level = k) => `${x(xs[k]).toFixed(1)} ${y(ys[level]).toFixed(1)}`;
    // Along a column; steps have a corner at the height of the place that lies to the left.
    const along = (places, ys, corner) => {
      const before = (k, n) => (step && n ? `${corner(k, places[n - 1])}L` : "");
      return places.map((k, n) => before(k, n) + spot(k, ys)).join("L");
    };
    const there = (places, ys) => along(places, ys, (k, left) => spot(k, ys, left)),
      back = (places, ys) => along([...places].reverse(), ys, (k, right) => spot(right, ys, k));
    const seen = (...columns) => {
      const heights = columns.map((column) => (k) => y(column[k]));
      return pieces(xs, ...columns).map((each) => sparse(each, (k) => x(xs[k]), ...heights));
    };
    if (mark.band && low && high) {
      const d = seen(low, high)
        .map((places) => `M${there(places, high)}L${back(places, low)}Z`)
        .join("");
      if (d) svg("path", { d, fill: stroke, "fill-opacity": 0.17 }, parent);
    }
    const d = seen(mark.y)
      .map((places) => `M${there(places, mark.y)}${places.length > 1 ? "" : "h0"}`)
      .join("");
    if (d)
      svg(
        "path",
        {
          d,
          fill: "none",
          stroke,
          "stroke-width": mark.width,
          "stroke-dasharray": mark.dash || "none",
          "stroke-linejoin": "round",
          "stroke-linecap": mark.dash ? "butt" : "round",
          "data-line": mark.label,
        },
        parent,
      );
  },
  points(mark, { x, y, left, right, top, bottom }, parent) {
    // an arrow at the frame, where an interval goes on beyond it
    const goesOn = (color, px, py, [dx, dy]) =>
      svg(
        "path",
        {
          d: `M${px} ${py}l${-ARROW * (2 * dx + dy)} ${-ARROW * (2 * dy + dx)}${
            dx ? `v${2 * ARROW * dx}` : `h${2 * ARROW * dy}`
          }z`,
          fill: color,
        },
        parent,
      );
    const looks = new Map(); // those that look alike are one path
    mark.x.forEach((value, k) => {
      const color = colorOf(mark, k),
        r = pick(mark.size, k),
        edge = mark.edge ? { stroke: inkOf(mark.edge), "stroke-width": 0.8 } : {};
      const px = x(value),
        py = y(mark.y[k]),
        span = (x1, y1, x2, y2) =>
          svg(
            "line",
            { x1, y1, x2, y2, stroke: color, "stroke-width": 2.2, "stroke-opacity": 0.6 },
            parent,
          );
      if (known(mark.x_low?.[k]) && known(mark.x_high?.[k]) && known(mark.y[k]))
        span(x(mark.x_low[k]), py, x(mark.x_high[k]), py);
      if (known(mark.y_low?.[k]) && known(mark.y_high?.[k]) && known(value))
        span(px, y(mark.y_low[k]), px, y(mark.y_high[k]));
      if (px >= left && px <= right && py >= top && py <= bottom) {
        const across = [mark.x_low, mark.x_high].map((ends) => ends?.[k]).filter(known),
          down = [mark.y_low, mark.y_high].map((ends) => ends?.[k]).filter(known);
        if (across.some((end) => x(end) < left - 0.5)) goesOn(color, left, py, [-1, 0]);
        if (across.some((end) => x(end) > right + 0.5)) goesOn(color, right, py, [1, 0]);
        if (down.some((end) => y(end) < top - 0.5)) goesOn(color, px, top, [0, -1]);
        if (down.some((end) => y(end) > bottom + 0.5)) goesOn(color, px, bottom, [0, 1]);
      }
      if (!known(value) || !known(mark.y[k])) return;
      const beyond = r + SPARE; // those that are out of sight take no time
      if (px < left - beyond || px > right + beyond || py < top - beyond || py > bottom + beyond)
        return;
      const shape = mark.shape || "dot";
      if (shape === "ring" || (shape === "dot" && (mark.edge || mark.x.length <= MANY))) {
        const look = shape === "ring" ? lookOf(shape, color, r) : { fill: color, ...edge };
        svg("circle", { cx: px, cy: py, r, ...look }, parent);
        return;
      }
      const name = `${color}/${r}`;
      if (!looks.has(name)) looks.set(name, { ...lookOf(shape, color, r), d: "" });
      looks.get(name).d += SHAPES[shape](+px.toFixed(1), +py.toFixed(1), r);
    });
    for (const look of looks.values()) svg("path", look, parent);
    if (mark.labels) nameAll(mark, { x, y }, parent);
  },
  bars(mark, plan, parent) {
    const parts = new Map();
    mark.x0.forEach((value, k) => {
      if (!known(value) || !known(mark.x1[k])) return;
      const [x0, y0, x1, y1] = boxOf(mark, k, plan).map((each) => each.toFixed(2)),
        color = colorOf(mark, k);
      parts.set(color, `${parts.get(color) || ""}M${x0} ${y0}H${x1}V${y1}H${x0}Z`);
    });
    for (const [fill, d] of parts) svg("path", { d, fill, "fill-opacity": mark.opacity }, parent);
  },
  polylines(mark, { x, y }, parent) {
    mark.rows.forEach((row, k) => {
      const spot = (k) => `${x(mark.x[k]).toFixed(1)} ${y(row[k]).toFixed(1)}`,
        d = pieces(mark.x, row)
          .map((places) => `M${places.map(spot).join("L")}`)
          .join("");
      if (d)
        svg(
          "path",
          {
            d,
            fill: "none",
            stroke: inkOf(mark.colors[k]),
            "stroke-width": mark.widths[k],
            "stroke-linejoin": "round",
          },
          parent,
        );
    });
  },
  rule(mark, plan, parent) {
    const { x, y, left, right, top, bottom } = plan;
    const look = {
      stroke: inkOf(mark.color),
      "stroke-width": 1,
      "stroke-dasharray": mark.dash || "none",
    };
    if (known(mark.x))
      svg("line", { x1: x(mark.x), x2: x(mark.x), y1: top, y2: bottom, ...look }, parent);
    if (known(mark.y))
      svg("line", { x1: left, x2: right, y1: y(mark.y), y2: y(mark.y), ...look }, parent);
    if (mark.text && within(y(mark.y), [top, bottom])) nameRule(mark, plan, parent);
  },
  spans(mark, plan, parent) {
    for (let k = 0; k < COUNT.spans(mark); k++) {
      const [x0, y0, x1, y1] = boxOf(mark, k, plan),
        frame = pick(mark.frame, k);
      if (![x0, y0, x1, y1].every(known)) continue;
      const color = colorOf(mark, k),
        look = { fill: mark.opacity ? color : "none", "fill-opacity": mark.opacity };
      svg(
        "rect",
        {
          x: x0,
          y: y0,
          width: x1 - x0,
          height: y1 - y0,
          ...look,
          rx: frame ? 3 : 0,
          stroke: frame ? color : "none",
          "stroke-width": frame,
        },
        parent,
      );
    }
  },
  segments(mark, { x, y }, parent) {
    mark.x0.forEach((value, k) => {
      const [a, b, c, d] = [x(value), y(mark.y0[k]), x(mark.x1[k]), y(mark.y1[k])];
      if (![a, b, c, d].every(known)) return;
      const turn = mark.turn ? x(mark.turn[k]) : null,
        third = (c - turn) / 3;
      const way = mark.turn
        ? `M${a} ${b}L${turn} ${b}C${turn + third} ${b} ${turn + 2 * third} ${d} ${c} ${d}`
        : `M${a} ${b}L${c} ${d}`;
      svg(
        "path",
        {
          d: way,
          fill: "none",
          stroke: colorOf(mark, k),
          "stroke-width": mark.width,
          "stroke-dasharray": mark.dash || "none",
        },
        parent,
      );
    });
  },
  discs(mark, { x, y }, parent) {
    const color = inkOf(mark.color),
      look = { fill: color, "fill-opacity": mark.opacity, stroke: color, "stroke-width": 1.4 };
    mark.x.forEach((value, k) =>
      svg(
        "circle",
        { cx: x(value), cy: y(mark.y[k]), r: Math.abs(x(value + mark.r[k]) - x(value)), ...look },
        parent,
      ),
    );
  },
  area(mark, { x, y }, parent) {
    const d = `M${mark.x.map((value, k) => `${x(value)} ${y(mark.y[k])}`).join("L")}Z`,
      color = inkOf(mark.color);
    svg(
      "path",
      { d, fill: color, "fill-opacity": mark.opacity, stroke: color, "stroke-width": 1.4 },
      parent,
    );
  },
  end() {}, // names at the ends of lines are put together, see `nameEnds`
  label(mark, { x, y, left, top }, parent) {
    // What would stand above the panel stands below its place.
    const at = y(mark.y),
      dy = at >= top && at + mark.dy < top + 10 ? 10 - mark.dy : mark.dy;
    svg(
      "text",
      {
        x: (mark.x === undefined ? left : x(mark.x)) + mark.dx,
        y: at + dy,
        "text-anchor": mark.anchor,
        class: mark.bare ? "" : "over",
        style: `fill:${inkOf(mark.color)}`,
      },
      parent,
      mark.text,
    );
  },
  cells(mark, plan, parent) {
    const { x, y } = plan;
    const rows = mark.values.length,
      columns = mark.values[0]?.length || 0;
    if (!columns) return;
    const ramp = mark.colors.map(parsed);
    if (mark.written || mark.round) {
      eachCell(mark, plan, ramp, parent);
      return;
    }
    const picture = Object.assign(document.createElement("canvas"), {
      width: columns,
      height: rows,
    });
    const brush = picture.getContext("2d"),
      pixels = brush.createImageData(columns, rows);
    const [a, b] = [x(mark.x0), x(mark.x1)],
      [c, d] = [y(mark.y0), y(mark.y1)];
    mark.values.forEach((row, r) =>
      row.forEach((value, k) => {
        if (!known(value)) return;
        const place = 4 * ((d < c ? rows - 1 - r : r) * columns + (b < a ? columns - 1 - k : k));
        mixed(ramp, value, mark.least, mark.most).forEach((part, n) => {
          pixels.data[place + n] = part;
        });
        pixels.data[place + 3] = 255;
      }),
    );
    brush.putImageData(pixels, 0, 0);
    svg(
      "image",
      {
        x: Math.min(a, b),
        y: Math.min(c, d),
        width: Math.abs(b - a),
        height: Math.abs(d - c),
        href: picture.toDataURL(),
        preserveAspectRatio: "none",
        style: "image-rendering:pixelated",
      },
      parent,
    );
  },
};

// Cells that are round or written on, a little apart from each other where they are large.
function eachCell(mark, plan, ramp, parent) {
  mark.values.flat().forEach((value, k) => {
    const [row, column] = cellAt(mark, k);
    if (!isCell(mark, row, column)) return;
    const [x0, y0, x1, y1] = boxOf(mark, k, plan),
      rgb = known(value) ? mixed(ramp, value, mark.least, mark.most) : GREY,
      fill = `rgb(${rgb})`;
    const [w, h] = [x1 - x0, y1 - y0],
      gap = Math.min(w, h) < 12 ? 0 : 1;
    if (mark.round?.[row][column])
      svg(
        "ellipse",
        { cx: (x0 + x1) / 2, cy: (y0 + y1) / 2, rx: 0.45 * w, ry: 0.45 * h, fill },
        parent,
      );
    else
      svg(
        "rect",
        {
          x: x0 + gap,
          y: y0 + gap,
          width: w - 2 * gap,
          height: h - 2 * gap,
          rx: 2 * gap,
          fill,
          "shape-rendering": gap ? "auto" : "crispEdges",
        },
        parent,
      );
    const text = mark.written?.[row][column],
      size = text ? Math.min(11.5, (11.5 * (w - 3)) / wide(text)) : 0;
    if (size >= LEAST)
      svg(
        "text",
        {
          x: (x0 + x1) / 2,
          y: (y0 + y1) / 2 + 4,
          "text-anchor": "middle",
          style: `fill:${readable(rgb)};font-size:${size}px`,
        },
        parent,
        text,
      );
  });
}

// Limits between which a unit of both axes is equally long.
function equalised(x, y, width, height) {
  const unit = Math.max(Math.abs(x[1] - x[0]) / width, Math.abs(y[1] - y[0]) / height);
  return [
    [x, width],
    [y, height],
  ].map(([[from, to], size]) => {
    const half = (Math.sign(to - from || 1) * unit * size) / 2;
    return [(from + to) / 2 - half, (from + to) / 2 + half];
  });
}

// Names at the ends of lines: as near to them as they can be without lying over each other.
function nameEnds(plan, ends, picture) {
  const { y, right, top, bottom, room } = plan,
    tall = 15;
  const wanted = ends
    .map((mark) => ({ mark, at: known(mark.y) ? y(mark.y) : bottom }))
    .reverse()
    .sort((a, b) => a.at - b.at);
  let groups = [];
  for (const each of wanted) {
    // those that would overlap stand together around their middle
    groups.push({ at: each.at, all: [each] });
    for (
      let last = groups.at(-1), before = groups.at(-2);
      before;
      last = groups.at(-1), before = groups.at(-2)
    ) {
      if (last.at - before.at >= (tall * (last.all.length + before.all.length)) / 2) break;
      const all = [...before.all, ...last.all];
      groups.splice(-2, 2, { at: all.reduce((sum, one) => sum + one.at, 0) / all.length, all });
    }
  }
  let free = top - tall;
  for (const { at: middle, all } of groups) {
    let place = Math.max(free + tall, middle - (tall * (all.length - 1)) / 2);
    place = Math.max(Math.min(place, bottom - tall * (all.length - 1)), free + tall);
    for (const { mark, at: from } of all) {
      svg(
        "path",
        {
          d: `M${right + 3} ${from}L${right + 18} ${place}`,
          stroke: inkOf(mark.color),
          "stroke-width": 2,
          "stroke-dasharray": mark.dash || "none",
          fill: "none",
        },
        picture,
      );
      const kept = middleCut(mark.text, room),
        made = svg("text", { x: right + 22, y: place + 4 }, picture, kept);
      if (kept !== mark.text) svg("title", {}, made, mark.text);
      free = place;
      place += tall;
    }
  }
}

// What colours mean.
function drawBar(bar, plan, picture) {
  const { top, bottom } = plan,
    x0 = plan.right + 14,
    name = `ramp-${Math.random().toString(36).slice(2)}`;
  const ramp = svg("linearGradient", { id: name, x1: 0, x2: 0, y1: 1, y2: 0 }, picture);
  bar.colors.forEach((color, k) =>
    svg("stop", { offset: k / (bar.colors.length - 1), "stop-color": color }, ramp),
  );
  svg("rect", { x: x0, y: top, width: 11, height: bottom - top, fill: `url(#${name})` }, picture);
  const place = linear(bar.least, bar.most, bottom, top),
    even = bar.most > bar.least ? evenTicks(bar.least, bar.most, (bottom - top) / 42) : [],
    ends = [...new Set([bar.least, bar.most])]; // of a bar too short for two even ticks
  const ticks = even.length > 1 ? even : ends,
    unit = 10 ** Math.floor(Math.log10(bar.most - bar.least || 1) - 1),
    texts = tickTexts(even.length > 1 ? even : ends.map((each) => Math.round(each / unit) * unit));
  for (const [k, value] of ticks.entries())
    svg("text", { x: x0 + 16, y: place(value) + 4 || bottom, class: "tick" }, picture, texts[k]);
  const at = [x0 + 62, (top + bottom) / 2];
  if (bar.label)
    svg(
      "text",
      { x: at[0], y: at[1], "text-anchor": "middle", transform: `rotate(-90 ${at})` },
      picture,
      bar.label,
    );
}

// The squared distance of a point from a segment.
function away([px, py], [ax, ay], [bx, by]) {
  const [dx, dy] = [bx - ax, by - ay],
    size = dx * dx + dy * dy;
  const share = size ? Math.min(Math.max(((px - ax) * dx + (py - ay) * dy) / size, 0), 1) : 0;
  return (ax + share * dx - px) ** 2 + (ay + share * dy - py) ** 2;
}

// The numbers of a chart as a table: a row for each place of a mark.
function tableOf(chart) {
  const names = [
      "x",
      "y",
      "low",
      "high",
      "x_low",
      "x_high",
      "y_low",
      "y_high",
      "x0",
      "x1",
      "y0",
      "y1",
      "r",
    ],
    rows = [];
  for (const panel of chart.panels) {
    for (const mark of panel.marks) {
      if (mark.kind === "cells") {
        // Their row and column as the axes name them, where these do.
        const name = (axis, from, to, k, count) => {
          const middle = from + ((to - from) * (k + 0.5)) / count;
          return axis.ticks?.find(([value]) => Math.abs(value - middle) < 1e-9)?.[1] ?? k;
        };
        mark.values.forEach((row, r, all) =>
          row.forEach((value, c) => {
            if (!known(value)) return;
            const place = {
              row: name(panel.y, mark.y0, mark.y1, r, all.length),
              column: name(panel.x, mark.x0, mark.x1, c, row.length),
            };
            rows.push({ panel: panel.title, mark: mark.kind, ...place, value });
          }),
        );
      } else if (mark.kind === "polylines") {
        mark.rows.forEach((row, r) =>
          row.forEach((y, c) =>
            rows.push({ panel: panel.title, mark: mark.kind, row: r, x: mark.x[c], y }),
          ),
        );
      } else if (!["label", "rule", "end"].includes(mark.kind)) {
        const columns = names.filter((name) => typeof mark[name] === "object"),
          count = columns.length && mark[columns[0]].length;
        const of = { ...mark, ...mark.stated };
        // Another mark holds the same.
        if (mark.stated && !Object.keys(mark.stated).length) continue;
        for (let k = 0; k < count; k++)
          rows.push({
            panel: panel.title,
            mark: mark.kind,
            label: mark.label || "",
            ...Object.fromEntries(columns.map((name) => [name, of[name][k]])),
          });
      }
    }
  }
  const heads = [...new Set(rows.flatMap(Object.keys))];
  return [heads, ...rows.map((row) => heads.map((name) => row[name] ?? ""))];
}
// A picture as a text that stands alone: the colours and fonts of the page are written into it.
function alone(picture) {
  const copy = picture.cloneNode(true),
    [own, other] = [picture, copy].map((each) => [...each.querySelectorAll("*")]);
  own.forEach((each, k) => {
    const look = getComputedStyle(each);
    for (const name of [
      "fill",
      "stroke",
      "font-size",
      "font-weight",
      "font-family",
      "opacity",
      "fill-opacity",
      "stroke-opacity",
    ])
      other[k].style[name] = look[name];
  });
  copy.setAttribute("xmlns", NS);
  copy.style.color = getComputedStyle(picture).color;
  return new XMLSerializer().serializeToString(copy);
}
// What a panel shows as the name of a file: its titles, else its axes.
function fileNameOf(chart, panel) {
  const axes = [panel?.y.label, panel?.x.label].filter(Boolean).join(" by "),
    words = [chart.title, panel?.title || axes].filter(Boolean).join(" ");
  const name = words
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .slice(0, 60)
    .replace(/^-|-$/g, "");
  return name || "chart";
}
// Buttons that give a chart's numbers and pictures without a kernel.
function offer(root, chart, plans) {
  const box = html("details", { class: "takes" }, root);
  html("summary", {}, box, "Data");
  box.addEventListener("toggle", () => furnish(box, chart, plans), { once: true });
  return box;
}
function furnish(box, chart, plans) {
  const buttons = html("div", {}, box),
    place = html("div", { class: "numbers", tabindex: 0 }, box);
  const save = (content, name, type) => {
    const link = html("a", {
      download: name,
      href: URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type })),
    });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const quoted = (value) =>
    /[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value;
  const pictures = (use) => {
    const names = plans().map(({ panel }) => fileNameOf(chart(), panel));
    plans().forEach((plan, k) => {
      const alike = names.filter((each) => each === names[k]).length > 1;
      use(alone(plan.picture), plan, alike ? `${names[k]}-${k + 1}` : names[k]);
    });
  };
  const made = {
    Table: () => {
      const [heads, ...rows] = tableOf(chart());
      const table = html("table", {});
      const line = (cells, kind) => {
        const row = html("tr", {}, table);
        cells.forEach((cell) =>
          html(kind, {}, row, typeof cell === "number" ? digits(cell, 6) : cell),
        );
      };
      line(heads, "th");
      rows.slice(0, MOST_ROWS).forEach((row) => line(row, "td"));
      if (rows.length > MOST_ROWS)
        line([`${rows.length - MOST_ROWS} further rows are in the CSV`], "td");
      place.replaceChildren(place.firstChild ? "" : table);
    },
    CSV: () =>
      save(
        tableOf(chart())
          .map((row) => row.map(quoted).join(","))
          .join("\n"),
        `${fileNameOf(chart(), chart().panels[0])}.csv`,
        "text/csv",
      ),
    SVG: () => pictures((text, plan, name) => save(text, `${name}.svg`, "image/svg+xml")),
    PNG: () =>
      pictures((text, plan, name) => {
        const image = new Image(),
          [w, h] = ["width", "height"].map((each) => +plan.picture.getAttribute(each));
        image.onload = () => {
          const canvas = Object.assign(document.createElement("canvas"), {
              width: 2 * w,
              height: 2 * h,
            }),
            brush = canvas.getContext("2d");
          brush.fillStyle = getComputedStyle(document.body).backgroundColor.replace(
            /rgba\(0, 0, 0, 0\)/,
            "#fff",
          );
          brush.fillRect(0, 0, 2 * w, 2 * h);
          brush.drawImage(image, 0, 0, 2 * w, 2 * h);
          canvas.toBlob((blob) => save(blob, `${name}.png`));
        };
        const bytes = String.fromCharCode(...new TextEncoder().encode(text));
        image.src = `data:image/svg+xml;base64,${btoa(bytes)}`;
      }),
  };
  for (const [text, act] of Object.entries(made))
    html("button", { type: "button" }, buttons, text).onclick = act;
}

function mountChart(el, given, tell = () => {}) {
  let chart = given,
    plans = [],
    margins = [], // room of each panel for what stands beside it
    zoom = {},
    mouse = null,
    held = null,
    lit = null, // the entry of a legend that others step back from
    stops = null,
    size = 0; // of the root, in pixels, which nobody else measures: that would lay out the page
  const gone = new Set(); // labels that were clicked away in legends
  const alone = !el.closest(".replay-view"); // else it is a part of a view of its own
  const root = html("div", { class: alone ? "replay-view replay-chart" : "replay-chart" }, el);
  html("style", {}, root, LOOK + CHART_STYLE);
  const stage = html("div", { class: "stage" }, root);
  const heading = html("b", { class: "head" }, stage);
  const panels = html("div", { class: "panels", "data-lm-suppress-shortcuts": "true" }, stage);
  const rough = "rough: the full view is being computed …";
  const waits = html("div", { class: "waits" }, stage, rough);
  const tip = html("div", { class: "tip", role: "status" }, stage);
  const takes = offer(
    root,
    () => chart,
    () => plans,
  );
  const clip = `clip-${Math.random().toString(36).slice(2)}`;

  // Colours on a dark ground are lighter, those of a view around this one too.
  function darken() {
    const dark = chart.theme === "dark" || (chart.theme !== "light" && isDark(root));
    (el.closest(".replay-view") || root).classList.toggle("on-dark", dark);
  }
  function draw() {
    size ||= root.clientWidth;
    stops = lit = null;
    const entry = panels.querySelector(".legend button:focus")?.dataset.label;
    const [ink, ground] = INKS[chart.theme] || ["", ""];
    Object.assign(root.style, { color: ink, background: ground });
    if (ground) root.style.setProperty("--ground", ground);
    else root.style.removeProperty("--ground");
    darken();
    const room = Math.max(260, size - 4 || 700),
      columns = room < NARROW ? 1 : chart.columns;
    panels.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    const width = Math.floor((room - 26 * (columns - 1)) / columns);
    if (!plans.length || plans.length !== chart.panels.length) {
      panels.replaceChildren();
      plans = [];
    }
    heading.textContent = chart.title || "";
    heading.hidden = !chart.title;
    if (chart.panels.length) {
      margins = chart.panels.map((panel, number) => sides(panel, number, width));
      const answers = (mark) => mark.texts || mark.hover;
      const still = !chart.panels.some((panel) => panel.legend || panel.marks.some(answers));
      panels.tabIndex = still ? -1 : 0;
      panels.setAttribute("role", still ? "img" : "application");
      panels.setAttribute(
        "aria-label",
        still ? chart.label : `${chart.label}; ${chart.ways || WAYS}`,
      );
      plans = chart.panels.map((each, number) => {
        const panel = remaining(each),
          frame = frameOf(panel, number, width, columns, margins);
        if (plans[number]?.frame === frame) return renew(plans[number], panel);
        return Object.assign(build(panel, number, width, columns), { frame });
      });
    } else {
      for (const name of ["tabindex", "role", "aria-label"]) panels.removeAttribute(name);
      if (chart.picture)
        html(
          "img",
          {
            style: "max-width:100%",
            src: `data:image/png;base64,${(isDark(root) && chart.dark) || chart.picture}`,
            alt: chart.label || chart.title,
          },
          panels,
        );
      else html("div", { class: "message" }, panels, chart.message);
      plans = [];
    }
    if (entry !== undefined) focusEntry(entry); // whoever uses keys stays where they were
    takes.hidden = !chart.panels.length;
    waits.hidden = !chart.coarse;
    if (alone) {
      root.dataset.source = chart.source || "";
      root.dataset.description = chart.label || "";
      root.dataset.serial = chart.coarse ? "" : chart.serial;
    }
    if (mouse) hover(mouse);
    else if (held && document.activeElement === panels) sayHeld();
    else {
      clear();
      hint("");
    }
  }

  // The visible part of an axis.
  const seen = (panel, number, name) =>
    zoom[name === "x" && panel.shares ? panel.shares : number]?.[name] || panel[name].domain;

  // Where a panel begins and ends, beside the texts of its axis and the names of its lines.
  function sides(panel, number, width) {
    const names = panel.marks.filter((mark) => mark.kind === "end").map((mark) => wide(mark.text)),
      room = names.length ? Math.min(Math.max(...names), 0.3 * width) : 0,
      most = 0.42 * width;
    const bar = panel.bar?.label ? 84 : 66;
    const right = width - (panel.bar ? bar : names.length ? room + 28 : 12);
    if (panel.bare) return { left: 6, right, room, most };
    const [xPart, yPart] = ["x", "y"].map((name) => seen(panel, number, name)),
      texts = ticksOf(panel.y, yPart, panel.height / 42).map(([, text]) => wide(text));
    // Half of its text lies to the left of it.
    const first = panel.x.ticks?.find(([value]) => value === xPart[0]),
      half = first ? Math.min(wide(first[1]), 120) / 2 : 0;
    const beside = Math.min(most, Math.max(0, ...texts)) + 10 + (panel.y.label ? 18 : 0);
    return { left: Math.ceil(Math.max(half, beside)), right, room, most };
  }

  // What a panel has beside its marks. Names in a legend and at the ends of lines belong to marks,
  // so that a panel with them is like no other.
  const frameOf = (panel, number, ...room) =>
    panel.legend || panel.marks.some((mark) => mark.kind === "end")
      ? {}
      : JSON.stringify([
          { ...panel, marks: null },
          seen(panel, number, "x"),
          seen(panel, number, "y"),
          room,
        ]);
  // Draws the marks of a panel that are other ones than before.
  function renew(plan, panel) {
    const before = plan.panel.marks;
    plan.panel = panel;
    panel.marks.forEach((mark, m) => {
      if (mark !== before[m]) drawMark(plan, m);
    });
    while (plan.field.childElementCount > panel.marks.length) plan.field.lastChild.remove();
    return plan;
  }
  function drawMark(plan, m) {
    const mark = plan.panel.marks[m],
      group = plan.field.children[m] || svg("g", { "data-mark": m }, plan.field);
    const isLine = mark.kind === "line";
    if (Boolean(group.isLine) !== isLine) {
      group.isLine = isLine; // to ask for the attribute takes longer
      if (isLine) group.setAttribute("clip-path", `url(#${clip}-${plan.number}-lines)`);
      else group.removeAttribute("clip-path");
    }
    redraw(group, (put) => DRAW[mark.kind](mark, plan, { put }));
  }

  function build(panel, number, width, columns) {
    const box = html("div", { class: "one" }),
      head = html("div", {}, box);
    if (panels.children[number]) panels.children[number].replaceWith(box);
    else panels.append(box);
    if (columns > 1 && panel.rows > 1)
      Object.assign(box.style, { gridRow: `span ${panel.rows}`, justifyContent: "flex-start" });
    html("b", {}, head, panel.title);
    if (panel.about) html("p", {}, head, panel.about);
    if (panel.legend) explain(number, html("div", { class: "legend" }, head));
    const ends = panel.marks.filter((mark) => mark.kind === "end"),
      { room, most } = margins[number];
    // Those above each other that share an axis begin and end alike.
    const across = acrossOf(chart.panels, columns);
    const alike = margins.filter(
      (_, k) =>
        k === number ||
        (panel.shares && across[k] === across[number] && chart.panels[k].shares === panel.shares),
    );
    const left = Math.max(...alike.map((each) => each.left)),
      right = Math.min(...alike.map((each) => each.right));
    const heads = panel.x.above
      ? Math.max(...panel.x.ticks.map(([, text]) => text.split("\n").length))
      : 0;
    const tall = panel.equal ? Math.min(panel.height, right - left) : panel.height,
      top = 10 + 14 * heads,
      bottom = top + tall;
    let [xPart, yPart] = ["x", "y"].map((name) => seen(panel, number, name));
    const yTicks = panel.bare ? [] : ticksOf(panel.y, yPart, panel.height / 42);
    const spare = xPart === panel.x.domain && yPart === panel.y.domain ? SPARE : 0.5;
    if (panel.equal) [xPart, yPart] = equalised(xPart, yPart, right - left, tall);
    const x = scaleOf(panel.x, xPart, left, right),
      y = scaleOf(panel.y, yPart, bottom, top);
    const each = panel.x.scale === "log" ? 54 : 75; // pixels; powers are written shortly
    let xTicks = panel.bare ? [] : ticksOf(panel.x, xPart, (right - left) / each);
    const apart = Math.min(
      ...xTicks.slice(1).map(([value], k) => Math.abs(x(value) - x(xTicks[k][0]))),
    );
    const texts = panel.x.ticks && xTicks.length > 1;
    if (texts) {
      const folds = xTicks.map(([value, text]) => [value, rowsOf(text, apart - 6).join("\n")]);
      if (Math.max(...folds.map(([, text]) => wide(text))) <= apart - 6) xTicks = folds;
    }
    const widest = Math.max(0, ...xTicks.map(([, text]) => wide(text)));
    const lines = Math.max(1, ...xTicks.map(([, text]) => text.split("\n").length));
    const tilted = texts && widest + 6 > apart && !panel.x.above;
    const named = panel.x.named ?? true; // else what stands below it has the same axis
    if (!named && !chart.panels[number + 1]?.title) box.classList.add("joined");
    const foot =
      panel.bare || panel.x.above || !named
        ? bottom
        : bottom + (tilted ? 14 + 0.6 * Math.min(widest, 150) : 6 + 14 * lines);
    const middle = (left + right) / 2,
      space = 2 * Math.min(middle, width - middle) - 4,
      label = named && panel.x.label ? rowsOf(panel.x.label, space) : [],
      height = foot + (label.length ? 8 + 14 * label.length : 6);
    const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, box);
    const plan = { panel, number, picture, x, y, left, right, top, bottom, room };
    if (panel.y.label)
      svg(
        "text",
        {
          x: 12,
          y: (top + bottom) / 2,
          "text-anchor": "middle",
          transform: `rotate(-90 12 ${(top + bottom) / 2})`,
        },
        picture,
        panel.y.label,
      );
    for (const [value, text] of yTicks) {
      if (panel.y.grid ?? !panel.y.ticks)
        svg("line", { x1: left, x2: right, y1: y(value), y2: y(value), class: "grid" }, picture);
      const rows = text.split("\n"),
        first = y(value) + 4 - 7 * (rows.length - 1);
      rows.forEach((line, k) => {
        const kept = middleCut(line, most),
          made = svg(
            "text",
            { x: left - 7, y: first + 14 * k, "text-anchor": "end" },
            picture,
            kept,
          );
        if (kept !== line) svg("title", {}, made, line);
      });
    }
    for (const [value, text] of xTicks) {
      if (panel.x.grid ?? !panel.x.ticks)
        svg("line", { x1: x(value), x2: x(value), y1: top, y2: bottom, class: "grid" }, picture);
      if (!named) continue;
      if (tilted) {
        const at = [x(value) + 4, bottom + 12];
        svg(
          "text",
          { x: at[0], y: at[1], "text-anchor": "end", transform: `rotate(-35 ${at})` },
          picture,
          middleCut(text, 150),
        );
      } else {
        const rows = text.split("\n"),
          first = panel.x.above ? top - 6 - 14 * (rows.length - 1) : bottom + 16,
          middle = Math.min(x(value), width - wide(text) / 2 - 1); // the last one stays whole
        rows.forEach((line, k) =>
          svg("text", { x: middle, y: first + 14 * k, "text-anchor": "middle" }, picture, line),
        );
      }
    }
    label.forEach((line, k) =>
      svg(
        "text",
        { x: middle, y: height - 6 - 14 * (label.length - 1 - k), "text-anchor": "middle" },
        picture,
        line,
      ),
    );
    if (!panel.bare && !panel.x.above)
      svg("path", { d: `M${left} ${top}V${bottom}H${right}`, class: "frame" }, picture);
    for (const [end, room] of [
      ["", spare],
      ["-lines", Math.min(spare, SPARE_OF_LINES)],
    ])
      svg(
        "rect",
        {
          x: left - room,
          y: top - room,
          width: right - left + 2 * room,
          height: tall + 2 * room,
        },
        svg("clipPath", { id: `${clip}-${number}${end}` }, picture),
      );
    plan.field = svg("g", { "clip-path": `url(#${clip}-${number})` }, picture);
    panel.marks.forEach((_, m) => drawMark(plan, m));
    nameEnds(plan, ends, picture);
    if (panel.bar) drawBar(panel.bar, plan, picture);
    plan.ground = svg(
      "rect",
      {
        x: left,
        y: top,
        width: right - left,
        height: tall,
        class: panel.zoom ? "panel" : "panel still",
        "data-panel": number,
      },
      picture,
    );
    plan.marks = svg("g", { "pointer-events": "none" }, picture);
    return plan;
  }

  // Whether a mark belongs to an entry of the legend: by its label, else by its colour.
  function belongs(mark, entry) {
    if (mark.label) return mark.label === entry.label;
    return typeof mark.color === "string" && mark.color[0] === "#" && mark.color === entry.color;
  }
  // The marks of a panel that belong to other entries step back; null: none does.
  function highlight(number, entry) {
    if (lit === entry) return;
    lit = entry;
    const { marks } = chart.panels[number],
      entries = marks.filter((mark) => mark.label);
    plans[number]?.picture.querySelectorAll("[data-mark]").forEach((group) => {
      const mark = marks[group.dataset.mark],
        others = entries.some((each) => belongs(mark, each));
      group.style.opacity = entry && others && !belongs(mark, entry) ? 0.15 : "";
    });
  }
  // A panel without the marks that were clicked away in its legend.
  function remaining(panel) {
    const hidden = panel.legend ? panel.marks.filter((mark) => gone.has(mark.label)) : [];
    if (!hidden.length) return panel;
    const keep = (mark) => (hidden.some((each) => belongs(mark, each)) ? NOTHING : mark);
    return { ...panel, marks: panel.marks.map(keep) };
  }
  function explain(number, legend) {
    for (const mark of chart.panels[number].marks) {
      if (!mark.label) continue;
      const made = html(
        "button",
        { type: "button", "aria-pressed": !gone.has(mark.label) },
        legend,
      );
      made.style.visibility = holds(mark) ? "" : "hidden"; // with its room: nothing moves
      made.title = "Show or hide it";
      made.dataset.label = mark.label;
      const sign = svg("svg", { width: 20, height: 10, "aria-hidden": "true" }, made);
      const color = colorOf(mark, 0);
      const here = { x: () => 10, y: () => 5, left: 0, right: 20, top: 0, bottom: 10 };
      if (mark.kind === "line")
        svg(
          "path",
          {
            d: mark.step ? "M0 9H10V1H20" : "M0 5H20",
            fill: "none",
            stroke: color,
            "stroke-width": mark.step ? mark.width : Math.max(mark.width, 2),
            "stroke-dasharray": mark.dash || "none",
          },
          sign,
        );
      else if (mark.kind === "points") {
        const one = { shape: mark.shape, edge: mark.edge, color: pick(mark.color, 0) };
        DRAW.points({ ...one, x: [0], y: [0], size: 4.3 }, here, sign);
      } else
        svg(
          "rect",
          { x: 3, y: 0, width: 14, height: 10, fill: color, "fill-opacity": mark.opacity || 1 },
          sign,
        );
      made.append(mark.label);
      // A button that is drawn anew under a mouse at rest is not pointed at.
      made.onpointermove = () => highlight(number, gone.has(mark.label) ? null : mark);
      made.onpointerleave = () => highlight(number, null);
      made.onclick = () => {
        if (!gone.delete(mark.label)) gone.add(mark.label);
        draw();
        focusEntry(mark.label);
      };
    }
  }
  const entryOf = (part, label) =>
    label ? part.querySelector(`.legend [data-label="${CSS.escape(label)}"]`) : null;
  const focusEntry = (label) => entryOf(panels, label)?.focus({ preventScroll: true });

  // The place of a mark that lies under a point of a panel, in pixels; null: none.
  function struck(plan, point) {
    let found = null,
      least = Infinity;
    const take = (m, place, far) => {
      if (far < least) {
        least = far;
        found = { panel: plan.number, mark: m, place };
      }
    };
    plan.panel.marks.forEach((mark, m) => {
      if (!mark.texts) return;
      const count = COUNT[mark.kind]?.(mark) || 0;
      for (let k = 0; k < count; k++) {
        if (!textOf(plan.panel, mark, k)) continue;
        if (mark.kind === "points") {
          const reach = Math.max(NEAR, pick(mark.size, k)),
            dx = plan.x(mark.x[k]) - point[0];
          const far =
            Math.abs(dx) > reach ? Infinity : Math.hypot(dx, plan.y(mark.y[k]) - point[1]);
          if (far <= reach && LOCATE.points(mark, k, plan)) take(m, k, far / 1e3);
        } else if (
          ["bars", "spans", "cells"].includes(mark.kind) &&
          LOCATE[mark.kind](mark, k, plan)
        ) {
          const [x0, y0, x1, y1] = boxOf(mark, k, plan);
          if (point[0] >= x0 - 2 && point[0] <= x1 + 2 && point[1] >= y0 && point[1] <= y1)
            take(m, k, 1 + (x1 - x0) * (y1 - y0));
        } else if (mark.kind === "polylines") {
          const at = mark.x.map((value, c) =>
            known(mark.rows[k][c]) ? [plan.x(value), plan.y(mark.rows[k][c])] : null,
          );
          let far = Infinity;
          for (let c = 1; c < at.length; c++)
            if (at[c - 1] && at[c]) far = Math.min(far, away(point, at[c - 1], at[c]));
          if (far <= NEAR * NEAR) take(m, k, far / 1e3);
        }
      }
    });
    return found;
  }
  // Of each curve, the place whose x is nearest to the mouse, from top to bottom; lines of one name
  // are one curve.
  function beside(plan, [px, py]) {
    const found = [];
    plan.panel.marks.forEach((mark, m) => {
      if (mark.kind !== "line" || !mark.hover) return;
      let best = null,
        least = BESIDE;
      mark.x.forEach((value, k) => {
        const at = LOCATE.line(mark, k, plan),
          far = at ? Math.abs(at[0] - px) : Infinity;
        if (far < least) {
          least = far;
          best = { panel: plan.number, mark: m, place: k, y: at[1], off: Math.abs(at[1] - py) };
        }
      });
      if (!best || !textOf(plan.panel, mark, best.place)) return;
      const other = mark.label ? found.findIndex((each) => each.label === mark.label) : -1;
      if (other < 0) found.push({ ...best, label: mark.label, least });
      else if (least < found[other].least) found[other] = { ...best, label: mark.label, least };
    });
    if (found.length <= MOST_LINES) return found.sort((a, b) => a.y - b.y);
    return found.sort((a, b) => a.off - b.off).slice(0, 1);
  }
  function cell(plan, [px, py]) {
    for (const mark of plan.panel.marks) {
      if (mark.kind !== "cells" || !mark.names || !mark.values.length) continue;
      const c = Math.floor(
        ((plan.x.back(px) - mark.x0) / (mark.x1 - mark.x0)) * mark.values[0].length,
      );
      const r = Math.floor(
        ((plan.y.back(py) - mark.y0) / (mark.y1 - mark.y0)) * mark.values.length,
      );
      const value = mark.values[r]?.[c];
      if (known(value))
        return `${mark.names[0]} ${c + 1}, ${mark.names[1]} ${r + 1}: ${digits(100 * value, 3)} %`;
    }
    return "";
  }

  const markOf = ({ panel, mark }) => plans[panel]?.panel.marks[mark];
  const opens = (hit) => Boolean(hit && markOf(hit)?.opens?.[hit.place]);
  function point(hit, paint = true) {
    const plan = plans[hit.panel],
      mark = markOf(hit),
      at = LOCATE[mark.kind](mark, hit.place, plan);
    if (!paint || !at) return at;
    if (["bars", "spans", "cells"].includes(mark.kind)) {
      const [x0, y0, x1, y1] = boxOf(mark, hit.place, plan);
      const look =
        mark.kind !== "bars" || mark.opacity
          ? { fill: "none", stroke: "currentColor", "stroke-width": 1.4 }
          : { fill: "currentColor", "fill-opacity": 0.09, rx: 4 };
      svg(
        "rect",
        { x: x0 - 1, y: y0 - 1, width: x1 - x0 + 2, height: y1 - y0 + 2, ...look },
        plan.marks,
      );
    } else if (mark.kind === "polylines") {
      const all = { ...mark, rows: [mark.rows[hit.place]], colors: ["ink"], widths: [3] };
      DRAW.polylines(all, plan, plan.marks);
    } else if (mark.kind === "line") {
      svg(
        "circle",
        { cx: at[0], cy: at[1], r: 4, fill: inkOf(mark.color), stroke: "#fff" },
        plan.marks,
      );
    } else if (!isRinged(plan, mark, hit.place))
      svg(
        "circle",
        {
          cx: at[0],
          cy: at[1],
          r: pick(mark.size, hit.place) + 3,
          fill: "none",
          stroke: "currentColor",
          "stroke-width": 1.4,
        },
        plan.marks,
      );
    return at;
  }
  // Whether a mark of the chart is a ring around a place, which then needs no other one.
  const isRinged = ({ panel }, { x, y }, place) =>
    panel.marks.some(
      ({ shape, ...ring }) =>
        shape === "ring" && ring.x.some((at, k) => at === x[place] && ring.y[k] === y[place]),
    );
  // Places of other panels that stand for the same, such as a configuration.
  function kin(hit) {
    const number = markOf(hit)?.means?.[hit.place];
    if (!known(number)) return [];
    return plans.flatMap((plan) =>
      plan.panel.marks.flatMap((mark, m) =>
        (mark.means || []).flatMap((each, place) => {
          const other = { panel: plan.number, mark: m, place };
          if (each !== number || plan.number === hit.panel) return [];
          const at = LOCATE[mark.kind](mark, place, plan);
          return at &&
            within(at[0], [plan.left - 6, plan.right + 6]) &&
            within(at[1], [plan.top - 6, plan.bottom + 6])
            ? [other]
            : [];
        }),
      ),
    );
  }
  const clear = () => plans.forEach((plan) => plan.marks.replaceChildren());
  function hint(text, plan, [x, y] = [0, 0]) {
    tip.textContent = text;
    tip.style.display = text ? "block" : "none";
    if (!text) return;
    const outer = stage.getBoundingClientRect(),
      inner = plan.picture.getBoundingClientRect();
    const left = inner.left - outer.left + x,
      top = inner.top - outer.top + y,
      [across, down] = [tip.offsetWidth, tip.offsetHeight]; // before anything moves: one layout
    tip.style.left = `${Math.max(0, Math.min(left + 14, outer.width - across - 4))}px`;
    const below = top + 16 + down <= outer.height;
    tip.style.top = `${below ? top + 16 : Math.max(0, top - down - 12)}px`;
  }

  // The mouse: what lies under it, a click on it, a drag that zooms.
  function where({ clientX, clientY }) {
    for (const plan of plans) {
      const box = plan.picture.getBoundingClientRect(),
        at = [clientX - box.left, clientY - box.top];
      if (
        within(at[0], [plan.left - 6, plan.right + 6]) &&
        within(at[1], [plan.top - 6, plan.bottom + 6])
      )
        return [plan, at];
    }
    return [null, [0, 0]];
  }
  function hover(event) {
    const [plan, at] = where(event);
    clear();
    if (!plan) {
      hint("");
      return;
    }
    const hit = struck(plan, at),
      lines = hit ? [] : beside(plan, at);
    plan.ground.classList.toggle("opens", opens(hit));
    plan.ground.classList.toggle("moves", levelAt(plan, at) >= 0);
    if (hit) {
      for (const each of [hit, ...kin(hit)]) point(each);
      hint(textOf(plan.panel, markOf(hit), hit.place), plan, at);
    } else if (lines.length) {
      const [x] = point(lines[0], false),
        { shares } = plan.panel;
      for (const each of plans)
        if (each === plan || (shares && each.panel.shares === shares)) {
          const at = each.x(plan.x.back(x)),
            ends = { x1: at, x2: at, y1: each.top, y2: each.bottom };
          svg("line", { ...ends, class: "frame", "stroke-dasharray": "3 3" }, each.marks);
        }
      hint(
        lines
          .map((each) => {
            point(each);
            return textOf(plan.panel, markOf(each), each.place);
          })
          .join("\n"),
        plan,
        at,
      );
    } else hint(cell(plan, at), plan, at);
  }
  let drag = null,
    tap = null,
    tapped = null;
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  stage.addEventListener("pointerdown", (event) => {
    const [plan, from] = where(event);
    if (event.button || !plan || !event.target.closest("svg")) return;
    if (event.pointerType === "touch") {
      // a finger that moves scrolls the page
      tap = { plan, from };
      return;
    }
    drag = { plan, from, level: levelAt(plan, from) };
    event.target.setPointerCapture(event.pointerId);
  });
  stage.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch") return;
    mouse = { clientX: event.clientX, clientY: event.clientY };
    held = null;
    if (drag?.level >= 0) {
      moveLevel(drag, event);
      return;
    }
    if (!drag?.plan.panel.zoom) {
      hover(mouse);
      return;
    }
    const { plan, from } = drag,
      box = plan.picture.getBoundingClientRect();
    drag.to = [
      clamp(event.clientX - box.left, plan.left, plan.right),
      clamp(event.clientY - box.top, plan.top, plan.bottom),
    ];
    drag.tall = !plan.panel.y.ticks && Math.abs(drag.to[1] - from[1]) >= 12;
    clear();
    hint("");
    if (Math.abs(drag.to[0] - from[0]) < 6) return;
    svg(
      "rect",
      {
        x: Math.min(from[0], drag.to[0]),
        width: Math.abs(drag.to[0] - from[0]),
        y: drag.tall ? Math.min(from[1], drag.to[1]) : plan.top,
        height: drag.tall ? Math.abs(drag.to[1] - from[1]) : plan.bottom - plan.top,
        fill: "currentColor",
        "fill-opacity": 0.15,
      },
      plan.marks,
    );
  });
  // The level that can be dragged from a place; -1: none.
  const levelAt = ({ panel, y }, at) =>
    panel.marks.findIndex((mark) => mark.moves && Math.abs(y(mark.y) - at[1]) <= GRIP);
  function moveLevel({ plan, level }, event) {
    const at = event.clientY - plan.picture.getBoundingClientRect().top,
      value = plan.y.back(clamp(at, plan.top, plan.bottom));
    tell({ kind: "move", serial: chart.serial, panel: plan.number, mark: level, value });
    clear();
    hint("");
  }
  // A tap shows what lies there, a second one on the same place chooses it.
  function touched(event) {
    const [plan, at] = where(event),
      hit = plan && struck(plan, at);
    if (hit && opens(hit) && tapped && same(hit, tapped)) choose(hit);
    tapped = hit;
    hover(event);
  }
  stage.addEventListener("pointercancel", () => {
    tap = null;
  });
  stage.addEventListener("pointerup", (event) => {
    if (tap) {
      tap = null;
      touched(event);
      return;
    }
    const done = drag;
    drag = null;
    if (!done || done.level >= 0) return;
    const { plan, from, to } = done,
      { panel, number } = plan;
    if (to && Math.abs(to[0] - from[0]) >= 6) {
      const ends = (name, k) => {
        const found = [from, to].map((each) => plan[name].back(each[k])).sort((a, b) => a - b);
        return panel[name].domain[0] > panel[name].domain[1] ? found.reverse() : found;
      };
      const shared = panel.shares || number;
      zoom[shared] = { ...zoom[shared], x: ends("x", 0) };
      if (done.tall) zoom[number] = { ...zoom[number], y: ends("y", 1) };
      draw();
    } else {
      const [under, at] = where(event),
        hit = under && struck(under, at);
      if (opens(hit)) choose(hit);
    }
  });
  stage.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "touch") return;
    mouse = null;
    if (drag) return;
    clear();
    hint("");
  });
  stage.addEventListener("dblclick", () => {
    if (!Object.keys(zoom).length) return;
    zoom = {};
    draw();
  });
  function choose({ panel, mark, place }) {
    tell({ kind: "click", serial: chart.serial, panel, mark, place });
  }

  const isPart = () => Object.keys(zoom).length > 0 || gone.size > 0 || Boolean(lit);
  // Shows all again; false: nothing was zoomed or hidden.
  function whole() {
    if (!isPart()) return false;
    zoom = {};
    gone.clear();
    draw();
    return true;
  }

  // Keys: arrows go from place to place, page up and down from mark to mark, Enter chooses one,
  // Escape shows all again.
  function places() {
    stops ??= plans.flatMap((plan) =>
      plan.panel.marks.flatMap((mark, m) => {
        const count = COUNT[mark.kind]?.(mark) || 0,
          found = [];
        for (let k = 0; k < count; k++) {
          const says = mark.hover || textOf(plan.panel, mark, k),
            at = says && LOCATE[mark.kind](mark, k, plan);
          if (
            at &&
            within(at[0], [plan.left - 6, plan.right + 6]) &&
            within(at[1], [plan.top - 6, plan.bottom + 6])
          )
            found.push({ panel: plan.number, mark: m, place: k, at });
        }
        return found;
      }),
    );
    return stops;
  }
  function step(key) {
    const all = places(),
      begins = (each) => (held ? same(each, held) : markOf(each).chosen === each.place),
      from = all.findIndex(begins);
    if (from < 0) return all[0];
    const here = all[from];
    const alike = (each) => each.panel === here.panel && each.mark === here.mark;
    if (key === "Home") return all[0];
    if (key === "End") return all.at(-1);
    if (key.startsWith("Page")) {
      const [way, groups] = [
        key === "PageDown" ? 1 : -1,
        all.filter(
          (each, k) => !k || each.panel !== all[k - 1].panel || each.mark !== all[k - 1].mark,
        ),
      ];
      const at = groups.findIndex(alike);
      return groups[clamp(at + way, 0, groups.length - 1)];
    }
    const [right, down] = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
    }[key];
    if (right && markOf(here).kind === "line") {
      const own = all.filter(alike);
      return own[clamp(own.indexOf(here) + right, 0, own.length - 1)];
    }
    const isGrid = markOf(here).kind === "cells"; // keys keep to a row or column, and end there
    let best = isGrid ? here : null,
      least = Infinity;
    for (const each of all) {
      if (each.panel !== here.panel) continue;
      const dx = each.at[0] - here.at[0],
        dy = each.at[1] - here.at[1];
      const ahead = dx * right + dy * down,
        aside = Math.abs(dx * down + dy * right),
        far = ahead + 3 * aside;
      if (ahead > 0.5 && far < least && !(isGrid && aside > 0.5)) {
        best = each;
        least = far;
      }
    }
    return best || all[clamp(from + right + down, 0, all.length - 1)];
  }
  function sayHeld() {
    clear();
    const mark = markOf(held),
      plan = plans[held.panel],
      count = COUNT[mark?.kind]?.(mark) || 0; // the chart may be another one now
    const at = held.place < count && LOCATE[mark.kind](mark, held.place, plan);
    if (!at) {
      hint("");
      return;
    }
    for (const each of [held, ...kin(held)]) point(each);
    hint(textOf(plan.panel, mark, held.place), plan, at);
  }
  panels.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !plans.length) return;
    const entry = event.target.closest(".legend button")?.dataset.label;
    if (event.target !== panels && !(entry && event.key === "Escape")) return;
    if (event.key === "Enter") {
      if (!held) return;
      if (opens(held)) choose(held);
    } else if (event.key === "Escape") {
      // to all that there is, else to what was before
      if (!held && !isPart()) return;
      held = null;
      if (!whole()) draw();
      if (entry) focusEntry(entry);
    } else if (/^(Arrow|Page|Home$|End$)/.test(event.key)) {
      const next = step(event.key);
      if (!next) return;
      hold(next);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  panels.addEventListener("blur", () => {
    clear();
    hint("");
  });

  draw();
  const watch = new ResizeObserver(() => {
    if (!root.clientWidth || Math.abs(root.clientWidth - size) < 4) return;
    size = root.clientWidth;
    draw();
  });
  watch.observe(root);
  const restyled = () => {
    darken();
    if (chart.picture) draw();
  };
  const theme = new MutationObserver(restyled);
  theme.observe(document.body, { attributeFilter: ["data-jp-theme-light"] });
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", restyled);
  function load(fresh) {
    const about = () => {
        const names = chart.panels.map(({ title, x, y }) => [title, x.label, y.label]);
        return [chart.title, ...names].join("|");
      },
      before = about();
    chart = fresh;
    if (before !== about()) zoom = {};
    draw();
  }
  function change(panel, mark, values) {
    const { marks } = chart.panels[panel],
      plan = plans[panel],
      hidden = plan.panel.marks[mark] === NOTHING;
    marks[mark] = { ...marks[mark], ...values };
    stops = null;
    const entry = entryOf(plan.picture.parentNode, marks[mark].label);
    if (entry) entry.style.visibility = holds(marks[mark]) ? "" : "hidden";
    if (hidden) return;
    plan.panel.marks[mark] = marks[mark];
    drawMark(plan, mark);
  }
  function hold(hit) {
    [held, mouse] = [hit, null];
    sayHeld();
  }
  // For tests: what is shown, and the position of the place with a tooltip.
  const find = (text) => {
    const hit = places().find((each) =>
      textOf(plans[each.panel].panel, markOf(each), each.place).includes(text),
    );
    if (!hit) return null;
    plans[hit.panel].picture.scrollIntoView({ block: "nearest" });
    const box = plans[hit.panel].picture.getBoundingClientRect();
    return [box.left + hit.at[0], box.top + hit.at[1]];
  };
  root.view = { find, load, change, hold, whole, shown: () => ({ chart, plans, held }) };
  const close = () => {
    watch.disconnect();
    theme.disconnect();
    scheme.removeEventListener("change", restyled);
    root.remove();
  };
  return { ...root.view, close };
}

// Charts that a page holds for every setting of some controls: `pages` has each chart once, with
// its label, `which` the number of the page for each choice, the last control moving fastest, and
// `hidden` the controls that do not matter to it. The page's address holds the choice, so that a
// link restores it.
const REST_OF_BOOK = 120; // milliseconds without a move after which the address changes
const MOST_TURNS = 64; // choices that can be undone
function mountBook(el, { controls, pages, which, hidden, note, state }) {
  const first = controls.map((each) => each.at),
    past = [];
  let now = asked(),
    timer = 0,
    ours = location.hash;
  const place = () => now.reduce((sum, at, k) => sum * controls[k].texts.length + at, 0);
  const page = () => ({ ...pages[which[place()]], ...state });
  // The choice that the address names, as far as there is such a one.
  function asked() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    return controls.map(({ name, texts }, k) => {
      const at = texts.indexOf(wanted.get(name));
      return at < 0 ? first[k] : at;
    });
  }
  function address() {
    if (location.hash !== ours) return; // a link was followed, which is read next
    const chosen = controls.map(({ name, texts }, k) => [name, texts[now[k]]]);
    history.replaceState(null, "", `#${new URLSearchParams(chosen)}`);
    ours = location.hash;
  }
  const bar = html("div", { class: "replay-view replay-book" }, el);
  html("style", {}, bar, LOOK + BOOK_STYLE);
  const words = el.parentElement?.querySelector("[role=status]"),
    view = mountChart(el, page());
  function show(next) {
    now = next;
    lines.forEach(({ line, put }, k) => {
      line.hidden = hidden[place()].includes(k);
      put(now[k]);
    });
    undoes.disabled = !past.length;
    view.load(page());
    if (words) words.textContent = page().label;
  }
  function remember(before) {
    past.push(before);
    if (past.length > MOST_TURNS) past.shift();
  }
  // A move of a control; those of one slider in a row are one change.
  function turn(k, at) {
    if (controls[k].kind !== "slider" || past.at(-1)?.k !== k) remember({ k, now });
    show(now.map((each, i) => (i === k ? at : each)));
    settle();
  }
  function settle() {
    clearTimeout(timer);
    timer = setTimeout(address, REST_OF_BOOK); // browsers refuse one that changes at every move
  }
  const lines = controls.map(({ label, kind, texts }, k) => {
    const line = html("label", {}, bar);
    if (kind === "box") {
      const box = html("input", { type: "checkbox" }, line);
      box.onchange = () => turn(k, box.checked ? 1 : 0);
      html("span", {}, line, label);
      return { line, put: (at) => (box.checked = at === 1) };
    }
    html("span", {}, line, label);
    if (kind === "list") {
      const list = html("select", {}, line);
      list.disabled = texts.length < 2; // it states the only value that this page has
      texts.forEach((text, value) => html("option", { value }, list, text));
      list.onchange = () => turn(k, +list.value);
      return { line, put: (at) => (list.value = at) };
    }
    const most = texts.length - 1;
    const slide = html("input", { type: "range", min: 0, max: most, step: 1 }, line);
    const shown = html("output", {}, line);
    slide.oninput = () => turn(k, +slide.value);
    const put = (at) => {
      slide.value = at;
      shown.textContent = texts[at];
      slide.setAttribute("aria-valuetext", texts[at]);
    };
    return { line, put };
  });
  const undoes = html(
    "button",
    { type: "button", title: "Back to the choice before (Escape)" },
    bar,
    "Undo",
  );
  function undo() {
    if (!past.length) return;
    show(past.pop().now);
    settle();
  }
  undoes.onclick = undo;
  // The chart takes the key first, where it shows a part of itself.
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") undo();
  });
  if (note) html("p", {}, bar, note);
  addEventListener("hashchange", () => {
    clearTimeout(timer);
    ours = location.hash;
    const next = asked();
    if (next.some((at, k) => at !== now[k])) remember({ now });
    show(next);
  });
  show(now);
  return view;
}
