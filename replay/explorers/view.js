// The budgets of a task and model as a chart, looked up in arrays; nothing here estimates a number.
//
// `drawing.js` and `chart.js`, whose pen draws the chart, stand before it.
// `mount(el, bytes, state, tell)` knows nothing of Jupyter, so that widgets, pages and saved
// notebooks use this same file. `bytes` is what `budget_arrays.pack` makes (a DataView): the length
// of a JSON head (uint32, little endian), the head, and float64 columns that it refers to by place.
// `state` has generations, children, calls, tau, axis, map, task, model and runs (the identifiers
// of those that are drawn one by one); tell(state) says that somebody moved something. It returns
// `load(bytes)`, `set(state)`, `follow(state)`, which Undo takes back, and `close()`.

const COLOURS = ["#d55e00", "#0072b2", "#009e73"]; // choice, twice as deep, twice as broad
const RUN_COLOURS = ["#cc79a7", "#e69f00", "#56b4e9"]; // of runs that are drawn one by one
const RUN_DASHES = ["none", "12 3", "12 3 5 3", "16 3 5 3 5 3"]; // of the first three, and so on
const MOST_RUNS = 12,
  MOST_LISTED = 40; // that can be chosen, that are listed of a split
const MOST_PAST = 64; // choices that can be undone
const PANEL = 168; // pixels of a panel of curves
const PAUSE = 80; // milliseconds that a slider stands still before the long texts follow

const STYLE = `
.replay-view .controls {
  display: flex;
  flex-wrap: wrap;
  gap: 6px 22px;
  margin: 2px 0 8px;
}
.replay-view .controls label {
  flex: 1 1 200px;
  max-width: 100%;
}
.replay-view .controls.sliders {
  position: sticky; /* in sight beside what they move, wherever that is */
  top: 0;
  z-index: 3;
  margin: 0;
  padding: 3px 0;
  background: var(--ground, var(--jp-layout-color0, Canvas));
}
.replay-view :is(button, summary, svg, .panels) {
  scroll-margin-top: 90px; /* what is reached by keys does not lie under them */
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
.replay-view .picks button {
  white-space: normal;
  text-align: left;
  border-radius: 13px;
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
.replay-view .runs {
  margin: 6px 0 0;
}
.replay-view .runs .chips {
  max-height: 160px; /* six lines, all of them whole */
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
.replay-view .call {
  display: flex;
  gap: 8px;
  align-items: baseline;
  flex-wrap: wrap;
}
.replay-view .call button:disabled {
  opacity: 0.5;
}
.replay-view .call code {
  flex: 1 1 320px;
  min-width: 0;
  font-size: 12px;
  overflow-wrap: anywhere;
}
@media print {
  .replay-view .controls.sliders {
    position: static;
  }
  .replay-view button i {
    print-color-adjust: exact; /* colours of grounds are left out else */
  }
  .replay-view .call button {
    display: none;
  }
  .replay-view .runs .chips {
    max-height: none;
  }
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
  const is = Number.isNaN(split.fitness.value.at(-1)) ? "that is" : "of";
  const share = split.waits ? "that the kernel is still computing" : last(split.reached);
  const text = [
    `${data.task}, ${data.model}: T = ${amount(T, "generation")} of ` +
      `N = ${amount(N, "child", "children")} (C = ${amount(T * N, "call")}) ` +
      `have a mean best fitness ${is} ${last(split.fitness)} (${source}).`,
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

// The splits of the map as cells: their values, and how they compare with the best of their budget.
function cellsOf(data, map) {
  const { rows, columns } = data.grid,
    { kinds, words } = data.cells,
    behind = map === "behind",
    numbers = data.column(data.cells[behind ? "behind" : "value"]);
  const each = (read, none) =>
    rows.map((N) =>
      columns.map((T) => {
        const at = data.sizes.indexOf(N) * data.columns.length + data.columns.indexOf(T);
        return kinds[at] ? read(at) : none;
      }),
    );
  const decimals = (value) =>
    value >= 0 && value < 0.995 ? value.toFixed(2).slice(1) : digits(value, 2);
  const texts = each((at) => {
    const [text, , less] = words[at];
    return behind ? `${text.split("\n")[0]}\n${less || "no other split of it is known"}` : text;
  }, "");
  const values = each((at) => numbers[at], NaN),
    known = values.flat().filter(Number.isFinite);
  return {
    kind: "cells",
    values,
    ...{ x0: -0.5, x1: columns.length - 0.5, y0: -0.5, y1: rows.length - 0.5 },
    colors: data.ramp,
    least: Math.min(...known),
    most: Math.max(...known),
    texts,
    opens: texts.flat().map(Boolean),
    written: each((at) => {
      if (!Number.isFinite(numbers[at])) return "";
      return behind ? words[at][3] : decimals(numbers[at]);
    }, ""),
    round: each((at) => kinds[at] === 2, false),
  };
}

const lineOf = (x, y, look) => ({ kind: "line", x, y, hover: true, width: 1.8, ...look });
// The outlines of cells, one after the other.
function outlines(cells, look) {
  const around = (at, ...steps) => cells.flatMap((each) => steps.map((step) => each[at] + step));
  const x = around(0, -0.43, 0.43, 0.43, -0.43, -0.43, NaN),
    y = around(1, -0.43, -0.43, 0.43, 0.43, -0.43, NaN);
  return lineOf(x, y, { hover: false, ...look });
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

export function mount(el, bytes, given, tell = () => {}, live = false) {
  let data,
    state = { ...given };
  const kept = new Map(); // of each part of the chart: what it depends on, and what it is
  let splits = [],
    serial = 0,
    pending = 0;
  const root = html("div", { class: "replay-view" }, el);
  html("style", {}, root, LOOK + STYLE);
  const sliders = html("div", { class: "controls sliders" }, root),
    lists = html("div", { class: "controls" }, root);
  const chips = html("div", { class: "chips picks" }, root);
  const stage = html("div", { style: "margin-top: 8px" }, root);
  const listed = html("div", { class: "runs" }, root);
  const words = html("div", { class: "words", role: "status", "aria-live": "polite" }, root);
  const code = html("div", { class: "call" }, root);
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
    html("i", { style: `background:${inked(each)}` }, made);
    made.append(html("span", {}));
    if (k) made.onclick = () => splits[k] && choose(splits[k].generations, splits[k].children);
    else made.disabled = true;
    return made;
  });

  // Controls: sliders over what can be chosen, a number, and lists.
  const inputs = {};
  function slider(name, label, title) {
    const line = html("label", { title }, sliders);
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
    const line = html("label", { title, class: "list" }, lists);
    html("span", {}, line, label);
    inputs[name] = html("select", { "aria-label": label }, line);
    inputs[name].line = line;
    inputs[name].onchange = () => move(name, inputs[name].value);
  }
  slider("generations", "generations T", "Depth; keeps the budget C");
  slider("children", "children N", "Breadth; keeps the budget C");
  slider("calls", "calls C", "The budget; keeps N");
  const line = html("label", { title: "The fitness to reach" }, sliders);
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
      else if (name !== "map" && !live) {
        // Without a kernel nobody can bring the numbers of another one.
        for (const each of inputs[name].options) each.disabled = each.value !== given[name];
        inputs[name].line.title = `This page holds the numbers of one ${name}`;
      }
      inputs[name].line.style.display = known.length > 1 ? "" : "none";
    }
    const [low, high] = data.limits.fitness;
    const span = high - low,
      moderate = span > 0.05 && span <= 10;
    inputs.tau.step = moderate ? 0.005 : 10 ** Math.floor(Math.log10(span / 100));
    const [ink, ground] = INKS[data.theme] || ["", ""];
    root.style.color = ink;
    root.style.background = ground;
    root.style.setProperty("--ground", ground);
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
    state = next;
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

  // A part of the chart, the same object as long as it shows the same: the pen leaves it alone.
  function part(name, of, make) {
    const key = of.join(" ");
    if (kept.get(name)?.key !== key) kept.set(name, { key, made: make() });
    return kept.get(name).made;
  }
  // What the pen draws.
  function chart() {
    const { generations: T, children: N, map, runs } = state,
      limits = seen();
    const costs = data.limits.costs[state.axis] || [1, 2],
      label = data.options.axis.find(([, axis]) => axis === state.axis)?.[0] || state.axis,
      steps = state.axis === "generation",
      whole = steps || state.axis === "calls";
    const curves = { height: PANEL, zoom: true, shares: "cost" },
      x = { domain: costs, scale: "log", whole };
    return {
      label: "budgets: a map of splits, and the curves of those that are chosen",
      theme: data.theme,
      columns: 2,
      panels: [
        part("map", [T, N, map], mapPanel),
        {
          title: "Best fitness so far",
          about: data.about,
          x: { ...x, named: false },
          y: { domain: limits },
          marks: [
            ...part("runs", [state.axis, ...runs], () => runs.flatMap(runLine)),
            ...curvesOf("fitness", limits, ""),
            ...threshold(limits),
          ],
          ...curves,
        },
        {
          title: "Probability to reach τ",
          x: { ...x, label: steps ? label : `${label} so far` },
          y: { domain: [-0.02, 1.02] },
          marks: curvesOf("reached", [-0.02, 1.02], state.tau),
          ...curves,
        },
      ],
    };
  }

  function mapPanel() {
    const { rows, columns } = data.grid,
      behind = state.map === "behind",
      predicted = data.cells.kinds.includes(2);
    const axis = (values, label) => ({
      domain: [-0.5, values.length - 0.5],
      label,
      ticks: values.map((each, k) => [k, each > 9999 ? short(each) : String(each)]),
    });
    const cells = part("cells", [state.map], () => cellsOf(data, state.map)),
      { colors, least, most } = cells;
    const at = ({ generations, children }) => [
      columns.indexOf(generations),
      rows.indexOf(children),
    ];
    const framed = [2, 1, 0].flatMap((k) => {
      const [column, row] = splits[k] ? at(splits[k]) : [-1, -1];
      return column < 0 || row < 0 ? [] : [{ k, column, row }];
    });
    const [column, row] = at(state);
    cells.chosen = cells.opens[row * columns.length + column] ? row * columns.length + column : 0;
    const same = cells.opens.flatMap((is, place) => {
      const [r, c] = [Math.floor(place / columns.length), place % columns.length];
      const taken = framed.some((each) => each.row === r && each.column === c);
      return is && !taken && rows[r] * columns[c] === state.calls ? [[c, r]] : [];
    });
    const twice = (read) => framed.flatMap((each) => [read(each), read(each)]);
    const height = Math.min(2 * PANEL + 44, 64 * rows.length),
      names = ["children per generation N", "children N"];
    const none = behind && !cells.values.flat().some(Number.isFinite);
    const note = none
      ? "no two splits of one budget are known"
      : behind
        ? "0: the best of its budget"
        : rows.length > 1
          ? "dotted: same budget"
          : data.maps[0][1];
    return {
      title: `${data.task}, ${data.model}`,
      about: `${note}${predicted ? "; round: never run, predicted" : ""}`,
      x: axis(columns, "generations T"),
      y: axis(
        rows,
        names.find((each) => 6.6 * each.length <= height + 20),
      ),
      height,
      rows: 2,
      bar: least <= most ? { colors, least, most } : null,
      marks: [
        cells,
        outlines(same, { color: "#ffffff", width: 1.6 }),
        outlines(same, { color: "#222222", width: 1.6, dash: "1.5 3" }),
        {
          kind: "spans", // white around each frame sets it off from its cell
          x0: twice(({ column }) => column - 0.46),
          x1: twice(({ column }) => column + 0.46),
          y0: twice(({ row }) => row - 0.46),
          y1: twice(({ row }) => row + 0.46),
          color: framed.flatMap(({ k }) => ["#ffffff", COLOURS[k]]),
          frame: framed.flatMap(({ k }) => (k ? [4, 2.4] : [5.5, 3.8])),
          opacity: 0,
        },
      ],
    };
  }

  // Three curves, the choice on top.
  const curvesOf = (name, limits, tau) =>
    [2, 1, 0].flatMap((k) => {
      if (!splits[k]) return [];
      const { generations: T, children: N, waits } = splits[k];
      return part(`${name} ${k}`, [T, N, state.axis, ...limits, tau, waits], () =>
        curveOf(splits[k], name, k, limits),
      );
    });
  // Logged with a band, thin where only some runs go on, predicted dashed between dotted limits.
  function curveOf(split, name, k, [low, high]) {
    const { x, logged, whole } = split,
      curve = split[name],
      T = x.length,
      color = COLOURS[k];
    const along = (from, to, value, look) =>
      from < to ? [lineOf(x.subarray(from, to), value.subarray(from, to), { color, ...look })] : [];
    const known = (from, to, look) => {
      const [least, most] = [curve.low, curve.high].map((each) => each.subarray(from, to));
      return along(from, to, curve.value, {
        low: least,
        high: most,
        label: data.names[k],
        ...look,
      });
    };
    const some = logged > whole ? whole - 1 : logged, // of the runs that go on
      limit = { width: 1, dash: "1.5 2.5", hover: false },
      end = curve.value[T - 1],
      isBelow = end < low; // the axis is for what is usual: point there
    return [
      ...known(0, whole, { band: true, width: k ? 1.8 : 2.6 }),
      ...known(some, logged, { band: true, width: 1, note: "of the runs that go on" }),
      ...known(logged, T, { dash: "6 3", note: "predicted" }),
      ...along(logged, T, curve.low, limit),
      ...along(logged, T, curve.high, limit),
      {
        kind: "points",
        x: [x[T - 1]],
        y: [isBelow ? low + 0.03 * (high - low) : end],
        color,
        size: k ? 3.7 : 4.7,
        shape: isBelow ? "below" : logged < T ? "ring" : "dot",
      },
    ];
  }

  // A run from where it first has a fitness, in steps.
  function runLine(name, k) {
    const run = runOf(data, name);
    if (!run) return [];
    const place = data.costs[state.axis]?.[run.N],
      cost = place ? data.column(place) : null;
    const at = (g) => (cost ? cost[g - 1] : state.axis === "calls" ? g * run.N : g);
    const x = [],
      y = [];
    run.best.forEach((value, step) => {
      const g = Math.max(1, run.from[step]);
      // Costs begin after 1.
      if (Number.isNaN(value) || g > run.depth || run.from[step + 1] <= 1) return;
      x.push(at(g));
      y.push(value);
    });
    if (!x.length) return [];
    const look = {
      color: RUN_COLOURS[k % RUN_COLOURS.length],
      dash: RUN_DASHES[Math.floor(k / RUN_COLOURS.length)],
      label: name.slice(data.cut),
      step: true,
    };
    return [lineOf([...x, at(run.depth)], [...y, y.at(-1)], look)];
  }

  function threshold([low, high]) {
    const { tau: y } = state;
    if (!(y >= low && y <= high)) return [];
    const ink = { color: "ink", y };
    return [
      { kind: "rule", dash: "1.5 3", moves: true, ...ink },
      { kind: "label", text: `τ = ${digits(y, 6)}`, anchor: "start", dx: 5, dy: -4, ...ink },
    ];
  }

  // While a slider moves, the long texts wait.
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
    pen.load(chart());
    say();
    clearTimeout(pending);
    pending = moved ? setTimeout(settle, PAUSE) : 0;
    if (!moved) settle();
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
      if (at >= 0)
        html("i", { style: `background:${inked(RUN_COLOURS[at % RUN_COLOURS.length])}` }, made);
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

  // Escape shows all that was zoomed, else goes back to the choice before.
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    if (!pen.whole()) {
      if (!past.length) return;
      undo();
    }
    event.preventDefault();
    event.stopPropagation();
  });

  function load(fresh) {
    data = unpack(fresh);
    serial += 1;
    furnish();
    kept.clear();
    draw();
  }
  const pen = mountChart(stage, { panels: [] }, ({ kind, place, value }) => {
    const { rows, columns } = data.grid;
    if (kind === "move") move("tau", +value.toPrecision(4));
    else choose(columns[place % columns.length], rows[~~(place / columns.length)]);
  });
  load(bytes);
  const set = (next) => {
    if (JSON.stringify(next) !== JSON.stringify(state)) change({ ...next });
  };
  // A link is a change that can be undone.
  const follow = (next) => {
    if (JSON.stringify(next) !== JSON.stringify(state)) remember("");
    set(next);
  };
  // What tests compare with Python.
  root.view = { set, find: pen.find, shown: () => ({ state, splits, ...pen.shown() }) };
  return {
    load,
    set,
    follow,
    close: () => {
      clearTimeout(pending);
      pen.close();
      root.remove();
    },
  };
}

const REST = 120; // milliseconds without a move after which the kernel, or the address, is told
const NAMES = ["generations", "children", "calls", "tau", "axis", "map", "task", "model", "runs"];

// As `mount`, in a page of its own: its address holds the choice, so that a link restores it.
export function addressed(el, bytes, given) {
  const { options } = unpack(bytes);
  const axis = options.axis.map(([, name]) => name),
    own = { task: [given.task], model: [given.model] };
  const known = { ...options, axis, ...own, runs: null, tau: null };
  const deepest = Math.max(...options.generations); // a link may name any depth up to it
  const read = () => {
    const asked = new URLSearchParams(location.hash.slice(1)),
      state = { ...given };
    for (const name of NAMES.filter((each) => asked.has(each))) {
      const text = asked.get(name);
      const value =
        name === "runs" ? asked.getAll(name) : typeof given[name] === "number" ? +text : text;
      const isReached =
        name === "generations" && Number.isInteger(value) && value >= 1 && value <= deepest;
      if (isReached || (known[name] ? known[name].includes(value) : value === value))
        state[name] = value;
    }
    return { ...state, calls: state.generations * state.children };
  };
  let timer = 0, // browsers refuse an address that changes at every move of a slider
    ours = location.hash;
  const view = mount(el, bytes, read(), (state) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (location.hash !== ours) return; // a link was followed, which is read next
      const shown = NAMES.filter((name) => name !== "calls").flatMap((name) =>
        [state[name]].flat().map((value) => [name, value]),
      );
      history.replaceState(null, "", `#${new URLSearchParams(shown)}`);
      ours = location.hash;
    }, REST);
  });
  addEventListener("hashchange", () => {
    clearTimeout(timer);
    ours = location.hash;
    view.follow(read());
  });
  return view;
}

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
    const moved = (state) => {
      for (const name of NAMES) model.set(name, state[name]);
      clearTimeout(timer);
      timer = setTimeout(flush, REST);
    };
    const view = mount(el, model.get("data"), read(), moved, true);
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
