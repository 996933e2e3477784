// Shows the steps of a film one at a time; without scripts all of them stand below each other.
const frames = [...document.querySelectorAll("figure")],
  words = document.querySelector(".words");
const bar = document.querySelector(".play"),
  [button, slider, output] = bar.children;
let timer = 0;
function show(number) {
  frames.forEach((frame, k) => {
    frame.hidden = k !== number;
  });
  slider.value = number;
  output.textContent = `step ${number + 1} of ${frames.length}`;
  slider.setAttribute("aria-valuetext", output.textContent);
  words.textContent = frames[number].querySelector("figcaption").textContent;
}
function stop() {
  clearInterval(timer);
  timer = 0;
  button.textContent = "Play";
}
button.onclick = () => {
  if (timer) {
    stop();
    return;
  }
  if (+slider.value === frames.length - 1) show(0);
  button.textContent = "Pause";
  timer = setInterval(() => {
    if (+slider.value < frames.length - 1) show(+slider.value + 1);
    if (+slider.value === frames.length - 1) stop();
  }, 1000 * SECONDS);
};
slider.oninput = () => {
  stop();
  show(+slider.value);
};
for (const each of document.querySelectorAll("figcaption")) each.hidden = true;
bar.hidden = frames.length < 2;

// Within a notebook the page is as light or dark as the notebook is.
const host = window.frameElement?.ownerDocument.body;
if (host?.dataset.jpThemeLight) {
  const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]);
  const themed = rules.filter((rule) => rule.media?.mediaText.includes("prefers-color-scheme"));
  const follow = () => {
    const dark = host.dataset.jpThemeLight === "false",
      media = dark ? "all" : "not all";
    for (const rule of themed) rule.media.mediaText = media;
    for (const source of document.querySelectorAll("source")) source.media = media;
    document.documentElement.style.colorScheme = dark ? "dark" : "light";
  };
  new MutationObserver(follow).observe(host, { attributeFilter: ["data-jp-theme-light"] });
  follow();
}
show(frames.length - 1);
