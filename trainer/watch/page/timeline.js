// The drawing of what each site did: columns of the server's, which move to the left as time goes
// on. Texts of a run enter it as text, never as HTML.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const LEVELS = 24; // of a column
const LANE = 26, GAP = 8, TOP = 20, BOTTOM = 24;
const NARROW = 560; // pixels; below it, names stand above the lanes and not beside them
const NAME_WIDTH = 132, LABEL_GAP = 8;

let shown = null; // what drawTimeline() has drawn

function drawn(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function lanePath(runs, top, width, wanted) {
  let path = "", column = 0;
  for (const [count, ...stack] of runs) {
    let below = 0;
    for (let i = 0; i < stack.length; i += 2) {
      if (stack[i] === wanted) {
        const x = (column * width).toFixed(2), wide = (count * width).toFixed(2);
        const y = (top + LANE * (1 - (below + stack[i + 1]) / LEVELS)).toFixed(2);
        path += `M${x} ${y}h${wide}v${(LANE * stack[i + 1] / LEVELS).toFixed(2)}h-${wide}z`;
      }
      below += stack[i + 1];
    }
    column += count;
  }
  return path;
}

// Times on the clock at whole steps, so many that their labels find room.
function timeTicks(from, seconds, wide) {
  const steps = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000];
  const step = steps.find((each) => seconds / each <= wide / (each < 60 ? 76 : 54)) || 864000;
  const ticks = [];
  // Whole steps of the clock on the wall, so of local time.
  const zone = -60 * new Date(from * 1000).getTimezoneOffset();
  for (let at = Math.ceil((from + zone) / step) * step - zone; at <= from + seconds; at += step) {
    const shown = new Date(at * 1000);
    // Midnight says which day begins.
    if (shown.getHours() + shown.getMinutes() + shown.getSeconds() === 0) {
      ticks.push([at, shown.toLocaleDateString([], {day: "numeric", month: "short"})]);
      continue;
    }
    ticks.push([at, shown.toLocaleTimeString([], step < 60
      ? {hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false}
      : {hour: "2-digit", minute: "2-digit", hour12: false})]);
  }
  return ticks;
}

// Every so many rounds have a number: 1, 2, 5, 10, ... so that all find room.
function roundStep(rounds, wide) {
  const digits = String(rounds.length ? rounds[rounds.length - 1][0] : 0).length;
  const least = rounds.length * (8 * digits + 2 * LABEL_GAP) / wide;
  let step = 1;
  for (let i = 0; step < least; ++i) step *= i % 3 === 1 ? 2.5 : 2;
  return step;
}

// A name that is too long loses letters before its end, as numbered sites differ there.
function writeName(text, name, room) {
  const letters = Array.from(name);
  text.textContent = name;
  const share = room / text.getComputedTextLength();
  for (let kept = Math.ceil(letters.length * share); kept > 4 && text.getComputedTextLength() > room; --kept) {
    text.textContent = `${letters.slice(0, kept - 4).join("")}…${letters.slice(-4).join("")}`;
  }
  text.append(drawn("title", {}, name));
}

// Draws the answer to api/timeline into a place of the page, as wide as it. `now` is the server's
// time in seconds.
export function drawTimeline(place, timeline, state, now) {
  const total = place.clientWidth;
  if (total === 0) return;
  const narrow = total < NARROW;
  const left = narrow ? 0 : NAME_WIDTH, wide = narrow ? total : total - left - 18;
  const pitch = LANE + GAP + (narrow ? 16 : 0);
  const seconds = timeline.columns * timeline.column_seconds;
  const height = TOP + pitch * timeline.sites.length + BOTTOM;
  const x = (time) => (time - timeline.from) / seconds * wide;
  const svg = drawn("svg", {viewBox: `0 0 ${total} ${height}`, width: total, height, role: "img",
    "aria-label": "What each site did in the last minutes"});
  const clip = drawn("clipPath", {id: "plot"});
  clip.append(drawn("rect", {x: 0, y: 0, width: wide, height}));
  const plot = drawn("g", {transform: `translate(${left} 0)`, "clip-path": "url(#plot)"});
  const moving = drawn("g", {});
  const labels = []; // they move too, and must not be cut
  const addLabel = (time, y, text) => {
    const node = drawn("text", {y, class: "tick", "text-anchor": "middle", visibility: "hidden"}, text);
    svg.append(node);
    labels.push({node, at: left + x(time), axis: y < TOP ? "round" : "time"});
  };
  for (const [at, label] of timeTicks(timeline.from, seconds * 1.02, wide)) {
    moving.append(drawn("line", {x1: x(at), x2: x(at), y1: TOP - 4, y2: height - BOTTOM + 2, class: "grid"}));
    addLabel(at, height - 6, label);
  }
  const side = narrow ? {x: 0} : {x: left - 12, "text-anchor": "end"};
  const names = [];
  timeline.sites.forEach((site, i) => {
    const top = TOP + pitch * i + (narrow ? 16 : 0);
    plot.append(drawn("rect", {x: 0, y: top, width: wide, height: LANE, class: "lane"}));
    timeline.kinds.forEach((kind, index) => {
      const path = lanePath(site.runs, top, wide / timeline.columns, index);
      if (path) moving.append(drawn("path", {d: path, class: kind}));
    });
    // What the site does now goes on until the next look at it.
    const present = state.sites.find((each) => each.site === site.site);
    if (present && present.kind && !state.is_over && !present.is_gone) {
      moving.append(drawn("rect", {x: x(timeline.now), y: top, width: wide / 20, height: LANE, class: present.kind}));
    }
    names.push([drawn("text", {...side, y: narrow ? top - 5 : top + LANE / 2 + 4, class: "lane-name"}), site.site]);
  });
  const caption = drawn("text", {...side, y: TOP - 9, class: "tick"}, "round");
  const step = roundStep(timeline.rounds, wide);
  for (const [round, time] of timeline.rounds.filter(([number]) => number % step === 0)) {
    moving.append(drawn("line", {x1: x(time), x2: x(time), y1: TOP - 7, y2: TOP - 2, class: "mark"}));
    addLabel(time, TOP - 9, `${round}`);
  }
  plot.append(moving);
  svg.append(clip, plot, caption, ...names.map(([text]) => text));
  place.replaceChildren(svg);
  // The widths of texts are known only now.
  for (const [text, name] of names) writeName(text, name, narrow ? total : left - 12);
  for (const label of labels) label.half = label.node.getComputedTextLength() / 2;
  // Where the labels of an axis may begin; beside the lanes they may stand out to the left.
  const begins = narrow ? {time: 0, round: caption.getComputedTextLength() + LABEL_GAP} : {time: 0, round: left - 10};
  shown = {timeline, moving, labels, begins, total, left, wide, isOver: state.is_over};
  moveTimeline(now);
}

// Moves the drawing on. Shows the labels whose places are in it: whole, and so that none touches the
// one before.
export function moveTimeline(now) {
  if (!shown) return;
  const {timeline, moving, labels, begins, total, left, wide, isOver} = shown;
  const seconds = timeline.columns * timeline.column_seconds;
  const passed = Math.min(now - timeline.now, 5);
  const shift = isOver ? 0 : (timeline.from + seconds - timeline.now - passed) / seconds * wide;
  moving.setAttribute("transform", `translate(${shift.toFixed(2)} 0)`);
  const ends = {...begins};
  for (const {node, at, half, axis} of labels) {
    const middle = Math.min(at + shift, total - half); // the newest stays whole at the right edge
    const isInside = at + shift >= left && at + shift <= left + wide;
    const isShown = isInside && middle - half >= ends[axis];
    node.setAttribute("x", middle.toFixed(2));
    node.setAttribute("visibility", isShown ? "visible" : "hidden");
    if (isShown) ends[axis] = middle + half + LABEL_GAP;
  }
}
