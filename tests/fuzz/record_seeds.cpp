#include "tests/fuzz/record_seeds.h"

#include "trainer/telemetry/event.h"

namespace farstep {

namespace {

template <typename Body>
std::string line_of(const std::string& site, Body body, double time) {
  return to_record({time, site, std::move(body)}).dump() + "\n";
}

std::string events_of(const std::string& site, int64_t id) {
  RunEvent run;
  run.version = "1";
  run.run = "run";
  run.site_id = id;
  run.sites = {"a", "b"};
  run.devices = {"cpu"};
  run.sequence_length = 8;
  run.rounds = 2;
  auto text = line_of(site, run, 100);
  for (int64_t round = 1; round <= 2; ++round) {
    const double start = 100.0 * static_cast<double>(round);
    PlanEvent plan{round, 1, 4, 4, "equal", 1.0, 0.5};
    text += line_of(site, plan, start);
    StepEvent step{round, 1, start, 1, 0.1, 7.5, 1.0, 0.001, 32, {1.0}};
    text += line_of(site, step, start + 1);
    SpanEvent span{SpanCause::kWait, round, start + 1, 2};
    text += line_of(site, span, start + 3);
    SyncEvent sync;
    sync.round = round;
    text += line_of(site, sync, start + 3);
    RoundEvent committed;
    committed.round = round;
    committed.train_loss = 7.5;
    committed.tokens = 32;
    text += line_of(site, committed, start + 4);
    LinkEvent link;
    link.round = round;
    link.peer = site == "a" ? "b" : "a";
    link.bits_per_second = 1e6;
    text += line_of(site, link, start + 4);
    EvaluationEvent evaluation;
    evaluation.round = round;
    evaluation.tokens = 8;
    evaluation.loss_sum = 50;
    text += line_of(site, evaluation, start + 5);
  }
  return text;
}

}  // namespace

void add_records(Corpus& corpus) {
  const char next = 8, after_restart = 10;
  std::string pieces;
  for (const auto& text : {events_of("a", 0), events_of("b", 1)}) {
    const char site = pieces.empty() ? 0 : 1;
    corpus.add("records", static_cast<char>(next + site) + text);
    for (std::size_t begin = 0, end; begin < text.size(); begin = end) {
      end = text.find('\n', begin) + 1;
      const bool restarts = begin > 0 && end % 3 == 0;
      pieces += static_cast<char>((restarts ? after_restart : next) + site);
      pieces += text.substr(begin, end - begin) + '\0';
    }
  }
  corpus.add("records", pieces);
}

void add_events(Corpus& corpus) {
  corpus.add("events", events_of("a", 0));
  corpus.add("events", events_of("a", 0) + '\0' + events_of("b", 1));
  auto resumed = events_of("a", 0);
  RunEvent again;
  again.version = "1";
  again.run = "run";
  again.sites = {"a"};
  again.devices = {"cpu"};
  again.sequence_length = 8;
  again.start_round = 1;
  corpus.add("events", resumed + line_of("a", again, 900) + line_of("a", SyncChangeEvent{}, 901) +
                           line_of("a", ViewEvent{2, 2, {"a"}, "b", std::nullopt, "silent"}, 901) +
                           line_of("a", CheckpointEvent{}, 902) + line_of("a", EndEvent{}, 903));
}

}  // namespace farstep
