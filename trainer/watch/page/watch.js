// The live page. The server sends the state whenever it changes; texts and figures are made there,
// as for the report. Texts of a run enter the page as text, never as HTML; only the drawing of idle
// time, which the server has escaped, is HTML.
"use strict";

import {addControls, drawChart} from "./charts.js";
import {drawTimeline, moveTimeline} from "./timeline.js";

const byId = (id) => document.getElementById(id);

let state = null;
let timeline = null;
let clockOffset = 0; // server's time minus this device's, in seconds
let windowChosen = null; // seconds, or "all"; null until the reader or the first state says
let chartsVersion = -1;
let curves = null; // as the server gave them
let settingsShown = ""; // as JSON

const serverNow = () => Date.now() / 1000 + clockOffset;

function element(tag, css, ...children) {
  const made = document.createElement(tag);
  if (css) made.className = css;
  made.append(...children);
  return made;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const two = (value) => String(value).padStart(2, "0");
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}:${two(whole % 60)} min`;
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
  if (site.is_gone) setPill(card.pill, "lost", "gone");
  else setPill(card.pill, site.outcome || site.kind, site.activity.replace("_", " "));
  card.bar.style.width = `${100 * site.fraction}%`;
  const step = site.outcome || !site.trains || site.local_steps === 0 ? "" : ` · step ${site.step}/${site.local_steps}`;
  setText(card.position, `round ${site.round}/${state.rounds}${step}`);
  const knowsLeft = !site.outcome && !site.is_gone && site.seconds_left !== null;
  setText(card.left, knowsLeft ? `${duration(site.seconds_left)} left` : "");
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

// The timeline.

function redrawTimeline() {
  if (timeline) drawTimeline(byId("timeline"), timeline, state, serverNow());
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
  redrawTimeline();
}

async function renewCharts() {
  if (!state || !state.run || chartsVersion === state.version) return;
  const version = state.version;
  const news = await ask("api/charts");
  chartsVersion = version;
  curves = news;
  byId("idle").innerHTML = news.idle;
  const entry = (css, text) => element("li", "", element("i", css), text);
  byId("loss-legend").replaceChildren(...news.legend.map(({kind, label}) => entry(`stroke ${kind}`, label)));
  byId("idle-legend").replaceChildren(...news.causes.map(({kind, label}) => entry(kind, label)));
  setText(byId("speed-title"), `${state.unit}/s`);
  byId("accuracy").parentElement.hidden = !news.charts.some(({id}) => id === "accuracy");
  redrawCharts();
}

function redrawCharts() {
  if (!curves) return;
  for (const chart of curves.charts) drawChart(byId(chart.id), chart, curves, chartOptions);
}

// They change only when a process starts, and the reader may have unfolded a part.
async function renewSettings() {
  if (!state || !state.run) return;
  const {settings, defaults} = await ask("api/settings");
  const text = JSON.stringify([settings, defaults]);
  if (text === settingsShown) return;
  settingsShown = text;
  const section = byId("settings-section");
  showTable(section, settings);
  if (defaults.rows.length === 0) return;
  section.append(element("details", "", element("summary", "", defaults.title), element("div", "wide", table(defaults))));
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

// Kind and text of the run's pill.
function runState({is_over, rounds_done, rounds}) {
  if (!is_over) return ["live", "live"];
  return rounds_done < rounds ? ["wait", `stopped at ${rounds_done} of ${rounds}`] : ["done", "finished"];
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
  document.body.classList.remove("empty");
  setPill(byId("state"), ...runState(next));
  showRun();
  showSites();
  showTable(byId("links-section"), next.links);
  showTable(byId("idle-section"), next.idle);
  showLines(byId("changes-section"), byId("changes"), [...next.membership_changes, ...next.outliers, ...next.rises, ...next.sync_changes]);
  showLines(byId("notes-section"), byId("notes"), next.notes);
  if (!isFirst) return;
  chooseWindow(windowChosen || (next.is_over ? "all" : "600"));
  renewSettings().catch((error) => console.warn(error.message));
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
const chartOptions = addControls(byId("controls"), redrawCharts);
new ResizeObserver(redrawTimeline).observe(byId("timeline"));
new ResizeObserver(redrawCharts).observe(byId("loss"));
listen();
repeat(2, renewTimeline);
repeat(5, renewCharts);
repeat(30, renewSettings);
setInterval(() => { showAges(); moveTimeline(serverNow()); }, 250);
