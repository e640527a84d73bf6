// A chart of lines over time, as SVG. One scale from zero for all lines, three rules, a legend with the newest values;
// under the pointer, or with the arrow keys, the values of one moment.
//
//   const chart = lines("Messages", {names: ["in", "out"], show: short, unit: "/s"});
//   chart.draw(times, [ins, outs]);      times in ms; null in a row of values leaves a gap
//   chart.element

import {fill, h, s} from "./dom.js";
import {clock} from "./format.js";

const [WIDTH, HEIGHT, TOP, BOTTOM] = [600, 150, 8, 8];
const MINUTE = 60_000;
const SPANS = [1, 5, 15, 30, 60]; // minutes: the smallest that has all of the data

// The smallest of 1, 2, 2.5, 5 times a power of ten (or of 1024) that is not below a value.
function ceiling(value, binary) {
  if (value <= 0) return 1;
  const base = binary ? 1024 ** Math.floor(Math.log2(value) / 10) : 1;
  const power = 10 ** Math.floor(Math.log10(value / base));
  return base * power * [1, 2, 2.5, 5, 10].find((each) => each * power * base >= value * 0.999);
}

export function lines(title, {names, show, unit = "", binary = false}) {
  const svg = s("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", tabindex: "0"});
  const legend = h("div", {class: "legend"});
  const scale = h("span", {class: "muted small"});
  const element = h("section", {class: "card chart", "aria-label": title},
    h("div", {class: "row"}, h("h2", null, title), h("span", {class: "grow"}), scale), svg, legend);
  let drawn = {times: [], rows: names.map(() => [])};
  let at = null;
  let span = SPANS[0] * MINUTE;
  const since = h("span");

  const cell = (value) => (value === null || value === undefined ? "–" : `${show(value)}${unit}`);

  function write() {
    const {times, rows} = drawn;
    const place = at ?? times.length - 1;
    fill(legend, names.map((name, row) => h("span", null, h("i", {class: `s${row + 1}`}), name, " ", h("b", null, cell(rows[row][place])))),
      at !== null && times.length > 0 && h("span", null, clock(times[place], true)));
    svg.setAttribute("aria-label", `${title}: ${names.map((name, row) => `${name} ${cell(rows[row].at(-1))}`).join(", ")}`);
  }

  function paint() {
    const {times, rows} = drawn;
    const end = times.at(-1) ?? 0;
    const minutes = SPANS.find((each) => end - (times[0] ?? 0) <= each * MINUTE) ?? SPANS.at(-1);
    span = minutes * MINUTE;
    since.textContent = `${minutes} min ago`;
    const begin = end - span;
    const highest = ceiling(Math.max(0, ...rows.flat().filter((value) => value !== null)), binary);
    const x = (time) => ((time - begin) / span) * WIDTH;
    const y = (value) => TOP + (1 - value / highest) * (HEIGHT - TOP - BOTTOM);
    scale.textContent = `${show(highest)}${unit}`;
    const marks = [0, 0.5, 1].map((part) => s("line", {class: "rule", x1: 0, x2: WIDTH, y1: y(part * highest), y2: y(part * highest)}));
    const paths = rows.map((row, number) => {
      let [path, area, open] = ["", "", null];
      row.forEach((value, place) => {
        if (value === null) {
          if (open !== null) area += `L${x(times[place - 1]).toFixed(1)} ${y(0)}Z`;
          open = null;
          return;
        }
        const point = `${x(times[place]).toFixed(1)} ${y(value).toFixed(1)}`;
        path += `${open === null ? "M" : "L"}${point}`;
        area += open === null ? `M${x(times[place]).toFixed(1)} ${y(0)}L${point}` : `L${point}`;
        open = place;
      });
      if (open !== null) area += `L${x(times[open]).toFixed(1)} ${y(0)}Z`;
      return [rows.length === 1 && s("path", {class: `area a${number + 1}`, d: area}), s("path", {class: `s${number + 1}`, d: path})];
    });
    const cursor = at !== null && times.length ? s("line", {class: "cursor rule", x1: x(times[at]), x2: x(times[at]), y1: TOP, y2: HEIGHT - BOTTOM}) : null;
    fill(svg, marks, paths, cursor);
    write();
  }

  svg.addEventListener("pointermove", (event) => {
    const {times} = drawn;
    if (!times.length) return;
    const box = svg.getBoundingClientRect();
    const time = times.at(-1) - span + ((event.clientX - box.left) / box.width) * span;
    at = times.reduce((best, each, place) => (Math.abs(each - time) < Math.abs(times[best] - time) ? place : best), 0);
    paint();
  });
  svg.addEventListener("pointerleave", () => { at = null; paint(); });
  svg.addEventListener("blur", () => { at = null; paint(); });
  svg.addEventListener("keydown", (event) => {
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!step || !drawn.times.length) return;
    event.preventDefault();
    at = Math.max(0, Math.min(drawn.times.length - 1, (at ?? drawn.times.length - 1) + step));
    paint();
  });

  const axis = h("div", {class: "row small muted"}, since, h("span", {class: "grow"}), h("span", null, "now"));
  svg.after(axis);
  return {element, draw(times, rows) { drawn = {times, rows}; at = null; paint(); }};
}
