#include "heterogeneity/plan/forecast.h"

#include "heterogeneity/plan/plan_report.h"
#include "heterogeneity/policy/policy.h"
#include "tests/heterogeneity/knowledge/known_sites.h"
#include "tests/heterogeneity/policy/known_plans.h"
#include "tests/support/catch.h"

namespace farstep::heterogeneity {
namespace {

using Catch::Contains;

ForecastSettings settings_of(Policy policy) {
  ForecastSettings settings;
  settings.plan = plan_config(policy);
  settings.parameters = 1'000'000;
  settings.sequence_length = 128;
  return settings;
}

Forecast forecast_for(const ForecastSettings& settings, const std::vector<SiteKnowledge>& sites) {
  return forecast_of(settings, sites, make_plan(settings.plan, sites));
}

SiteKnowledge linked(SiteKnowledge site, const std::string& peer, double bits_per_second) {
  site.profile->links.push_back({peer, 0.02, bits_per_second});
  return site;
}

TEST_CASE("the sites' tokens add up to the run's") {
  for (const auto policy : {Policy::kUniform, Policy::kHybrid, Policy::kStepsByTflops}) {
    const auto settings = settings_of(policy);
    const auto forecast = forecast_for(settings, paper_sites());
    double share = 0, speed = 0, weight = 0;
    for (const auto& site : forecast.sites) {
      share += site.token_share;
      speed += *site.tokens_per_second;
      weight += site.averaging_weight;
      CHECK(*site.tokens_per_second <= *site.alone_per_second * (1 + 1e-12));
    }
    CHECK(share == Approx(1));
    CHECK(weight == Approx(1));
    CHECK(speed == Approx(*forecast.tokens_per_second));
    CHECK(*forecast.tokens_per_second * *forecast.round_seconds ==
          Approx(static_cast<double>(forecast.tokens_a_round)));
    CHECK(forecast.sites[*forecast.fastest].work.site == "node3");
  }
}

TEST_CASE("the run without a site is the plan of the others") {
  const auto settings = settings_of(Policy::kHybrid);
  const auto sites = paper_sites();
  const auto forecast = forecast_for(settings, sites);
  for (std::size_t place = 0; place < sites.size(); ++place) {
    auto others = sites;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(place));
    const auto alone = forecast_for(settings, others);
    const auto& without = forecast.sites[place].without;
    REQUIRE(without);
    CHECK(without->round_seconds == Approx(*alone.round_seconds));
    CHECK(without->speed_share * *forecast.tokens_per_second == Approx(*alone.tokens_per_second));
  }
  const auto single = forecast_for(settings, {sites.front()});
  CHECK_FALSE(single.sites.front().without);
  CHECK(*single.tokens_per_second == Approx(*single.sites.front().alone_per_second));
}

TEST_CASE("the exchange holds up the round when the links are known") {
  auto settings = settings_of(Policy::kHybrid);
  const std::vector<SiteKnowledge> unlinked{timed_site("a", 0.1), timed_site("b", 0.1)};
  const auto unknown = forecast_for(settings, unlinked);
  CHECK_FALSE(unknown.exposed_seconds);
  CHECK(*unknown.round_seconds == *unknown.train_seconds);
  const std::vector<SiteKnowledge> sites{linked(unlinked[0], "b", 8e6),
                                         linked(unlinked[1], "a", 8e6)};
  const auto known = forecast_for(settings, sites);
  REQUIRE(known.exposed_seconds);
  // Two sites send half of 4 MB twice: 4 s at 1 MB/s.
  CHECK(*known.exposed_seconds == Approx(4).epsilon(0.05));
  CHECK(*known.round_seconds == Approx(*known.train_seconds + *known.exposed_seconds));
  CHECK(*known.link_bytes_a_round == 4'000'000);
  settings.parameters.reset();
  CHECK_FALSE(forecast_for(settings, sites).link_bytes_a_round);
}

TEST_CASE("a site that hardly adds to the run is named, with the run without it") {
  auto settings = settings_of(Policy::kUniform);
  const std::vector<SiteKnowledge> sites{timed_site("office", 0.1), timed_site("home", 0.2),
                                         timed_site("cloud", 0.2)};
  CHECK(forecast_for(settings, sites).warnings.empty());
  settings.plan = plan_config(Policy::kHybrid);
  auto slow = sites;
  slow.back() = timed_site("cloud", 8);
  const auto forecast = forecast_for(settings, slow);
  REQUIRE(forecast.warnings.size() >= 1);
  const auto named = std::ranges::find_if(forecast.warnings, [](const std::string& warning) {
    return warning.starts_with("cloud trains");
  });
  REQUIRE(named != forecast.warnings.end());
  CHECK_THAT(*named, Contains("without it the run has"));
  CHECK_THAT(plan_text(forecast), Contains("Warning: " + *named));
}

TEST_CASE("a site that leaves out steps has the weight of what it does") {
  auto settings = settings_of(Policy::kHybrid);
  settings.plan.most_steps = settings.plan.base_steps;
  const std::vector<SiteKnowledge> sites{timed_site("fast", 0.1), timed_site("slow", 0.5)};
  const auto forecast = forecast_for(settings, sites);
  const auto& slow = forecast.sites.back();
  const double done =
      static_cast<double>(slow.work.local_steps) / static_cast<double>(settings.plan.base_steps);
  CHECK(done == Approx(0.2));
  CHECK(slow.averaging_weight == Approx(done / (1 + done)));
}

TEST_CASE("the line of a log has the speed and each site's share") {
  const auto forecast = forecast_for(settings_of(Policy::kHybrid), paper_sites());
  const auto line = forecast_line(forecast);
  CHECK_THAT(line, Contains("tokens a second in rounds of"));
  for (const auto& site : forecast.sites) CHECK_THAT(line, Contains("; " + site.work.site + " "));
  CHECK(forecast_line(forecast_for(settings_of(Policy::kHybrid), {timed_site("a", 1)})).empty());
}

TEST_CASE("a report is of a day, or of as many rounds or tokens as are asked for") {
  const auto forecast = forecast_for(settings_of(Policy::kHybrid), paper_sites());
  const auto day = plan_json(forecast)["run"];
  CHECK(day["seconds"].get<double>() == Approx(86400));
  const auto rounds = plan_json(forecast, {.rounds = 7, .tokens = {}})["run"];
  CHECK(rounds["seconds"].get<double>() == Approx(7 * *forecast.round_seconds));
  // Whole rounds: a run does not end within one.
  const auto tokens =
      plan_json(forecast, {.rounds = {}, .tokens = 6 * forecast.tokens_a_round + 1})["run"];
  CHECK(tokens == rounds);
}

TEST_CASE("a site that serves alone trains no tokens and adds none") {
  auto settings = settings_of(Policy::kHybrid);
  settings.plan.equal_steps = true;
  auto sites = paper_sites();
  auto& server = sites.emplace_back();
  server.site = "server";
  server.trains = false;
  const auto forecast = forecast_for(settings, sites);
  CHECK(forecast.sites.back().token_share == 0);
  CHECK_FALSE(forecast.sites.back().without);
  CHECK_FALSE(forecast.link_bytes_a_round);
  CHECK(forecast.warnings.empty());
}

}  // namespace
}  // namespace farstep::heterogeneity
