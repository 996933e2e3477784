// The table of runs, and a run: its picture, what improved it, and its programs.
//
// A run's data come as `replaySite(number, data)` from runs/NUMBER.js when it is opened. Texts of
// logs come escaped in `html` fields, all others become text nodes.

const $ = (name, parent = document) => parent.querySelector(name);
const make = (name, attributes = {}, ...inside) => {
  const made = name.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4))
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
};

// The table: sorted by a column, filtered by words.

const body = $("#runs tbody"), rows = [...body.rows];
for (const [column, head] of [...$("#runs thead").rows[0].cells].entries()) {
  const button = $("button", head);
  if (!button) continue;
  button.onclick = () => {
    const up = head.getAttribute("aria-sort") === "descending";
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[column].dataset.key ?? row.cells[column].textContent;
    const words = head.classList.contains("word"), empty = (text) => !words && text === "";
    rows.sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (empty(x) || empty(y)) return empty(x) - empty(y); // what is unknown comes last
      const order = words ? x.localeCompare(y, "en", { numeric: true }) : x - y;
      return up ? order : -order;
    });
    body.append(...rows);
  };
}
$("#find").oninput = (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/);
  const texts = rows.map((row) => row.textContent.toLowerCase());
  rows.forEach((row, k) => { row.hidden = !words.every((word) => texts[k].includes(word)); });
  const left = rows.filter((row) => !row.hidden).length;
  $("#found").textContent = left === rows.length ? `${left} runs` : `${left} of ${rows.length} runs`;
};
body.onclick = (event) => {
  const link = $("a", event.target.closest("tr"));
  if (!event.target.closest("a") && !getSelection().toString()) location.hash = link.hash;
};

// A run.

const loaded = {};
function replaySite(number, data) { loaded[number] = data; route(); }
let shown = "", redraw = () => {};

function route() {
  const [, number, place] = location.hash.match(/^#run-(\d+)(?:\/(\d+-\d+))?$/) || [];
  $("#all").hidden = number !== undefined;
  $("#run").hidden = number === undefined;
  if (number === undefined) { shown = ""; return; }
  if (!loaded[number]) {
    document.head.append(make("script", { src: `runs/${number}.js` }));
    return;
  }
  if (shown !== number) { shown = number; show(+number, loaded[number]); scrollTo(0, 0); }
  const wanted = place && document.getElementById(`at-${place}`);
  if (wanted) { wanted.open = true; wanted.scrollIntoView({ block: "nearest" }); }
}

function show(number, run) {
  const order = [...body.rows].filter((row) => !row.hidden).map((row) => $("a", row).hash);
  const at = order.indexOf(`#run-${number}`);
  const link = (to, text) => (to ? [make("a", { href: to }, text)] : []);
  const chart = make("div", { class: "chart" });
  const facts = make("dl");
  for (const [name, text] of run.facts) facts.append(make("dt", {}, name), make("dd", {}, text));
  const steps = run.steps.map((step) => {
    const head = make("summary", {}, step.head);
    if (step.gain) head.append(" ", make("span", { class: "gain" }, step.gain));
    if (step.lines) head.append(make("span", { class: "muted" }, ` ${step.lines}`));
    return folded(head, step.html, `at-${step.at}`);
  });
  $("#run").replaceChildren(
    make("nav", {}, make("a", { href: "#runs" }, "← all runs"),
      ...link(order[at - 1], "previous"), ...link(order[at + 1], "next")),
    make("h1", {}, run.name), make("p", { class: "muted" }, run.about),
    make("div", { class: "two" },
      make("div", {}, make("h3", {}, "Every child"), chart, keys(run)),
      make("div", {}, make("h3", {}, "The run"), facts)),
    make("h2", {}, "What improved it"),
    ...(steps.length ? steps : [make("p", { class: "muted" }, "No child improved on the initial program.")]),
    make("h2", {}, "Programs"),
    ...run.programs.map(([head, html]) => folded(make("summary", {}, head), html)),
  );
  redraw = () => draw(chart, run, (place) => {
    if (document.getElementById(`at-${place}`)) location.hash = `#run-${number}/${place}`;
  });
  redraw();
}

function folded(head, html, id = "") {
  const made = make("details", id ? { id } : {}, head);
  made.insertAdjacentHTML("beforeend", html);
  return made;
}

function keys(run) {
  const made = make("p", { class: "keys" });
  const names = { ok: "ok", better: "improves on the best so far" };
  for (const kind of ["ok", "better"])
    made.append(make("span", {}, make("i", { style: `background:var(--${kind})` }), names[kind]));
  made.append(make("span", {}, "line: best so far"));
  if (run.clipped) made.append(make("span", {}, "triangles: below the axis"));
  return made;
}

// Ticks at 1, 2 or 5 times a power of ten, at most so many.
function ticks(low, high, most, whole) {
  let step = Math.pow(10, Math.floor(Math.log10((high - low) / most || 1)));
  for (const k of [1, 2, 5, 10]) if ((high - low) / (step * k) <= most) { step *= k; break; }
  if (whole) step = Math.max(1, Math.round(step));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++)
    found.push(+(k * step).toPrecision(12));
  return found;
}

function draw(el, run, open) {
  const width = el.clientWidth, tall = 330, row = 20, [left, right, top] = [80, 12, 22];
  const failures = run.statuses, height = top + tall + failures.length * row + 46;
  const [low, high] = run.range, room = 0.05 * (high - low || 1);
  const X = (g) => left + ((g + 0.6) / (run.last + 1.2)) * (width - left - right);
  const Y = (f) => top + tall - ((Math.max(f, low) - low + room) / (high - low + 2 * room)) * tall;
  const svg = make("svg:svg", { height, role: "img", "aria-label": run.words });
  const line = (d, attributes) => svg.append(make("svg:path", { d, ...attributes }));
  const text = (x, y, words, anchor) =>
    svg.append(make("svg:text", { x, y, "text-anchor": anchor }, words));
  for (const tick of ticks(low, high + room, 6)) {
    line(`M${left} ${Y(tick)}H${width - right}`, { class: "grid" });
    text(left - 8, Y(tick) + 4, `${tick}`, "end");
  }
  const foot = top + tall + failures.length * row;
  for (const tick of ticks(0, run.last, Math.max(2, Math.floor(width / 70)), true))
    text(X(tick), foot + 18, `${tick}`, "middle");
  text(left + (width - left - right) / 2, foot + 38, "generation", "middle");
  text(left - 8, top - 8, "fitness", "end");
  failures.forEach((name, k) => text(left - 8, top + tall + (k + 0.7) * row, name.replace("_", " "), "end"));

  const { generation, index, status, fitness } = run.children, better = new Set(run.children.better);
  const places = generation.map((g, k) => [
    X(g + (g ? 0.8 * ((index[k] + 0.5) / run.N - 0.5) : 0)),
    fitness[k] === null ? top + tall + (failures.indexOf(status[k]) + 0.55) * row : Y(fitness[k]),
  ]);
  const small = generation.length > 1500 ? 3.2 : 5.5;
  const dots = (kind, members, shape, style) => members.length && line(
    members.map((k) => shape(...places[k])).join(""), { class: kind, fill: "none", style });
  const dot = (x, y) => `M${x.toFixed(1)} ${y.toFixed(1)}h.01`;
  const round = (kind, size) => `stroke:var(--${kind});stroke-width:${size};stroke-linecap:round`;
  const all = [...generation.keys()];
  failures.forEach((name) => dots(name, all.filter((k) => status[k] === name), dot, round(name, small)));
  const ok = all.filter((k) => fitness[k] !== null && !better.has(k));
  dots("ok", ok.filter((k) => fitness[k] >= low), dot, `${round("ok", small)};opacity:.75`);
  dots("below", ok.filter((k) => fitness[k] < low), (x, y) => `M${x - 4} ${y - 3}h8l-4 7z`,
    "fill:var(--ok);stroke:none");
  const after = run.N > 1 ? 0.4 : 0; // a generation's best is known after its last child
  const best = run.best.map((f, g) => [X(g + (g ? after : 0)), f]).filter(([, f]) => f !== null);
  line(best.map(([x, f], k) => `${k ? "H" + x.toFixed(1) + "V" : "M" + x.toFixed(1) + " "}${Y(f).toFixed(1)}`).join("")
    + (best.length ? `H${X(run.last + 0.4).toFixed(1)}` : ""), { class: "line" });
  dots("better", [...better], (x, y) => `M${x} ${y - 6}l6 6-6 6-6-6z`, "fill:var(--better);stroke:none");
  const ring = make("svg:circle", { class: "ring", r: 8, visibility: "hidden" });
  svg.append(ring);
  const tip = make("div", { class: "tip", role: "status" });
  el.replaceChildren(svg, tip);

  const nearest = (event) => {
    const box = svg.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let found = -1, away = 18 * 18;
    places.forEach(([px, py], k) => {
      const far = (px - x) ** 2 + (py - y) ** 2 - (better.has(k) ? 9 : 0);
      if (far < away) { away = far; found = k; }
    });
    return [found, x, y];
  };
  svg.onpointermove = (event) => {
    const [k] = nearest(event);
    ring.setAttribute("visibility", k < 0 ? "hidden" : "visible");
    tip.style.display = k < 0 ? "none" : "block";
    svg.style.cursor = better.has(k) ? "pointer" : "default";
    if (k < 0) return;
    const [x, y] = places[k];
    ring.setAttribute("cx", x); ring.setAttribute("cy", y);
    tip.textContent = says(run, k);
    tip.style.left = `${Math.min(x + 12, Math.max(0, width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${y + tip.offsetHeight + 20 > height ? y - tip.offsetHeight - 12 : y + 12}px`;
  };
  svg.onpointerleave = () => { tip.style.display = "none"; ring.setAttribute("visibility", "hidden"); };
  svg.onclick = (event) => {
    const [k] = nearest(event);
    if (k >= 0) open(`${generation[k]}-${index[k]}`);
  };
}

function says(run, k) {
  const { generation, index, status, fitness, parent, better, said } = run.children;
  const who = generation[k] ? `generation ${generation[k]}, child ${index[k]}` : "the initial program";
  const of = parent[k] ? `\nrewrites ${parent[k] === "0-0" ? "the initial program" :
    `generation ${parent[k].replace("-", ", child ")}`}` : "";
  const much = fitness[k] === null ? `${status[k].replace("_", " ")}${said[k] ? `: ${said[k]}` : ""}`
    : `fitness ${fitness[k]}${better.includes(k) ? ", better than all before" : ""}`;
  return `${who}\n${much}${of}`;
}

addEventListener("hashchange", route);
addEventListener("resize", () => { if (shown) redraw(); });
route();
