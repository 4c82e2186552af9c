// Lines over time. The chart library is loaded with the first chart.

import { html, useEffect, useRef } from "../html.js";
import { dark } from "../theme.js";

const HEIGHT = 190; // px
const SHORTEST = 120; // s that a chart shows at least
const STEPS = [...Array(10).keys()].flatMap((n) => [1, 2, 5].map((step) => step * 10 ** n));
const hours = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });
const seconds = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
let library;

const load = () => (library ??= import("../../vendor/uplot.js").then((module) => module.default));
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * `series` are {label, color}: the name of a colour in style.css. `data` is [times in s, values of
 * the first series, ...]. `show` writes a value.
 */
export function Chart({ series, data, show, label }) {
  const box = useRef(null);
  const plot = useRef(null);
  const latest = useRef(data);
  latest.current = drawable(data);
  const look = dark.value;

  useEffect(() => {
    let gone = false;
    const watch = new ResizeObserver(([entry]) => {
      plot.current?.setSize({ width: Math.max(120, entry.contentRect.width), height: HEIGHT });
    });
    load().then((UPlot) => {
      if (gone) return;
      const width = Math.max(120, box.current.clientWidth);
      plot.current = new UPlot({ width, ...options(series, show) }, latest.current, box.current);
      watch.observe(box.current);
    });
    return () => {
      gone = true;
      watch.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [look, series]);

  useEffect(() => plot.current?.setData(latest.current), [data]);

  return html`<figure class="chart" aria-label=${label}>
    <figcaption class="legend">
      ${series.map((one, i) => html`<span style=${{ "--dot": `var(${one.color})` }}>
        ${one.label} <b>${show(data[i + 1].at(-1) ?? 0)}</b></span>`)}
    </figcaption>
    <div ref=${box} class="plot"></div>
  </figure>`;
}

/** A line needs two points: before the first look there is nothing. */
function drawable(data) {
  if (data[0].length > 1) return data;
  const at = data[0][0] ?? Date.now() / 1_000;
  return data.map((line, i) => (i ? [null, line[0] ?? null] : [at - SHORTEST, at]));
}

const clock = (s) => (s % 60 ? seconds : hours).format(s * 1_000);

function options(series, show) {
  const axis = {
    stroke: style("--muted"),
    grid: { stroke: style("--line"), width: 1 },
    ticks: { show: false },
    font: `11px ${style("--sans")}`,
  };
  return {
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    padding: [8, 8, 0, 0],
    scales: {
      x: { range: (_, first, last) => [Math.min(first, last - SHORTEST), last] },
      y: { range: (_, low, high) => [0, Math.max(4, high * 1.1)] },
    },
    axes: [
      { ...axis, grid: { show: false }, size: 26, space: 80, values: (_, times) => times.map(clock) },
      { ...axis, size: 52, incrs: STEPS, values: (_, values) => values.map(show) },
    ],
    series: [
      {},
      ...series.map((one) => ({
        label: one.label,
        stroke: style(one.color),
        width: 1.75,
        points: { show: false },
      })),
    ],
  };
}
