// The page of `replay view`: the lines of runs as their logs grow, buttons, and every child's
// texts.
//
// `site.js` stands before it; what it shows of a run comes from runs/NUMBER.js here too, again
// whenever the run has more. Requests go to the server that the page came from, and nowhere else.

const PAUSE = 1000,
  AGAIN = 3000,
  FIGURES = 15000; // milliseconds between looks at runs, at one, at figures
const token = new URLSearchParams(location.search).get("token") || "";
const lines = new Map(); // number -> {row, stamp}
let gone = false,
  figures = 0,
  drawn = "",
  passed = "",
  reread = 0,
  promised = null; // the number of the run that is said to go on

async function look() {
  try {
    const answer = await fetch("state");
    const { runs, studies, gates } = await answer.json();
    if (gone) $("#news").textContent = "";
    gone = false;
    runs.forEach(follow);
    if (runs[promised]?.failed) $("#news").textContent = ""; // its line says why
    if (runs[promised]?.failed) promised = null;
    sum(runs);
    if (gates !== passed) $("#gates").innerHTML = passed = gates;
    draw(runs, studies);
  } catch {
    gone = true;
    $("#news").textContent =
      "The server is gone: `replay view` was stopped. What is shown is what it said last.";
  }
  setTimeout(look, PAUSE);
}

// One line of the table.
function follow(run) {
  let line = lines.get(run.number);
  const stamp = [run.stamp, run.state, run.words].join(" ");
  if (!line) {
    line = { row: body.insertRow(), stamp: "" };
    lines.set(run.number, line);
  }
  if (line.stamp === stamp) return;
  line.stamp = stamp;
  line.row.innerHTML = run.cells;
  const state = make("td", { class: `word state ${run.state}`, "data-key": run.state });
  const bar = make("progress", {
    max: 1,
    value: run.done,
    "aria-label": `${Math.round(100 * run.done)} % of the children`,
  });
  state.append(
    make("b", {}, run.state),
    run.state === "running" && !run.tool && run.done !== null ? bar : "",
    make("span", { class: "muted" }, ` ${run.words} `),
  );
  for (const wish of run.tool ? [] : wishes(run)) state.append(button(run, wish));
  line.row.cells[0].after(state);
  const open = location.hash.match(/^#run-(\d+)/)?.[1];
  if (open === String(run.number) && Date.now() - reread > AGAIN) {
    reread = Date.now();
    document.head.append(make("script", { src: `runs/${run.number}.js?${run.stamp}` }));
  }
}
const wishes = ({ state, alone }) =>
  state === "running"
    ? ["pause", "stop"]
    : alone && ["paused", "stopped", "interrupted"].includes(state)
      ? ["go on"]
      : [];
function button(run, wish) {
  const made = make("button", { type: "button", class: "wish" }, wish);
  made.onclick = async (event) => {
    event.stopPropagation();
    made.disabled = true;
    try {
      const answer = await fetch("ask", {
        method: "POST",
        headers: { "X-Token": token },
        body: JSON.stringify({ run: String(run.number), wish }),
      });
      const said = await answer.json();
      $("#news").textContent = said.error || said.said;
      promised = wish === "go on" && said.said ? run.number : null;
    } catch {
      $("#news").textContent = "The server did not answer.";
    }
    made.disabled = false;
  };
  return made;
}

function sum(runs) {
  const total = (name) => runs.reduce((all, run) => all + (run[name] || 0), 0),
    children = total("children");
  const facts = [
    ["runs", runs.length],
    ["running", runs.filter((run) => run.state === "running").length],
    ["calls", total("calls")],
    ["children ok", children ? `${Math.round((100 * total("ok")) / children)} %` : "none"],
    [
      "dollars",
      runs.some((run) => run.dollars !== null) ? total("dollars").toFixed(4) : "none known",
    ],
  ];
  $("#sums").replaceChildren(
    ...facts.map(([name, text]) =>
      make("div", {}, make("b", {}, String(text)), make("span", {}, name)),
    ),
  );
  if (/^(Reading|There is no log)/.test($("#news").textContent))
    $("#news").textContent = runs.length
      ? ""
      : "There is no log here yet: runs appear as they begin.";
}

// Figures and tables, unless somebody looks at one closely.
async function draw(runs, studies) {
  const stamp = runs.map((run) => run.stamp).join(" ") + studies,
    parts = $("#parts");
  if (
    stamp === drawn ||
    Date.now() - figures < FIGURES ||
    parts.matches(":hover") ||
    $("#all").hidden
  )
    return;
  [drawn, figures] = [stamp, Date.now()];
  const answer = await fetch("parts");
  if (!answer.ok) return;
  parts.innerHTML = await answer.text();
  window.replayCharts(parts);
}

// A child's texts, by the link to it.
window.replayChild = async (number, place) => {
  const answer = await fetch(`child/${number}/${place}`);
  return answer.ok ? answer.text() : `<p class="muted">${(await answer.json()).error}</p>`;
};

look();
