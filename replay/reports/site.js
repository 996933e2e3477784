// The table of runs, and a run: its picture, what improved it, and its programs.
//
// `drawing.js`, `chart.js` and `run_view.js`, which draw the run, stand before it in the page.
// A run's data come as `replaySite(number, data)` from runs/NUMBER.js when it is opened. Texts of
// logs come escaped in `html` fields, all others become text nodes.

const $ = (name, parent = document) => parent.querySelector(name);
const make = (name, attributes = {}, ...inside) => {
  const made = html(name, attributes);
  made.append(...inside);
  return made;
};

// The table: sorted by a column, filtered by words.

const body = $("#runs tbody");
let order = null; // of two rows, by the column that was chosen last
for (const [column, head] of [...$("#runs thead").rows[0].cells].entries()) {
  const button = $("button", head);
  if (!button) continue;
  button.onclick = () => {
    const up = head.getAttribute("aria-sort") === "descending";
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[column].dataset.key ?? row.cells[column].textContent;
    const words = head.classList.contains("word"),
      empty = (text) => !words && text === "";
    order = (a, b) => {
      const [x, y] = [key(a), key(b)];
      if (empty(x) || empty(y)) return empty(x) - empty(y); // what is unknown comes last
      const ascending = words ? x.localeCompare(y, "en", { numeric: true }) : x - y;
      return up ? ascending : -ascending;
    };
    body.append(...[...body.rows].sort(order));
  };
}
// Puts a new row where the others are sorted; these stay where they are.
function insert(row) {
  if (order) body.insertBefore(row, [...body.rows].find((each) => order(row, each) < 0) ?? null);
}
$("#find").oninput = (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/),
    rows = [...body.rows];
  const whole = (row) => `${row.cells[0].dataset.key} ${row.textContent}`;
  const texts = rows.map((row) => whole(row).toLowerCase());
  rows.forEach((row, k) => {
    row.hidden = !words.every((word) => texts[k].includes(word));
  });
  const left = rows.filter((row) => !row.hidden).length;
  $("#found").textContent =
    left === rows.length ? amount(left, "run") : `${left} of ${amount(rows.length, "run")}`;
};
body.onclick = (event) => {
  if (event.target.closest("button")) return;
  const link = $("a", event.target.closest("tr"));
  if (!event.target.closest("a") && !getSelection().toString()) location.hash = link.hash;
};

// A run.

const loaded = {};
window.replaySite = (number, data) => {
  const again = loaded[number] && shown === String(number);
  loaded[number] = data;
  if (again) show(number, data);
  route();
};
let shown = "",
  view = null;

// A link names its run, `#run/NAME` or `#run/NAME/PLACE`: numbers change as runs are added.
const plain = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // cut within a character
  }
};
const runName = (row) => row.cells[0].dataset.key;
const absent = new Set(); // numbers of runs whose page is not there
function route() {
  const asked = /^#run[-/]/.test(location.hash),
    [, name, place] = location.hash.match(/^#run\/([^/]+)(?:\/(.*))?$/) || [];
  const row = name && [...body.rows].find((each) => runName(each) === plain(name)),
    number = row && $("a", row).dataset.run;
  const none = number === undefined || absent.has(number);
  absent.delete(number); // it may begin meanwhile, and is looked for the next time
  $("#all").hidden = !none;
  $("#run").hidden = none;
  $("#lost").replaceChildren(...(asked && none && body.rows.length ? lost(plain(name || "")) : []));
  if (none) {
    shown = "";
    return;
  }
  if (!loaded[number]) {
    const script = make("script", { src: `runs/${number}.js` });
    script.onerror = () => {
      absent.add(number);
      route();
    };
    document.head.append(script);
    return;
  }
  if (shown !== number) {
    shown = number;
    show(+number, loaded[number]);
    scrollTo(0, 0);
  }
  const wanted = place && document.getElementById(`at-${place}`);
  if (wanted) {
    wanted.open = true;
    wanted.scrollIntoView({ block: "nearest" });
  }
  if (window.replayChild && /^\d+-\d+$/.test(place)) tellOf(number, place);
  else {
    const known = !place || loaded[number].places.some((each) => each.join("-") === place);
    delete $("#child").dataset.place;
    $("#child").replaceChildren(
      ...(known ? [] : [make("p", { class: "muted" }, "There is no such child.")]),
    );
  }
}

// What is said where no run has a name: which runs have names that share most with it.
function lost(name) {
  if (!name) return ["There is no such run."];
  const said = [`There is no run named ${name} here.`],
    near = [...body.rows].filter((row) => alike(runName(row), name) >= name.length / 2);
  near.sort((a, b) => alike(runName(b), name) - alike(runName(a), name));
  near.slice(0, 3).forEach((row, k) => {
    said.push(k ? ", " : " Near it: ", make("a", { href: $("a", row).hash }, runName(row)));
  });
  return said;
}
// How many characters two names have in common at their beginnings and their ends.
function alike(one, other) {
  const least = Math.min(one.length, other.length);
  let [before, after] = [0, 0];
  while (before < least && one[before] === other[before]) before++;
  while (after < least - before && one.at(-1 - after) === other.at(-1 - after)) after++;
  return before + after;
}

// All texts of a child, where a server has them.
async function tellOf(number, place) {
  const target = $("#child");
  if (target.dataset.place === place) return;
  target.dataset.place = place;
  const text = await window.replayChild(number, place);
  if (target.dataset.place === place) target.innerHTML = text;
}

function show(number, run) {
  const rows = [...body.rows].map((row) => $("a", row)),
    own = rows.find((each) => +each.dataset.run === number).hash;
  const runs = rows.filter((each) => !each.closest("tr").hidden).map((each) => each.hash);
  const at = runs.indexOf(own);
  const link = (to, text) => (to ? [make("a", { href: to }, text)] : []);
  const chart = make("div");
  const facts = make("dl");
  for (const [name, text] of run.facts) facts.append(make("dt", {}, name), make("dd", {}, text));
  const steps = run.steps.map((step) => {
    const head = make("summary", {}, step.head);
    if (step.gain) head.append(" ", make("span", { class: "gain" }, step.gain));
    if (step.lines) head.append(make("span", { class: "muted" }, ` ${step.lines}`));
    return folded(head, step.html, `at-${step.at}`);
  });
  $("#run").replaceChildren(
    make(
      "nav",
      {},
      make("a", { href: "#runs" }, "← all runs"),
      ...link(runs[at - 1], "previous"),
      ...link(runs[at + 1], "next"),
    ),
    make("h1", {}, run.name),
    make("p", { class: "muted" }, run.about),
    make(
      "div",
      { class: "two" },
      make("div", {}, make("h2", {}, "Every child"), chart),
      make("div", {}, make("h2", {}, "The run"), facts),
    ),
    make("div", { id: "child" }),
    make("h2", {}, "What improved it"),
    ...(steps.length
      ? steps
      : [make("p", { class: "muted" }, "No child improved on the initial program.")]),
    make("h2", {}, "Programs"),
    ...run.programs.map(([head, text]) => folded(make("summary", {}, head), text)),
  );
  view?.close();
  view = mount(chart, run, { at: null, drawing: run.drawing }, ([generation, index], how) => {
    const place = `${generation}-${index}`;
    if (how === "click" && (window.replayChild || document.getElementById(`at-${place}`)))
      location.hash = `${own}/${place}`;
  });
}

function folded(head, text, id = "") {
  const made = make("details", id ? { id } : {}, head);
  made.insertAdjacentHTML("beforeend", text);
  return made;
}

addEventListener("hashchange", route);
route();
