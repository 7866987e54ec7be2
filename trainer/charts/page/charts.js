// Curves against the rounds of a run, its tokens or its time: of the live page, and of the page that
// compares runs. trainer/charts/run_curves.h says what both give.
// Texts of a run enter the page as text, never as HTML.
"use strict";

const SHAPES = "http://www.w3.org/2000/svg";
const HEIGHT = 250, LEFT = 56, RIGHT = 14, CEILING = 10, FLOOR = HEIGHT - 42;
const MOST_MARKS = 60; // more points than this would hide the line
const MOST_ROWS = 9; // of values at the pointer: more would hide the charts below
const DIGIT = 8; // pixels, at most

const pointers = new WeakMap(); // by the place of a chart: where the pointer is, as a chart is drawn anew below it

function shape(tag, attributes, text) {
  const made = document.createElementNS(SHAPES, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function numberText(value) {
  const size = Math.abs(value);
  if (size !== 0 && size < 1e-3) return value.toExponential(2).replace(/\.?0+e/, "e");
  if (size >= 1e4) return new Intl.NumberFormat("en", {notation: "compact", maximumSignificantDigits: 4}).format(value);
  return String(Number(value.toPrecision(4)));
}

// With as many digits as tell the ticks apart.
function tickText(value, step) {
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e4) return numberText(value);
  return value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
}

// The mean of a point and of those before it, each with `weight` times the weight of the next one:
// TensorBoard's smoothing. Dividing by the sum of the weights keeps the first points unbiased. It begins
// anew beyond `reach`: what a site was before it went away says little about what it is now.
function smoothed(points, weight, reach) {
  let sum = 0, weights = 0;
  return points.map(([x, y], i) => {
    if (i > 0 && x - points[i - 1][0] > reach) sum = weights = 0;
    sum = weight * sum + y;
    weights = weight * weights + 1;
    return [x, sum / weights];
  });
}

// About `most` multiples of 1, 2 or 5 times a power of ten, with their texts.
function ticks(low, high, most) {
  let step = 10 ** Math.floor(Math.log10((high - low) / most));
  for (let i = 0; (high - low) / step > most; ++i) step *= i % 3 === 1 ? 2.5 : 2;
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high; ++i) found.push([i * step, tickText(i * step, step)]);
  return found;
}

// Powers of ten, and between few of them 2 and 5 times these too.
function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; ++power) {
    found.push(...[1, 2, 5].map((digit) => [digit * 10 ** power, digit]).filter(([value]) => value >= low && value <= high));
  }
  if (found.length <= 2) return ticks(low, high, 6);
  const shown = found.length > 7 ? found.filter(([, digit]) => digit === 1) : found;
  return shown.map(([value]) => [value, numberText(value)]);
}

// The point of a curve that is nearest to x.
function nearest(points, x) {
  let first = 0, last = points.length - 1;
  while (last - first > 1) {
    const middle = (first + last) >> 1;
    if (points[middle][0] < x) first = middle; else last = middle;
  }
  return x - points[first][0] <= points[last][0] - x ? points[first] : points[last];
}

// The distance of two points beyond which the site was away: a line there would say what was not.
function reachOf(points, round) {
  const distances = points.slice(1).map(([x], i) => x - points[i][0]).sort((a, b) => a - b);
  return Math.max(round, 3 * (distances[distances.length >> 1] || 0));
}

// What the curves can stand against: the column of the progress, its unit and what that is in it.
function axisOf({unit, progress}, name) {
  const last = (column) => Math.max(...progress.map((run) => run[run.length - 1][column]));
  if (name === "tokens") return {column: 1, unit, scale: 1};
  if (name === "time") return last(2) < 7200 ? {column: 2, unit: "minutes", scale: 60} : {column: 2, unit: "hours", scale: 3600};
  return {column: 0, unit: "rounds", scale: 1};
}

// Where a run was on an axis after some rounds; steps of a round under way go on as the one before.
// Null without a whole round, as nothing is known then.
function along(progress, {column, scale}, rounds) {
  if (column === 0) return rounds;
  if (progress.length < 2) return null;
  let first = 0, last = progress.length - 1;
  while (last - first > 1) {
    const middle = (first + last) >> 1;
    if (progress[middle][0] < rounds) first = middle; else last = middle;
  }
  const [a, b] = [progress[first], progress[last]];
  return (a[column] + (rounds - a[0]) / (b[0] - a[0]) * (b[column] - a[column])) / scale;
}

// The scales, and the curves as they are drawn; null if there is no point.
function layOut(chart, data, options, width) {
  const curves = [], axis = axisOf(data, options.axis);
  for (const curve of chart.curves) {
    const progress = data.progress[curve.run];
    const points = curve.points.filter(([, y]) => !options.isLog || y > 0)
      .map(([rounds, y]) => [along(progress, axis, rounds), y]).filter(([x]) => x !== null);
    if (points.length === 0) continue;
    const isSmooth = options.smoothing > 0 && !curve.is_marked;
    const [rounds] = progress[progress.length - 1];
    const reach = reachOf(points, rounds > 0 ? along(progress, axis, rounds) / rounds : 1);
    curves.push({...curve, reach, raw: isSmooth ? points : null,
      points: isSmooth ? smoothed(points, options.smoothing, reach) : points});
  }
  if (curves.length === 0) return null;
  const values = curves.flatMap(({raw, points}) => (raw || points).map(([, y]) => y));
  const place = options.isLog ? Math.log10 : (y) => y;
  let low = place(values.reduce((a, b) => Math.min(a, b))), high = place(values.reduce((a, b) => Math.max(a, b)));
  // A flat curve would have no height without a margin.
  const margin = Math.max(0.05 * (high - low), options.isLog ? 0.01 : 1e-3 * Math.abs(high)) || 1;
  low -= margin;
  high += margin;
  // Before the first round's end the axis has one whole round; of tokens and minutes it has what there is.
  const end = Math.max(axis.column === 0 ? 1 : 1e-9, ...curves.map(({points}) => points[points.length - 1][0]));
  const range = options.isLog ? [10 ** low, 10 ** high] : [low, high];
  return {curves, axis, end, range,
    x: (value) => LEFT + value / end * (width - LEFT - RIGHT),
    y: (value) => FLOOR - (place(value) - low) / (high - low) * (FLOOR - CEILING)};
}

function drawAxes(svg, {x, y, axis, end, range}, isLog, width) {
  for (const [value, label] of isLog ? logTicks(...range) : ticks(...range, 6)) {
    svg.append(shape("line", {x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value), class: "grid"}),
      shape("text", {x: LEFT - 8, y: y(value) + 4, class: "tick", "text-anchor": "end"}, label));
  }
  const isRounds = axis.column === 0;
  const longest = isRounds ? String(Math.ceil(end)).length : 5;
  const most = Math.max(2, Math.min(10, Math.floor((width - LEFT - RIGHT) / (DIGIT * (longest + 3)))));
  for (const [value, text] of ticks(0, end, most).filter(([each]) => !isRounds || Number.isInteger(each))) {
    const label = isRounds ? String(value) : text, half = label.length * DIGIT / 2;
    svg.append(shape("line", {x1: x(value), x2: x(value), y1: FLOOR, y2: FLOOR + 4, class: "mark"}),
      shape("text", {x: Math.min(x(value), width - half), y: FLOOR + 18, class: "tick", "text-anchor": "middle"}, label));
  }
  svg.append(shape("line", {x1: LEFT, x2: width - RIGHT, y1: FLOOR, y2: FLOOR, class: "mark"}),
    shape("text", {x: (LEFT + width - RIGHT) / 2, y: FLOOR + 36, class: "tick", "text-anchor": "middle"}, axis.unit));
}

function textRow(text) {
  const row = document.createElement("p");
  row.textContent = text;
  return row;
}

// The colour of a curve, its name and its value.
function valueRow({kind, name}, value) {
  const row = document.createElement("p"), mark = document.createElement("i"), number = document.createElement("b");
  mark.className = `stroke ${kind}`;
  number.textContent = numberText(value);
  row.append(mark, name, " ", number);
  return row;
}

// Shows the values of the curves at the pointer in a box beside it, those nearest to it if there are many.
function follow(place, svg, box, {curves, axis, end, x, y}, width) {
  const line = shape("line", {y1: CEILING, y2: FLOOR, class: "pointer", visibility: "hidden"});
  svg.append(line);
  const show = ({across, down}) => {
    const value = Math.min(Math.max((across - LEFT) / (width - LEFT - RIGHT) * end, 0), end);
    const found = curves.map((curve) => [curve, ...nearest(curve.points, value)])
      .filter(([curve, at]) => Math.abs(at - value) <= curve.reach)
      .sort(([, , a], [, , b]) => Math.abs(y(a) - down) - Math.abs(y(b) - down));
    const shown = found.slice(0, MOST_ROWS).sort(([, , a], [, , b]) => b - a);
    box.replaceChildren(textRow(`${axis.column === 1 ? numberText(value) : value.toFixed(end < 100 ? 1 : 0)} ${axis.unit}`),
      ...shown.map(([curve, , figure]) => valueRow(curve, figure)));
    if (found.length > shown.length) box.append(textRow(`and ${found.length - shown.length} more`));
    box.hidden = false;
    const at = x(value), isRight = at > width / 2;
    box.style.left = isRight ? "" : `${at + 12}px`;
    box.style.right = isRight ? `${width - at + 12}px` : "";
    for (const end of ["x1", "x2"]) line.setAttribute(end, at);
    line.setAttribute("visibility", "visible");
  };
  const move = (event) => {
    const {left, top} = svg.getBoundingClientRect();
    pointers.set(place, {across: event.clientX - left, down: event.clientY - top});
    show(pointers.get(place));
  };
  svg.addEventListener("pointermove", move);
  svg.addEventListener("pointerdown", move);
  svg.addEventListener("pointerleave", () => {
    pointers.delete(place);
    line.setAttribute("visibility", "hidden");
    box.hidden = true;
  });
  if (pointers.has(place)) show(pointers.get(place));
}

// Draws a chart of `data` into a place of the page, as wide as it. options: {axis: "rounds", "tokens" or
// "time"; smoothing: the weight of the past, 0 to below 1; isLog}.
export function drawChart(place, chart, data, options) {
  const width = place.clientWidth;
  if (width === 0) return;
  place.classList.add("plot");
  const svg = shape("svg", {viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", class: "curves",
    "aria-label": chart.title});
  const layout = layOut(chart, data, options, width);
  if (!layout) {
    svg.append(shape("text", {x: width / 2, y: HEIGHT / 2, class: "tick", "text-anchor": "middle"}, "no values yet"));
    place.replaceChildren(svg);
    return;
  }
  drawAxes(svg, layout, options.isLog, width);
  // A line of no length has round ends, and so is a dot.
  const path = (points, reach) => points.map(([x, y], i) => {
    const isBegin = i === 0 || x - points[i - 1][0] > reach;
    return `${isBegin ? "M" : "L"}${layout.x(x).toFixed(1)} ${layout.y(y).toFixed(1)}${isBegin ? "h0" : ""}`;
  }).join("");
  for (const {kind, raw, reach} of layout.curves.filter((curve) => curve.raw)) {
    svg.append(shape("path", {d: path(raw, reach), class: `curve raw ${kind}`}));
  }
  for (const {kind, is_marked: isMarked, points, reach} of layout.curves) {
    // Validations are rare, and all sites take part.
    svg.append(shape("path", {d: path(points, isMarked ? Infinity : reach), class: `curve ${isMarked ? "marked " : ""}${kind}`}));
    if (!isMarked || points.length > MOST_MARKS) continue;
    for (const [x, y] of points) {
      svg.append(shape("circle", {cx: layout.x(x), cy: layout.y(y), r: 3.5, class: `validation-point ${kind}`}));
    }
  }
  const box = document.createElement("div");
  box.className = "values";
  box.hidden = true;
  place.replaceChildren(svg, box);
  follow(place, svg, box, layout, width);
}

// Fills a place with the controls of all charts; calls `redraw` when the reader changes one. Returns
// the options for drawChart(), which follow the controls.
export function addControls(place, redraw) {
  const options = {axis: "rounds", smoothing: 0, isLog: false};
  const add = (text, input, take) => {
    const label = document.createElement("label"), value = document.createElement("output");
    input.addEventListener("input", () => { value.textContent = take(input); redraw(); });
    label.append(text, input, value);
    place.append(label);
  };
  const control = (text, attributes, take) => add(text, Object.assign(document.createElement("input"), attributes), take);
  const select = document.createElement("select");
  select.name = "axis";
  select.append(...["rounds", "tokens", "time"].map((name) => new Option(name)));
  add("against", select, (input) => { options.axis = input.value; return ""; });
  control("smoothing", {type: "range", min: "0", max: "0.99", step: "0.01", value: "0", name: "smoothing"},
    (input) => { options.smoothing = Number(input.value); return input.value; });
  control("log axis", {type: "checkbox", name: "log"}, (input) => { options.isLog = input.checked; return ""; });
  return options;
}
