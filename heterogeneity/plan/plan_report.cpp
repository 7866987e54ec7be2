// The same forecast for people and for programs. Programs get nulls where no step time is known,
// people a dash.
#include "heterogeneity/plan/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trainer/telemetry/figure_text.h"

namespace farstep::heterogeneity {

namespace {

constexpr double kDaySeconds = 86400;

std::string seconds_text(const std::optional<double>& seconds) {
  return seconds ? duration_text(*seconds) : "-";
}

std::string rate_text(const std::optional<double>& rate) {
  if (!rate) return "-";
  return *rate < 100 ? fmt::format("{:.3g}", *rate) : short_count_text(*rate);
}

const char* unit_of(const Forecast& forecast) {
  return forecast.counts_examples ? "examples" : "tokens";
}

// Rounds that `length` asks for; those of a day without a length.
double rounds_of(const Forecast& forecast, const RunLength& length) {
  if (length.rounds) return static_cast<double>(*length.rounds);
  if (!length.tokens) return kDaySeconds / *forecast.round_seconds;
  return std::ceil(static_cast<double>(*length.tokens) /
                   static_cast<double>(forecast.tokens_a_round));
}

int64_t link_bytes(const Forecast& forecast, double rounds) {
  return std::llround(rounds * static_cast<double>(*forecast.link_bytes_a_round));
}

std::string speed_line(const Forecast& forecast) {
  const auto& fastest = forecast.sites[*forecast.fastest];
  auto text = fmt::format("The run trains {} {} a second", rate_text(forecast.tokens_per_second),
                          unit_of(forecast));
  if (forecast.sites.size() > 1) {
    text += fmt::format("; {}, the fastest site, trains {} alone", fastest.work.site,
                        rate_text(fastest.alone_per_second));
  }
  return text + ".";
}

std::string round_line(const Forecast& forecast) {
  const auto training =
      std::ranges::count_if(forecast.sites, [](const auto& site) { return site.work.trains(); });
  auto text = fmt::format("A round takes {}", duration_text(*forecast.round_seconds));
  if (forecast.exposed_seconds) {
    text +=
        fmt::format(": {} of training and {} of exchange", duration_text(*forecast.train_seconds),
                    duration_text(*forecast.exposed_seconds));
  } else if (forecast.sites.size() > 1) {
    text += " without the exchange, as the speed of the links is not known";
  }
  if (forecast.sites.size() == 1) return text + ".";
  const double all = *forecast.train_seconds * static_cast<double>(training);
  return text + fmt::format(". All sites together wait {} for the slowest, {:.2f} % of their time.",
                            duration_text(*forecast.total_idle_seconds),
                            100 * *forecast.total_idle_seconds / all);
}

std::string length_line(const Forecast& forecast, const RunLength& length) {
  const double rounds = rounds_of(forecast, length);
  const auto tokens = short_count_text(rounds * static_cast<double>(forecast.tokens_a_round));
  const auto rounds_text =
      rounds < 10 ? fmt::format("{:.3g}", rounds) : fmt::format("{:.0f}", rounds);
  if (!length.rounds && !length.tokens) {
    return fmt::format("A day has {} rounds and {} {}.", rounds_text, tokens, unit_of(forecast));
  }
  return fmt::format("{} rounds train {} {} in {}.", rounds_text, tokens, unit_of(forecast),
                     duration_text(rounds * *forecast.round_seconds));
}

std::string bytes_line(const Forecast& forecast) {
  const auto peers = std::ssize(forecast.sites) - 1;
  const auto day = link_bytes(forecast, kDaySeconds / *forecast.round_seconds);
  return fmt::format(
      "Each site sends {} a round and {} a day{}.",
      bytes_text(*forecast.link_bytes_a_round * peers), bytes_text(day * peers),
      peers > 1 ? fmt::format(", {} of it over the link to each other site", bytes_text(day)) : "");
}

std::string table(const Forecast& forecast, std::size_t width) {
  const auto* unit = forecast.counts_examples ? "ex./s" : "tokens/s";
  auto text = fmt::format(
      "{:<{}}  {:>7}  {:>6}  {:>11}  {:>8}  {:>7}  {:>6}  {:>12}  {:>10}  {:>10}\n", "site", width,
      "steps", "batch", "micro-batch", unit, "share", "weight", "compute", "wait", "without it");
  for (const auto& site : forecast.sites) {
    text += fmt::format(
        "{:<{}}  {:>7}  {:>6}  {:>11}  {:>8}  {:>7}  {:>6.4f}  {:>12}  {:>10}  {:>10}\n",
        site.work.site, width, site.work.local_steps, site.work.batch, site.work.micro_batch,
        rate_text(site.tokens_per_second), percent_text(site.token_share), site.averaging_weight,
        seconds_text(site.work.compute_seconds), seconds_text(site.work.idle_seconds),
        site.without ? percent_text(site.without->speed_share) : "-");
  }
  return text;
}

}  // namespace

// A figure that cannot be predicted is null, so that every site has the same members.
Json plan_json(const Forecast& forecast, const RunLength& length) {
  using detail::print_value;
  Json sites = Json::array();
  for (const auto& site : forecast.sites) {
    Json without = nullptr;
    if (site.without) {
      without = {{"speed_share", site.without->speed_share},
                 {"round_seconds", site.without->round_seconds}};
    }
    sites.push_back({{"site", site.work.site},
                     {"local_steps", site.work.local_steps},
                     {"micro_batch", site.work.micro_batch},
                     {"batch", site.work.batch},
                     {"averaging_weight", site.averaging_weight},
                     {"token_share", site.token_share},
                     {"tokens_per_second", print_value(site.tokens_per_second)},
                     {"alone_tokens_per_second", print_value(site.alone_per_second)},
                     {"run_without", std::move(without)},
                     {"predicted_compute_seconds", print_value(site.work.compute_seconds)},
                     {"predicted_idle_seconds", print_value(site.work.idle_seconds)},
                     {"reason", site.work.reason}});
  }
  Json json{{"policy", std::string(name_of(forecast.policy))},
            {"unit", unit_of(forecast)},
            {"sites", std::move(sites)},
            {"predicted_total_idle_seconds", print_value(forecast.total_idle_seconds)},
            {"train_seconds", print_value(forecast.train_seconds)},
            {"exposed_exchange_seconds", print_value(forecast.exposed_seconds)},
            {"round_seconds", print_value(forecast.round_seconds)},
            {"tokens_a_round", forecast.tokens_a_round},
            {"tokens_per_second", print_value(forecast.tokens_per_second)},
            {"link_bytes_a_round", print_value(forecast.link_bytes_a_round)},
            {"warnings", forecast.warnings}};
  json["run"] = nullptr;
  if (forecast.round_seconds) {
    const double rounds = rounds_of(forecast, length);
    json["run"] = {{"rounds", rounds},
                   {"seconds", rounds * *forecast.round_seconds},
                   {"tokens", rounds * static_cast<double>(forecast.tokens_a_round)}};
  }
  return json;
}

// Reasons come below the table, because their lines are long.
std::string plan_text(const Forecast& forecast, const RunLength& length) {
  std::size_t width = std::string_view("site").size();
  for (const auto& site : forecast.sites) width = std::max(width, site.work.site.size());
  auto text =
      fmt::format("Plan of a round by {}\n{}\n", name_of(forecast.policy), table(forecast, width));
  if (forecast.round_seconds) {
    text += speed_line(forecast) + "\n" + round_line(forecast) + "\n" +
            length_line(forecast, length) + "\n";
    if (forecast.link_bytes_a_round) text += bytes_line(forecast) + "\n";
  } else {
    text += "How long the round takes is not known: not every site has a step time.\n";
  }
  for (const auto& warning : forecast.warnings) text += fmt::format("Warning: {}.\n", warning);
  text += "\n";
  for (const auto& site : forecast.sites) {
    text += fmt::format("{:<{}}  {}\n", site.work.site, width, site.work.reason);
  }
  return text;
}

std::string forecast_line(const Forecast& forecast) {
  if (!forecast.round_seconds || forecast.sites.size() < 2) return "";
  auto line =
      fmt::format("planned: {} {} a second in rounds of {}", rate_text(forecast.tokens_per_second),
                  unit_of(forecast), duration_text(*forecast.round_seconds));
  for (const auto& site : forecast.sites) {
    if (!site.work.trains()) continue;
    line += fmt::format("; {} {}", site.work.site, percent_text(site.token_share));
  }
  return line;
}

// By the names of the run file's `sync`, so that it can be pasted there.
Json sync_json(const SyncPlan& plan) {
  return {{"codec", {{"kind", std::string(name_of(plan.codec))}}},
          {"lanes", plan.lanes},
          {"fragments", plan.fragments},
          {"delay_steps", plan.delay_steps},
          {"sync_seconds", plan.sync_seconds},
          {"exposed_seconds", plan.exposed_seconds},
          {"exposed_share", plan.exposed_share},
          {"reason", plan.reason}};
}

}  // namespace farstep::heterogeneity
