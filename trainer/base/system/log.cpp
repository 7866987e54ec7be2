#include "trainer/base/system/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/system/printable.h"

namespace farstep {

namespace {

// What a line says, as a flag of spdlog's patterns. Any line may quote a text of others. So control
// characters are not obeyed, and what follows a line end does not look like a line of the log. A
// text of megabytes is cut, as it would fill the disk.
class SafeText : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& into) override {
    constexpr std::size_t kMostBytes = 16 * 1024;
    const std::string_view text(message.payload.data(), message.payload.size());
    auto lines = safe_lines(text.substr(0, kMostBytes), "    ");
    if (text.size() > kMostBytes)
      lines += fmt::format("... and {} bytes", text.size() - kMostBytes);
    into.append(lines.data(), lines.data() + lines.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<SafeText>();
  }
};

// Returns how lines look: `begin`, a pattern of spdlog, and then their text.
std::unique_ptr<spdlog::formatter> lines_of(const std::string& begin) {
  auto lines = std::make_unique<spdlog::pattern_formatter>();
  lines->add_flag<SafeText>('*').set_pattern(begin + "%*");
  return lines;
}

// Standard error, which a progress bar may share with the log.
class ConsoleSink : public spdlog::sinks::stderr_color_sink_mt {
 public:
  void log(const spdlog::details::log_msg& message) override {
    const std::lock_guard lock(clear_mutex_);
    if (clear_) clear_();
    spdlog::sinks::stderr_color_sink_mt::log(message);
  }
  void set_clear(std::function<void()> clear) {
    const std::lock_guard lock(clear_mutex_);
    clear_ = std::move(clear);
  }

 private:
  std::mutex clear_mutex_;
  std::function<void()> clear_;  // guarded by clear_mutex_
};

std::shared_ptr<ConsoleSink> console;  // of the newest set_up_log()

}  // namespace

// spdlog reads unknown names as "off", so only that result needs a check.
void set_up_log(const std::string& label, const std::string& level) {
  const auto parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off && level != "off") {
    throw ConfigError(
        fmt::format("log level '{}' is not one of trace, debug, info, warning, error, off", level));
  }
  console = std::make_shared<ConsoleSink>();
  auto logger = std::make_shared<spdlog::logger>("farstep", console);
  logger->set_level(parsed);
  // With the date: runs take days.
  const std::string time = "%Y-%m-%d %H:%M:%S %^%l%$ ";
  logger->set_formatter(lines_of(label.empty() ? time : time + "[" + label + "] "));
  // A program that is killed must not lose the lines that say why.
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void log_to_file(const std::filesystem::path& file) {
  try {
    // With milliseconds: a file is compared with those of other sites.
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
    sink->set_formatter(lines_of("%Y-%m-%dT%H:%M:%S.%e %l "));
    auto& sinks = spdlog::default_logger()->sinks();
    sinks.resize(1);  // the terminal's
    sinks.push_back(std::move(sink));
  } catch (const spdlog::spdlog_ex& error) {
    throw DataError(fmt::format("{}: cannot open the log: {}", file.string(), error.what()));
  }
}

void log_to_console(const std::string& line) {
  if (!console || !spdlog::should_log(spdlog::level::info)) return;
  console->log(spdlog::details::log_msg("farstep", spdlog::level::info, line));
  console->flush();
}

void clear_before_log(std::function<void()> clear) {
  if (console) console->set_clear(std::move(clear));
}

}  // namespace farstep
