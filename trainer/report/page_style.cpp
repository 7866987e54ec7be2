#include "trainer/report/page_style.h"

#include <fmt/format.h>

#include "trainer/telemetry/event.h"

namespace farstep {

namespace {

// No fonts from elsewhere: a report is mailed, and read without a network.
constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --page: #f6f7f9; --card: #ffffff; --ink: #1c2330; --soft: #667085;
  --line: #e3e7ee; --lane: #eef1f5; --compute: #5b8def; --wait: #e5533d; --wan: #f5a524;
  --outer: #8e6fd8; --data: #14a3a8; --checkpoint: #8a94a6; --evaluate: #5aa845; --recovery: #d6409f;
  --serve: #2f9e8f; --validation: #1c2330; --site-0: #5b8def; --site-1: #e08a3c; --site-2: #3aa76d; --site-3: #b267d6;
  --site-4: #d65a6f; --site-5: #2aa5b8; --site-6: #9a8b3c; --site-7: #7a869a; }
@media (prefers-color-scheme: dark) {
  :root { --page: #11151c; --card: #191f29; --ink: #e7ebf2; --soft: #98a2b3; --line: #2a3240;
    --lane: #222a36; --compute: #4a7bdc; --wait: #ee6a55; --wan: #e9a63a; --outer: #9a80e0;
    --data: #22b3b8; --checkpoint: #7d889b; --evaluate: #66b552; --recovery: #e05bb0;
    --serve: #39b3a3; --validation: #f2f5fa; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 36px 20px 64px; }
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 4px; letter-spacing: -.01em; }
h2 { font-size: 15px; margin: 0 0 14px; }
p { margin: 0; color: var(--soft); }
section, .figure { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 18px 20px; }
section { margin-top: 16px; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(160px, 1fr)); gap: 16px;
  margin-top: 24px; }
.figure b { display: block; font-size: 24px; line-height: 1.25; font-weight: 600;
  font-variant-numeric: tabular-nums; }
.figure span { color: var(--soft); font-size: 13px; }
.pair { display: grid; grid-template-columns: minmax(0, 4fr) minmax(0, 3fr); gap: 0 16px; }
.wide { overflow-x: auto; }
svg { display: block; width: 100%; height: auto; }
.wide svg { min-width: 760px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0 0 14px; padding: 0;
  list-style: none; font-size: 13px; color: var(--soft); }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 3px;
  margin-right: 7px; }
.legend i.stroke { height: 3px; vertical-align: middle; }
.tick { font-size: 12px; fill: var(--soft); }
.lane-name { font-size: 13px; font-weight: 600; fill: var(--ink); }
.value { font-size: 13px; fill: var(--ink); }
.grid { stroke: var(--line); }
.mark { stroke: var(--soft); }
.cut { stroke: var(--ink); stroke-dasharray: 3 3; }
.lane { fill: var(--lane); }
.tip { fill: transparent; }
.tip:hover { fill: rgba(255, 255, 255, .22); }
.curve { fill: none; stroke-width: 1.1; stroke-linejoin: round; opacity: .6; }
.curve.validation { stroke: var(--validation); stroke-width: 2.4; opacity: 1; }
.validation-point { fill: var(--card); stroke: var(--validation); stroke-width: 2; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 12px; text-align: right; white-space: nowrap; }
th.left, td.left { text-align: left; }
th:first-child, td:first-child { padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
th { color: var(--soft); font-weight: 500; border-bottom: 1px solid var(--line); }
tr.sum td { font-weight: 600; border-top: 1px solid var(--line); }
.rounds { max-height: 460px; overflow: auto; }
.rounds th { position: sticky; top: 0; background: var(--card); }
.chart { overflow-x: auto; }
@media (max-width: 860px) { .pair { grid-template-columns: minmax(0, 1fr); } }
/* Drawings shrink with the page: on a phone they stay legible and are scrolled instead. */
@media (max-width: 600px) {
  main { padding: 20px 12px 40px; }
  section, .figure { padding: 14px 14px; }
  .figures { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 10px; }
  .figure b { font-size: 20px; }
  .wide svg { min-width: 1080px; }
  .chart svg { min-width: 560px; }
}
)css";

// Classes instead of colours in each element: the page follows the reader's light or dark mode.
// Returns the classes of fills and strokes that the charts use.
std::string color_style() {
  std::string css = ".compute { fill: var(--compute); background: var(--compute); }\n";
  for (const auto cause : enum_names(SpanCause{})) {
    css += fmt::format(".{0} {{ fill: var(--{0}); background: var(--{0}); }}\n", cause);
  }
  // The ninth site has the first one's colour again; its line has a tip with the name.
  for (int i = 0; i < 8; ++i) {
    css += fmt::format(
        ".curve.site-{0} {{ stroke: var(--site-{0}); }} i.site-{0} {{ background: var(--site-{0}); "
        "}}\n",
        i);
  }
  return css + "i.validation { background: var(--validation); }\n";
}

}  // namespace

std::string page_style() {
  return std::string(kStyle) + color_style();
}

}  // namespace farstep
