// A picture that answers to the mouse: a PNG, and where everything lies in it.
//
// `mount(el, png, view, label)` shows the bytes of a PNG on a page. `view` is a DataView of what
// `hits.pack` makes: the length of a JSON head (uint32, little endian), the head, and float32
// coordinates in logical pixels, y downwards.

function unpack(view) {
  const length = view.getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(view.buffer, view.byteOffset + 4, length)));
  const start = view.byteOffset + 4 + length;
  const floats = new Float32Array(view.buffer.slice(start, view.byteOffset + view.byteLength));
  return { ...head, floats };
}

const inside = (x, y, box) => x >= box[0] && x <= box[2] && y >= box[1] && y <= box[3];

// The value at a pixel of an axis, given the pixels and values of its ends.
function valueAt(pixel, low, high, limits, log) {
  const share = (pixel - low) / (high - low);
  if (!log) return limits[0] + share * (limits[1] - limits[0]);
  return limits[0] * Math.pow(limits[1] / limits[0], share);
}

// Three digits, with k and M, as the figures write numbers.
function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  return `${+value.toPrecision(3)}`;
}

// The mark under the pointer: the smallest that holds it, else the nearest within reach.
function markAt(hits, x, y, reach = 6) {
  let best = null, size = Infinity, near = reach * reach;
  hits.marks.forEach((mark, number) => {
    const [x0, y0, x1, y1] = hits.floats.subarray(mark.first, mark.first + 4);
    const dx = Math.max(x0 - x, 0, x - x1), dy = Math.max(y0 - y, 0, y - y1);
    const away = dx * dx + dy * dy, area = (x1 - x0) * (y1 - y0);
    if (away < near || (away === near && away === 0 && area < size)) {
      best = number; near = away; size = area;
    }
  });
  return best;
}

// The words of the curves at x, each at its nearest known place.
function curvesAt(hits, axes, x) {
  const lines = [], places = [];
  for (const curve of hits.curves.filter((each) => each.axes === axes)) {
    const at = hits.floats.subarray(curve.first, curve.first + 2 * curve.count);
    let nearest = -1, away = 12;
    for (let k = 0; k < curve.count; k++) {
      const gap = Math.abs(at[2 * k] - x);
      if (gap < away) { away = gap; nearest = k; }
    }
    if (nearest < 0) continue;
    lines.push(`${curve.label}${curve.texts[nearest]}`);
    places.push([at[2 * nearest], at[2 * nearest + 1]]);
  }
  return { lines, places };
}

export function mount(el, png, view, label) {
  const box = document.createElement("div");
  box.className = "replay-picture";
  box.style.cssText = "position:relative;display:inline-block;max-width:100%;line-height:0;outline-offset:2px";
  const image = document.createElement("img");
  image.style.cssText = "max-width:100%;height:auto;display:block";
  image.draggable = false;
  image.alt = label;
  image.setAttribute("aria-label", label);
  const overlay = document.createElement("canvas");
  overlay.style.cssText = "position:absolute;left:0;top:0;width:100%;height:100%;cursor:crosshair";
  const tip = document.createElement("div");
  tip.setAttribute("role", "status");
  tip.style.cssText = "position:absolute;display:none;pointer-events:none;z-index:9;padding:3px 7px;" +
    "border-radius:4px;font:12px/1.4 system-ui,sans-serif;white-space:pre;max-width:340px;" +
    "background:#1b1b1b;color:#fff;border:1px solid #777";
  box.append(image, overlay, tip);
  el.append(box);

  const hits = unpack(view);
  let held = null;  // the mark that was pointed at last
  const scale = () => image.clientWidth / hits.size[0];
  const place = (event) => {
    const bounds = image.getBoundingClientRect();
    return [event.clientX - bounds.left, event.clientY - bounds.top].map((each) => each / scale());
  };
  const axesAt = (x, y) => hits.axes.findIndex((axes) => inside(x, y, axes.box));

  function draw(paint) {
    const k = scale() * (window.devicePixelRatio || 1);
    overlay.width = Math.round(image.clientWidth * (window.devicePixelRatio || 1));
    overlay.height = Math.round(image.clientHeight * (window.devicePixelRatio || 1));
    const pen = overlay.getContext("2d");
    if (paint) { pen.setTransform(k, 0, 0, k, 0, 0); paint(pen); }
  }
  function say(text, x, y) {
    tip.textContent = text;
    tip.style.display = text ? "block" : "none";
    if (!text) return;
    const left = Math.min(x * scale() + 14, image.clientWidth - tip.offsetWidth - 4);
    const top = y * scale() + 16 + tip.offsetHeight > image.clientHeight ? -tip.offsetHeight - 10 : 16;
    tip.style.left = `${Math.max(left, 0)}px`;
    tip.style.top = `${y * scale() + top}px`;
  }
  const boxOf = (number) => hits.floats.subarray(hits.marks[number].first, hits.marks[number].first + 4);
  const middle = (number) => {
    const [x0, y0, x1, y1] = boxOf(number);
    return [(x0 + x1) / 2, (y0 + y1) / 2];
  };
  function frame(pen, number) {
    const [x0, y0, x1, y1] = boxOf(number);
    pen.strokeStyle = "#e8590c"; pen.lineWidth = 2;
    pen.strokeRect(x0 - 1, y0 - 1, x1 - x0 + 2, y1 - y0 + 2);
  }
  function hover(event) {
    const [x, y] = place(event), number = axesAt(x, y);
    if (number < 0) { say(""); draw(); return; }
    const axes = hits.axes[number], [x0, y0, x1, y1] = axes.box;
    const found = markAt(hits, x, y), curves = curvesAt(hits, number, x);
    const text = found === null ? curves.lines.join("\n") : hits.marks[found].text;
    held = found ?? held;
    draw((pen) => {
      pen.strokeStyle = "#888"; pen.lineWidth = 1; pen.setLineDash([3, 3]);
      pen.beginPath(); pen.moveTo(x, y0); pen.lineTo(x, y1); pen.moveTo(x0, y); pen.lineTo(x1, y); pen.stroke();
      pen.setLineDash([]);
      if (found !== null) frame(pen, found);
      else for (const [cx, cy] of curves.places) {
        pen.beginPath(); pen.arc(cx, cy, 3, 0, 7); pen.stroke();
      }
    });
    const where = axes.words
      ? `${axes.words[0]} ${short(valueAt(x, x0, x1, axes.x, axes.log[0]))}, ` +
        `${axes.words[1]} ${short(valueAt(y, y1, y0, axes.y, axes.log[1]))}`
      : "";
    say(text || where, x, y);
  }
  overlay.addEventListener("pointermove", hover);
  overlay.addEventListener("pointerleave", () => { say(""); draw(); });

  // Arrow keys go from mark to mark.
  const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  function step([right, down]) {
    const [x, y] = held === null ? [0, 0] : middle(held);
    let best = held ?? 0, least = Infinity;
    if (held !== null) hits.marks.forEach((mark, number) => {
      const dx = middle(number)[0] - x, dy = middle(number)[1] - y;
      const along = dx * right + dy * down, far = along + 3 * Math.abs(dx * down + dy * right);
      if (along > 0.5 && far < least) { best = number; least = far; }
    });
    held = best;
    draw((pen) => frame(pen, held));
    say(hits.marks[held].text, ...middle(held));
  }
  if (hits.marks.length) {
    box.tabIndex = 0;
    box.setAttribute("role", "application");
    box.setAttribute("aria-label", "picture; arrow keys go from mark to mark");
  }
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !hits.marks.length || !ways[event.key]) return;
    step(ways[event.key]);
    event.preventDefault();
    event.stopPropagation();
  });

  box.hits = hits;  // for tests
  image.style.width = `${hits.size[0]}px`;
  image.onload = () => { box.dataset.ready = "true"; };
  image.src = URL.createObjectURL(new Blob([png], { type: "image/png" }));
}
