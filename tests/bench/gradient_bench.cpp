// How much of the exchange of gradients an emulated backward hides: a process a site, with the real
// sums, exchange and transport, over the loopback interface or inside a running wan_lab
// (scripts/wan_lab run). Only the compute is fake: it lasts its time and makes no gradient.
//
// Each step is taken twice: without compute, for the time of the exchange alone, and with it. What
// backward could hide is the shorter of exchange and backward; the last line has the share that it
// did hide. With --servers the first sites are the parameter servers.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "outer_optimizer/exchange/direct_exchange.h"
#include "outer_optimizer/exchange/ring_exchange.h"
#include "outer_optimizer/sync_partitions.h"
#include "tests/bench/lab_site.h"
#include "tests/support/temporary_folder.h"
#include "tests/wan/transport/hosts.h"
#include "trainer/base/clock.h"
#include "trainer/config/json_fields.h"
#include "trainer/site/emulated_backward.h"
#include "trainer/strategy/gradient_sums.h"
#include "wan/transport/gloo/gloo_ring.h"
#include "wan/transport/gloo/gloo_transport.h"

using namespace farstep;

namespace {

constexpr double kDeadlineSeconds = 600;
// As EmulatedBackward divides a step.
constexpr double kBackwardShare = 2.0 / 3;
// Ranges that backward reports, as the blocks of a model are.
constexpr int64_t kReports = 64;

struct Options : SiteOptions {
  int64_t values = 214'983'680;
  double step_seconds = 20;
  int64_t bucket_mib = 32;
  int steps = 3;
  bool ring = false;
  std::vector<int64_t> tensors = {};  // their values, instead of `values` in one
  int servers = 0;                    // all sites unless given
  bool layer = false;
};

// What one site measured, by step.
struct Measured {
  std::vector<double> alone = {}, exposed = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("alone", alone, "seconds of the exchange without compute", kRequired);
    visit("exposed", exposed, "seconds of it after the end of backward", kRequired);
  }
};

// The exchange over the transport, or Gloo's ring beside it.
class BenchExchanges : public outer_optimizer::Exchanges {
 public:
  BenchExchanges(outer_optimizer::Exchange& exchange, wan::Transport& transport)
      : exchange_(exchange), transport_(transport) {}
  outer_optimizer::Exchange& among(const View&) override { return exchange_; }
  wan::Transport& connections(const View&) override { return transport_; }

 private:
  outer_optimizer::Exchange& exchange_;
  wan::Transport& transport_;
};

// The first element of each tensor.
std::vector<int64_t> borders_of(const Options& options) {
  std::vector<int64_t> borders{0};
  for (std::size_t i = 0; i + 1 < options.tensors.size(); ++i) {
    borders.push_back(borders.back() + options.tensors[i]);
  }
  return borders;
}

outer_optimizer::SyncConfig sync_of(const Options& options, const std::vector<std::string>& sites) {
  outer_optimizer::SyncConfig sync;
  if (options.layer) sync.partition = outer_optimizer::PartitionRule::kLayer;
  if (options.servers > 0) {
    sync.exchange = outer_optimizer::ExchangeKind::kParameterServer;
    sync.servers = {sites.begin(), sites.begin() + options.servers};
  }
  return sync;
}

// The largest part of the gradient that one site adds up, as a share.
double largest_part(const Options& options) {
  const auto sites = options.site_names();
  const outer_optimizer::SyncConfig sync = sync_of(options, sites);
  const auto shares = configured_shares(sync, {.generation = 1, .members = sites, .self = 0});
  int64_t largest = 0;
  const auto borders = borders_of(options);
  for (const auto& range : outer_optimizer::cut(
           {0, options.values}, {.rule = sync.partition, .shares = shares, .borders = borders})) {
    largest = std::max(largest, range.size());
  }
  return static_cast<double>(largest) / static_cast<double>(options.values);
}

// Takes a step whose compute lasts `seconds`; returns how long the site waited after it.
double take_step(GradientSums& sums, Clock& clock, int64_t size, double seconds) {
  EmulatedBackward step(sums, clock, size, seconds);
  step.begin_step();
  for (int64_t report = kReports; report-- > 0;) {
    step.ready(0, size * report / kReports, size * (report + 1) / kReports);
  }
  FARSTEP_CHECK(step.finish(0), "the step was abandoned");
  return step.waited_seconds();
}

std::string run_site(const Options& options, const std::optional<wan::LabFile>& lab, int rank,
                     wan::Store& store) {
  wan::MeshOptions mesh;
  mesh.rank = rank;
  mesh.sites = options.site_names();
  mesh.address = enter_site(lab, rank);
  mesh.generation = 1;
  mesh.lanes = options.lanes();
  wan::GlooTransport transport(mesh, {}, kDeadlineSeconds, store);
  std::unique_ptr<wan::GlooRing> ring;
  std::unique_ptr<outer_optimizer::Exchange> exchange;
  if (options.ring) {
    ring = std::make_unique<wan::GlooRing>(mesh, kDeadlineSeconds, store);
    exchange = std::make_unique<outer_optimizer::RingExchange>(*ring, rank);
  } else {
    exchange = std::make_unique<outer_optimizer::DirectExchange>(transport);
  }
  BenchExchanges exchanges(*exchange, transport);
  const TemporaryFolder folder;
  RealClock clock;
  Recorder recorder(folder.path(), mesh.sites[static_cast<std::size_t>(rank)], clock);
  GradientSums sums(sync_of(options, mesh.sites), options.bucket_mib << 20, borders_of(options),
                    recorder, clock);
  std::vector<float> gradients(static_cast<std::size_t>(options.values), 1.0F);
  sums.meet(
      {.view = {.generation = 1, .members = mesh.sites, .self = static_cast<std::size_t>(rank)},
       .coefficients = std::vector<double>(mesh.sites.size(), 1.0 / options.sites)},
      exchanges, gradients);
  Measured measured;
  for (int step = 0; step <= options.steps; ++step) {
    const double alone = take_step(sums, clock, options.values, 0);
    const double exposed = take_step(sums, clock, options.values, options.step_seconds);
    if (step == 0) continue;  // warms up
    measured.alone.push_back(alone);
    measured.exposed.push_back(exposed);
  }
  meet(store, "end", rank, options.sites);  // a site that leaves early resets its connections
  return to_json(measured).dump();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Tells how much of the exchange of gradients an emulated backward hides");
  options.add_to(app, 2);
  app.add_option("--values", options.values, "of the model")->check(CLI::PositiveNumber);
  app.add_option("--step-seconds", options.step_seconds, "forward and backward of a step")
      ->check(CLI::PositiveNumber);
  app.add_option("--bucket-mib", options.bucket_mib)->check(CLI::PositiveNumber);
  app.add_option("--steps", options.steps)->check(CLI::PositiveNumber);
  app.add_flag("--ring", options.ring, "by Gloo's ring instead of the direct exchange");
  app.add_option("--tensors", options.tensors, "values of each tensor; replaces --values")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--servers", options.servers, "so many sites add up the gradient, not all")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--layer", options.layer, "give each tensor to one of those who add up");
  CLI11_PARSE(app, argc, argv);
  if (!options.tensors.empty()) {
    options.values = std::accumulate(options.tensors.begin(), options.tensors.end(), int64_t{0});
  }
  if (options.servers > options.sites) {
    fmt::print(stderr, "--servers {}: there are {} sites\n", options.servers, options.sites);
    return 2;
  }
  const auto lab = lab_at(options.lab);
  const auto reports = wan::run_hosts(
      options.sites,
      [&](int rank, wan::Store& store) { return run_site(options, lab, rank, store); },
      kDeadlineSeconds);
  double alone = 0, exposed = 0;
  const auto sites = read_reports<Measured>(reports);
  if (!sites) return 1;
  for (std::size_t rank = 0; rank < sites->size(); ++rank) {
    const auto& measured = (*sites)[rank];
    for (std::size_t step = 0; step < measured.alone.size(); ++step) {
      fmt::print("site {}, step {}: {:.2f} s alone, {:.2f} s exposed\n", rank, step + 1,
                 measured.alone[step], measured.exposed[step]);
      alone += measured.alone[step];
      exposed += measured.exposed[step];
    }
  }
  const auto count = static_cast<double>(reports.size()) * options.steps;
  alone /= count;
  exposed /= count;
  fmt::print("the one who adds up most has {:.4f} of the gradient\n", largest_part(options));
  const double possible = std::min(alone, kBackwardShare * options.step_seconds);
  fmt::print(
      "mean: {:.2f} s alone, {:.2f} s exposed; hidden {:.1f} % of what backward could hide\n",
      alone, exposed, 100 * (alone - exposed) / possible);
}
