// What all pages share: the beat that asks for newer figures, and charts. No text is ever made into HTML here.
"use strict";

const BEAT_MS = 10000;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function draw(place) {
  if (place.firstChild || typeof uPlot === "undefined") return;
  const chart = JSON.parse(place.dataset.chart);
  const reach = chart.at[chart.at.length - 1] - chart.at[0], minutes = reach < 600, days = reach > 172800;
  const strokes = [colour("--accent"), colour("--second")];
  const axis = { font: "12px system-ui, sans-serif", stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
  const size = () => ({ width: place.clientWidth, height: 180 });
  const plot = new uPlot({
    ...size(),
    cursor: { drag: { x: false, y: false } },
    legend: { live: true },
    series: [
      { value: (_, at) => at === null ? "" : new Date(at * 1000).toISOString().slice(days ? 0 : 11, 19).replace("T", " ") + "Z" },
      ...chart.lines.map((line, at) => ({
        label: line.name, stroke: strokes[at % 2], width: 2, dash: at ? [6, 3] : undefined,
        spanGaps: true, points: { show: chart.at.length < 8, size: 6 },
        value: (_, value) => value === null ? "-" : String(Number(value.toPrecision(4))) + " " + chart.unit,
      })),
    ],
    axes: [{ ...axis, space: 70, values: (_, at) => at.map((each) => new Date(each * 1000).toISOString().slice(...(days ? [5, 10] : [11, minutes ? 19 : 16]))) }, { ...axis, size: 52 }],
    scales: { x: { time: true }, y: { range: (_, low, high) => [0, high * 1.1 || 1] } },
  }, [chart.at, ...chart.lines.map((line) => line.values)], place);
  new ResizeObserver(() => plot.setSize(size())).observe(place);
}

function drawAll(within) {
  for (const place of within.querySelectorAll("[data-chart]")) draw(place);
}

function makeReachable() {  // tables that are wider than their place can be moved by the keyboard, too
  for (const each of document.querySelectorAll(".wide")) {
    if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
    else each.removeAttribute("tabindex");
  }
}

function isFilledIn(field) {
  if (field.tagName !== "SELECT") return field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
  const own = Array.from(field.options).findIndex((each) => each.defaultSelected);
  return field.selectedIndex !== Math.max(own, 0);
}

function busy() {  // whoever reads with a keyboard, has marked text or is filling in a form is not to lose the place
  const now = document.getElementById("now");
  if (document.hidden || !getSelection().isCollapsed) return true;
  return now !== null && (now.contains(document.activeElement) || Array.from(now.querySelectorAll("input, select, textarea")).some(isFilledIn));
}

addEventListener("resize", makeReachable);
document.addEventListener("DOMContentLoaded", () => {
  drawAll(document);
  makeReachable();
  const now = document.getElementById("now");
  if (now) {
    setInterval(() => { if (!busy()) document.body.dispatchEvent(new Event("console:refresh")); }, Number(now.dataset.beat) || BEAT_MS);
  }
});

function reached(isReached) {  // what stays on the page is old then, which it says
  const line = document.getElementById("unreached");
  if (line && line.hidden !== isReached) {
    line.querySelector("time").textContent = new Date().toISOString().slice(11, 19) + "Z";
    line.hidden = isReached;
  }
}

document.addEventListener("htmx:responseError", () => reached(false));
document.addEventListener("htmx:sendError", () => reached(false));
document.addEventListener("htmx:afterSwap", () => reached(true));

const open = new Set();  // what was unfolded stays so when newer figures come
document.addEventListener("toggle", (event) => {
  const name = event.target.dataset && event.target.dataset.keep;
  if (name) event.target.open ? open.add(name) : open.delete(name);
}, true);
document.addEventListener("htmx:afterSettle", () => {
  for (const each of document.querySelectorAll("details[data-keep]")) each.open = each.open || open.has(each.dataset.keep);
  drawAll(document);
  makeReachable();
});
