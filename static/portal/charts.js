// Draws charts over time with uPlot from the tables behind them:
//   <figure data-time-chart data-unit data-step [data-most]><div class="plot"></div> … <tr data-x="Unix seconds"><td data-y>
// data-step: seconds between two rows; a missing row, or a cell without data-y, is a gap. A column whose heading has
// data-leave-out is in the table alone. Without script the tables are all there is.
"use strict";

(() => {
  const TONES = ["--accent", "--wait-mark", "--good-mark", "--muted"];
  // So that lines are told apart without their colours.
  const DASHES = [undefined, [4, 3], [8, 3], [1, 3]];
  const DAY = 86400;
  // Distances of marks on the axis of time, in seconds.
  const MARKS = [3600, 3 * 3600, 6 * 3600, 12 * 3600, DAY, 2 * DAY, 5 * DAY, 10 * DAY];
  const drawn = new Map();
  const tone = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function mark(x) {
    const at = new Date(x * 1000);
    if (at.getHours() || at.getMinutes()) return at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
    return at.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  }

  function read(figure) {
    const headings = [...figure.querySelectorAll("thead th")];
    const kept = headings.map((_, index) => index).slice(1).filter((index) => !headings[index].hasAttribute("data-leave-out"));
    const step = Number(figure.dataset.step);
    const data = [[], ...kept.map(() => [])];
    for (const row of figure.querySelectorAll("tbody tr")) {
      const x = Number(row.dataset.x);
      const before = data[0].at(-1);
      // a day with a change of the clock is an hour longer
      if (before !== undefined && x - before > step * 1.5) {
        data[0].push(before + step);
        data.slice(1).forEach((column) => column.push(null));
      }
      data[0].push(x);
      kept.forEach((index, place) => {
        const y = row.cells[index].dataset.y;
        data[place + 1].push(y === undefined ? null : Number(y));
      });
    }
    return { data, names: kept.map((index) => headings[index].textContent) };
  }

  function draw(figure) {
    drawn.get(figure)?.destroy();
    const plot = figure.querySelector(".plot");
    const { data, names } = read(figure);
    const unit = figure.dataset.unit;
    const most = figure.dataset.most === undefined ? null : Number(figure.dataset.most);
    const axis = { stroke: tone("--muted"), grid: { stroke: tone("--line"), width: 1 }, ticks: { stroke: tone("--line"), width: 1 } };
    const options = {
      width: plot.clientWidth,
      height: 160,
      cursor: { drag: { x: false, y: false } },
      scales: { y: { range: (_, __, top) => [0, most ?? Math.max(top * 1.1, 1)] } },
      axes: [
        { ...axis, size: 32, incrs: MARKS.filter((one) => one >= Number(figure.dataset.step)), values: (_, ticks) => ticks.map(mark) },
        { ...axis, size: 64, space: 26, values: (_, ticks) => ticks.map((value) => `${value} ${unit}`) },
      ],
      series: [
        // Without a pointer over the chart no value is shown.
        { value: (_, x) => (x == null ? "" : new Date(x * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })) },
        ...names.map((name, place) => ({
          label: name,
          stroke: tone(TONES[place % TONES.length]),
          width: place ? 1.25 : 2,
          dash: DASHES[place % DASHES.length],
          points: { show: data[0].length < 3 },
          value: (_, y, __, place) => (place == null ? "" : y == null ? "not measured" : `${y.toFixed(1)} ${unit}`),
        })),
      ],
    };
    drawn.set(figure, new uPlot(options, data, plot));
    sizes.observe(plot);
  }

  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const chart = drawn.get(target.closest("figure"));
      if (chart && target.clientWidth && chart.width !== target.clientWidth) chart.setSize({ width: target.clientWidth, height: 160 });
    }
  });

  function drawNew() {
    for (const figure of drawn.keys()) if (!figure.isConnected) drawn.delete(figure);
    for (const figure of document.querySelectorAll("[data-time-chart]")) if (!drawn.has(figure)) draw(figure);
  }

  document.addEventListener("DOMContentLoaded", drawNew);
  document.addEventListener("htmx:afterSwap", drawNew);
  new MutationObserver(() => [...drawn.keys()].forEach(draw)).observe(document.documentElement, { attributeFilter: ["data-bs-theme"] });
})();
