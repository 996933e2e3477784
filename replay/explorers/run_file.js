// The page of a run: the texts of the child that its address names, unpacked when they are needed.
//
// `drawing.js`, `chart.js` and `run_view.js`, which draw the run, stand before it. Texts of logs
// come escaped.

const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

async function unzipped(text) {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function open(packed) {
  const { run, at, parts } = JSON.parse(new TextDecoder().decode(bytesOf(packed)));
  const known = {},
    place = document.getElementById("child");
  let shown = "";
  const view = mount(document.getElementById("chart"), run, { at, drawing: {} }, ([g, i]) => {
    history.replaceState(null, "", `#${g}-${i}`);
    show();
  });
  async function show() {
    const asked = location.hash.match(/^#(\d+)-(\d+)$/);
    const [generation, index] = asked ? [+asked[1], +asked[2]] : at;
    const name = `${generation}-${index}`;
    if (shown === name) return;
    shown = name;
    if (parts[generation]) known[generation] ??= unzipped(parts[generation]);
    const child = (await known[generation])?.[name];
    if (shown !== name) return; // somebody went on meanwhile
    if (!child) {
      place.innerHTML = "<p class='muted'>There is no such child.</p>";
      return;
    }
    const open = [...place.querySelectorAll("details")].map((each) => [each.id, each.open]);
    place.innerHTML = child.html;
    for (const [id, was] of open) {
      const same = document.getElementById(id);
      if (same && id !== "error") same.open = was; // an error shows itself
    }
    const drawing = child.drawing ? { at: [generation, index], ...child.drawing } : {};
    view.set({ at: [generation, index], drawing });
  }
  addEventListener("hashchange", show);
  show();
}
