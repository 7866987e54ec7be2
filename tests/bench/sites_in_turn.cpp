// What does a run learn? Trains all sites of a run file in one process, one site at a time, and
// prints one line of JSON: the validation loss of theta_global, and what it came from.
//
//   sites_in_turn RUN.json --data FOLDER [--set outer.rounds=30]... [--from STATE] [--save STATE]
//                 [--progress-from P] [--progress-to Q] [--tails 1 2 4]
//
// Sampler, loader, inner step, strategy, exchange and averaging are the program's own; the
// transport is memory, the coordinator a meeting of threads, and nobody writes checkpoints. So the
// theta_hash is that of `farstep launch` with one thread a site.
//
// A state (--save) is theta_global, the first site's moments and the sequences taken so far. A run
// that starts from one (--from) gives theta and moments to every site, and continues the data
// order. The run covers the part [P, Q] of the learning rate's schedule. --tails adds the loss of
// the mean of theta_global over so many last rounds.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <future>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heterogeneity/policy/plan.h"
#include "outer_optimizer/exchange/direct_exchange.h"
#include "outer_optimizer/schedule/averaging.h"
#include "tests/support/memory_transport.h"
#include "tests/support/one_exchange.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/strategy/meeting.h"
#include "trainer/base/checksum.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/safetensors_writer.h"
#include "trainer/config/config_file.h"
#include "trainer/data/loader.h"
#include "trainer/inner/inner_step.h"
#include "trainer/model/device.h"
#include "trainer/model/evaluate.h"
#include "trainer/model/language/language_task.h"
#include "trainer/rate/rate_schedule.h"
#include "trainer/run/model_theta.h"
#include "trainer/strategy/make_strategy.h"
#include "trainer/telemetry/recorder.h"

using namespace farstep;

namespace {

constexpr double kStallSeconds = 3600;

struct Options {
  std::string run_file, data, from, save;
  std::vector<std::string> overrides;
  std::vector<int64_t> tails;
  double progress_from = 0, progress_to = 1;
};

heterogeneity::RoundPlan plan_of(const RunConfig& run) {
  heterogeneity::RoundPlan plan;
  for (const auto& site : run.sites) {
    const int64_t steps = site.local_steps.value_or(run.plan.base_steps);
    const int64_t batch = site.batch.value_or(run.plan.base_batch);
    heterogeneity::SitePlan& plan_of_site = plan.sites.emplace_back();
    plan_of_site.site = site.name;
    plan_of_site.local_steps = plan_of_site.most_steps = steps;
    plan_of_site.batch = batch;
    plan_of_site.micro_batch = site.micro_batch.value_or(run.plan.micro_batch.value_or(batch));
  }
  return plan;
}

View view_of(const RunConfig& run, std::size_t self) {
  View view{.generation = 1, .members = {}, .self = self};
  for (const auto& site : run.sites) view.members.push_back(site.name);
  return view;
}

// What all sites share.
struct Common {
  Options options;
  RunConfig run;
  heterogeneity::RoundPlan plan;
  LanguageTask task;
  std::mutex turn;  // of the site that computes
  Meeting meeting;

  Common(const Options& chosen, const RunConfig& config)
      : options(chosen),
        run(config),
        plan(plan_of(config)),
        task({}, config, chosen.run_file, std::make_unique<TokenData>(chosen.data)),
        meeting(view_of(config, 0).members) {}
};

// One site, all of whose methods are called by one thread.
class Site {
 public:
  Site(Common& common, std::size_t id, wan::Transport& transport,
       const std::filesystem::path& folder)
      : common_(common),
        id_(id),
        view_(view_of(common.run, id)),
        recorder_(folder / std::to_string(id), run().sites[id].name, clock_),
        seat_(common.meeting.seat(static_cast<int>(id))),
        exchange_(transport) {
    const std::lock_guard lock(common_.turn);
    model_ = common_.task.make_model(open_device({}), /*recompute=*/false);
    common_.task.set_start_values(parameters(), static_cast<uint64_t>(run().seed));
    inner_ = std::make_unique<InnerStep>(*model_, run().inner);
    if (!common_.options.from.empty()) load();
    theta_ = std::make_unique<ModelTheta>(parameters().host_values());
    StartValues start{.theta = parameters().host_values().pull(), .tensors = {}};
    for (const auto& spec : parameters().layout()) {
      start.tensors.push_back({spec.name, spec.offset});
    }
    strategy_ = make_strategy(
        run().strategy.kind,
        {.outer = run().outer, .sync = run().sync, .base_steps = run().plan.base_steps}, view_,
        std::move(start), {*seat_, recorder_, clock_});
    const auto& examples = common_.task.training();
    loader_ = std::make_unique<Loader>(
        examples, Sampler(run().data.order, static_cast<uint64_t>(run().seed), examples.sources()));
  }

  // Trains all rounds; the first site evaluates. Its results are what it returns.
  Json train() {
    Json curve = Json::array();
    const auto note = [&](int64_t round) {
      // At the end alone, where the run does not say how often.
      const int64_t every = run().evaluate.every_rounds.value_or(0);
      const bool is_due = round == run().outer.rounds || (every > 0 && round % every == 0);
      if (id_ == 0 && is_due) curve.push_back({round, loss_of(strategy_->theta_global())});
    };
    note(0);
    for (int64_t round = 1; round <= run().outer.rounds; ++round) {
      train_round(round);
      if (id_ == 0) keep_for_tails();
      note(round);
    }
    if (id_ != 0) return {};
    Json tails = Json::object();
    for (const int64_t rounds : common_.options.tails) {
      tails[std::to_string(rounds)] = loss_of(tail_mean(rounds));
    }
    if (!common_.options.save.empty()) save();
    return {{"loss", curve.back().at(1)},
            {"curve", curve},
            {"tails", tails},
            {"parameters", parameters().size()},
            {"tokens", run_sequences_ * run().data.sequence_length},
            {"averaging_weight", averaging_weight_},
            {"theta_hash", theta_hash_}};
  }

 private:
  const RunConfig& run() const { return common_.run; }
  const heterogeneity::SitePlan& plan() const { return common_.plan.sites[id_]; }
  Parameters& parameters() { return model_->parameters(); }

  void train_round(int64_t round) {
    const RoundRange range{.pool = WindowPool(run_sequences_),
                           .site_sequences = site_sequences_,
                           .offset = range_begin(common_.plan, id_),
                           .place = static_cast<int64_t>(id_),
                           .num_members = static_cast<int64_t>(view_.size())};
    loader_->begin({.round = round,
                    .steps = plan().local_steps,
                    .sites = {{.range = range, .batch = plan().batch}}});
    keep(strategy_->begin(round_start(round), so_far(0), {}));
    for (int64_t step = 0; step < plan().local_steps; ++step) {
      take_step(round, step);
      keep(strategy_->after_step(learning_rate_, so_far(step + 1), {}));
    }
    keep(strategy_->end(so_far(plan().local_steps), {}));
    run_sequences_ += total_sequences(common_.plan);
    site_sequences_ += plan().sequences();
  }

  void take_step(int64_t round, int64_t step) {
    const std::lock_guard lock(common_.turn);
    const double share = static_cast<double>(step) / static_cast<double>(plan().local_steps);
    const double done =
        (static_cast<double>(round - 1) + share) / static_cast<double>(run().outer.rounds);
    const auto& options = common_.options;
    const double progress =
        options.progress_from + (options.progress_to - options.progress_from) * done;
    const auto batch = loader_->next();
    const auto& rate = run().inner.rate;
    const double share_of_peak = rate_share(rate, first_cycle(rate, 1), progress);
    inner_->run(batch.view, plan().micro_batch, share_of_peak);
    learning_rate_ = share_of_peak * rate.peak_learning_rate;
  }

  heterogeneity::RoundTiming so_far(int64_t steps) const {
    return {.steps = steps, .batch = plan().batch, .micro_batch = plan().micro_batch};
  }

  RoundStart round_start(int64_t round) {
    RoundStart start{.round = round,
                     .view = view_,
                     .planned = {},
                     .tokens_per_step = plan().batch * run().data.sequence_length,
                     .exchanges = &exchanges_,
                     .theta = theta_.get()};
    for (const auto& site : common_.plan.sites) {
      start.planned.push_back({.site = site.site,
                               .batch = site.batch,
                               .local_steps = site.local_steps,
                               .most_steps = site.most_steps});
    }
    return start;
  }

  void keep(const Synced& synced) {
    if (synced.applied.empty()) return;
    averaging_weight_ = synced.applied.back().averaging_weight;
    theta_hash_ = synced.applied.back().theta_hash;
  }

  // Validation loss of `theta`; the model has its own values again when it returns.
  double loss_of(std::span<const float> theta) {
    const std::lock_guard lock(common_.turn);
    auto& mirror = parameters().host_values();
    const auto values = mirror.pull();
    const std::vector<float> own(values.begin(), values.end());
    std::ranges::copy(theta, values.begin());
    mirror.push();
    const auto result = evaluate(*model_, common_.task.validation(),
                                 {.examples = run().evaluate.windows, .batch = 16});
    std::ranges::copy(own, values.begin());
    mirror.push();
    return result.loss();
  }

  void keep_for_tails() {
    const auto& tails = common_.options.tails;
    if (tails.empty()) return;
    const auto theta = strategy_->theta_global();
    newest_.emplace_back(theta.begin(), theta.end());
    const auto most = static_cast<std::size_t>(*std::ranges::max_element(tails));
    if (newest_.size() > most) newest_.erase(newest_.begin());
  }

  std::vector<float> tail_mean(int64_t rounds) const {
    const auto count = std::min(newest_.size(), static_cast<std::size_t>(rounds));
    std::vector<double> sum(newest_.back().size());
    for (std::size_t i = newest_.size() - count; i < newest_.size(); ++i) {
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += double{newest_[i][k]};
    }
    std::vector<float> mean(sum.size());
    for (std::size_t k = 0; k < sum.size(); ++k) {
      mean[k] = static_cast<float>(sum[k] / static_cast<double>(count));
    }
    return mean;
  }

  NamedBuffers state(std::span<float> theta) {
    auto buffers = inner_->pull_state();
    buffers.push_back(f32_buffer("theta", theta));
    buffers.push_back(
        {"sequences", DType::kI64, {}, std::as_writable_bytes(std::span(&run_sequences_, 1))});
    return buffers;
  }

  void save() { write_safetensors(common_.options.save, state(strategy_->theta_global()), {}); }

  void load() {
    auto& mirror = parameters().host_values();
    SafetensorsFile(common_.options.from).copy_all(state(mirror.pull()));
    mirror.push();
    inner_->push_state();
  }

  Common& common_;
  const std::size_t id_;
  const View view_;
  RealClock clock_;
  Recorder recorder_;
  std::unique_ptr<wan::Rendezvous> seat_;
  outer_optimizer::DirectExchange exchange_;
  OneExchange exchanges_{exchange_};
  int64_t run_sequences_ = 0, site_sequences_ = 0;  // in the rounds done
  double learning_rate_ = 0;                        // of the last step
  double averaging_weight_ = 0;
  std::string theta_hash_;
  std::vector<std::vector<float>> newest_;  // theta_global after the last rounds
  std::unique_ptr<TrainableModel> model_;
  std::unique_ptr<InnerStep> inner_;
  std::unique_ptr<Loader> loader_;
  std::unique_ptr<ModelTheta> theta_;
  std::unique_ptr<Strategy> strategy_;
};

Json train_all(Common& common) {
  const TemporaryFolder folder;
  std::vector<std::string> names;
  for (const auto& site : common.run.sites) names.push_back(site.name);
  const auto transports = connect_in_memory(names, kStallSeconds);
  std::vector<std::future<Json>> sites;
  for (std::size_t id = 0; id < names.size(); ++id) {
    sites.push_back(std::async(std::launch::async, [&, id] {
      try {
        return Site(common, id, *transports[id], folder.path()).train();
      } catch (const std::exception&) {
        common.meeting.lose(names[id]);
        throw;
      }
    }));
  }
  Json result;
  std::exception_ptr thrown;
  for (auto& site : sites) {
    try {
      auto part = site.get();
      if (!part.is_null()) result = std::move(part);
    } catch (const PeerError&) {
      if (!thrown) thrown = std::current_exception();
    } catch (...) {
      thrown = std::current_exception();  // why the others lost it
    }
  }
  if (thrown) std::rethrow_exception(thrown);
  return result;
}

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Trains all sites of a run in one process, one at a time");
  app.add_option("run", options.run_file, "the run file")->required();
  app.add_option("--data", options.data, "dataset folder")->required();
  app.add_option("--set", options.overrides, "a.b=VALUE, changes the run file");
  app.add_option("--from", options.from, "state to start from");
  app.add_option("--save", options.save, "where to save the state at the end");
  app.add_option("--progress-from", options.progress_from);
  app.add_option("--progress-to", options.progress_to);
  app.add_option("--tails", options.tails);
  CLI11_PARSE(app, argc, argv);
  try {
    auto json = load_json(options.run_file);
    for (const auto& text : options.overrides) apply_override(json, text);
    Common common(options, run_config_from_json(json, options.run_file));
    auto result = train_all(common);
    result["processor_seconds"] = processor_seconds();
    fmt::print("{}\n", result.dump());
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
