// The live page. The server sends the state whenever it changes; texts and figures are made there,
// as for the report. Texts of a run enter the page as text, never as HTML; only the drawings, which
// the server has escaped, are HTML.
"use strict";

const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const LEVELS = 24; // of a column of the timeline

let state = null;
let timeline = null;
let clockOffset = 0; // server's time minus this device's, in seconds
let windowChosen = null; // seconds, or "all"; null until the reader or the first state says
let chartsVersion = -1;

const serverNow = () => Date.now() / 1000 + clockOffset;

function element(tag, css, ...children) {
  const made = document.createElement(tag);
  if (css) made.className = css;
  made.append(...children);
  return made;
}

function drawn(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const two = (value) => String(value).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)}:${two(whole % 60)}`;
  if (whole < 172800) return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)} h`;
  return `${(whole / 86400).toFixed(1)} days`;
}

function age(seconds) {
  if (seconds < 2) return "now";
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h ago` : `${Math.round(seconds / 86400)} days ago`;
}

function setPill(pill, kind, text) {
  pill.className = `pill ${kind || ""}`;
  setText(pill, text);
}

// The whole run.

function showRun() {
  setText(byId("run"), state.run);
  document.title = `${state.run}: round ${state.rounds_done} of ${state.rounds}`;
  // Those after the fourth tell how the sites ended; while they go on, their cards say more.
  setText(byId("facts"), state.facts.slice(1, state.is_over ? undefined : 4).join(" · "));
  const trained = state.sites.map((site) => site.fraction);
  byId("progress").style.width = `${100 * Math.max(...trained)}%`;
  const left = state.is_over || state.seconds_left === null ? "" : ` · about ${duration(state.seconds_left)} left`;
  setText(byId("position"), `${state.facts[0]}${left}`);
  const unreadable = state.unreadable.map(({site, reason}) =>
    `${site ? `the records of ${site}` : "a folder of records"} cannot be read, and count in no figure: ${reason}`);
  byId("alarms").replaceChildren(...[...unreadable, ...state.alarms.map((alarm) => alarm.text)].map((text) =>
    element("li", "", text)));
  const cards = state.figures.map(({value, label}) =>
    element("div", "figure", element("b", "", value), element("span", "", label)));
  byId("figures").replaceChildren(...cards);
}

function table(shown) {
  const cells = (row, tag) => row.map((text, i) => element(tag, i < shown.left_columns ? "left" : "", text));
  const head = element("thead", "", element("tr", "", ...cells(shown.header, "th")));
  const body = element("tbody", "", ...shown.rows.map((row) =>
    element("tr", row.is_sum ? "sum" : "", ...cells(row.cells, "td"))));
  return element("table", "", head, body);
}

function showTable(section, shown) {
  section.hidden = shown.rows.length === 0;
  const scrolled = section.querySelector(".wide");
  const place = scrolled ? scrolled.scrollLeft : 0;
  section.replaceChildren(element("h2", "", shown.title), element("div", "wide", table(shown)));
  section.querySelector(".wide").scrollLeft = place;
}

function showLines(section, place, lines) {
  section.hidden = lines.length === 0;
  place.replaceChildren(...lines.map((line) => element("p", "", line)));
}

// The sites.

const siteCards = new Map();

function newCard(name) {
  const parts = {
    pill: element("span", "pill"), bar: element("i"), position: element("span"), left: element("span"),
    loss: element("dd"), speed: element("dd"), idle: element("dd"), seen: element("dd"),
    why: element("p", "why"),
  };
  const figures = element("dl", "",
    element("div", "", element("dt", "", "loss"), parts.loss),
    element("div", "", element("dt", "", `${state.unit}/s`), parts.speed),
    element("div", "", element("dt", "", "idle"), parts.idle),
    element("div", "", element("dt", "", "last record"), parts.seen));
  parts.card = element("article", "site",
    element("div", "top", element("b", "", name), parts.pill),
    element("div", "bar", parts.bar), element("div", "where", parts.position, parts.left),
    figures, parts.why);
  return parts;
}

function showSite(site) {
  if (!siteCards.has(site.site)) siteCards.set(site.site, newCard(site.site));
  const card = siteCards.get(site.site);
  setPill(card.pill, site.outcome || site.kind, site.activity.replace("_", " "));
  card.bar.style.width = `${100 * site.fraction}%`;
  const step = site.outcome || !site.trains || site.local_steps === 0 ? "" : ` · step ${site.step}/${site.local_steps}`;
  setText(card.position, `round ${site.round}/${state.rounds}${step}`);
  setText(card.left, site.outcome || site.seconds_left === null ? "" : `${duration(site.seconds_left)} left`);
  setText(card.loss, site.loss_text);
  setText(card.speed, site.trains ? site.speed_text : "serves alone");
  setText(card.idle, site.idle_text);
  setText(card.why, site.message || (site.plan ? `Plan of round ${site.plan.round}: ${site.plan.reason}` : site.devices));
  return card.card;
}

function showSites() {
  const cards = state.sites.map(showSite);
  const place = byId("sites");
  if (cards.some((card, i) => place.children[i] !== card) || place.children.length !== cards.length) {
    place.replaceChildren(...cards);
  }
  showAges();
}

function showAges() {
  if (!state || !state.run) return;
  for (const site of state.sites) setText(siteCards.get(site.site).seen, age(serverNow() - site.last_seen));
}

// The timeline: columns of the server's, moved to the left as time goes on.

const LANE = 26, GAP = 8, TOP = 20, BOTTOM = 24;

function narrow() {
  return byId("timeline").clientWidth < 560;
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

function timeTicks(from, seconds, most) {
  const steps = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600];
  const step = steps.find((each) => seconds / each <= most) || 43200;
  const ticks = [];
  // Whole steps of the clock on the wall, so of local time.
  const zone = -60 * new Date(from * 1000).getTimezoneOffset();
  for (let at = Math.ceil((from + zone) / step) * step - zone; at <= from + seconds; at += step) {
    const shown = new Date(at * 1000);
    ticks.push([at, shown.toLocaleTimeString([], step < 60
      ? {hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false}
      : {hour: "2-digit", minute: "2-digit", hour12: false})]);
  }
  return ticks;
}

function drawTimeline() {
  const place = byId("timeline");
  const total = place.clientWidth;
  if (!timeline || total === 0) return;
  const left = narrow() ? 0 : 104, pitch = LANE + GAP + (narrow() ? 16 : 0);
  const sites = timeline.sites, seconds = timeline.columns * timeline.column_seconds;
  const height = TOP + pitch * sites.length + BOTTOM, wide = total - left;
  const svg = drawn("svg", {viewBox: `0 0 ${total} ${height}`, width: total, height, role: "img",
    "aria-label": "What each site did in the last minutes"});
  const clip = drawn("clipPath", {id: "plot"});
  clip.append(drawn("rect", {x: 0, y: 0, width: wide, height}));
  const plot = drawn("g", {transform: `translate(${left} 0)`, "clip-path": "url(#plot)"});
  const moving = drawn("g", {});
  const x = (time) => (time - timeline.from) / seconds * wide;
  for (const [at, label] of timeTicks(timeline.from, seconds * 1.02, narrow() ? 4 : 9)) {
    moving.append(drawn("line", {x1: x(at), x2: x(at), y1: TOP - 4, y2: height - BOTTOM + 2, class: "grid"}));
    moving.append(drawn("text", {x: x(at), y: height - 6, class: "tick", "text-anchor": "middle"}, label));
  }
  sites.forEach((site, i) => {
    const top = TOP + pitch * i + (narrow() ? 16 : 0);
    plot.append(drawn("rect", {x: 0, y: top, width: wide, height: LANE, class: "lane"}));
    timeline.kinds.forEach((kind, index) => {
      const path = lanePath(site.runs, top, wide / timeline.columns, index);
      if (path) moving.append(drawn("path", {d: path, class: kind}));
    });
    // What the site does now goes on until the next look at it.
    const present = state.sites.find((each) => each.site === site.site);
    if (present && present.kind && !state.is_over) {
      moving.append(drawn("rect", {x: x(timeline.now), y: top, width: wide / 20, height: LANE, class: present.kind}));
    }
    const name = site.site.length <= 14 ? site.site : `${site.site.slice(0, 8)}..${site.site.slice(-4)}`;
    svg.append(narrow()
      ? drawn("text", {x: 0, y: top - 5, class: "lane-name"}, name)
      : drawn("text", {x: left - 12, y: top + LANE / 2 + 4, class: "lane-name", "text-anchor": "end"}, name));
  });
  let last = -Infinity; // numbers must not touch
  for (const [round, time] of timeline.rounds) {
    if (x(time) - last < 34) continue;
    last = x(time);
    moving.append(drawn("line", {x1: x(time), x2: x(time), y1: TOP - 7, y2: TOP - 2, class: "mark"}));
    moving.append(drawn("text", {x: x(time), y: TOP - 9, class: "tick", "text-anchor": "middle"}, `${round}`));
  }
  plot.append(moving);
  svg.append(clip, plot);
  place.replaceChildren(svg);
  moveTimeline();
}

function moveTimeline() {
  const moving = document.querySelector("#timeline g g");
  if (!moving || !timeline || state.is_over) return;
  const wide = byId("timeline").clientWidth - (narrow() ? 0 : 104);
  const passed = Math.min(serverNow() - timeline.now, 5);
  const edge = (timeline.from + timeline.columns * timeline.column_seconds - timeline.now);
  moving.setAttribute("transform", `translate(${(edge - passed) / (timeline.columns * timeline.column_seconds) * wide} 0)`);
}

function showKinds() {
  const seen = new Set(timeline.sites.flatMap((site) => site.runs.flatMap(([, ...stack]) =>
    stack.filter((_, i) => i % 2 === 0))));
  const order = [timeline.kinds.length - 1, ...timeline.kinds.keys()].filter((kind, i, all) => all.indexOf(kind) === i);
  byId("kinds").replaceChildren(...order.filter((kind) => seen.has(kind)).map((kind) =>
    element("li", "", element("i", timeline.kinds[kind]), timeline.labels[kind])));
}

// What the server is asked for.

async function ask(path) {
  const answer = await fetch(path, {signal: AbortSignal.timeout(10000)});
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

async function renewTimeline() {
  if (!state || !state.run || windowChosen === null) return;
  timeline = await ask(`api/timeline?seconds=${windowChosen}`);
  showKinds();
  drawTimeline();
}

async function renewCharts() {
  if (!state || !state.run || chartsVersion === state.version) return;
  const version = state.version;
  const charts = await ask("api/charts");
  chartsVersion = version;
  byId("loss").innerHTML = charts.loss;
  byId("idle").innerHTML = charts.idle;
  byId("accuracy-section").hidden = charts.accuracy === null;
  byId("accuracy").innerHTML = charts.accuracy || "";
  const entry = (css, text) => element("li", "", element("i", css), text);
  byId("loss-legend").replaceChildren(entry("stroke validation", "validation, all sites"),
    ...state.sites.slice(0, 12).map((site, i) => entry(`stroke site-${i % 8}`, site.site)));
  byId("idle-legend").replaceChildren(...charts.causes.map(({kind, label}) => entry(kind, label)));
}

// One request of each kind at a time; what fails now is tried again at the next turn.
function repeat(seconds, work) {
  const turn = async () => {
    if (!document.hidden) await work().catch((error) => console.warn(error.message));
    setTimeout(turn, 1000 * seconds);
  };
  turn();
  return work;
}

function show(next) {
  const isFirst = !state || state.run !== next.run;
  state = next;
  clockOffset = next.now - Date.now() / 1000;
  if (!next.run) {
    setPill(byId("state"), next.error ? "lost" : "", next.error ? "cannot be read" : "waiting for the first record");
    setText(byId("facts"), next.error || "");
    return;
  }
  setPill(byId("state"), next.is_over ? "done" : "live", next.is_over ? "finished" : "live");
  showRun();
  showSites();
  showTable(byId("links-section"), next.links);
  showTable(byId("idle-section"), next.idle);
  showLines(byId("changes-section"), byId("changes"), [...next.membership_changes, ...next.sync_changes]);
  showLines(byId("notes-section"), byId("notes"), next.notes);
  if (isFirst) chooseWindow(windowChosen || (next.is_over ? "all" : "600"));
}

function chooseWindow(seconds) {
  windowChosen = seconds;
  for (const button of byId("windows").children) {
    button.setAttribute("aria-pressed", String(button.dataset.seconds === seconds));
  }
  renewTimeline().then(renewCharts).catch((error) => console.warn(error.message));
}

function listen() {
  const events = new EventSource("api/events");
  events.addEventListener("status", (event) => show(JSON.parse(event.data)));
  // The browser connects again by itself.
  events.onerror = () => setPill(byId("state"), "lost", "no connection");
}

byId("windows").addEventListener("click", (event) => {
  const seconds = event.target.dataset.seconds;
  if (seconds) chooseWindow(seconds);
});
new ResizeObserver(drawTimeline).observe(byId("timeline"));
listen();
repeat(2, renewTimeline);
repeat(5, renewCharts);
setInterval(() => { showAges(); moveTimeline(); }, 250);
