// What explorers need of the page: run once, however many of them there are.
if (!window.replayPage) {
  window.replayPage = true;
  const all = (css, change) => document.querySelectorAll(css).forEach(change);
  const controls = "select, .noUi-handle";
  const rows = ".replay-runs tbody tr";
  const tabs = ".jupyter-widget-tab:has(.replay-runs, .replay-explorer) > .lm-TabBar [role=tab]";
  const others = `.replay-runs th *, .replay-explorer [role=tab], ${tabs}`;

  // Lists of files and tables of runs, with room around their lines. Of a long name the end is
  // shown, where runs of a task differ; the whole name is its tooltip.
  // Without a kernel the view says so in words: no sign of it on every widget around it.
  // Buttons and sliders look as those of the view that the browser draws (`view.js`).
  // Sliders stay in sight as long as a part of their explorer does: what would scroll around them
  // scrolls nothing, as explorers are as wide as the page, and of their group no box is left.
  const look = document.createElement("style");
  look.textContent = `
    :is(.replay-explorer, .replay-chosen) .jupyter-button {
      height: auto; padding: 1px 11px; line-height: 1.45; border-radius: 999px; box-shadow: none;
      color: var(--jp-ui-font-color1); background: transparent;
      border: 1px solid color-mix(in srgb, var(--jp-ui-font-color1) 30%, transparent); }
    :is(.replay-explorer, .replay-chosen) .jupyter-button:hover:not(:disabled) {
      box-shadow: none;
      background: color-mix(in srgb, var(--jp-ui-font-color1) 9%, transparent); }
    :is(.replay-explorer, .replay-chosen) .jupyter-button.mod-active {
      font-weight: 600; border-color: var(--jp-ui-font-color1);
      background: color-mix(in srgb, #0072b2 18%, transparent); }
    .replay-explorer .widget-select-multiple { flex-direction: column; align-items: stretch; }
    .replay-explorer .widget-select-multiple > .widget-label {
      width: auto !important; max-width: 100%; height: auto; line-height: 1.5; text-align: left;
      white-space: normal; overflow-wrap: anywhere; }
    .replay-explorer .widget-select-multiple > select { width: 100%; flex: 0 0 auto; }
    .replay-explorer:has(.replay-view).jupyter-widgets-disconnected::before,
    .replay-explorer:has(.replay-view) .jupyter-widgets-disconnected::before { display: none; }
    body[data-jp-theme-light="false"]
      :is(.replay-explorer, .replay-chosen, .replay-picker) .widget-dropdown > select {
      background-image: url("data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' \
viewBox='0 0 18 18'%3E%3Cpath fill='%23bbb' d='M4 6.5h10L9 12z'/%3E%3C/svg%3E"); }
    .replay-refused :is(input, select) { border-color: #d55e00 !important; }
    :is(.widget-box, .jp-OutputArea, .jp-OutputArea-child, .jp-OutputArea-output,
      .jupyter-widgets.jupyter-widget-tab > .widget-tab-contents):has(.replay-explorer),
    .replay-explorer, .replay-explorer .widget-gridbox { overflow: visible; }
    .replay-settings { display: contents; }
    .replay-sliders { position: sticky; top: 0; z-index: 3; padding: 1px 0;
      background: var(--jp-layout-color0, Canvas); }
    .widget-tab-contents .replay-sliders { background: var(--jp-layout-color1, Canvas); }
    .replay-explorer :is(button, select, summary, svg, .panels) { scroll-margin-top: 90px; }
    .replay-explorer .noUi-handle { background: #0072b2; border-color: #0072b2; }
    .replay-picker .widget-select select { border-radius: 8px; padding: 4px; height: auto; }
    .replay-picker .widget-select option { padding: 5px 10px; border-radius: 5px; }
    .replay-runs table.dataTable > :is(thead, tbody) > tr > :is(th, td) { padding: 4px 7px; }
    .replay-runs table.dataTable > tbody > tr > td:first-child {
      max-width: 230px; overflow: hidden; text-overflow: ellipsis;
      direction: rtl; unicode-bidi: plaintext; text-align: left; }
    .replay-runs .dt-scroll-body { scrollbar-width: thin; }
    .jupyter-widget-tab:has(.replay-runs, .replay-explorer) > .lm-TabBar .lm-TabBar-content {
      flex-wrap: wrap; }
    .jupyter-widget-tab:has(.replay-runs, .replay-explorer) > .lm-TabBar .lm-TabBar-tab {
      flex: 0 0 auto !important; max-width: 100%; }
    .jupyter-widget-tab:has(.replay-runs, .replay-explorer) > .lm-TabBar .lm-TabBar-tabLabel,
    :is(.replay-explorer, .run-browser) :is(.lm-TabBar-tabLabel, .jupyter-widget-Collapse-header) {
      color: var(--jp-ui-font-color1); }`;
  document.head.append(look);

  // Names for screen readers, and places for the Tab key, that the widgets do not give.
  const mend = () => {
    all(`.replay-explorer :is(${controls}):not([aria-label])`, (each) => {
      const widget = each.closest(".jupyter-widgets:not(.slider-container)");
      const label = widget?.querySelector(".widget-label")?.textContent;
      each.setAttribute("aria-label", label || each.title || widget?.title || "value");
    });
    // Words are put in anew when they change: what stays around them is listened to.
    all(".widget-html:not([aria-live]) [role=status]", (each) => {
      each.closest(".widget-html").setAttribute("aria-live", "polite");
    });
    // What cannot be shown is said below the controls, and belongs to the one that was moved.
    all("[aria-invalid]", (each) => {
      if (!each.closest(".replay-refused")) each.removeAttribute("aria-invalid");
    });
    all(".replay-refused :is(input, select):not([aria-invalid])", (each) => {
      each.setAttribute("aria-invalid", "true");
    });
    // Where an explorer is live, the picture that a saved notebook shows is not needed.
    all("[data-replay-live]", (each) => {
      all(`[data-replay-still="${each.dataset.replayLive}"]`, (still) => {
        if (still.style.display !== "none") still.style.display = "none";
      });
    });
    all(`.dt-scroll-body:not([tabindex]), ${rows}:not([tabindex])`, (each) => {
      each.tabIndex = 0;
    });
    all(`${rows} > td:first-child:not([title])`, (each) => {
      each.title = each.textContent;
    });
  };
  new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
  mend();

  // Keys of lists, sliders, heads and tabs are theirs, and no shortcuts of the notebook's.
  document.addEventListener("focusin", (event) => {
    if (event.target.matches(`.replay-explorer :is(${controls}), ${rows}, ${others}`)) {
      event.target.setAttribute("data-lm-suppress-shortcuts", "true");
    }
  });

  // The space bar sorts, too, as it presses every other button.
  document.addEventListener("keydown", (event) => {
    if (event.key !== " " || !event.target.matches(".replay-runs th [role=button]")) return;
    event.preventDefault();
    event.target.click();
  });

  // Escape in an explorer goes back to the settings before, where nothing else uses the key.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    const undo = event.target.closest(".replay-explorer")?.querySelector(".replay-undo");
    if (!undo || undo.disabled) return;
    event.preventDefault();
    event.stopPropagation();
    undo.click();
  });

  // Enter on a row chooses it; Enter or a double click on an entry of a list of files opens it: its
  // name is sent along, because the kernel may receive a choice later than a pressed button.
  for (const kind of ["dblclick", "keydown"]) {
    document.addEventListener(
      kind,
      (event) => {
        if (kind === "keydown" && event.key !== "Enter") return;
        if (kind === "keydown" && event.target.matches(rows)) event.target.cells[0].click();
        const list = event.target.closest(".replay-picker .widget-select select");
        if (!list?.selectedOptions.length) return;
        const asked = list.closest(".replay-picker").querySelector(".widget-text input");
        asked.value = decodeURIComponent(list.selectedOptions[0].dataset.value);
        asked.dispatchEvent(new Event("input", { bubbles: true }));
      },
      true,
    );
  }
}
