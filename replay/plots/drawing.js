// What all views that the browser draws share: numbers as texts, scales and parts of pictures.
//
// It stands before the text of each of them; see `scripts.py`.

const INKS = { light: ["#222222", "#ffffff"], dark: ["#e6e6e6", "#111418"] };

// Colours of curves, and what they are on a dark ground; `medium.py` has the same.
const LIGHTER = {
  "#0072b2": "#5387fb",
  "#d55e00": "#df6e2b",
  "#009e73": "#2cd78d",
  "#cc79a7": "#c46f9e",
  "#e69f00": "#ebd016",
  "#56b4e9": "#b8e1ff",
};
// A colour that the style of a dark view makes lighter.
function inked(color) {
  const hue = color.slice(0, 7).toLowerCase();
  if (!LIGHTER[hue]) return color;
  const solid = `var(--on-${hue.slice(1)}, ${hue})`;
  if (color.length === 7) return solid;
  const share = Math.round(parseInt(color.slice(7), 16) / 2.55);
  return `color-mix(in srgb, ${solid} ${share}%, transparent)`;
}
const LIGHTEN = Object.entries(LIGHTER)
  .map(([hue, lighter]) => `--on-${hue.slice(1)}: ${lighter};`)
  .join(" ");

const LOOK = `
@media screen {
  .replay-view.on-dark {
    ${LIGHTEN}
  }
}
.replay-view {
  font:
    13px/1.45 system-ui,
    -apple-system,
    "Segoe UI",
    sans-serif;
  max-width: 1400px;
  padding: 2px 2px 6px;
  box-sizing: border-box;
}
.replay-view * {
  box-sizing: border-box;
}
.replay-view .stage {
  position: relative;
}
.replay-view svg {
  display: block;
  touch-action: pan-y;
  user-select: none;
  -webkit-user-select: none;
}
.replay-view svg text {
  fill: currentColor;
  font-size: 11.5px;
}
.replay-view svg text.head {
  font-size: 13px;
  font-weight: 600;
}
.replay-view svg .frame {
  fill: none;
  stroke: currentColor;
  stroke-opacity: 0.35;
}
.replay-view svg .grid {
  stroke: currentColor;
  stroke-opacity: 0.13;
}
.replay-view svg .panel {
  cursor: crosshair;
  fill: transparent;
}
.replay-view .tip {
  position: absolute;
  display: none;
  pointer-events: none;
  z-index: 9;
  padding: 4px 8px;
  border-radius: 5px;
  white-space: pre;
  max-width: 360px;
  background: #1b1b1b;
  color: #fff;
  border: 1px solid #777;
  font-size: 12px;
}
@media print {
  .replay-view,
  .replay-chart {
    --ground: #fff !important;
    color: #222 !important; /* paper is white, whatever the theme */
    background: none !important;
  }
}
`;

// The digits and the exponent of a value, rounded as Python does: a half goes to the even digit.
function rounded(value, count) {
  const exact = value.toExponential(40),
    [digits, power] = exact.split("e");
  const rest = digits.replace(/[-.]/g, "").slice(count);
  const [mantissa, exponent] = value.toExponential(count - 1).split("e");
  if (!/^50*$/.test(rest) || power !== exponent) return [mantissa, +exponent];
  const cut = digits.replace(/^-/, "").replace(".", "").slice(0, count); // exactly a half
  if (+cut.at(-1) % 2) return [mantissa, +exponent];
  return [`${value < 0 ? "-" : ""}${cut[0]}${count > 1 ? `.${cut.slice(1)}` : ""}`, +exponent];
}
// As Python's format: `count` significant digits, without zeros at the end.
function digits(value, count) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (value === 0) return "0";
  const [mantissa, exponent] = rounded(value, count);
  if (exponent >= -4 && exponent < count) return String(Number(`${mantissa}e${exponent}`));
  const size = String(Math.abs(exponent)).padStart(2, "0");
  return `${+mantissa}e${exponent < 0 ? "-" : "+"}${size}`;
}
// Three digits, thousands as k and millions as M.
function short(value) {
  const size = Math.abs(value);
  if (!Number.isFinite(value) || size >= 1e9 || (size > 0 && size < 1e-3))
    return digits(value, 3).replace(/e([+-])0?/, (_, sign) => `e${sign === "-" ? "-" : ""}`);
  for (const [unit, letter] of [
    [1e6, "M"],
    [1e3, "k"],
  ]) {
    if (size >= 0.9995 * unit) return `${Number(digits(value / unit, 3))}${letter}`;
  }
  return `${Number(digits(value, 3))}`;
}
// What is written at the ticks of one axis, all in one notation, as `ticks.py` does.
function tickTexts(values) {
  const most = Math.max(0, ...values.map(Math.abs)),
    shown = values.map((value) => (Math.abs(value) <= 1e-12 * most ? 0 : value)),
    sizes = shown.map(Math.abs).filter((size) => size > 0);
  if (sizes.some((size) => size >= 1e9 || size < 1e-4))
    return shown.map((value) => {
      const [digits, power] = value.toExponential(9).split("e");
      return value ? `${+digits}e${+power}` : "0";
    });
  return shown.map((value) => {
    const [unit, letter] = [
      [1e6, "M"],
      [1e3, "k"],
    ].find(([size]) => most >= 1e4 && Math.abs(value) >= size) || [1, ""];
    return `${+(value / unit).toPrecision(10)}${letter}`;
  });
}
// A value with its interval, where there is one.
function ranged(value, low, high) {
  if (!Number.isFinite(low) && !Number.isFinite(high)) return digits(value, 4);
  const tiny = Number.isFinite(high - low) ? 1e-9 * (high - low) : 0; // what rounding left of 0
  const [middle, from, to] = [value, low, high].map((each) =>
    digits(Math.abs(each) < tiny ? 0 : each, 4),
  );
  return `${middle} [${from}, ${to}]`;
}

// A count with its noun.
const counts = new Intl.NumberFormat("en-US");
const amount = (count, noun, plural = `${noun}s`) =>
  `${counts.format(count)} ${count === 1 ? noun : plural}`;

function linear(from, to, start, end) {
  const scale = (value) => start + ((value - from) / (to - from)) * (end - start);
  scale.back = (pixel) => from + ((pixel - start) / (end - start)) * (to - from);
  return scale;
}
function evenTicks(from, to, most) {
  const rough = (to - from) / most,
    unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * unit).find((each) => each >= rough);
  const found = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to + 1e-9 * step; k++)
    found.push(+(k * step).toPrecision(12));
  return found;
}
function ratios(from, to, start, end) {
  const scale = linear(Math.log(from), Math.log(to), start, end),
    made = (value) => scale(Math.log(value));
  made.back = (pixel) => Math.exp(scale.back(pixel));
  return made;
}
function ratioTicks(from, to, most) {
  if (to / from < 4) return evenTicks(from, to, most);
  for (const steps of [[1, 2, 5], [1, 3], [1]]) {
    for (const skip of steps.length > 1 ? [1] : [1, 2, 3, 4]) {
      const found = [];
      for (let power = Math.floor(Math.log10(from)); 10 ** power <= to; power++) {
        if (power % skip === 0) steps.forEach((each) => found.push(each * 10 ** power));
      }
      const inside = found.filter((each) => each >= from && each <= to);
      if (inside.length <= most) return inside;
    }
  }
  return [from, to];
}

// A colour as red, green and blue, and one between those of a ramp.
const parsed = (hex) => [1, 3, 5].map((from) => parseInt(hex.slice(from, from + 2), 16));
function mixed(ramp, value, least, most) {
  const share = Math.min(Math.max((value - least) / (most - least || 1), 0), 1) * (ramp.length - 1);
  const from = Math.min(Math.floor(share), ramp.length - 2);
  return [0, 1, 2].map((part) =>
    Math.round(ramp[from][part] + (share - from) * (ramp[from + 1][part] - ramp[from][part])),
  );
}
// Black or white, whichever is easier to read on a colour.
function readable(rgb) {
  const [r, g, b] = rgb
    .map((part) => part / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}

const NS = "http://www.w3.org/2000/svg";
// A part of a picture. A parent that is drawn again, as `{ put }` of `redraw`, reuses its parts.
function svg(name, attributes, parent, text) {
  if (parent?.put) return parent.put(name, attributes, text);
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent?.append(made);
  return made;
}
function html(name, attributes, parent, text) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent?.append(made);
  return made;
}
// Draw the children of a group again: `put` makes a child as `svg` does, but reuses the one that is
// there and changes only what differs, so that the browser has little to style and paint.
function redraw(parent, paint) {
  let next = parent.firstChild;
  paint((name, attributes, text = "") => {
    let made = next;
    if (made?.localName === name) next = made.nextSibling;
    else {
      made = parent.insertBefore(document.createElementNS(NS, name), next);
      made.kept = {};
      made.words = "";
    }
    for (const key of Object.keys(made.kept)) {
      if (key in attributes) continue;
      made.removeAttribute(key);
      delete made.kept[key];
    }
    for (const [key, value] of Object.entries(attributes)) {
      if (made.kept[key] === value) continue;
      made.kept[key] = value;
      made.setAttribute(key, value);
    }
    if (made.words !== text) made.textContent = made.words = text;
    return made;
  });
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}
// Set the text of a node, if it differs.
function write(node, text) {
  if (node.textContent !== String(text)) node.textContent = text;
}
// Says in words above a live view that its kernel is gone, or that no message reaches it; the view
// stays as it is. Returns what stops listening. `model` is anywidget's; front ends other than
// Jupyter's may have no `kernel`, and tell of its end by the event of widgets alone.
const ENDS = ["restarting", "autorestarting", "dead"];
function watchKernel(model, el) {
  const line = html("div", { role: "status", style: "font: 13px/1.45 system-ui, sans-serif" });
  el.prepend(line);
  let gone = false;
  const say = (text) => {
    line.textContent = text;
    line.style.borderLeft = text ? "4px solid #d55e00" : "";
    line.style.padding = text ? "3px 9px" : "";
  };
  const ended = () => {
    if (gone) return;
    gone = true;
    const now = new Date().toLocaleTimeString();
    say(
      `The kernel is gone (${now}). ` +
        "What is shown stays as it was then; run the cell again to go on.",
    );
  };
  const status = (_, now) => {
    if (ENDS.includes(now)) ended();
  };
  const connection = (_, now) => {
    if (!gone)
      say(now === "connected" ? "" : "No connection to the kernel: what is shown may be old.");
  };
  const kernel = model.widget_manager?.kernel;
  kernel?.statusChanged?.connect(status);
  kernel?.connectionStatusChanged?.connect(connection);
  kernel?.disposed?.connect(ended);
  model.on("comm_live_update", ended);
  return () => {
    kernel?.statusChanged?.disconnect(status);
    kernel?.connectionStatusChanged?.disconnect(connection);
    kernel?.disposed?.disconnect(ended);
    model.off("comm_live_update", ended);
    line.remove();
  };
}
