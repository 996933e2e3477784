// Charts as widgets and in pages of their own; `drawing.js` and `chart.js` stand before it.

export { mountChart as mount, mountBook as book };

export default {
  render({ model, el }) {
    el.style.cssText += ";width:100%;min-width:0";
    const unwatch = watchKernel(model, el);
    // Nothing is there yet where what makes the first chart has failed.
    const parsed = (bytes) =>
      bytes.byteLength ? JSON.parse(new TextDecoder().decode(bytes)) : { panels: [], message: "" };
    const read = () => {
      const pages = model.get("pages"),
        at = model.get("at");
      const [bytes, label] = pages.length
        ? [pages[at], model.get("texts")[at]]
        : [model.get("chart"), model.get("label")];
      const own = Object.fromEntries(
        ["source", "theme", "serial", "coarse"].map((name) => [name, model.get(name)]),
      );
      return { ...parsed(bytes), ...own, label };
    };
    const view = mountChart(el, read(), (message) => model.send(message));
    const words = model.get("pages").length
      ? html("div", { class: "words", role: "status" }, el.lastChild, read().label)
      : null;
    let asked = false;
    const changed = () => {
      // changes that arrive together are drawn once
      if (asked) return;
      asked = true;
      queueMicrotask(() => {
        asked = false;
        view.load(read());
        if (words) words.textContent = read().label;
      });
    };
    const changes = "change:chart change:label change:serial change:coarse change:at";
    model.on(changes, changed);
    model.send({ kind: "mounted" });
    return () => {
      model.off(changes, changed);
      unwatch();
      view.close();
    };
  },
};
