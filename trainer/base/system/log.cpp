#include "trainer/base/system/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "trainer/base/error.h"

namespace farstep {

// spdlog reads unknown names as "off", so only that result needs a check.
void set_up_log(const std::string& label, const std::string& level) {
  const auto parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off && level != "off") {
    throw ConfigError(
        fmt::format("log level '{}' is not one of trace, debug, info, warning, error, off", level));
  }
  auto logger = std::make_shared<spdlog::logger>(
      "farstep", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_level(parsed);
  logger->set_pattern(label.empty() ? "%H:%M:%S %^%l%$ %v" : "%H:%M:%S %^%l%$ [" + label + "] %v");
  // A program that is killed must not lose the lines that say why.
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void log_to_file(const std::filesystem::path& file) {
  try {
    // With the date: a file is read days later. The terminal shows the time only.
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
    sink->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
    auto& sinks = spdlog::default_logger()->sinks();
    sinks.resize(1);  // the terminal's
    sinks.push_back(std::move(sink));
  } catch (const spdlog::spdlog_ex& error) {
    throw DataError(fmt::format("{}: cannot open the log: {}", file.string(), error.what()));
  }
}

}  // namespace farstep
