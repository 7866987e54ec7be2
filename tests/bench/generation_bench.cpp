// How long the members of a run need for the connections of a new generation, and how much
// processor time: a process a site, with the real control plane, over the loopback interface or
// inside a running wan_lab (scripts/wan_lab run).
//
// Three kinds of generation take turns: all connections are new; one site is lost; it comes back as
// a new process would. It prints the seconds from a common start until the last site has its links.
// The processor seconds beside them are those of all sites and the coordinator, with two meetings.
// Last is what part of a core a site takes that does nothing.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/bench/lab_site.h"
#include "tests/support/temporary_folder.h"
#include "tests/wan/transport/hosts.h"
#include "trainer/base/clock.h"
#include "trainer/config/json_fields.h"
#include "trainer/peers/renewed_links.h"
#include "trainer/peers/secure_port.h"
#include "trainer/settings/run_config.h"
#include "wan/membership/coordinator.h"
#include "wan/secure/key_folder.h"
#include "wan/transport/gloo/kept_connections.h"

using namespace farstep;

namespace {

constexpr double kDeadlineSeconds = 300;

struct Options : SiteOptions {
  int repeats = 3;
  double pause_seconds = 0.5, idle_seconds = 3;
  bool has_keys = false, json = false;
  std::string keys = {};  // the folder of the run's keys
};

// What one site measured of a kind of generation.
struct Kind {
  std::vector<double> seconds = {}, processor_seconds = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("seconds", seconds, "until this site had its links", kRequired);
    visit("processor_seconds", processor_seconds, "of this site's process", kRequired);
  }
};

struct Measured {
  Kind first = {}, loss = {}, comeback = {};
  double idle_share = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("first", first, "all connections are new", kRequired);
    visit("loss", loss, "a site is lost", kRequired);
    visit("comeback", comeback, "it comes back", kRequired);
    visit("idle_share", idle_share, "of a core, that a site with links takes", kRequired);
  }
};

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

RunConfig run_of(const Options& options) {
  RunConfig run;
  run.name = "generations";
  for (const auto& name : options.site_names()) run.sites.emplace_back().name = name;
  return run;
}

// A site of the bench: its place on the control plane, and its links, made anew as often as asked.
class Site {
 public:
  Site(const Options& options, const std::string& address, int rank, wan::Store& store)
      : options_(options), rank_(rank), store_(store) {
    network_.address = address;
    const auto run = run_of(options);
    const auto& name = run.sites[static_cast<std::size_t>(rank)].name;
    if (rank == 0) {
      coordinator_ =
          std::make_unique<wan::Coordinator>(fmt::format("tcp://{}:*", address), served_run(run),
                                             run.deadlines, clock_, folder_.path() / "journal");
      store.put("coordinator", coordinator_->endpoint());
    }
    if (options.has_keys) {
      port_ = std::make_unique<SecurePort>(wan::site_key_folder(options.keys, name),
                                           std::vector{wan::SocketAddress(address, 0)}, address,
                                           clock_);
    }
    member_ = std::make_unique<wan::Member>(store.get("coordinator"), name, run.deadlines, clock_);
    members_ = member_->join({})->sites;
    renew();
  }

  // Ends all that a process of the site has beside its place on the control plane.
  void renew() {
    links_.reset();
    kept_ = std::make_unique<wan::KeptConnections>();
    links_ = std::make_unique<RenewedLinks>([this](const View& view) {
      auto links = std::make_unique<Links>(view,
                                           LinkOptions{.stage = wan::LinkStage::kRun,
                                                       .network = network_,
                                                       .lanes = options_.lanes(),
                                                       .secure_port = port_.get(),
                                                       .kept = kept_.get()},
                                           *member_, clock_);
      links->make_exchange(outer_optimizer::ExchangeKind::kDirect);
      return links;
    });
  }

  // Makes the links of the next generation, at all sites or at all but the last one.
  void connect(bool has_last, Kind& kind, bool counts) {
    ++generation_;
    const bool is_last = rank_ + 1 == options_.sites;
    if (is_last && !has_last) renew();  // the others see its connections end
    clock_.sleep_until(clock_.now_seconds() + options_.pause_seconds);
    meet(store_, fmt::format("start/{}", generation_), rank_, options_.sites);
    const double used_seconds = processor_seconds();
    const double began_seconds = clock_.now_seconds();
    if (!is_last || has_last) {
      View view{
          .generation = generation_, .members = members_, .self = static_cast<std::size_t>(rank_)};
      if (!has_last) view.members.pop_back();
      links_->among(view);
    }
    const double seconds = clock_.now_seconds() - began_seconds;
    meet(store_, fmt::format("end/{}", generation_), rank_, options_.sites);
    if (!counts) return;
    kind.seconds.push_back(seconds);
    kind.processor_seconds.push_back(processor_seconds() - used_seconds);
  }

  double idle_share() {
    const double used_seconds = processor_seconds();
    clock_.sleep_until(clock_.now_seconds() + options_.idle_seconds);
    return (processor_seconds() - used_seconds) / options_.idle_seconds;
  }

  void leave() {
    links_.reset();
    member_->leave(Outcome::kDone, "");
    if (coordinator_) coordinator_->wait_until_over(kDeadlineSeconds);
  }

 private:
  const Options& options_;
  NetworkConfig network_;
  const int rank_;
  wan::Store& store_;
  RealClock clock_;
  const TemporaryFolder folder_;
  std::unique_ptr<wan::Coordinator> coordinator_;
  std::unique_ptr<SecurePort> port_;
  std::unique_ptr<wan::Member> member_;
  std::vector<std::string> members_;
  int64_t generation_ = 1;
  std::unique_ptr<wan::KeptConnections> kept_;
  std::unique_ptr<RenewedLinks> links_;
};

std::string run_site(const Options& options, const std::optional<wan::LabFile>& lab, int rank,
                     wan::Store& store) {
  spdlog::set_level(spdlog::level::err);
  Site site(options, enter_site(lab, rank), rank, store);
  Measured measured;
  for (int repeat = 0; repeat <= options.repeats; ++repeat) {
    const bool counts = repeat > 0;
    site.renew();
    site.connect(true, measured.first, counts);
    site.connect(false, measured.loss, counts);
    site.connect(true, measured.comeback, counts);
  }
  measured.idle_share = site.idle_share();
  site.leave();
  return to_json(measured).dump();
}

// The slowest site counts, and the processor time of all.
Kind all_of(const std::vector<Measured>& sites, Kind Measured::*kind) {
  Kind all = sites.front().*kind;
  for (std::size_t site = 1; site < sites.size(); ++site) {
    const auto& own = sites[site].*kind;
    for (std::size_t i = 0; i < all.seconds.size(); ++i) {
      all.seconds[i] = std::max(all.seconds[i], own.seconds.at(i));
      all.processor_seconds[i] += own.processor_seconds.at(i);
    }
  }
  return all;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Times the connections of a new generation");
  options.add_to(app, 2);
  app.add_option("--repeats", options.repeats)->check(CLI::PositiveNumber);
  app.add_option("--pause", options.pause_seconds, "before every generation");
  app.add_option("--idle", options.idle_seconds, "for which idle sites are watched");
  app.add_flag("--keys", options.has_keys, "over secure ports");
  app.add_flag("--json", options.json, "print one JSON object");
  CLI11_PARSE(app, argc, argv);
  const TemporaryFolder folder;
  options.keys = folder.path() / "keys";
  if (options.has_keys) {
    wan::make_key_folder(options.keys, "generations");
    wan::add_site_keys(options.keys, options.site_names(), 1);
  }
  const auto lab = lab_at(options.lab);
  const auto reports = wan::run_hosts(
      options.sites,
      [&](int rank, wan::Store& store) { return run_site(options, lab, rank, store); },
      kDeadlineSeconds);
  const auto sites = read_reports<Measured>(reports);
  if (!sites) return 1;
  Measured all{.first = all_of(*sites, &Measured::first),
               .loss = all_of(*sites, &Measured::loss),
               .comeback = all_of(*sites, &Measured::comeback)};
  for (const auto& site : *sites) all.idle_share += site.idle_share / options.sites;
  if (options.json) {
    fmt::print("{}\n", to_json(all).dump());
    return 0;
  }
  const auto text = [](const char* name, const Kind& kind) {
    return fmt::format("{} {:.3f} s ({:.3f} to {:.3f}), processor {:.2f} s", name,
                       median(kind.seconds), std::ranges::min(kind.seconds),
                       std::ranges::max(kind.seconds), median(kind.processor_seconds));
  };
  fmt::print("{} sites, {} lanes{}: {}; {}; {}; an idle site {:.2f} % of a core\n", options.sites,
             options.lanes(), options.has_keys ? ", keys" : "", text("all new", all.first),
             text("a loss", all.loss), text("a return", all.comeback), 100 * all.idle_share);
  return 0;
}
