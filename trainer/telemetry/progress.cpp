// Bars are drawn by moving the cursor up and writing over the lines. Without a terminal, as in a
// log, each finished round is one line instead.
#include "trainer/telemetry/progress.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cmath>

#include "trainer/base/error.h"
#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

constexpr double kDrawSeconds = 0.1;  // slower than this an eye sees steps; faster costs only time
constexpr std::size_t kLeastBar = 8, kMostBar = 40;
constexpr std::string_view kUp = "\x1b[{}A";
constexpr std::string_view kClearLine = "\r\x1b[2K";
constexpr std::string_view kFaint = "\x1b[2m", kPlain = "\x1b[0m";
constexpr std::string_view kRed = "\x1b[31m", kGreen = "\x1b[32m", kYellow = "\x1b[33m",
                           kBlue = "\x1b[34m", kCyan = "\x1b[36m";

// Returns a bar of `width` columns, filled in `color` up to `fraction`.
std::string bar_text(double fraction, std::size_t width, std::string_view color) {
  const double clamped = std::clamp(fraction, 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(std::lround(clamped * static_cast<double>(width)));
  std::string bar(color);
  for (std::size_t i = 0; i < filled; ++i) bar += "━";
  bar += std::string(kPlain) + std::string(kFaint);
  for (std::size_t i = filled; i < width; ++i) bar += "─";
  return bar + std::string(kPlain);
}

// Yellow while waiting, so that waste stands out.
std::string_view color_of(const SiteProgress& site) {
  switch (site.activity()) {
    case SiteActivity::kWaiting:
      return kYellow;
    case SiteActivity::kSending:
      return kCyan;
    case SiteActivity::kEnded:
      return site.activity_text() == "done" ? kGreen : kRed;
    default:
      return kBlue;
  }
}

void write(std::FILE* out, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), out);
  std::fflush(out);
}

}  // namespace

TerminalSize terminal_size(std::FILE* out) {
  winsize size{};
  // Some terminals report a size of zero.
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {size.ws_col, size.ws_row};
}

std::string board_line(const SiteProgress& site, std::size_t name_width, std::size_t columns) {
  const auto rounds = std::to_string(site.rounds());
  const auto steps = std::to_string(site.local_steps());
  const auto round =
      fmt::format(" {:>{}}/{}", std::min(site.round(), site.rounds()), rounds.size(), rounds);
  const auto step = fmt::format("  step {:>{}}/{}", site.step(), steps.size(), steps);
  const auto loss = fmt::format("  loss {:>6}", loss_text(site.loss()));
  const auto unit = site.unit() == "images" ? "img" : "tok";
  const auto speed = fmt::format("  {:>6} {}/s", short_count_text(site.tokens_per_second()), unit);
  const auto now = fmt::format("  {:<11}", site.activity_text());
  const auto left = fmt::format(" {:>7}", time_left_text(site.seconds_left()));
  // From all details to the least: the first choice that leaves room for the bar.
  const std::vector<std::string> choices = {round + step + loss + speed + now + left,
                                            round + loss + speed + now + left,
                                            round + loss + now + left, round + now, round};
  const auto fits = [&](const std::string& details) {
    return name_width + 1 + kLeastBar + details.size() <= columns;
  };
  const auto chosen = std::find_if(choices.begin(), choices.end(), fits);
  if (chosen == choices.end()) return site.site().substr(0, columns);
  const auto bar_width = std::min(columns - name_width - 1 - chosen->size(), kMostBar);
  return fmt::format("{:<{}} ", short_name(site.site()), name_width) +
         bar_text(site.fraction(), bar_width, color_of(site)) + *chosen;
}

ProgressBoard::ProgressBoard(std::FILE* out, bool is_terminal, const Clock& clock,
                             const std::vector<std::string>& sites)
    : out_(out), is_terminal_(is_terminal), clock_(clock), next_draw_seconds_(clock.now_seconds()) {
  for (const auto& site : sites) {
    sites_.emplace_back(site);
    name_width_ = std::max(name_width_, short_name(site).size());
  }
}

// Keeps the waiting time before the update, as a round event resets it.
void ProgressBoard::update(const Record& record) {
  const auto site = std::find_if(sites_.begin(), sites_.end(),
                                 [&](const auto& each) { return each.site() == record.site; });
  FARSTEP_CHECK(site != sites_.end(), "a record of {}, which is not on the board", record.site);
  const double waited_seconds = site->waited_seconds();
  site->update(record);
  if (is_terminal_) return;
  if (const auto* round = std::get_if<RoundEvent>(&record.event)) {
    write(out_,
          fmt::format("{}: round {}/{} done, loss {}, {} {}/s, waited {:.1f} s\n", record.site,
                      round->round, site->rounds(), loss_text(round->train_loss),
                      short_count_text(site->tokens_per_second()), site->unit(), waited_seconds));
  } else if (const auto* end = std::get_if<EndEvent>(&record.event)) {
    write(out_, fmt::format("{}: {}{}\n", record.site, name_of(end->outcome),
                            end->message.empty() ? "" : ": " + end->message));
  }
}

void ProgressBoard::draw() {
  if (!is_terminal_ || clock_.now_seconds() < next_draw_seconds_) return;
  redraw();
}

void ProgressBoard::clear() {
  if (drawn_lines_ == 0) return;
  std::string text;
  for (; drawn_lines_ > 0; --drawn_lines_)
    text += fmt::format(fmt::runtime(kUp), 1) + std::string(kClearLine);
  write(out_, text);
}

void ProgressBoard::finish() {
  if (is_terminal_) redraw();
}

void ProgressBoard::redraw() {
  next_draw_seconds_ = clock_.now_seconds() + kDrawSeconds;
  const auto size = terminal_size(out_);
  // The board must fit the screen, because the cursor cannot move above its top.
  const std::size_t most_lines = std::max<std::size_t>(size.rows - 1, 2);
  const std::size_t shown = sites_.size() <= most_lines ? sites_.size() : most_lines - 1;
  std::string text;
  // Back to the board's first line: it is drawn over, so that the terminal's history stays clean.
  if (drawn_lines_ > 0) text += fmt::format(fmt::runtime(kUp), drawn_lines_);
  for (std::size_t i = 0; i < shown; ++i) {
    text += kClearLine;
    // One column less: a full line would make some terminals go to the next one.
    text += board_line(sites_[i], name_width_, size.columns - 1) + "\n";
  }
  drawn_lines_ = shown;
  if (shown < sites_.size()) {
    text += kClearLine;
    text += fmt::format("and {} sites more\n", sites_.size() - shown);
    ++drawn_lines_;
  }
  write(out_, text);
}

ProgressBar::ProgressBar(std::FILE* out, bool is_terminal, const Clock& clock, std::string label)
    : out_(out),
      is_terminal_(is_terminal),
      clock_(clock),
      label_(std::move(label)),
      next_draw_seconds_(clock.now_seconds()) {}

void ProgressBar::show(double fraction, const std::string& words) {
  if (!is_terminal_ || clock_.now_seconds() < next_draw_seconds_) return;
  next_draw_seconds_ = clock_.now_seconds() + kDrawSeconds;
  const auto details = fmt::format(" {:3.0f} %  {}", 100 * std::clamp(fraction, 0.0, 1.0), words);
  // Of a narrow terminal the words stay and the bar goes.
  const auto needed = label_.size() + 1 + details.size() + 1;
  const auto columns = terminal_size(out_).columns;
  std::string text(kClearLine);
  if (needed + kLeastBar > columns) {
    text += (label_ + details).substr(0, columns - 1);
  } else {
    text +=
        label_ + " " + bar_text(fraction, std::min(columns - needed, kMostBar), kBlue) + details;
  }
  write(out_, text);
}

void ProgressBar::finish(const std::string& words) {
  write(out_, fmt::format("{}{}: {}\n", is_terminal_ ? kClearLine : "", label_, words));
}

}  // namespace farstep
