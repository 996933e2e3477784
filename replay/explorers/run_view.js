// A run, drawn from arrays: every child by generation and fitness, the best so far, failures by
// their status below, and beside it what one program returned. Nothing here computes a number of
// it.
//
// `mount(el, run, state, tell)` knows nothing of Jupyter: the run browser, the live view, saved
// pages and the site use this same file. `run` is what `run_arrays.run_arrays` makes, or has a
// `message` in place of a picture. `state` has `at`, the generation and index of the program that
// is shown, or null, and its `drawing`, see `run_arrays.drawing_arrays`. tell(at, how) says that
// somebody went to a program by "click" or "key". It returns `load(run, state)`, `set(state)` and
// `close()`.

const OK = "#0072b2",
  BETTER = "#d55e00",
  REACH = 14; // pixels around a point that belong to it
const SPREAD = 0.8; // share of a generation's width over which its children are spread
const FEW = 1500; // more points than this are drawn small
const HOPS = {
  ArrowLeft: ["child", -1],
  ArrowRight: ["child", 1],
  ArrowDown: ["better", -1],
  ArrowUp: ["better", 1],
  F: ["failure", -1],
  f: ["failure", 1],
};
const RUN_STYLE = `
.replay-run {
  display: flex;
  flex-wrap: wrap;
  gap: 4px 18px;
  align-items: flex-start;
}
.replay-run .stage {
  flex: 2.2 1 420px;
  min-width: 0;
}
.replay-run .beside {
  flex: 1 1 240px;
  min-width: 0;
}
.replay-run > .head {
  flex: 1 0 100%;
  font-weight: 600;
}
.replay-run .message {
  padding: 18px 4px;
  max-width: 80ch;
}
.replay-run .keys {
  flex: 1 0 100%;
  display: flex;
  flex-wrap: wrap;
  gap: 1px 16px;
  font-size: 12px;
  opacity: 0.85;
}
.replay-run .keys svg {
  display: inline-block;
  vertical-align: -2px;
  margin-right: 5px;
  overflow: visible;
}
.replay-view.replay-run svg[role="application"]:focus {
  outline: none;
}
.replay-view.replay-run svg[role="application"]:focus-visible {
  outline: 2px solid #0072b2;
  outline-offset: 2px;
}
.replay-run .tip {
  white-space: pre-wrap;
  overflow-wrap: anywhere;
}
.replay-run .best {
  fill: none;
  stroke: currentColor;
  stroke-width: 1.4;
}
.replay-run .reference {
  stroke: currentColor;
  stroke-opacity: 0.6;
  stroke-dasharray: 1.5 3.5;
}
.replay-run .below {
  opacity: 0.9;
}
.replay-run .old svg {
  opacity: 0.3;
}
.replay-run .beside.never {
  flex: 1 0 100%;
}
.replay-run .beside p {
  margin: 0;
  font-size: 12px;
  opacity: 0.85;
}
.replay-run .beside b {
  display: block;
}
`;

// A mark around a place, by its letter.
const SHAPES = {
  o: (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
  v: (x, y, r) => `M${x - r} ${y - 0.8 * r}h${2 * r}l${-r} ${1.7 * r}z`,
  "^": (x, y, r) => `M${x - r} ${y + 0.8 * r}h${2 * r}l${-r} ${-1.7 * r}z`,
  d: (x, y, r) =>
    `M${x} ${y - 1.2 * r}l${0.75 * r} ${1.2 * r}l${-0.75 * r} ${1.2 * r}l${-0.75 * r} ${-1.2 * r}z`,
  D: (x, y, r) =>
    `M${x} ${y - 1.3 * r}l${1.3 * r} ${1.3 * r}l${-1.3 * r} ${1.3 * r}l${-1.3 * r} ${-1.3 * r}z`,
  s: (x, y, r) => `M${x - 0.9 * r} ${y - 0.9 * r}h${1.8 * r}v${1.8 * r}h${-1.8 * r}z`,
  P: (x, y, r) =>
    `M${x - 0.35 * r} ${y - r}h${0.7 * r}v${0.65 * r}h${0.65 * r}v${0.7 * r}` +
    `h${-0.65 * r}v${0.65 * r}h${-0.7 * r}v${-0.65 * r}h${-0.65 * r}v${-0.7 * r}` +
    `h${0.65 * r}z`,
  X: (x, y, r) =>
    `M${x - r} ${y - 0.5 * r}l${0.5 * r} ${-0.5 * r}l${0.5 * r} ${0.5 * r}l${0.5 * r} ${-0.5 * r}` +
    `l${0.5 * r} ${0.5 * r}l${-0.5 * r} ${0.5 * r}l${0.5 * r} ${0.5 * r}l${-0.5 * r} ${0.5 * r}` +
    `l${-0.5 * r} ${-0.5 * r}l${-0.5 * r} ${0.5 * r}l${-0.5 * r} ${-0.5 * r}` +
    `l${0.5 * r} ${-0.5 * r}z`,
  h: (x, y, r) =>
    `M${x} ${y - r}l${0.87 * r} ${0.5 * r}v${r}l${-0.87 * r} ${0.5 * r}l${-0.87 * r} ${-0.5 * r}` +
    `v${-r}z`,
};

const nameOf = (g, index) => (g ? `child ${index} of generation ${g}` : "the initial program");

// What is known of a program, in words.
function factsOf(run, k) {
  const { generation, index, status, fitness, parent, better, said } = run.children;
  const name = status[k] < 0 ? "ok" : run.statuses[status[k]][0].replace("_", " ");
  const how = name + (fitness[k] === null ? "" : `, fitness ${digits(fitness[k], 6)}`);
  const lines = [
    `${nameOf(generation[k], index[k])}: ${how}` +
      (better.includes(k) ? ", better than all before" : ""),
  ];
  if (k in said) lines.push(run.errors[said[k]]);
  const from = parent[k];
  if (from >= 0) {
    const known = fitness[from] === null ? "" : `, fitness ${digits(fitness[from], 6)}`;
    lines.push(`rewrites ${nameOf(generation[from], index[from])}${known}`);
  }
  return lines.join("\n");
}

export function mount(el, given, before, tell = () => {}) {
  let run = given,
    state = { ...before },
    zoom = {},
    plan = null,
    numbers = new Map(),
    serial = 0;
  let better = new Set(),
    hovered = -1;
  const root = html("div", { class: "replay-view replay-run" }, el);
  html("style", {}, root, LOOK + RUN_STYLE);
  const head = html("div", { class: "head" }, root);
  const stage = html("div", { class: "stage" }, root);
  const tip = html("div", { class: "tip", role: "status" }, stage);
  const beside = html("div", { class: "beside" }, root);
  const keys = html("div", { class: "keys" }, root);

  // The run as it was given, and where each program stands in it.
  function take(fresh) {
    if (fresh.name !== run.name) zoom = {};
    run = fresh;
    serial += 1;
    const { generation, index } = run.children || { generation: [], index: [] };
    numbers = new Map(generation.map((g, k) => [`${g}-${index[k]}`, k]));
    better = new Set(run.children?.better);
    head.textContent = run.label || "";
    head.style.display = run.label ? "" : "none";
    const [ink, ground] = INKS[run.theme] || ["", ""];
    root.style.color = ink;
    root.style.background = ground;
  }
  const at = () => (state.at ? (numbers.get(state.at.join("-")) ?? -1) : -1);
  const failed = (k) => run.children.status[k] >= 0;
  const within = (k) => {
    const [x, y] = plan.places[k];
    return (
      x >= plan.left - 1 &&
      x <= plan.x1 + 1 &&
      (failed(k) || (y >= plan.top - 1 && y <= plan.bottom + 1))
    );
  };

  function draw() {
    // By whoever uses the keys.
    const held = plan !== null && document.activeElement === plan.picture;
    hint("");
    stage.querySelector("svg")?.remove();
    stage.querySelector(".message")?.remove();
    keys.replaceChildren();
    beside.style.display = state.drawing?.title || state.drawing?.reason ? "" : "none";
    // The chart has the whole width where no program of the task has a picture.
    beside.classList.toggle("never", state.drawing?.pictured === false);
    plan = null;
    if (run.message !== undefined || !numbers.size) {
      stage.prepend(
        html("div", { class: "message" }, null, run.message || "No program was evaluated yet."),
      );
    } else {
      build();
      explain();
      if (held) plan.picture.focus({ preventScroll: true });
    }
    show();
  }

  // Axes and points, which stay while somebody goes from program to program.
  function build() {
    const width = Math.max(280, stage.clientWidth || 600),
      [left, right, top, row] = [80, 14, 10, 20];
    const tall = width < 520 ? 220 : 290;
    const foot = top + tall + 12 + run.statuses.length * row,
      height = foot + 42;
    const picture = svg("svg", {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      tabindex: 0,
      role: "application",
      "data-lm-suppress-shortcuts": "true",
      "aria-label":
        `${run.words}; left and right go to the next child, ` +
        "up and down to the next improvement, f and F to the next and previous failure",
    });
    const x1 = width - right;
    const x = linear(...(zoom.x || [-0.7, run.last + 0.7]), left, x1);
    const y = linear(...(zoom.y || run.limits), top + tall, top);
    plan = { picture, width, height, x, y, left, x1, top, bottom: top + tall, foot };
    svg(
      "text",
      {
        x: 13,
        y: top + tall / 2,
        "text-anchor": "middle",
        transform: `rotate(-90 13 ${top + tall / 2})`,
      },
      picture,
      run.y,
    );
    for (const tick of evenTicks(y.back(plan.bottom), y.back(top), 6)) {
      svg("line", { x1: left, x2: x1, y1: y(tick), y2: y(tick), class: "grid" }, picture);
      svg(
        "text",
        { x: left - 7, y: y(tick) + 4, "text-anchor": "end" },
        picture,
        Math.abs(tick) < 1e4 ? +tick.toPrecision(6) : short(tick),
      );
    }
    const whole = (tick) => Number.isInteger(tick);
    for (const tick of evenTicks(x.back(left), x.back(x1), Math.max(2, (x1 - left) / 70)).filter(
      whole,
    )) {
      svg("line", { x1: x(tick), x2: x(tick), y1: top, y2: foot, class: "grid" }, picture);
      svg("text", { x: x(tick), y: foot + 17, "text-anchor": "middle" }, picture, tick);
    }
    svg(
      "text",
      { x: (left + x1) / 2, y: foot + 36, "text-anchor": "middle" },
      picture,
      "generation",
    );
    svg(
      "path",
      {
        d: `M${left} ${top}V${plan.bottom}H${x1}M${left} ${plan.bottom + 12}V${foot}H${x1}`,
        class: "frame",
      },
      picture,
    );
    run.statuses.forEach(([name], k) =>
      svg(
        "text",
        { x: left - 7, y: rowAt(k) + 4, "text-anchor": "end" },
        picture,
        name.replace("_", " "),
      ),
    );
    const clip = `clip-${Math.random().toString(36).slice(2)}`;
    svg(
      "rect",
      { x: left - 1, y: top - 1, width: x1 - left + 8, height: tall + 2 },
      svg("clipPath", { id: clip }, picture),
    );
    svg(
      "rect",
      { x: left - 1, y: plan.bottom + 12, width: x1 - left + 8, height: foot - plan.bottom - 12 },
      svg("clipPath", { id: `${clip}-below` }, picture),
    );
    locate();
    drawReferences(picture);
    drawPoints(
      svg("g", { "clip-path": `url(#${clip})` }, picture),
      svg("g", { "clip-path": `url(#${clip}-below)` }, picture),
    );
    svg(
      "rect",
      { x: left, y: top, width: x1 - left, height: tall, class: "panel", "data-panel": "fitness" },
      picture,
    );
    svg(
      "rect",
      {
        x: left,
        y: plan.bottom + 12,
        width: x1 - left,
        height: foot - plan.bottom - 12,
        class: "panel",
        "data-panel": "failures",
      },
      picture,
    );
    plan.marks = svg("g", { "pointer-events": "none" }, picture);
    stage.prepend(picture);
  }
  const rowAt = (k) => plan.bottom + 12 + (k + 0.5) * 20;

  function drawReferences(picture) {
    const { x1, left, y, top, bottom } = plan,
      seen = run.references.filter(([, value]) => y(value) >= top && y(value) <= bottom);
    for (const [name, value] of seen) {
      svg("line", { x1: left, x2: x1, y1: y(value), y2: y(value), class: "reference" }, picture);
      const made = svg("text", {}, picture, name),
        wide = 6.4 * name.length;
      let least = Infinity;
      for (const [from, base] of spots(y(value), wide)) {
        // where the fewest points are
        const hidden = plan.places.filter(
          ([px, py]) => px > from - 4 && px < from + wide + 4 && py > base - 15 && py < base + 6,
        ).length;
        if (hidden >= least) continue;
        least = hidden;
        made.setAttribute("x", from);
        made.setAttribute("y", base);
      }
    }
  }
  // Where the name of a line may begin: above it or below, the right end first.
  function spots(at, wide) {
    const { x1, left, top, bottom } = plan,
      found = [];
    for (let from = x1 - wide; from >= left + 4; from -= 20) {
      if (at > top + 16) found.push([from, at - 4]);
      if (at < bottom - 16) found.push([from, at + 13]);
    }
    return found.length ? found : [[x1 - wide, at - 4]];
  }

  // Where every program lies, in pixels.
  function locate() {
    const { generation, index, status, fitness } = run.children,
      { x, y } = plan,
      low = run.range[0];
    plan.places = generation.map((g, k) => [
      x(g + (g ? SPREAD * ((index[k] + 0.5) / run.N - 0.5) : 0)),
      fitness[k] === null ? rowAt(status[k]) : y(Math.max(fitness[k], low)),
    ]);
  }

  function drawPoints(above, below) {
    const { generation, status, fitness } = run.children,
      { x, y } = plan,
      low = run.range[0];
    const all = [...generation.keys()],
      small = all.length > FEW;
    const marks = (members, letter, r, fill, parent, kind) => {
      if (!members.length) return;
      const d = members
        .map((k) => SHAPES[letter](+plan.places[k][0].toFixed(1), +plan.places[k][1].toFixed(1), r))
        .join("");
      svg("path", { d, fill, class: kind }, parent);
    };
    run.statuses.forEach(([name, letter, fill], row) => {
      marks(
        all.filter((k) => status[k] === row),
        letter,
        small ? 2 : 4,
        fill,
        below,
        name,
      );
    });
    const after = run.N > 1 ? SPREAD / 2 : 0; // a generation's best is known after its last child
    let d = "";
    run.best.forEach((value, g) => {
      if (value === null) return;
      const height = y(Math.max(value, low)).toFixed(1),
        from = x(g + (g ? after : 0)).toFixed(1);
      d += d ? `H${from}V${height}` : `M${from} ${height}`;
    });
    if (d) svg("path", { d: `${d}H${x(run.best.length - 0.6)}`, class: "best" }, above);
    const ok = all.filter((k) => fitness[k] !== null && !better.has(k));
    const r = all.length <= 300 ? 3.2 : small ? 1.6 : 2.4;
    marks(
      ok.filter((k) => fitness[k] >= low),
      "o",
      r,
      OK,
      above,
      "ok",
    );
    marks(
      ok.filter((k) => fitness[k] < low),
      "v",
      r + 1,
      OK,
      above,
      "below",
    );
    marks([...better], "D", r + 1, BETTER, above, "better");
    if (fitness.every((value) => value === null)) {
      svg(
        "text",
        { x: (plan.left + plan.x1) / 2, y: (plan.top + plan.bottom) / 2, "text-anchor": "middle" },
        above,
        "nothing is ok yet",
      );
    }
  }

  // What the marks mean.
  function explain() {
    const low = run.range[0],
      entry = (paint, text) => {
        const made = html("span", {}, keys),
          sign = svg("svg", { width: 14, height: 12, "aria-hidden": "true" }, made);
        paint(sign);
        made.append(text);
      };
    entry((sign) => svg("path", { d: SHAPES.o(7, 6, 3.2), fill: OK }, sign), "ok");
    entry(
      (sign) => svg("path", { d: SHAPES.D(7, 6, 4), fill: BETTER }, sign),
      "better than all before",
    );
    entry((sign) => svg("path", { d: "M0 9H7V3H14", class: "best" }, sign), "best so far");
    if (state.at) {
      entry(
        (sign) =>
          svg(
            "circle",
            { cx: 7, cy: 6, r: 5, fill: "none", stroke: BETTER, "stroke-width": 2 },
            sign,
          ),
        "shown",
      );
      entry(
        (sign) =>
          svg(
            "rect",
            { x: 2.5, y: 1.5, width: 9, height: 9, fill: "none", stroke: "currentColor" },
            sign,
          ),
        "its parent",
      );
    }
    if (run.children.fitness.some((value) => value !== null && value < low)) {
      entry((sign) => svg("path", { d: SHAPES.v(7, 6, 4), fill: OK }, sign), "below the axis");
    }
  }

  // What moves: the program that is shown, its parent, and what it returned.
  function show() {
    const k = plan ? at() : -1;
    root.dataset.serial = serial;
    root.dataset.description = k < 0 ? run.message || run.words || "" : factsOf(run, k);
    if (plan) {
      plan.marks.replaceChildren();
      const from = k < 0 ? -1 : run.children.parent[k];
      if (from >= 0 && within(from)) {
        const [[px, py], [x, y]] = [plan.places[from], plan.places[k]];
        if (within(k))
          svg(
            "line",
            {
              x1: px,
              y1: py,
              x2: x,
              y2: y,
              stroke: "currentColor",
              "stroke-width": 1.2,
              "stroke-dasharray": "1.5 3",
            },
            plan.marks,
          );
        svg(
          "rect",
          {
            x: px - 5.5,
            y: py - 5.5,
            width: 11,
            height: 11,
            fill: "none",
            stroke: "currentColor",
            class: "parent",
          },
          plan.marks,
        );
      }
      if (k >= 0 && within(k)) {
        const [cx, cy] = plan.places[k];
        svg(
          "circle",
          { cx, cy, r: 8, fill: "none", stroke: BETTER, "stroke-width": 2.4, class: "shown" },
          plan.marks,
        );
      }
    }
    drawConstruction();
  }

  // The construction of the shown program, faint while that of another one is not there yet.
  function drawConstruction() {
    const made = state.drawing || {};
    const old = Boolean(made.at && state.at && made.at.join() !== state.at.join());
    beside.classList.toggle("old", old);
    if (beside.made === made && beside.wide === beside.clientWidth && beside.old === old) return;
    Object.assign(beside, { made, old, wide: beside.clientWidth });
    beside.replaceChildren();
    if (made.reason && !old) html("p", {}, beside, made.reason);
    if (!made.title) return;
    html("b", {}, beside, made.title);
    html("p", {}, beside, `${made.about}${old ? `; of ${nameOf(...made.at)}` : ""}`);
    const width = Math.max(120, Math.min(beside.clientWidth || 240, 340)),
      edge = 8;
    const all = [
      ...made.outline,
      ...made.points,
      ...made.discs.flatMap(([x, y, r]) => [
        [x - r, y - r],
        [x + r, y + r],
      ]),
    ];
    const ends = [0, 1].map((k) => [
      Math.min(...all.map((each) => each[k])),
      Math.max(...all.map((each) => each[k])),
    ]);
    const size = Math.max(...ends.map(([low, high]) => high - low)) || 1,
      mid = ends.map(([low, high]) => (low + high) / 2);
    const scale = (width - 2 * edge) / size,
      X = (x) => width / 2 + (x - mid[0]) * scale,
      Y = (y) => width / 2 - (y - mid[1]) * scale;
    const drawn = svg(
      "svg",
      {
        width,
        height: width,
        viewBox: `0 0 ${width} ${width}`,
        role: "img",
        "aria-label": `${made.title}; ${made.about}`,
      },
      beside,
    );
    const path = (points) =>
      `M${points.map(([x, y]) => `${X(x).toFixed(2)} ${Y(y).toFixed(2)}`).join("L")}`;
    if (made.outline.length)
      svg(
        "path",
        { d: `${path(made.outline)}Z`, fill: "none", stroke: "currentColor", "stroke-width": 1.2 },
        drawn,
      );
    for (const [x, y, r] of made.discs)
      svg(
        "circle",
        {
          cx: X(x),
          cy: Y(y),
          r: Math.abs(r) * scale,
          fill: OK,
          "fill-opacity": 0.25,
          stroke: OK,
          "stroke-width": 1.2,
        },
        drawn,
      );
    for (const line of made.far)
      svg(
        "path",
        {
          d: path(line),
          fill: "none",
          stroke: "currentColor",
          "stroke-opacity": 0.4,
          "stroke-dasharray": "5 3",
        },
        drawn,
      );
    for (const line of made.near)
      svg("path", { d: path(line), fill: "none", stroke: BETTER, "stroke-width": 1.4 }, drawn);
    if (made.area.length)
      svg(
        "path",
        {
          d: `${path(made.area)}Z`,
          fill: BETTER,
          "fill-opacity": 0.33,
          stroke: BETTER,
          "stroke-width": 1.4,
        },
        drawn,
      );
    for (const [x, y] of made.points)
      svg("circle", { cx: X(x), cy: Y(y), r: 3.6, fill: OK }, drawn);
    for (const [x, y] of made.crosses)
      svg("path", { d: SHAPES.X(X(x), Y(y), 4), fill: BETTER }, drawn);
  }

  // Going to a program: by the mouse, or by keys from the one that is shown.
  function go(k, how) {
    state = { ...state, at: [run.children.generation[k], run.children.index[k]] };
    show();
    tell(state.at, how);
  }
  function hop(sort, step) {
    const wanted = { child: () => true, better: (k) => better.has(k), failure: failed }[sort];
    const from = at();
    for (
      let k = from < 0 && step < 0 ? plan.places.length - 1 : from + step;
      k >= 0 && k < plan.places.length;
      k += step
    ) {
      if (wanted(k)) return k;
    }
    return -1;
  }
  root.addEventListener("keydown", (event) => {
    if (event.target !== plan?.picture || event.ctrlKey || event.metaKey || event.altKey) return;
    const way = HOPS[event.key];
    if (!way && event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    const k = way ? hop(...way) : at();
    if (k < 0) return;
    go(k, way ? "key" : "click");
    hint(factsOf(run, k), ...(within(k) ? plan.places[k] : [plan.left, plan.top]));
  });
  root.addEventListener("focusout", () => hint(""));

  // What lies under the mouse.
  function place(event) {
    const box = plan.picture.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }
  function nearest(x, y) {
    let found = -1,
      away = REACH * REACH;
    plan.places.forEach(([px, py], k) => {
      const far = (px - x) ** 2 + (py - y) ** 2 - (better.has(k) ? 9 : 0);
      if (far < away && within(k)) {
        away = far;
        found = k;
      }
    });
    return found;
  }
  function hint(text, x, y) {
    tip.textContent = text;
    tip.style.display = text ? "block" : "none";
    plan?.picture.querySelector(".hovered")?.remove();
    if (!text) return;
    tip.style.left = `${Math.max(0, Math.min(x + 14, plan.width - tip.offsetWidth - 4))}px`;
    const below = y + 16 + tip.offsetHeight <= plan.height;
    tip.style.top = `${below ? y + 14 : y - tip.offsetHeight - 12}px`;
  }
  function hover(event) {
    const k = nearest(...place(event));
    plan.picture.style.cursor = k < 0 ? "" : "pointer";
    for (const panel of plan.picture.querySelectorAll(".panel"))
      panel.style.cursor = k < 0 ? "" : "pointer";
    if (k === hovered && tip.textContent) return;
    hovered = k;
    if (k < 0) {
      hint("");
      return;
    }
    const [cx, cy] = plan.places[k];
    hint(factsOf(run, k), cx, cy);
    svg(
      "circle",
      {
        cx,
        cy,
        r: 7,
        fill: "none",
        stroke: "currentColor",
        "stroke-width": 1.4,
        class: "hovered",
        "pointer-events": "none",
      },
      plan.picture,
    );
  }

  // A drag zooms both panels in generations, and fitness if it is tall; a double click shows all.
  let drag = null;
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  stage.addEventListener("pointerdown", (event) => {
    if (event.button || !event.target.matches(".panel")) return;
    drag = { from: place(event), fitness: event.target.dataset.panel === "fitness" };
    event.target.setPointerCapture(event.pointerId);
  });
  stage.addEventListener("pointermove", (event) => {
    if (!plan) return;
    if (!drag) {
      hover(event);
      return;
    }
    const [x, y] = place(event),
      { top, bottom, left, x1 } = plan;
    drag.to = [clamp(x, left, x1), clamp(y, top, bottom)];
    drag.tall = drag.fitness && Math.abs(drag.to[1] - drag.from[1]) >= 12;
    plan.picture.querySelector(".dragged")?.remove();
    if (Math.abs(drag.to[0] - drag.from[0]) < 6) return;
    hint("");
    const [y0, y1] = drag.tall
      ? [drag.from[1], drag.to[1]].sort((a, b) => a - b)
      : [top, plan.foot];
    svg(
      "rect",
      {
        x: Math.min(drag.from[0], drag.to[0]),
        width: Math.abs(drag.to[0] - drag.from[0]),
        y: y0,
        height: y1 - y0,
        fill: "currentColor",
        "fill-opacity": 0.15,
        "pointer-events": "none",
        class: "dragged",
      },
      plan.picture,
    );
  });
  stage.addEventListener("pointerup", (event) => {
    const done = drag;
    drag = null;
    if (!plan) return;
    plan.picture.querySelector(".dragged")?.remove();
    if (done?.to && Math.abs(done.to[0] - done.from[0]) >= 6) {
      const ends = (scale, k) =>
        [scale.back(done.from[k]), scale.back(done.to[k])].sort((a, b) => a - b);
      zoom = { x: ends(plan.x, 0), y: done.tall ? ends(plan.y, 1) : zoom.y };
      draw();
    } else if (!event.button && event.target.matches(".panel")) {
      const k = nearest(...place(event));
      if (k >= 0) go(k, "click");
    }
  });
  stage.addEventListener("pointerleave", () => {
    if (!drag) {
      hint("");
      hovered = -1;
    }
  });
  stage.addEventListener("dblclick", () => {
    if (!zoom.x) return;
    zoom = {};
    draw();
  });

  take(run);
  draw();
  let wide = root.clientWidth;
  const watch = new ResizeObserver(() => {
    if (!root.clientWidth || Math.abs(root.clientWidth - wide) < 4) return;
    wide = root.clientWidth;
    draw();
  });
  watch.observe(root);
  function set(next) {
    const other =
      Boolean(next.drawing?.title || next.drawing?.reason) !== (beside.style.display !== "none");
    state = { ...next };
    if (other)
      draw(); // there is another width
    else show();
  }
  function load(fresh, next = state) {
    take(fresh);
    state = { ...next };
    draw();
  }
  // What tests compare with Python, and where a program lies by its facts.
  const find = (text) => {
    const k = plan ? plan.places.findIndex((_, each) => factsOf(run, each).includes(text)) : -1;
    if (k < 0) return null;
    plan.picture.scrollIntoView({ block: "nearest" });
    const box = plan.picture.getBoundingClientRect(),
      [x, y] = plan.places[k];
    return [box.left + x, box.top + y];
  };
  root.view = { set, load, find, shown: () => ({ run, state, plan }) };
  return {
    load,
    set,
    close: () => {
      watch.disconnect();
      root.remove();
    },
  };
}

const WAIT = 120; // milliseconds without a key after which the kernel is told

export default {
  render({ model, el }) {
    el.style.cssText += ";width:100%;min-width:0";
    const unwatch = watchKernel(model, el);
    // Where somebody went last, which the kernel may not have heard of yet: until then it stays.
    let timer = 0,
      asked = false,
      grown = false,
      moves = model.get("heard"),
      place = null;
    const read = () => ({
      at: model.get("heard") < moves ? place : model.get("at"),
      drawing: model.get("drawing"),
    });
    const view = mount(el, model.get("run"), read(), (at, how) => {
      clearTimeout(timer);
      place = at;
      moves = Math.max(moves, model.get("heard")) + 1;
      const content = { kind: "at", generation: at[0], index: at[1], how, move: moves };
      timer = setTimeout(() => model.send(content), how === "key" ? WAIT : 0);
    });
    const told = () => {
      // all that came at once is drawn once
      if (asked) return;
      asked = true;
      queueMicrotask(() => {
        if (grown) view.load(model.get("run"), read());
        else view.set(read());
        asked = grown = false;
      });
    };
    const loaded = () => {
      grown = true;
      told();
    };
    model.on("change:at change:drawing change:heard", told);
    model.on("change:run", loaded);
    return () => {
      clearTimeout(timer);
      model.off("change:at change:drawing change:heard", told);
      model.off("change:run", loaded);
      unwatch();
      view.close();
    };
  },
};
