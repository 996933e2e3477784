// The budgets of a task and model, drawn from arrays; nothing here estimates a number.
//
// `mount(el, bytes, state, tell)` knows nothing of Jupyter, so that widgets, pages and saved
// notebooks use this same file. `bytes` is what `budget_arrays.pack` makes (a DataView): the length
// of a JSON head (uint32, little endian), the head, and float64 columns that it refers to by place.
// `state` has generations, children, calls, tau, axis, map, task, model and runs (the identifiers
// of those that are drawn one by one); tell(state) says that somebody moved something. It returns
// `load(bytes)`, `set(state)` and `close()`.

const COLOURS = ["#d55e00", "#0072b2", "#009e73"]; // choice, twice as deep, twice as broad
const RUN_COLOURS = ["#cc79a7", "#e69f00", "#56b4e9"]; // of runs that are drawn one by one
const RUN_DASHES = ["none", "12 3", "12 3 5 3", "16 3 5 3 5 3"]; // of the first three, and so on
const MOST_RUNS = 12,
  MOST_LISTED = 40; // that can be chosen, that are listed of a split
const CIVIDIS = "00224e 002e6a 1a386f 32436d 434e6c 535a6d 61656f 6f7073 7d7c78 "
  .concat("8c8878 9b9476 aba072 bcae6c cdbb63 dec958 f0d846 fee838")
  .split(" ")
  .map((hex) => parsed(`#${hex}`));
const MOST_PAST = 64; // choices that can be undone
const MOST_POINTS = 120; // that are drawn of a curve
const PAUSE = 80; // milliseconds that a slider stands still before the long texts follow

const STYLE = `
.replay-view .stage.fixed {
  contain: strict;
}
.replay-view svg.over {
  position: absolute;
  left: 0;
  top: 0;
  pointer-events: none;
}
.replay-view .controls {
  display: flex;
  flex-wrap: wrap;
  gap: 6px 22px;
  margin: 2px 0 8px;
}
.replay-view .controls label {
  flex: 1 1 230px;
  max-width: 100%;
}
.replay-view .controls label.list {
  flex-basis: auto; /* the longest choice is shown whole */
}
.replay-view label {
  display: flex;
  align-items: center;
  gap: 8px;
  min-width: 0;
}
.replay-view label > span:first-child {
  white-space: nowrap;
  opacity: 0.85;
}
.replay-view input[type="range"] {
  flex: 1;
  min-width: 60px;
  height: 22px;
  margin: 0;
  accent-color: #0072b2;
  cursor: pointer;
}
.replay-view output {
  min-width: 2.6em;
  text-align: right;
  font-variant-numeric: tabular-nums;
  font-weight: 600;
}
.replay-view select,
.replay-view input[type="number"] {
  font: inherit;
  color: inherit;
  background: transparent;
  border: 1px solid color-mix(in srgb, currentColor 55%, transparent);
  border-radius: 5px;
  padding: 2px 5px;
  min-width: 0;
}
.replay-view select {
  flex: 1;
}
.replay-view option {
  color: #222;
  background: #fff;
}
.replay-view input[type="number"] {
  width: 6.2em;
}
.replay-view .chips {
  display: flex;
  flex-wrap: wrap;
  gap: 4px 8px;
  margin: 0 0 4px;
}
.replay-view button {
  font: inherit;
  color: inherit;
  background: transparent;
  border: 1px solid color-mix(in srgb, currentColor 30%, transparent);
  border-radius: 999px;
  padding: 1px 11px;
  cursor: pointer;
  white-space: nowrap;
  flex: none;
  max-width: 100%;
  overflow: hidden;
  text-overflow: ellipsis;
  font-variant-numeric: tabular-nums;
}
.replay-view button:hover:not(:disabled) {
  background: color-mix(in srgb, currentColor 9%, transparent);
}
.replay-view button:disabled {
  cursor: default;
}
.replay-view button i {
  display: inline-block;
  width: 10px;
  height: 10px;
  border-radius: 2px;
  margin-right: 6px;
}
.replay-view svg .cell {
  cursor: pointer;
}
.replay-view svg g.cells:focus-visible {
  outline: 2px solid #0072b2;
  outline-offset: 3px;
}
.replay-view .runs {
  margin: 6px 0 0;
}
.replay-view .runs .chips {
  max-height: 96px;
  overflow: auto;
  margin: 3px 0 0;
  padding: 1px;
}
.replay-view .runs b {
  margin-right: 8px;
}
.replay-view .runs button[aria-pressed="true"] {
  border-color: currentColor;
  font-weight: 600;
}
.replay-view .words {
  margin: 6px 0 4px;
  max-width: 110ch;
}
.replay-view .code {
  display: flex;
  gap: 8px;
  align-items: baseline;
  flex-wrap: wrap;
}
.replay-view .code button:disabled {
  opacity: 0.5;
}
.replay-view .code code {
  flex: 1 1 320px;
  min-width: 0;
  font-size: 12px;
  overflow-wrap: anywhere;
}
`;

function unpack(view) {
  const length = view.getUint32(0, true),
    start = view.byteOffset + 4;
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(view.buffer, start, length)));
  const floats = new Float64Array(
    view.buffer.slice(start + length, view.byteOffset + view.byteLength),
  );
  const runs = new Map();
  for (const [N, { names }] of Object.entries(head.strata))
    names.forEach((name, at) => runs.set(name, { N: +N, at }));
  const cut = common([...runs.keys()]);
  return {
    ...head,
    runs,
    cut,
    column: ([first, count]) => floats.subarray(first, first + count),
    counted: new Map(),
  };
}

// Make T, N and C agree after one of them was moved, as `replay.explorers.budget.link` does.
export function link(moved, state, rows, columns) {
  let { generations: T, children: N } = state;
  const C = state.calls;
  if (["generations", "children", "calls"].includes(moved) && T * N !== C) {
    const splits = rows
      .filter((n) => C % n === 0 && columns.includes(C / n))
      .map((n) => [C / n, n]);
    const [part, want] = moved === "generations" ? [0, T] : [1, N];
    if (moved === "calls" || (splits.length > 1 && (C % want === 0 || want > C))) {
      const away = (split) => Math.abs(Math.log(split[part] / want));
      [T, N] = splits.reduce((best, each) => (away(each) < away(best) ? each : best));
    }
  }
  return { ...state, generations: T, children: N, calls: T * N };
}

// How many runs of a size have reached tau after each generation, counted once for each tau.
function reached(data, N, tau) {
  const kept = data.counted.get(N);
  if (kept && kept.tau === tau) return kept.hits;
  const { depth, runs } = data.strata[N],
    hits = new Int32Array(depth + 2);
  for (const [begins, values] of runs) {
    const from = data.column(begins),
      best = data.column(values);
    best.forEach((value, k) => {
      if (!(value >= tau)) return;
      hits[from[k]] += 1;
      hits[k + 1 < from.length ? from[k + 1] : depth + 1] -= 1;
    });
  }
  for (let g = 1; g <= depth; g++) hits[g] += hits[g - 1];
  data.counted.set(N, { tau, hits });
  return hits;
}

const bands = (T) => ({
  value: new Float64Array(T).fill(NaN),
  low: new Float64Array(T).fill(NaN),
  high: new Float64Array(T).fill(NaN),
});

// The curves of a split after generations 1 to T; null where it is not known.
function splitOf(data, state, T, N) {
  const row = data.sizes.indexOf(N),
    column = data.columns.indexOf(T);
  const at = row * data.columns.length + column;
  if (row < 0 || column < 0 || !data.cells.kinds[at]) return null;
  const stratum = data.strata[N],
    logged = Math.min(stratum ? stratum.depth : 0, T);
  const fitness = bands(T),
    share = bands(T),
    parts = ["value", "low", "high"];
  if (logged) {
    parts.forEach((name, k) =>
      fitness[name].set(data.column(stratum.mean[k]).subarray(1, logged + 1)),
    );
    const hits = reached(data, N, state.tau),
      n = data.column(stratum.n);
    for (let g = 1; g <= logged; g++) {
      share.value[g - 1] = hits[g] / n[g];
      const limits = data.shares[n[g]];
      if (!limits) continue;
      share.low[g - 1] = data.column(limits[0])[hits[g]];
      share.high[g - 1] = data.column(limits[1])[hits[g]];
    }
  }
  const predicted = data.predicted.sizes[N],
    waits = logged < T && data.predicted.tau !== state.tau;
  if (logged < T) {
    parts.forEach((name, k) => {
      fitness[name].set(data.column(predicted.mean[k]).subarray(logged + 1, T + 1), logged);
      if (!waits)
        share[name].set(data.column(predicted.share[k]).subarray(logged + 1, T + 1), logged);
    });
  }
  const x = new Float64Array(T),
    place = data.costs[state.axis]?.[N];
  const cost = place ? data.column(place) : null;
  for (let g = 1; g <= T; g++) x[g - 1] = cost ? cost[g - 1] : state.axis === "calls" ? g * N : g;
  const counts = logged ? data.column(stratum.n).subarray(1, logged + 1) : [],
    whole = counts.filter((each) => each === counts[0]).length;
  const n = logged === T ? counts[T - 1] : predicted.n;
  const [tip, costs, behind] = data.cells.words[at];
  return {
    generations: T,
    children: N,
    x,
    fitness,
    reached: share,
    logged,
    whole, // of the logged points, those that rest on all runs
    of: counts[0],
    n,
    waits,
    tip,
    costs,
    behind,
  };
}

// A logged run by its identifier: where it lies, and its best fitness after a generation.
function runOf(data, name) {
  const found = data.runs.get(name);
  if (!found) return null;
  const { runs, depths } = data.strata[found.N],
    [from, best] = runs[found.at].map(data.column);
  return { name, N: found.N, depth: depths[found.at], from, best };
}
function bestAfter({ from, best }, g) {
  let k = 0;
  while (k + 1 < from.length && from[k + 1] <= g) k += 1;
  return best[k];
}
// The runs of a split with their best fitness there, the best first.
function runsOf(data, T, N) {
  const names = data.strata[N]?.names || [];
  const deep = names.map((name) => runOf(data, name)).filter((run) => run.depth >= T);
  const found = deep.map((run) => ({ name: run.name, value: bestAfter(run, T) }));
  const rank = ({ value }) => (Number.isNaN(value) ? -Infinity : value);
  return found.sort((a, b) => (rank(a) === rank(b) ? 0 : rank(b) - rank(a)));
}
// The part that all names begin with, up to a mark between words.
function common(names) {
  if (names.length < 2) return 0;
  let size = 0;
  while (names.every((each) => size < each.length && each[size] === names[0][size])) size += 1;
  while (size && !"-/_ ".includes(names[0][size - 1])) size -= 1;
  return size;
}

function last({ value, low, high }) {
  const end = value.length - 1;
  return Number.isNaN(value[end])
    ? "unknown, as some run has nothing ok yet"
    : ranged(value[end], low[end], high[end]);
}

// The choice, its costs and its neighbours in sentences.
function wordsOf(data, state, splits) {
  const [split, ...others] = splits;
  const { generations: T, children: N } = state;
  if (!split) {
    const why = data.fitted
      ? "it is too far from what was logged to be predicted"
      : "nothing is predicted here, or not yet";
    return `T = ${T}, N = ${N} was never run, and ${why}`;
  }
  const isLogged = (each) => each.logged === each.generations;
  const source = isLogged(split)
    ? `n = ${amount(split.n, "run")}, logged`
    : `never run: the kernel's prediction for the mean of ${amount(split.n, "run")}`;
  const share = split.waits ? "that the kernel is still computing" : last(split.reached);
  const text = [
    `${data.task}, ${data.model}: T = ${amount(T, "generation")} of ` +
      `N = ${amount(N, "child", "children")} (C = ${amount(T * N, "call")}) ` +
      `have a mean best fitness of ${last(split.fitness)} (${source}).`,
    `A run reaches τ = ${digits(state.tau, 6)} with probability ${share}.`,
    `A run costs ${split.costs}.`,
  ];
  if (isLogged(split) && split.n < split.of)
    text.push(
      `Of ${split.of} runs of N = ${N}, ${split.n} go on so far: where the curve is thin it is ` +
        `the mean of those that go on, which may fall.`,
    );
  if (split.behind) text.push(split.behind);
  others.forEach((other, k) => {
    if (!other) return;
    const name = data.names[k + 1],
      kind = isLogged(other) ? "" : " (predicted)";
    text.push(
      `${name[0].toUpperCase()}${name.slice(1)}, T = ${other.generations} ` +
        `and N = ${other.children}: ${last(other.fitness)}${kind}.`,
    );
  });
  const runs = state.runs
    .map((name) => runOf(data, name))
    .filter(Boolean)
    .map((run) => {
      const after = Math.min(T, run.depth),
        value = bestAfter(run, after);
      const reached = Number.isNaN(value) ? "nothing ok" : digits(value, 4);
      return `${run.name}, ${reached} after T = ${after}`;
    });
  if (runs.length) text.push(`Runs chosen: ${runs.join("; ")}.`);
  const seen = splits.filter(Boolean),
    all = seen.every(isLogged),
    none = !seen.some(isLogged);
  text.push(data.brackets[all ? "logged" : none ? "predicted" : "both"]);
  return text.join(" ");
}

const quoted = (text) =>
  text.includes("'") && !text.includes('"')
    ? `"${text}"`
    : `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

// Indices of a curve that are drawn: all, or evenly spread on a logarithmic scale, ends included.
function thinned(first, count) {
  if (count <= MOST_POINTS) return Array.from({ length: count }, (_, k) => first + k);
  const found = new Set();
  for (let k = 0; k < MOST_POINTS; k++)
    found.add(first + Math.round(count ** (k / (MOST_POINTS - 1))) - 1);
  return [...found];
}

// A text in lines of at most so many characters.
function wrapped(text, most) {
  return text.replace(new RegExp(`(.{1,${most}})(?:\\s+|$)`, "g"), "$1\n").trimEnd();
}

// Put text on the clipboard; where that is denied, by the older way, else leave it selected.
async function copy(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    return "copied";
  } catch {
    getSelection().selectAllChildren(shown);
    try {
      if (document.execCommand("copy")) return "copied";
    } catch {
      /* it stays selected */
    }
    return "selected: copy it by Ctrl+C";
  }
}

export function mount(el, bytes, given, tell = () => {}) {
  let data = unpack(bytes),
    state = { ...given };
  let splits = [],
    zoom = {},
    plan = null,
    held = null,
    serial = 0,
    pending = 0;
  const root = html("div", { class: "replay-view" }, el);
  html("style", {}, root, LOOK + STYLE);
  const controls = html("div", { class: "controls" }, root);
  const chips = html("div", { class: "chips" }, root);
  // Its fixed size spares the page a new layout.
  const stage = html("div", { class: "stage fixed" }, root);
  // What stays while a slider moves, and above it what changes.
  const picture = svg("svg", { role: "group", "aria-label": "budgets" }, stage);
  const over = svg("svg", { class: "over", "aria-hidden": "true" }, stage);
  const map = svg("g", {}, picture),
    axes = svg("g", {}, picture);
  const moving = svg("g", {}, over),
    pointed = svg("g", {}, over);
  const clip = `clip-${Math.random().toString(36).slice(2)}`;
  const tip = html("div", { class: "tip", role: "status" }, stage);
  const listed = html("div", { class: "runs" }, root);
  const words = html("div", { class: "words", role: "status", "aria-live": "polite" }, root);
  const code = html("div", { class: "code" }, root);
  const copies = html(
    "button",
    { type: "button", title: "Copy the call that gives this picture" },
    code,
    "Copy as code",
  );
  const call = html("code", {}, code);
  const past = []; // what was moved, and from where
  const undoes = html(
    "button",
    { type: "button", title: "Back to the choice before (Escape)" },
    code,
    "Undo",
  );
  undoes.disabled = true;
  undoes.onclick = undo;
  code.prepend(undoes);
  copies.onclick = async () => {
    settle();
    copies.textContent = await copy(call.textContent, call);
    setTimeout(() => {
      copies.textContent = "Copy as code";
    }, 2500);
  };
  const picks = COLOURS.map((each, k) => {
    const made = html("button", { type: "button" }, chips);
    html("i", { style: `background:${each}` }, made);
    made.append(html("span", {}));
    if (k) made.onclick = () => splits[k] && choose(splits[k].generations, splits[k].children);
    else made.disabled = true;
    return made;
  });

  // Controls: sliders over what can be chosen, a number, and lists.
  const inputs = {};
  function slider(name, label, title) {
    const line = html("label", { title }, controls);
    html("span", {}, line, label);
    inputs[name] = html(
      "input",
      { type: "range", min: 0, step: 1, "aria-label": label, "data-lm-suppress-shortcuts": "true" },
      line,
    );
    inputs[name].shown = html("output", {}, line);
    inputs[name].oninput = () => move(name, data.options[name][+inputs[name].value]);
  }
  function list(name, label, title) {
    const line = html("label", { title, class: "list" }, controls);
    html("span", {}, line, label);
    inputs[name] = html("select", { "aria-label": label }, line);
    inputs[name].line = line;
    inputs[name].onchange = () => move(name, inputs[name].value);
  }
  slider("generations", "generations T", "Depth; keeps the budget C");
  slider("children", "children N", "Breadth; keeps the budget C");
  slider("calls", "calls C", "The budget; keeps N");
  const line = html("label", { title: "The fitness to reach" }, controls);
  html("span", {}, line, "τ");
  inputs.slide = html(
    "input",
    {
      type: "range",
      min: 0,
      max: 400,
      step: 1,
      "aria-label": "fitness to reach",
      "data-lm-suppress-shortcuts": "true",
    },
    line,
  );
  inputs.tau = html("input", { type: "number", step: 0.005, "aria-label": "τ" }, line);
  inputs.slide.oninput = () => {
    const [low, high] = data.limits.fitness;
    move("tau", +(low + (inputs.slide.value / 400) * (high - low)).toPrecision(4));
  };
  inputs.tau.oninput = () => inputs.tau.value !== "" && move("tau", +inputs.tau.value);
  inputs.tau.onchange = () => inputs.tau.value === "" && (inputs.tau.value = state.tau);
  list("axis", "Cost axis", "What curves are drawn against");
  list("map", "Map", "What colours and numbers of the map mean");
  list("task", "Task", "Task of the runs");
  list("model", "Model", "Model of the runs");

  // What there is to choose from.
  function furnish() {
    for (const name of ["generations", "children", "calls"])
      inputs[name].max = data.options[name].length - 1;
    const pairs = { axis: data.options.axis, map: data.maps.map(([name, label]) => [label, name]) };
    for (const name of ["axis", "map", "task", "model"]) {
      const known = pairs[name] || data.options[name].map((each) => [each, each]);
      inputs[name].replaceChildren(
        ...known.map(([label, value]) => html("option", { value }, null, label)),
      );
      if (name === "axis")
        for (const each of inputs.axis.options) each.disabled = !(each.value in data.costs);
      inputs[name].line.style.display = known.length > 1 ? "" : "none";
    }
    const [low, high] = data.limits.fitness;
    const span = high - low,
      moderate = span > 0.05 && span <= 10;
    inputs.tau.step = moderate ? 0.005 : 10 ** Math.floor(Math.log10(span / 100));
    const [ink, ground] = INKS[data.theme] || ["", ""];
    root.style.color = ink;
    root.style.background = ground;
  }

  function move(name, value) {
    const next = link(
      name,
      { ...state, [name]: value },
      data.options.children,
      data.options.generations,
    );
    if (JSON.stringify(next) === JSON.stringify(state)) return;
    remember(name);
    change(next, name !== "task" && name !== "model");
    tell({ ...state });
  }
  // Keep the choice of now before it changes; the moves of one slider in a row are one change.
  function remember(name) {
    if (!name || past.at(-1)?.name !== name) past.push({ name, state });
    if (past.length > MOST_PAST) past.shift();
    undoes.disabled = false;
  }
  function undo() {
    if (!past.length) return;
    change(past.pop().state);
    undoes.disabled = !past.length;
    tell({ ...state });
  }
  function choose(T, N) {
    if (T === state.generations && N === state.children) return;
    remember("");
    change({ ...state, generations: T, children: N, calls: T * N });
    tell({ ...state });
  }
  function change(next, moved = false) {
    const axis = next.axis !== state.axis,
      map = next.map !== state.map;
    const runs = String(next.runs) !== String(state.runs);
    state = next;
    if (axis) zoom = {};
    if (map) build();
    else if (axis || runs) buildPanels();
    draw(moved);
  }

  // The fitness axis, with room for the runs that are drawn one by one.
  function seen() {
    const [low, high] = data.limits.fitness,
      best = (run) => bestAfter(run, run.depth);
    const ends = state.runs
      .map((name) => runOf(data, name))
      .filter(Boolean)
      .map(best)
      .filter((end) => end > high);
    return [low, ends.length ? Math.max(...ends) + 0.03 * (high - low) : high];
  }

  // Everything that stays while T, N, C and tau move: axes, cells, titles.
  function build() {
    const width = Math.max(320, Math.min(root.clientWidth - 4 || 880, 1400)),
      beside = width >= 720;
    const { rows, columns } = data.grid;
    const mapRoom = beside ? Math.min(0.47 * width, 620) : width;
    const left = 46,
      bar = 58,
      top = 44;
    const side = Math.min((mapRoom - left - bar) / columns.length, 58),
      tall = Math.min(side, 380 / rows.length, 46);
    const mapWidth = side * columns.length,
      mapHeight = tall * rows.length;
    const x0 = beside ? mapRoom + 52 : left,
      x1 = width - 14;
    const y0 = beside ? top : top + mapHeight + 96,
      panel = beside ? Math.max(150, Math.min(220, (mapHeight - 38) / 2)) : 160;
    const height = Math.max(y0 + 2 * panel + 82, top + mapHeight + 44);
    for (const each of [picture, over]) {
      each.setAttribute("width", width);
      each.setAttribute("height", height);
      each.setAttribute("viewBox", `0 0 ${width} ${height}`);
    }
    stage.style.width = `${width}px`;
    stage.style.height = `${height}px`;
    plan = { width, height, x0, x1, y0, panel, left, top, side, tall };
    redraw(map, (put) => drawMap(put, left, top, side, tall, mapWidth, mapHeight));
    buildPanels();
  }
  function buildPanels() {
    const { x0, x1, y0, panel } = plan,
      limits = zoom.x || data.limits.costs[state.axis] || [1, 2];
    const one = {
      top: y0,
      bottom: y0 + panel,
      name: "fitness",
      y: linear(...(zoom.fitness || seen()), y0 + panel, y0),
    };
    const two = { top: y0 + panel + 38, bottom: y0 + 2 * panel + 38, name: "reached" };
    two.y = linear(...(zoom.reached || [-0.02, 1.02]), two.bottom, two.top);
    plan.x = ratios(limits[0], limits[1], x0, x1);
    plan.panels = [one, two];
    redraw(axes, (put) => {
      for (const each of plan.panels) redraw(put("g", {}), (inside) => drawPanel(inside, each));
    });
  }

  function drawMap(put, left, top, side, tall, mapWidth, mapHeight) {
    const { rows, columns } = data.grid;
    put("text", { x: left, y: 15, class: "head" }, `${data.task}, ${data.model}`);
    const predicted = data.cells.kinds.includes(2);
    const behind = state.map === "behind";
    const about = behind ? "0: the best of its budget" : "dotted: same budget";
    put("text", { x: left, y: 33 }, `${about}${predicted ? "; round: never run, predicted" : ""}`);
    const group = put("g", {
      class: "cells",
      tabindex: 0,
      role: "application",
      "data-lm-suppress-shortcuts": "true",
      "aria-label": "splits; arrow keys go from cell to cell, Enter chooses one",
    });
    const value = data.column(behind ? data.cells.behind : data.cells.value),
      cells = [];
    const wordsAt = ([text, , less]) =>
      behind
        ? `${text.split("\n")[0]}\n${wrapped(less || "no other split of it is known", 44)}`
        : text;
    rows.forEach((N, r) =>
      columns.forEach((T, c) => {
        const at = data.sizes.indexOf(N) * data.columns.length + data.columns.indexOf(T);
        if (data.cells.kinds[at])
          cells.push({
            T,
            N,
            r,
            c,
            value: value[at],
            kind: data.cells.kinds[at],
            text: wordsAt(data.cells.words[at]),
            less: data.cells.words[at][3],
          });
      }),
    );
    const known = cells.map((each) => each.value).filter(Number.isFinite);
    const low = Math.min(...known),
      high = Math.max(...known);
    const share = (each) => (high > low ? (each - low) / (high - low) : 0.5);
    plan.cells = cells;
    plan.cellAt = (T, N) => cells.find((each) => each.T === T && each.N === N);
    plan.corner = (each) => [left + each.c * side, top + mapHeight - (each.r + 1) * tall];
    redraw(group, (inside) =>
      cells.forEach((each) => {
        const [x, y] = plan.corner(each),
          rgb = Number.isFinite(each.value)
            ? mixed(CIVIDIS, share(each.value), 0, 1)
            : [136, 136, 136];
        const round = each.kind === 2 ? Math.min(side, tall) / 2 : 2;
        each.node = inside("rect", {
          class: "cell",
          x: x + 1,
          y: y + 1,
          width: side - 2,
          height: tall - 2,
          rx: round,
          fill: `rgb(${rgb})`,
          "data-t": each.T,
          "data-n": each.N,
          "data-value": each.value,
        });
        if (side < 19 || !Number.isFinite(each.value)) return;
        const plain = each.value >= 0 && each.value < 0.995;
        let text = plain ? each.value.toFixed(2).replace(/^0\./, "") : digits(each.value, 2);
        if (plain && side >= 26) text = `.${text}`;
        if (behind) text = each.less;
        inside(
          "text",
          {
            x: x + side / 2,
            y: y + tall / 2 + 4,
            "text-anchor": "middle",
            style:
              `fill:${readable(rgb)};pointer-events:none;` +
              `font-size:${Math.min(11.5, tall - 4)}px`,
          },
          text,
        );
      }),
    );
    group.onkeydown = walk;
    const name = (each) => (each > 9999 ? short(each) : String(each));
    rows.forEach((N, r) =>
      put(
        "text",
        { x: left - 7, y: top + mapHeight - (r + 0.5) * tall + 4, "text-anchor": "end" },
        name(N),
      ),
    );
    const skip = side < 26 ? 2 : 1;
    columns.forEach(
      (T, c) =>
        c % skip === 0 &&
        put(
          "text",
          { x: left + (c + 0.5) * side, y: top + mapHeight + 16, "text-anchor": "middle" },
          name(T),
        ),
    );
    put(
      "text",
      { x: left + mapWidth / 2, y: top + mapHeight + 35, "text-anchor": "middle" },
      "generations T",
    );
    const names = ["children per generation N", "children N", "N"];
    put(
      "text",
      {
        x: 12,
        y: top + mapHeight / 2,
        "text-anchor": "middle",
        transform: `rotate(-90 12 ${top + mapHeight / 2})`,
      },
      names.find((each) => 6.6 * each.length <= mapHeight + 20) || "N",
    );
    if (!known.length) return;
    const at = left + mapWidth + 12;
    for (let k = 0; k < 40; k++) {
      put("rect", {
        x: at,
        y: top + (mapHeight * (39 - k)) / 40,
        width: 9,
        height: mapHeight / 40 + 0.5,
        fill: `rgb(${mixed(CIVIDIS, k / 39, 0, 1)})`,
      });
    }
    const scale = linear(low, high > low ? high : low + 1, top + mapHeight, top);
    for (const tick of high > low ? evenTicks(low, high, 5) : [low])
      put("text", { x: at + 13, y: scale(tick) + 4 }, short(tick));
  }

  function drawPanel(put, panel) {
    const { x, x0, x1 } = plan,
      { top, bottom, y } = panel,
      below = panel.name === "reached";
    const title = below ? "Probability to reach τ" : "Best fitness so far";
    put("text", { x: x0, y: top - (below ? 9 : 29), class: "head" }, title);
    if (!below) put("text", { x: x0, y: top - 11 }, data.about);
    for (const tick of ratioTicks(x.back(x0), x.back(x1), (x1 - x0) / 52)) {
      const at = x(tick);
      put("line", { x1: at, x2: at, y1: top, y2: bottom, class: "grid" });
      if (below) put("text", { x: at, y: bottom + 16, "text-anchor": "middle" }, short(tick));
    }
    for (const tick of evenTicks(y.back(bottom), y.back(top), 4)) {
      put("line", { x1: x0, x2: x1, y1: y(tick), y2: y(tick), class: "grid" });
      put("text", { x: x0 - 7, y: y(tick) + 4, "text-anchor": "end" }, short(tick));
    }
    put("path", { d: `M${x0} ${top}V${bottom}H${x1}`, class: "frame" });
    if (below) {
      const label = data.options.axis.find(([, axis]) => axis === state.axis)?.[0] || state.axis;
      const cost = state.axis === "generation" ? label : `${label} so far`;
      put("text", { x: (x0 + x1) / 2, y: bottom + 35, "text-anchor": "middle" }, cost);
    }
    const id = `${clip}-${panel.name}`;
    redraw(put("clipPath", { id }), (inside) =>
      inside("rect", { x: x0, y: top - 2, width: x1 - x0 + 8, height: bottom - top + 4 }),
    );
    panel.clip = `url(#${id})`;
    panel.ground = put("rect", {
      x: x0,
      y: top,
      width: x1 - x0,
      height: bottom - top,
      class: "panel",
      "data-panel": panel.name,
    });
  }

  // What changes: frames on the map, curves, tau, words. While a slider moves, the long texts wait.
  function draw(moved = false) {
    splits = [
      [1, 1],
      [2, 0.5],
      [0.5, 2],
    ].map(([deep, broad]) => {
      const T = state.generations * deep,
        N = state.children * broad;
      return Number.isInteger(T) && Number.isInteger(N) ? splitOf(data, state, T, N) : null;
    });
    redraw(moving, (put) => {
      redraw(put("g", {}), drawSame);
      redraw(put("g", {}), drawFrames);
      for (const panel of plan.panels) {
        redraw(put("g", { "clip-path": panel.clip }), (inside) => {
          redraw(
            inside("g", {}),
            (runs) =>
              panel.name === "fitness" &&
              state.runs.forEach((name, k) => drawRun(runs, panel, name, k)),
          );
          for (const k of [2, 1, 0])
            redraw(
              inside("g", {}),
              (curve) => splits[k] && drawCurve(curve, panel, splits[k], COLOURS[k], k),
            );
        });
      }
      drawTau(put, plan.panels[0]);
    });
    say();
    clearTimeout(pending);
    pending = moved ? setTimeout(settle, PAUSE) : 0;
    if (!moved) settle();
  }

  function drawFrame(put, each, inset, look) {
    const { side, tall } = plan,
      [x, y] = plan.corner(each);
    put("rect", {
      x: x + inset,
      y: y + inset,
      width: side - 2 * inset,
      height: tall - 2 * inset,
      rx: 3,
      fill: "none",
      ...look,
    });
  }
  // The splits of the same budget.
  function drawSame(put) {
    for (const each of plan.cells) {
      if (each.T * each.N !== state.generations * state.children) continue;
      if (splits.some((split) => split?.generations === each.T && split.children === each.N))
        continue;
      drawFrame(put, each, 2.5, { stroke: "#fff", "stroke-width": 1.6 });
      drawFrame(put, each, 2.5, {
        stroke: "#222",
        "stroke-width": 1.6,
        "stroke-dasharray": "1.5 3",
      });
    }
  }
  function drawFrames(put) {
    for (const k of [2, 1, 0]) {
      const cell = splits[k] && plan.cellAt(splits[k].generations, splits[k].children);
      if (!cell) continue;
      drawFrame(put, cell, 1.5, { stroke: "#fff", "stroke-width": k ? 4 : 5.5 });
      drawFrame(put, cell, 1.5, {
        stroke: COLOURS[k],
        "stroke-width": k ? 2.4 : 3.8,
        "data-split": data.names[k],
      });
    }
  }

  function drawCurve(put, panel, split, stroke, k) {
    const { x } = plan,
      { y } = panel,
      curve = split[panel.name],
      T = split.x.length;
    const whole = thinned(0, split.whole),
      some = thinned(split.whole, split.logged - split.whole), // of the runs that go on
      known = [...whole, ...some],
      rest = thinned(split.logged, T - split.logged);
    const path = (at, values) => {
      let d = "",
        pen = "M";
      for (const k of at) {
        if (Number.isNaN(values[k])) {
          pen = "M";
          continue;
        }
        d += `${pen}${x(split.x[k]).toFixed(1)} ${y(values[k]).toFixed(1)}`;
        pen = "L";
      }
      return d;
    };
    const within = known.filter(
      (k) => Number.isFinite(curve.low[k]) && Number.isFinite(curve.high[k]),
    );
    if (within.length > 1) {
      const back = path([...within].reverse(), curve.low).replace("M", "L");
      put("path", { d: `${path(within, curve.high)}${back}Z`, fill: stroke, "fill-opacity": 0.17 });
    }
    const look = { fill: "none", stroke, "stroke-linejoin": "round" };
    put("path", {
      ...look,
      d: path(whole, curve.value),
      "stroke-width": k ? 1.8 : 2.6,
      "data-curve": `${panel.name} ${data.names[k]}`,
    });
    if (some.length)
      put("path", {
        ...look,
        d: path([...whole.slice(-1), ...some], curve.value),
        "stroke-width": 1,
        "data-thin": `${panel.name} ${data.names[k]}`,
      });
    if (rest.length) {
      put("path", {
        ...look,
        d: path(rest, curve.value),
        "stroke-width": 1.8,
        "stroke-dasharray": "6 3",
      });
      put("path", {
        ...look,
        d: path(rest, curve.low) + path(rest, curve.high),
        "stroke-width": 1,
        "stroke-dasharray": "1.5 2.5",
      });
    }
    const end = curve.value[T - 1];
    if (Number.isNaN(end)) return;
    const at = x(split.x[T - 1]),
      fill = rest.length ? "none" : stroke;
    if (y(end) > panel.bottom) {
      // below the axis: point there
      put("path", {
        d: `M${at - 5} ${panel.bottom - 9}h10l-5 7z`,
        fill,
        stroke,
        "data-below": data.names[k],
      });
    } else put("circle", { cx: at, cy: y(end), r: k ? 3 : 4, fill, stroke, "stroke-width": 1.5 });
  }

  // A run from where it first has a fitness, in steps.
  function drawRun(put, panel, name, k) {
    const run = runOf(data, name);
    if (!run) return;
    const place = data.costs[state.axis]?.[run.N],
      cost = place ? data.column(place) : null;
    const at = (g) =>
      plan.x(cost ? cost[g - 1] : state.axis === "calls" ? g * run.N : g).toFixed(1);
    let d = "";
    run.best.forEach((value, step) => {
      const g = Math.max(1, run.from[step]);
      // Costs begin after 1.
      if (Number.isNaN(value) || g > run.depth || run.from[step + 1] <= 1) return;
      const y = panel.y(value).toFixed(1);
      d += d ? `H${at(g)}V${y}` : `M${at(g)} ${y}`;
    });
    if (!d) return;
    const stroke = RUN_COLOURS[k % RUN_COLOURS.length],
      dashes = RUN_DASHES[Math.floor(k / RUN_COLOURS.length)];
    put("path", {
      d: `${d}H${at(run.depth)}`,
      fill: "none",
      stroke,
      "stroke-width": 1.8,
      "stroke-dasharray": dashes,
      "data-run": name,
    });
  }

  // The runs behind the choice, and those of other splits that are chosen: a click draws one or
  // not.
  function listRuns() {
    const { generations: T, children: N } = state,
      here = runsOf(data, T, N);
    const away = state.runs.filter(
      (name) => runOf(data, name) && !here.some((each) => each.name === name),
    );
    const head = here.length
      ? `Runs of T = ${T}, N = ${N}:`
      : `No run of N = ${N} is T = ${T} deep.`;
    const first = here.filter(({ name }, k) => k < MOST_LISTED || state.runs.includes(name)),
      more = here.length - first.length;
    const wanted = [
      head,
      ...first.map((each) => each.name + each.value),
      ...away,
      ...state.runs,
    ].join("|");
    if (listed.dataset.shown === wanted) return;
    listed.dataset.shown = wanted;
    const focused = listed.contains(document.activeElement) ? document.activeElement.title : "";
    listed.replaceChildren();
    html("b", {}, listed, head);
    html(
      "span",
      {},
      listed,
      here.length
        ? `choose one to draw it${more ? `; ${more} worse ones are not listed` : ""}`
        : "",
    );
    const row = html("div", { class: "chips", role: "group", "aria-label": "runs" }, listed);
    const all = [...first, ...away.map((name) => ({ name }))];
    for (const { name, value } of all) {
      const at = state.runs.indexOf(name),
        short = name.slice(data.cut);
      const made = html("button", { type: "button", title: name, "aria-pressed": at >= 0 }, row);
      if (at >= 0) html("i", { style: `background:${RUN_COLOURS[at % RUN_COLOURS.length]}` }, made);
      made.append(
        value === undefined
          ? `${short} (other split)`
          : `${short}  ${Number.isNaN(value) ? "nothing ok" : digits(value, 4)}`,
      );
      made.onclick = () => pin(name);
      if (name === focused) made.focus({ preventScroll: true });
    }
  }
  function pin(name) {
    remember("");
    const runs = state.runs.includes(name)
      ? state.runs.filter((each) => each !== name)
      : [...state.runs, name].slice(-MOST_RUNS);
    change({ ...state, runs });
    tell({ ...state });
  }

  function drawTau(put, panel) {
    const at = panel.y(state.tau);
    if (!(at >= panel.top && at <= panel.bottom)) return;
    put("line", {
      x1: plan.x0,
      x2: plan.x1,
      y1: at,
      y2: at,
      stroke: "currentColor",
      "stroke-dasharray": "1.5 3",
    });
    put(
      "text",
      { x: plan.x0 + 5, y: at > panel.top + 14 ? at - 4 : at + 13 },
      `τ = ${digits(state.tau, 6)}`,
    );
  }

  // Chips, controls, and what tests and screen readers find.
  function say() {
    for (const name of ["generations", "children", "calls"]) {
      const at = data.options[name].indexOf(state[name]);
      show(inputs[name], at >= 0 ? at : +inputs[name].value, String(state[name]));
      write(inputs[name].shown, state[name]);
    }
    const [low, high] = data.limits.fitness;
    show(inputs.slide, Math.round((400 * (state.tau - low)) / (high - low)), digits(state.tau, 6));
    if (+inputs.tau.value !== state.tau) inputs.tau.value = state.tau;
    for (const name of ["axis", "map", "task", "model"])
      if (inputs[name].value !== state[name]) inputs[name].value = state[name];
    picks.forEach((pick, k) => {
      const split = splits[k];
      pick.style.display = split ? "" : "none";
      if (split)
        write(
          pick.lastChild,
          `${data.names[k]}: T = ${split.generations}, N = ${split.children}, ` +
            last(split.fitness) +
            (split.logged < split.generations ? " (predicted)" : ""),
        );
    });
    const written = (value) =>
      Array.isArray(value)
        ? `[${value.map(written).join(", ")}]`
        : typeof value === "string"
          ? quoted(value)
          : value;
    const usual = (name, value) =>
      name === "runs" ? !value.length : name === "map" && value === "fitness";
    const stated = Object.entries(state).filter(([name, value]) => !usual(name, value));
    const settings = stated.map(([name, value]) => `${name}=${written(value)}`);
    const called = [data.named, ...settings].join(", ");
    root.dataset.source = `replay.explorers.explore_budget(${called}).figure()`;
    root.dataset.description = wordsOf(data, state, splits);
    root.dataset.serial = serial;
  }
  function show(input, value, text) {
    if (+input.value !== value) input.value = value;
    if (input.getAttribute("aria-valuetext") !== text) input.setAttribute("aria-valuetext", text);
  }
  // The long texts and the list of runs, which follow once a slider stands still.
  function settle() {
    clearTimeout(pending);
    pending = 0;
    listRuns();
    write(words, root.dataset.description);
    write(call, root.dataset.source);
  }

  // What lies under the mouse.
  function place(event) {
    const box = picture.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }
  function hint(text, x, y) {
    tip.textContent = text;
    tip.style.display = text ? "block" : "none";
    if (!text) return;
    tip.style.left = `${Math.max(0, Math.min(x + 14, plan.width - tip.offsetWidth - 4))}px`;
    const below = y + 16 + tip.offsetHeight <= plan.height;
    tip.style.top = `${below ? y + 16 : y - tip.offsetHeight - 10}px`;
  }
  function hover(event) {
    const [x, y] = place(event);
    if (event.target.matches?.(".cell")) {
      pointer(null);
      const cell = plan.cellAt(+event.target.dataset.t, +event.target.dataset.n);
      hint(cell.text, x, y);
      return;
    }
    const panel = plan.panels.find((each) => each.ground === event.target);
    if (!panel) {
      pointer(null);
      hint("");
      return;
    }
    const lines = [],
      dots = [];
    splits.forEach((split, k) => {
      if (!split) return;
      let at = -1,
        away = 14;
      split.x.forEach((cost, g) => {
        const gap = Math.abs(plan.x(cost) - x);
        if (gap < away) {
          away = gap;
          at = g;
        }
      });
      const curve = split[panel.name];
      if (at < 0 || Number.isNaN(curve.value[at])) return;
      lines.push(
        `${data.names[k]}: ${ranged(curve.value[at], curve.low[at], curve.high[at])} ` +
          `at ${short(split.x[at])}${at >= split.logged ? ", predicted" : ""}` +
          (at >= split.whole && at < split.logged ? `, of the runs that go on` : ""),
      );
      dots.push([plan.x(split.x[at]), panel.y(curve.value[at]), COLOURS[k]]);
    });
    pointer((put) => {
      put("line", {
        x1: x,
        x2: x,
        y1: plan.panels[0].top,
        y2: plan.panels[1].bottom,
        class: "frame",
        "stroke-dasharray": "3 3",
      });
      for (const [cx, cy, fill] of dots) put("circle", { cx, cy, r: 4, fill, stroke: "#fff" });
    });
    hint(lines.join("\n") || `${short(plan.x.back(x))}, ${short(panel.y.back(y))}`, x, y);
  }
  const pointer = (paint) => redraw(pointed, paint || (() => {}));

  // A drag over the panels zooms both of them, a double click shows everything again.
  let drag = null;
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  function down(event) {
    const panel = plan.panels.find((each) => each.ground === event.target);
    if (event.button || !panel) return;
    drag = { panel, from: place(event) };
    event.target.setPointerCapture(event.pointerId);
  }
  function dragged(event) {
    if (!drag) {
      hover(event);
      return;
    }
    const { panel, from } = drag,
      [x, y] = place(event);
    drag.to = [clamp(x, plan.x0, plan.x1), clamp(y, panel.top, panel.bottom)];
    const whole = Math.abs(drag.to[1] - from[1]) < 12;
    pointer((put) =>
      put("rect", {
        x: Math.min(from[0], drag.to[0]),
        width: Math.abs(drag.to[0] - from[0]),
        y: whole ? panel.top : Math.min(from[1], drag.to[1]),
        height: whole ? panel.bottom - panel.top : Math.abs(drag.to[1] - from[1]),
        fill: "currentColor",
        "fill-opacity": 0.15,
      }),
    );
  }
  function up() {
    const done = drag;
    drag = null;
    if (!done?.to || Math.abs(done.to[0] - done.from[0]) < 6) return;
    const ends = (scale, k) =>
      [scale.back(done.from[k]), scale.back(done.to[k])].sort((a, b) => a - b);
    zoom.x = ends(plan.x, 0);
    if (Math.abs(done.to[1] - done.from[1]) >= 12) zoom[done.panel.name] = ends(done.panel.y, 1);
    pointer(null);
    buildPanels();
    draw();
  }
  stage.addEventListener("pointerdown", down);
  stage.addEventListener("pointermove", dragged);
  stage.addEventListener("pointerup", up);
  stage.addEventListener("pointerleave", () => {
    if (!drag) {
      hint("");
      pointer(null);
    }
  });
  stage.addEventListener("dblclick", (event) => {
    if (!event.target.matches(".panel")) return;
    zoom = {};
    buildPanels();
    draw();
  });
  stage.addEventListener("click", (event) => {
    if (event.target.matches(".cell")) choose(+event.target.dataset.t, +event.target.dataset.n);
  });

  // Escape shows all that was zoomed, else goes back to the choice before.
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !(past.length || Object.keys(zoom).length)) return;
    event.preventDefault();
    event.stopPropagation();
    if (!Object.keys(zoom).length) {
      undo();
      return;
    }
    zoom = {};
    buildPanels();
    draw();
  });

  // Arrow keys go from cell to cell, Enter chooses one.
  function walk(event) {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[
      event.key
    ];
    if (event.ctrlKey || event.metaKey || event.altKey || !(way || event.key === "Enter")) return;
    event.preventDefault();
    event.stopPropagation();
    if (!way) {
      if (held) choose(held.T, held.N);
      return;
    }
    held ??= plan.cellAt(state.generations, state.children) || plan.cells[0];
    const next = plan.cells.find(
      (each) => each.c === held.c + way[0] && each.r === held.r + way[1],
    );
    held = next || held;
    const [x, y] = plan.corner(held);
    pointer((put) =>
      put("rect", {
        x,
        y,
        width: plan.side,
        height: plan.tall,
        fill: "none",
        stroke: "currentColor",
        "stroke-width": 2.5,
      }),
    );
    hint(held.text, x + plan.side / 2, y + plan.tall / 2);
  }

  function load(fresh) {
    const before = [data.task, data.model].join();
    data = unpack(fresh);
    serial += 1;
    if ([data.task, data.model].join() !== before) {
      zoom = {};
      held = null;
    }
    furnish();
    build();
    draw();
  }
  furnish();
  build();
  serial = 1;
  draw();
  let wide = root.clientWidth;
  const watch = new ResizeObserver(() => {
    if (!root.clientWidth || Math.abs(root.clientWidth - wide) < 4) return;
    wide = root.clientWidth;
    build();
    draw();
  });
  watch.observe(root);
  const set = (next) => {
    if (JSON.stringify(next) !== JSON.stringify(state)) change({ ...next });
  };
  root.view = { set, shown: () => ({ state, splits, plan }) }; // what tests compare with Python
  return {
    load,
    set,
    close: () => {
      clearTimeout(pending);
      watch.disconnect();
      root.remove();
    },
  };
}

const NAMES = ["generations", "children", "calls", "tau", "axis", "map", "task", "model", "runs"];

// As `mount`, in a page of its own: its address holds the choice, so that a link restores it.
export function addressed(el, bytes, given) {
  const { options } = unpack(bytes);
  const known = { ...options, axis: options.axis.map(([, axis]) => axis), runs: null, tau: null };
  const read = () => {
    const asked = new URLSearchParams(location.hash.slice(1)),
      state = { ...given };
    for (const name of NAMES.filter((each) => asked.has(each))) {
      const text = asked.get(name);
      const value =
        name === "runs" ? asked.getAll(name) : typeof given[name] === "number" ? +text : text;
      if (known[name] ? known[name].includes(value) : value === value) state[name] = value;
    }
    return { ...state, calls: state.generations * state.children };
  };
  const view = mount(el, bytes, read(), (state) => {
    const shown = NAMES.filter((name) => name !== "calls").flatMap((name) =>
      [state[name]].flat().map((value) => [name, value]),
    );
    history.replaceState(null, "", `#${new URLSearchParams(shown)}`);
  });
  addEventListener("hashchange", () => view.set(read()));
  return view;
}
const REST = 120; // milliseconds without a move after which the kernel is told

export default {
  render({ model, el }) {
    el.style.cssText += ";width:100%;min-width:0";
    const unwatch = watchKernel(model, el);
    const read = () => Object.fromEntries(NAMES.map((name) => [name, model.get(name)]));
    let timer = 0,
      asked = false;
    const flush = () => {
      clearTimeout(timer);
      timer = 0;
      model.save_changes();
    };
    const view = mount(el, model.get("data"), read(), (state) => {
      for (const name of NAMES) model.set(name, state[name]);
      clearTimeout(timer);
      timer = setTimeout(flush, REST);
    });
    const told = () => {
      // all that came at once is drawn once
      if (asked) return;
      asked = true;
      queueMicrotask(() => {
        asked = false;
        view.set(read());
      });
    };
    const loaded = () => view.load(model.get("data"));
    const changes = NAMES.map((name) => `change:${name}`).join(" ");
    model.on(changes, told);
    model.on("change:data", loaded);
    el.dataset.replayLive = model.get("still");
    for (const each of document.querySelectorAll(`[data-replay-still="${model.get("still")}"]`))
      each.style.display = "none";
    model.send({ kind: "mounted" });
    return () => {
      if (timer) flush();
      model.off(changes, told);
      model.off("change:data", loaded);
      unwatch();
      view.close();
    };
  },
};
