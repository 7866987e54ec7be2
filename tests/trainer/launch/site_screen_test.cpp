#include "trainer/launch/site_screen.h"

#include "tests/support/catch.h"
#include "tests/trainer/telemetry/synthetic_run.h"
#include "trainer/account/site_report.h"
#include "trainer/telemetry/figure_text.h"

namespace farstep {

TEST_CASE("the screen's lines have the figures of the report") {
  const SyntheticRun run;
  ShownSite shown("node3");
  SiteReport report("node3");
  std::size_t rounds = 0;
  for (const auto& record : run.records(2)) {
    CHECK(shown.has_records == (report.first_seen() > 0));
    shown.add(record);
    report.add(record);
    const auto news = news_text(shown, record);
    if (const auto* round = std::get_if<RoundEvent>(&record.event)) {
      ++rounds;
      const auto& use = report.time().rounds.at(round->round);
      CHECK_THAT(news, Catch::StartsWith(
                           fmt::format("round {} of 10 is done: loss {}, {} tokens/s", round->round,
                                       loss_text(round->train_loss),
                                       short_count_text(report.progress.tokens_per_second()))));
      CHECK_THAT(news, Catch::Contains(fmt::format("waited {:.1f} s for peers",
                                                   use.seconds(SpanCause::kWait))));
    } else if (const auto* share = std::get_if<EvaluationEvent>(&record.event)) {
      CHECK_THAT(news, Catch::StartsWith(fmt::format(
                           "validation after round {}: loss {}", share->round,
                           loss_text(share->loss_sum / static_cast<double>(share->tokens)))));
    } else if (std::holds_alternative<EndEvent>(record.event)) {
      CHECK(news == "done: the model is in " + report.checkpoint->folder);
    } else {
      CHECK(news.empty());
    }
  }
  CHECK(rounds == 10);
}

TEST_CASE("the last line of an interrupted site says from where it goes on") {
  const SyntheticRun run;
  ShownSite shown("node3");
  for (const auto& record : run.records(2)) {
    if (!std::holds_alternative<EndEvent>(record.event)) shown.add(record);
  }
  auto end = run.records(2).back();
  end.event = EndEvent{.outcome = Outcome::kInterrupted, .message = ""};
  CHECK(news_text(shown, end) ==
        fmt::format("stopped in round {} of 10: with --resume=auto the same "
                    "command goes on from {}",
                    shown.progress.round(), shown.checkpoint->folder));
  shown.checkpoint.reset();
  CHECK_THAT(news_text(shown, end), Catch::EndsWith("no checkpoint has been written"));
}

}  // namespace farstep
