#include "trainer/report/page_style.h"

#include <fmt/format.h>

#include "trainer/telemetry/event.h"

namespace farstep {

namespace {

// No fonts from elsewhere: a report is mailed, and read without a network.
constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --page: #f6f7f9; --card: #ffffff; --ink: #1c2330; --soft: #667085;
  --line: #e3e7ee; --lane: #eef1f5; --compute: #5b8def; --wait: #e5533d; --wan: #cc8400;
  --outer: #8e6fd8; --data: #14a3a8; --checkpoint: #8a94a6; --evaluate: #4a9636; --recovery: #d6409f;
  --serve: #9a6b4f; --good: #1a7f37; --alarm: #b42318; --validation: #1c2330; --site-0: #3f76e0; --site-1: #c96a14;
  --site-2: #278a55; --site-3: #9c4fc4; --site-4: #cf4560; --site-5: #17879a; --site-6: #857620;
  --site-7: #687489; }
@media (prefers-color-scheme: dark) {
  :root { --page: #11151c; --card: #191f29; --ink: #e7ebf2; --soft: #98a2b3; --line: #2a3240;
    --lane: #222a36; --compute: #4a7bdc; --wait: #ee6a55; --wan: #e9a63a; --outer: #9a80e0;
    --data: #22b3b8; --checkpoint: #7d889b; --evaluate: #66b552; --recovery: #e05bb0;
    --serve: #c39272; --good: #57c46f; --alarm: #ff6b5e; --validation: #f2f5fa; --site-0: #5b8def; --site-1: #e08a3c;
    --site-2: #3aa76d; --site-3: #b267d6; --site-4: #e0677b; --site-5: #2aa5b8; --site-6: #a8994a;
    --site-7: #8d99ad; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 36px 20px 64px;
  /* A name, a device or a message has no spaces, perhaps; tables scroll by themselves. */
  overflow-wrap: anywhere; }
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 4px; letter-spacing: -.01em; }
h2 { font-size: 15px; margin: 0 0 14px; }
p { margin: 0; color: var(--soft); }
section, .figure { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 18px 20px; }
section { margin-top: 16px; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); gap: 16px;
  margin-top: 24px; }
.figure b { display: block; font-size: 24px; line-height: 1.25; font-weight: 600; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.figure span { color: var(--soft); font-size: 13px; }
.pair { display: grid; grid-template-columns: minmax(0, 4fr) minmax(0, 3fr); gap: 0 16px; }
.pair.even { grid-template-columns: repeat(2, minmax(0, 1fr)); }
.wide { overflow-x: auto; overflow-wrap: normal; }
svg { display: block; width: 100%; }
/* Texts beside a drawing stand in its padding: what is drawn is a percentage of the rest. */
.curves { overflow: visible; padding: 0 20px 0 56px; max-width: 720px; }
.rows { display: grid; grid-template-columns: fit-content(132px) minmax(0, 1fr); }
.rows > svg { overflow: visible; padding: 0 28px 0 20px; }
.bars { max-width: 720px; }
.bars > svg { padding-right: 60px; }
.rows > .lane-name { display: flex; align-items: center; justify-content: flex-end;
  padding-bottom: 10px; min-width: 0; overflow: hidden; white-space: pre; }
.rows > .lane-name i { font-style: normal; overflow: hidden; text-overflow: ellipsis; }
.bars .lane-name { padding-bottom: 18px; }
.dense .lane-name { padding-bottom: 4px; }
.axis-name { font-size: 12px; color: var(--soft); text-align: right; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0 0 14px; padding: 0;
  list-style: none; font-size: 13px; color: var(--soft); }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 3px;
  margin-right: 7px; }
.legend i.stroke { height: 3px; vertical-align: middle; }
.tick { font-size: 12px; fill: var(--soft); }
.lane-name { font-size: 13px; line-height: 14px; font-weight: 600; fill: var(--ink); }
.value { font-size: 13px; fill: var(--ink); paint-order: stroke; stroke: var(--card); stroke-width: 4px; }
.grid { stroke: var(--line); }
.mark { stroke: var(--soft); }
.cut { stroke: var(--ink); stroke-dasharray: 3 3; }
.lane { fill: var(--lane); }
.tip { fill: transparent; }
.tip:hover { fill: rgba(255, 255, 255, .22); }
.curve { fill: none; stroke-width: 1.1; stroke-linejoin: round; opacity: .7;
  vector-effect: non-scaling-stroke; }
.curve.validation { stroke: var(--validation); stroke-width: 2.4; opacity: 1; }
.validation-point { fill: var(--card); stroke: var(--validation); stroke-width: 2; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 12px; text-align: right; white-space: nowrap; }
th { vertical-align: bottom; }
th, td.left { white-space: normal; }
th.left, td.left { text-align: left; max-width: 45vw; overflow-wrap: break-word; }
td.left + td.left { min-width: 11em; }
/* The first column says what a row is of, so it stays while a table is scrolled. */
.wide th:first-child, .wide td:first-child { position: sticky; left: 0; background: var(--card); }
.wide th:first-child { z-index: 1; }
th:first-child, td:first-child { padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
th { color: var(--soft); font-weight: 500; border-bottom: 1px solid var(--line); }
tr.sum td { font-weight: 600; border-top: 1px solid var(--line); }
summary { margin-top: 12px; color: var(--soft); cursor: pointer; }
.rounds { max-height: 460px; overflow: auto; }
.rounds th { position: sticky; top: 0; background: var(--card); }
@media (max-width: 860px) {
  section, .figure { padding: 14px 14px; }
  .figure b { font-size: 20px; }
}
@media (max-width: 960px) { .pair, .pair.even { grid-template-columns: minmax(0, 1fr); } }
@media (max-width: 600px) {
  main { padding: 20px 12px 40px; }
  .figures { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 10px; }
  .figure:last-child:nth-child(odd) { grid-column: 1 / -1; }
  .rows { grid-template-columns: minmax(0, 1fr); }
  .lanes > svg { padding: 0; }
  .bars > svg { padding-left: 0; }
  .rows .lane-name { justify-content: flex-start; padding-bottom: 3px; }
  .axis-name { text-align: left; }
  .axis-name:empty, .spare { display: none; }
  .rows .first { text-anchor: start; }
  .lanes .last { text-anchor: end; }
}
)css";

// Classes instead of colours in each element: the page follows the reader's light or dark mode.
// Returns the classes of fills and strokes that the charts use.
std::string color_style() {
  std::string css = ".compute { fill: var(--compute); background: var(--compute); }\n";
  for (const auto cause : enum_names(SpanCause{})) {
    css += fmt::format(".{0} {{ fill: var(--{0}); background: var(--{0}); }}\n", cause);
  }
  for (std::size_t i = 0; i < kSiteColors; ++i) {
    css += fmt::format(
        ".curve.site-{0}, .validation-point.site-{0} {{ stroke: var(--site-{0}); }} "
        "i.site-{0} {{ background: var(--site-{0}); }}\n",
        i);
  }
  css +=
      ".curve.any-site, .validation-point.any-site { stroke: var(--soft); } i.any-site { "
      "background: var(--soft); }\n";
  return css + "i.validation { background: var(--validation); }\n";
}

}  // namespace

std::string page_style() {
  return std::string(kStyle) + color_style();
}

std::string color_class(std::size_t place, std::size_t count) {
  return count <= kSiteColors ? fmt::format("site-{}", place) : "any-site";
}

}  // namespace farstep
