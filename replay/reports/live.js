// The page of `replay view`: the lines of runs as their logs grow, buttons, and every child's
// texts.
//
// `site.js` stands before it; what it shows of a run comes from runs/NUMBER.js here too, again
// whenever the run has more. Requests go to the server that the page came from, and nowhere else.

const PAUSE = 1000,
  AGAIN = 3000, // milliseconds between looks at runs, at one
  READ = 4000; // for which an answer to a button is shown at least
const token = new URLSearchParams(location.search).get("token") || "";
const find = $("#find"),
  lines = new Map(); // number -> {row, what it shows, how much its page was read of}
let drawn = "", // what the figures were drawn of, and when
  time = "",
  drawing = false,
  trouble = "",
  passed = "",
  reread = 0,
  notice = { over: () => true, until: 0 };
const READING = "Reading the logs …", // as the page begins
  GONE = "The server is gone: `replay view` was stopped. What is shown is what it said last.",
  gone = make("p", { role: "status", class: "muted" }); // above the page of a run
$("#lost").after(gone);

async function look() {
  try {
    const answer = await fetch("state");
    const { runs, studies, gates, rest, wait, unread } = await answer.json();
    gone.textContent = "";
    const before = lines.size;
    runs.forEach(follow);
    if (lines.size > before && find.value) find.oninput({ target: find });
    if (lines.size > before && !shown) route(); // a link may name a run that has just appeared
    for (const run of runs) reopen(run, wait);
    if (notice.over(runs) && Date.now() >= notice.until) tell(unread ? READING : "", () => true);
    if (!runs.length) tell("There is no log here yet: runs appear as they begin.", found);
    sum(runs, unread);
    if (gates !== passed) $("#gates").innerHTML = passed = gates;
    if (!unread) draw(runs, studies, rest);
    if (unread) return setTimeout(look);
  } catch {
    tell(GONE, () => true);
    gone.textContent = $("#all").hidden ? GONE : ""; // the table has its own notice
  }
  setTimeout(look, PAUSE);
}
const found = (runs) => runs.length > 0;

// A notice, until what it says is over, though as long as it takes to read an answer.
function tell(text, over = () => false, least = 0) {
  if ($("#news").textContent !== text) $("#news").textContent = text;
  notice = { over, until: Date.now() + least };
}

// One line of the table.
function follow(run) {
  let line = lines.get(run.number);
  const fresh = !line,
    stamp = [run.stamp, run.state, run.words].join(" ");
  if (fresh) {
    line = { row: body.insertRow(), stamp: "", read: run.stamp };
    lines.set(run.number, line);
  }
  if (line.stamp === stamp) return;
  line.stamp = stamp;
  const focused = line.row.contains(document.activeElement) && document.activeElement.textContent;
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
  if (fresh) insert(line.row);
  if (!focused) return;
  const [link, ...buttons] = line.row.querySelectorAll("a, button"),
    same = [link, ...buttons].find((each) => each.textContent === focused);
  (same ?? buttons[0] ?? link).focus({ preventScroll: true });
}
// The page of the run that is open, again once the run has more and its page may be read.
function reopen(run, wait) {
  const line = lines.get(run.number);
  if (shown !== String(run.number)) line.read = run.stamp;
  if (line.read === run.stamp || wait || Date.now() - reread <= AGAIN) return;
  reread = Date.now();
  line.read = run.stamp;
  document.head.append(make("script", { src: `runs/${run.number}.js?${run.stamp}` }));
}
const wishes = ({ state, alone }) =>
  state === "running"
    ? ["pause", "stop"]
    : alone && ["paused", "stopped", "interrupted"].includes(state)
      ? ["go on"]
      : [];
// Whether what was asked of a run has been done, or something else has happened to it.
const heeded = (before, now, wish) =>
  !now ||
  now.state !== before.state ||
  (wish === "go on" && (now.failed || now.stamp !== before.stamp));
// What a button does, or why it does nothing.
const TOKEN = "Buttons need the whole link that `replay view` printed, with its token.";
const EFFECT = {
  pause: "Ends the command that writes this run, with all its runs, once calls under way finish.",
  stop: "Ends the command that writes this run, with all its runs, within seconds.",
  "go on": "Continues this run, and no other one of its command.",
};
function button(run, wish) {
  const title = token ? EFFECT[wish] : TOKEN,
    made = make("button", { type: "button", class: "wish", title }, wish);
  if (!token) made.ariaDisabled = "true";
  made.onclick = async (event) => {
    event.stopPropagation();
    if (!token) tell(TOKEN, () => true, READ);
    if (made.ariaDisabled) return; // `disabled` would take the focus from it
    made.ariaDisabled = "true";
    try {
      const answer = await fetch("ask", {
        method: "POST",
        headers: { "X-Token": token },
        body: JSON.stringify({ run: String(run.number), wish }),
      });
      const said = await answer.json();
      tell(said.error || said.said, (runs) => heeded(run, runs[run.number], wish), READ);
    } catch {
      tell("The server did not answer.", () => true, READ);
    }
    made.ariaDisabled = null;
  };
  return made;
}

function sum(runs, unread) {
  const total = (name) => runs.reduce((all, run) => all + (run[name] || 0), 0),
    children = total("children");
  const facts = [
    ["runs", unread ? `${runs.length} of ${runs.length + unread}` : runs.length],
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
}

// Figures and tables, as soon as they may be drawn, unless somebody looks at one closely.
async function draw(runs, studies, rest) {
  const stamp = runs.map((run) => run.stamp).join(" ") + studies,
    place = $("#drawn"),
    looked = place.matches(":hover");
  if (drawing || stamp === drawn || (drawn && rest) || looked || $("#all").hidden) {
    const next = looked ? "once the mouse leaves them" : `in ${Math.ceil(rest)} s`;
    date(stamp === drawn ? "" : drawing ? "now" : next);
    return;
  }
  drawing = true;
  date("now");
  const began = new Date().toLocaleTimeString("en-GB");
  try {
    const answer = await fetch("parts");
    if (!answer.ok) throw new Error((await answer.json()).error);
    place.innerHTML = await answer.text();
    window.replayCharts(place);
    [drawn, time, trouble] = [stamp, began, ""];
    date("");
  } catch (error) {
    drawn ||= "nothing";
    trouble = `Figures and tables could not be drawn: ${error.message}`;
  }
  drawing = false;
}
// How old figures and tables are, and when newer ones come if the runs have gone on since.
function date(next) {
  const since = next && `; runs have gone on since, and they are drawn again ${next}`;
  const first = drawing ? "Figures and tables are being drawn …" : "";
  const text = time ? `Figures and tables of ${time}${since}.` : first;
  $("#age").textContent = trouble || text;
}

// A child's texts, by the link to it.
window.replayChild = async (number, place) => {
  const answer = await fetch(`child/${number}/${place}`);
  return answer.ok ? answer.text() : `<p class="muted">${(await answer.json()).error}</p>`;
};

look();
