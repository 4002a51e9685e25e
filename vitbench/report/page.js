"use strict";
// Draws the figures from the data in the page, answers the selects, and makes the table sortable.
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  // `ast` runs Vega's expressions in its interpreter, so that the page needs no eval.
  const options = {ast: true, actions: false, renderer: "svg", defaultStyle: false, tooltip: {theme: "custom"},
                   logLevel: 1};
  const AXIS = 62, NAMES = 195, NARROW = 720;

  const draw = (id, spec, text) => {
    const place = byId(id);
    place.setAttribute("aria-label", text);
    byId(`${id}-text`).textContent = text;
    return vegaEmbed(place, {...spec, description: text}, options).then(() => { place.dataset.drawn = "yes"; });
  };
  const value = (id) => (byId(id) ? byId(id).value : null);
  const condition = (id) => value(id) ?? Object.keys(data.accuracy)[0];
  const rows = (names, lists) => lists.map((list) => Object.fromEntries(names.map((name, i) => [name, list[i]])));

  const drawAccuracy = () => {
    const of = data.accuracy[condition("accuracy-condition")], width = byId("accuracy").clientWidth;
    const wide = width >= NARROW;
    return draw("accuracy", {...(wide ? of.wide : of.narrow), width: width - AXIS - (wide ? NAMES : 12)}, of.text);
  };
  const drawOverfitting = () => {
    const cell = data.cells.find((c) => c.label === value("model") && c.share === value("share")
                                        && c.condition === condition("condition"));
    const spec = data.overfitting[`${value("quantity")},${value("axis")}`];
    const datasets = {curves: rows(["seed", "step", "part", "loss", "accuracy"], cell.curves),
                      onsets: rows(["seed", "step", "loss", "accuracy"], cell.onsets)};
    const width = Math.min(900, byId("overfitting").clientWidth) - AXIS - 12;
    return draw("overfitting", {...spec, datasets, width}, cell.text);
  };
  const drawOverview = () => {
    const of = data.overview[condition("overview-condition")];
    const room = (byId("overview").clientWidth - 235) / of.shares - 14;
    const spec = {...of.spec.spec, width: Math.round(Math.max(96, Math.min(230, room)))};
    return draw("overview", {...of.spec, spec}, of.text);
  };

  const drawTuning = () => data.tuning && draw("tuning", data.tuning.spec, data.tuning.text);

  const on = (ids, redraw) => {
    ids.forEach((id) => byId(id)?.addEventListener("change", redraw));
    return redraw();
  };
  on(["accuracy-condition"], drawAccuracy);
  on(["model", "share", "condition", "quantity", "axis"], drawOverfitting);
  on(["overview-condition"], drawOverview);
  drawTuning();

  let width = window.innerWidth, waiting;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(() => { drawAccuracy(); drawOverfitting(); drawOverview(); }, 150);
  });

  const sortable = (table) => {
    const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
    const keyOf = (row, i) => {
      const cell = row.cells[i];
      if (!heads[i].classList.contains("number")) return cell.textContent;
      return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
    };
    const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, "en", {numeric: true}));
    heads.forEach((head, i) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
        // What is missing stays last in both directions.
        body.append(...[...body.rows].sort((a, b) => {
          const [x, y] = [keyOf(a, i), keyOf(b, i)];
          return x === null || y === null ? (x === null) - (y === null) : sign * compare(x, y);
        }));
      });
    });
  };
  document.querySelectorAll("#results table, #beside table").forEach(sortable);
})();
