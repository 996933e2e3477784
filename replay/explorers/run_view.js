// A run: its chart, on which the program that somebody went to and its parent are marked, and
// beside it what that returned. `chart.js`, the pen, stands before this file and draws all of it.
//
// `mount(el, run, state, tell)` knows nothing of Jupyter: the run browser, the live view, saved
// pages and the site use this same file. `run` is what `run_arrays.run_arrays` makes, or has a
// `message` in place of a chart. `state` has `at`, the generation and index of the program that is
// shown, or null, and its `drawing`, see `run_arrays.drawing_arrays`. tell(at, how) says that
// somebody went to a program by "click" or "key". It returns `load(run, state)`, `set(state)` and
// `close()`.

const HOPS = {
  ArrowLeft: ["child", -1],
  ArrowRight: ["child", 1],
  ArrowDown: ["better", -1],
  ArrowUp: ["better", 1],
  F: ["failure", -1],
  f: ["failure", 1],
};
const HOPPING =
  "left and right go to the next child, up and down to the next improvement, " +
  "f and F to the next and previous failure";
const RUN_STYLE = `
.replay-run {
  display: flex;
  flex-wrap: wrap;
  gap: 4px 18px;
  align-items: flex-start;
}
.replay-run > .run {
  flex: 2.2 1 420px;
  min-width: 0;
}
.replay-run > .beside {
  flex: 1 1 240px;
  min-width: 0;
}
.replay-run > .beside.never {
  flex: 1 0 100%;
}
.replay-run > .beside > p {
  margin: 0;
  font-size: 12px;
  opacity: 0.85;
}
.replay-run .old svg {
  opacity: 0.3;
}
`;

const nameOf = ([g, index]) => (g ? `child ${index} of generation ${g}` : "the initial program");

export function mount(el, given, before, tell = () => {}) {
  let run = given,
    state = { ...before },
    spots = [], // where each program is: panel, mark, place, x and y
    numbers = new Map(),
    serial = 0;
  const root = html("div", { class: "replay-view replay-run" }, el);
  html("style", {}, root, LOOK + RUN_STYLE);
  const left = html("div", { class: "run" }, root),
    beside = html("div", { class: "beside" }, root);
  const reason = html("p", {}, beside),
    box = html("div", {}, beside);

  // The chart of a run, and where each program stands in it.
  function take(fresh) {
    run = fresh;
    serial += 1;
    numbers = new Map(run.places?.map((place, k) => [place.join("-"), k]));
    spots = [];
    for (const [panel, mark, of] of run.points || []) {
      const { x, y } = run.chart.panels[panel].marks[mark];
      of.forEach((k, place) => (spots[k] = { panel, mark, place, x: x[place], y: y[place] }));
    }
    const [ink, ground] = INKS[run.theme] || ["", ""];
    Object.assign(root.style, { color: ink, background: ground });
    const chart = run.chart || { panels: [], message: run.message };
    return { ...chart, label: run.words || run.message, theme: run.theme, serial, ways: HOPPING };
  }
  const numberOf = (hit) => (hit ? spots.findIndex((spot) => spot && same(spot, hit)) : -1);
  const at = () => (state.at ? (numbers.get(state.at.join("-")) ?? -1) : -1);
  const textOf = (k) => run.chart.panels[spots[k].panel].marks[spots[k].mark].texts[spots[k].place];

  // What moves: the program that is shown, its parent, and what it returned.
  function show() {
    const k = at();
    root.dataset.serial = serial;
    root.dataset.description = k < 0 ? run.message || run.words : textOf(k);
    run.chart?.panels.forEach((panel, p) => sign(panel, p, k));
    drawReturned();
  }
  // The last three marks of a panel: the line between the two, which goes on at the edge to another
  // panel, the parent, and the program.
  function sign({ y, marks }, p, k) {
    const ends = [run.parents[k], k].map((each) => spots[each]),
      edge = Math.min(...y.domain);
    const here = ends.map((spot) => (spot?.panel === p ? [spot] : []));
    const line = ends[0] && here.flat().length ? ends : [];
    const [from, to] = line.map((spot) =>
      spot.panel === p ? [spot.x, spot.y] : [ends[1].x, edge],
    );
    const link = from
      ? { x0: [from[0]], y0: [from[1]], x1: [to[0]], y1: [to[1]] }
      : { x0: [], y0: [], x1: [], y1: [] };
    const dots = here.map((spot) => ({ x: spot.map((e) => e.x), y: spot.map((e) => e.y) }));
    [link, ...dots].forEach((values, n) => picture.change(p, marks.length - 3 + n, values));
  }

  // What the shown program returned, faint while that of another one is not there yet.
  function drawReturned() {
    const made = state.drawing || {},
      old = Boolean(made.at && state.at && made.at.join() !== state.at.join());
    beside.hidden = !made.chart && !made.reason;
    // The chart has the whole width where no program of the log has a picture.
    beside.classList.toggle("never", made.pictured === false);
    beside.classList.toggle("old", old);
    reason.textContent = (!old && made.reason) || "";
    box.hidden = !made.chart;
    if (!made.chart || (box.made === made && box.old === old)) return;
    Object.assign(box, { made, old });
    const [panel] = made.chart.panels,
      about = panel.about + (old ? `; of ${nameOf(made.at)}` : "");
    const own = { label: `${panel.title}; ${about}`, theme: run.theme, serial };
    returned.load({ ...made.chart, ...own, panels: [{ ...panel, about }] });
  }

  // Going to a program: by the mouse, or by keys from the one that is shown.
  function go(k, how) {
    state = { ...state, at: run.places[k] };
    show();
    tell(state.at, how);
  }
  function hop(sort, step) {
    const wanted = {
      child: () => true,
      better: (k) => run.better.includes(k),
      failure: (k) => spots[k].panel === 1,
    }[sort];
    const from = at();
    for (let k = from < 0 && step < 0 ? spots.length - 1 : from + step; run.places[k]; k += step)
      if (spots[k] && wanted(k)) return k;
    return -1;
  }
  left.addEventListener(
    "keydown",
    (event) => {
      if (!event.target.matches("[role=application]") || !spots.length) return;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const way = HOPS[event.key];
      if (!way && (event.key !== "Enter" || picture.shown().held)) return;
      event.preventDefault();
      event.stopPropagation();
      const k = way ? hop(...way) : at();
      if (k < 0) return;
      go(k, way ? "key" : "click");
      picture.hold(spots[k]);
    },
    true,
  );

  const picture = mountChart(left, take(run), (hit) => go(numberOf(hit), "click")),
    returned = mountChart(box, { panels: [], message: "" });
  show();
  function set(next) {
    state = { ...next };
    show();
  }
  function load(fresh, next = state) {
    const held = numberOf(picture.shown().held);
    picture.load(take(fresh));
    set(next);
    // A place that somebody went to may have another number now.
    if (spots[held] && left.contains(document.activeElement)) picture.hold(spots[held]);
  }
  const shown = () => ({ run, state, spots, plans: picture.shown().plans });
  root.view = { set, load, find: picture.find, shown };
  return {
    load,
    set,
    close: () => {
      picture.close();
      returned.close();
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
