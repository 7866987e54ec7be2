// How long the sites need to average their deltas: a process a site, real connections, over the
// loopback interface or inside the sites of a running wan_lab (scripts/wan_lab run).
//
// Prints the payload that a site sent, what the kernel counted, and the seconds from a common start
// to the last site's end.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "outer_optimizer/codec/make_codec.h"
#include "outer_optimizer/exchange/direct_exchange.h"
#include "outer_optimizer/exchange/ring_exchange.h"
#include "tests/bench/lab_site.h"
#include "tests/wan/transport/hosts.h"
#include "trainer/base/clock.h"
#include "trainer/config/json_fields.h"
#include "wan/collective/link_ring.h"
#include "wan/transport/gloo/gloo_ring.h"
#include "wan/transport/gloo/gloo_transport.h"

using namespace farstep;

namespace {

constexpr double kDeadlineSeconds = 120;

struct Options : SiteOptions {
  int64_t values = 25'000'000;
  int repeats = 3;
  int servers = 0;
  int window_mib = 64;
  double pause_seconds = 1;
  std::optional<double> uplink;
  bool ring = false, link_ring = false, json = false;
  std::string codec = "fp32", congestion_control;
};

// What one site measured.
struct Measured {
  std::vector<double> seconds = {};
  int64_t payload_bytes = 0, socket_bytes = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("seconds", seconds, "of every exchange", kRequired);
    visit("payload_bytes", payload_bytes, "sent in one exchange, as counted here", kRequired);
    visit("socket_bytes", socket_bytes, "sent in one, as the kernel counted them", kRequired);
  }
};

outer_optimizer::CodecKind codec_kind(const std::string& name) {
  const auto names = enum_names(outer_optimizer::CodecKind{});
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) throw ConfigError("--codec " + name + " is none");
  return static_cast<outer_optimizer::CodecKind>(found - names.begin());
}

int64_t payload_bytes(const wan::Transport& transport) {
  int64_t sum = 0;
  for (int peer = 0; peer < transport.size(); ++peer) {
    if (peer != transport.rank()) sum += static_cast<int64_t>(transport.link(peer).sent_bytes);
  }
  return sum;
}

std::string run_site(const Options& options, const std::optional<wan::LabFile>& lab, int rank,
                     wan::Store& store) {
  wan::MeshOptions mesh;
  mesh.rank = rank;
  mesh.sites = options.site_names();
  mesh.address = enter_site(lab, rank);
  mesh.generation = 1;
  mesh.lanes = options.lanes();
  mesh.congestion_control = options.congestion_control;
  mesh.uplink_bits_per_second = options.uplink;
  const auto codec = outer_optimizer::make_codec({.kind = codec_kind(options.codec)});
  std::unique_ptr<wan::GlooTransport> transport;
  std::unique_ptr<wan::GlooRing> ring;
  std::unique_ptr<wan::LinkRing> link_ring;
  std::unique_ptr<outer_optimizer::Exchange> exchange;
  if (options.ring) {
    ring = std::make_unique<wan::GlooRing>(mesh, kDeadlineSeconds, store);
    exchange = std::make_unique<outer_optimizer::RingExchange>(*ring, rank);
  } else {
    transport = std::make_unique<wan::GlooTransport>(mesh, std::vector<wan::PeerLink>{},
                                                     kDeadlineSeconds, store);
  }
  if (options.link_ring) {
    link_ring = std::make_unique<wan::LinkRing>(*transport, mesh.generation);
    exchange = std::make_unique<outer_optimizer::RingExchange>(*link_ring, rank);
  } else if (!options.ring) {
    exchange = std::make_unique<outer_optimizer::DirectExchange>(
        *transport, static_cast<std::size_t>(options.window_mib) << 20);
  }
  const auto sent_bytes = [&] {
    return static_cast<int64_t>(ring ? ring->socket_bytes().sent
                                     : transport->uplink().socket_sent_bytes);
  };
  std::vector<double> shares(static_cast<std::size_t>(options.sites), 1.0);
  for (int site = options.servers; options.servers > 0 && site < options.sites; ++site) {
    shares[static_cast<std::size_t>(site)] = 0;
  }
  outer_optimizer::SyncPoint point{
      .generation = 1,
      .coefficients = std::vector<double>(shares.size(), 1.0 / options.sites),
      .partitions = outer_optimizer::partitions_of(
          outer_optimizer::cut_by_shares({0, options.values}, shares, codec->block_values())),
      .codec = codec.get()};
  std::vector<float> values(static_cast<std::size_t>(options.values));
  RealClock clock;
  Measured measured;
  for (int repeat = 0; repeat <= options.repeats; ++repeat) {
    for (std::size_t k = 0; k < values.size(); ++k) {
      values[k] = static_cast<float>(static_cast<int>(k % 255) - 127 + rank);
    }
    clock.sleep_until(clock.now_seconds() + options.pause_seconds);
    meet(store, fmt::format("start/{}", repeat), rank, options.sites);
    const auto payload = transport ? payload_bytes(*transport) : 0;
    const auto sent = sent_bytes();
    const double began = clock.now_seconds();
    point.round = repeat;
    exchange->average(point, values);
    const double seconds = clock.now_seconds() - began;
    meet(store, fmt::format("end/{}", repeat), rank, options.sites);
    if (repeat == 0) continue;  // warms up
    measured.seconds.push_back(seconds);
    measured.socket_bytes = sent_bytes() - sent;
    measured.payload_bytes =
        transport ? payload_bytes(*transport) - payload : measured.socket_bytes;
  }
  return to_json(measured).dump();
}

// The slowest site counts.
Measured slowest(const std::vector<Measured>& sites) {
  Measured all = sites.front();
  for (const auto& site : sites) {
    for (std::size_t i = 0; i < all.seconds.size(); ++i) {
      all.seconds[i] = std::max(all.seconds[i], site.seconds.at(i));
    }
    all.payload_bytes = std::max(all.payload_bytes, site.payload_bytes);
    all.socket_bytes = std::max(all.socket_bytes, site.socket_bytes);
  }
  return all;
}

std::string text_of(const Options& options, Measured measured) {
  auto& seconds = measured.seconds;
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  const auto how =
      options.ring
          ? std::string("Gloo's ring, fp32")
          : fmt::format("{}, {} lanes{}{}{}", options.link_ring ? "ring over links" : options.codec,
                        options.lanes(), options.congestion_control.empty() ? "" : ", ",
                        options.congestion_control, options.servers > 0 ? ", with servers" : "");
  return fmt::format(
      "{} sites, {:.1f} MB of fp32 values, {}: a site sends {:.2f} MB ({:.2f} on its sockets) in "
      "{:.3f} s ({:.3f} to {:.3f}), {:.0f} Mbit/s",
      options.sites, 4e-6 * static_cast<double>(options.values), how,
      1e-6 * static_cast<double>(measured.payload_bytes),
      1e-6 * static_cast<double>(measured.socket_bytes), median, seconds.front(), seconds.back(),
      8e-6 * static_cast<double>(measured.socket_bytes) / median);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Times the exchange of the sites' deltas");
  options.add_to(app, 1);
  app.add_option("--values", options.values, "of the model")->check(CLI::NonNegativeNumber);
  app.add_option("--repeats", options.repeats)->check(CLI::PositiveNumber);
  app.add_option("--servers", options.servers, "the first sites serve all; 0: everyone a part");
  auto* const ring = app.add_flag("--ring", options.ring, "Gloo's own ring all-reduce instead");
  app.add_flag("--link-ring", options.link_ring, "the ring over the links, of runs with keys")
      ->excludes(ring);
  app.add_option("--uplink", options.uplink, "bits a second that a site may send; else no limit");
  app.add_option("--window", options.window_mib, "MiB of buffers");
  app.add_option("--pause", options.pause_seconds, "before every exchange");
  app.add_flag("--json", options.json, "print one JSON object");
  app.add_option("--codec", options.codec);
  app.add_option("--congestion-control", options.congestion_control);
  CLI11_PARSE(app, argc, argv);
  const auto lab = lab_at(options.lab);
  const auto reports = wan::run_hosts(
      options.sites,
      [&](int rank, wan::Store& store) { return run_site(options, lab, rank, store); },
      kDeadlineSeconds);
  const auto sites = read_reports<Measured>(reports);
  if (!sites) return 1;
  const auto measured = slowest(*sites);
  fmt::print("{}\n", options.json ? to_json(measured).dump() : text_of(options, measured));
  return 0;
}
