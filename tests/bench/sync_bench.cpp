// How long a sync takes on this machine's loopback: sites as threads, real Gloo connections.
//
//   sync_bench SITES PARAMETERS REPEATS
//
// Prints the median, least and most seconds of the exchange and of the outer step (the hash of what
// would follow, then the step), and the payload a second that a site sent.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "outer_optimizer/codec/codec.h"
#include "outer_optimizer/exchange/direct_exchange.h"
#include "outer_optimizer/outer_optimizer.h"
#include "tests/wan/transport/run_ranks.h"
#include "trainer/base/clock.h"
#include "wan/transport/gloo_transport.h"

using namespace farstep;

namespace {

constexpr double kDeadlineSeconds = 60;

struct Times {
  std::vector<double> exchange_seconds, outer_seconds;
};

Times run_site(int rank, const std::vector<std::string>& names, std::size_t parameters, int repeats,
               Store& store) {
  MeshOptions mesh;
  mesh.rank = rank;
  mesh.sites = names;
  mesh.address = "127.0.0.1";
  mesh.generation = 1;
  GlooTransport transport(mesh, {}, kDeadlineSeconds, store);
  const Fp32Codec codec;
  DirectExchange exchange(transport, codec);
  const std::vector<float> start(parameters, 1.0F);
  OuterOptimizer outer({}, start);
  std::vector<float> delta(parameters);
  const RealClock clock;
  Times times;
  for (int repeat = 0; repeat <= repeats; ++repeat) {
    outer.delta(start, delta);
    const std::vector<double> coefficients(names.size(), 1.0 / static_cast<double>(names.size()));
    const double began = clock.now_seconds();
    exchange.average({1, repeat, 0, coefficients}, delta);
    const double exchanged = clock.now_seconds();
    outer.checksum_after(delta);
    outer.apply(delta);
    if (repeat == 0) continue;  // warms up
    times.exchange_seconds.push_back(exchanged - began);
    times.outer_seconds.push_back(clock.now_seconds() - exchanged);
  }
  // A transport goes only when nobody waits for it any more.
  store.put(fmt::format("done/{}", rank), "");
  for (std::size_t site = 0; site < names.size(); ++site) store.get(fmt::format("done/{}", site));
  return times;
}

std::string summary(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return fmt::format("median {:.4f} s, least {:.4f} s, most {:.4f} s", seconds[seconds.size() / 2],
                     seconds.front(), seconds.back());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 || std::atoi(argv[1]) < 1 || std::atol(argv[2]) < 1 || std::atoi(argv[3]) < 1) {
    fmt::print(stderr, "usage: sync_bench SITES PARAMETERS REPEATS\n");
    return 2;
  }
  const int num_sites = std::atoi(argv[1]);
  const auto parameters = static_cast<std::size_t>(std::atol(argv[2]));
  std::vector<std::string> names;
  for (int site = 0; site < num_sites; ++site) names.push_back(fmt::format("site{}", site));
  MemoryStore store(kDeadlineSeconds);
  const auto times = run_ranks(num_sites, [&](int rank) {
    return run_site(rank, names, parameters, std::atoi(argv[3]), store);
  });
  const double sent_bytes = 2.0 * (num_sites - 1) / num_sites * 4 * static_cast<double>(parameters);
  auto exchange_seconds = times[0].exchange_seconds;
  fmt::print("{} sites, {} parameters, fp32: a site sends {:.1f} MB\n", num_sites, parameters,
             sent_bytes / 1e6);
  fmt::print("exchange    {}\n", summary(exchange_seconds));
  fmt::print("outer step  {}\n", summary(times[0].outer_seconds));
  std::nth_element(exchange_seconds.begin(),
                   exchange_seconds.begin() + std::ssize(exchange_seconds) / 2,
                   exchange_seconds.end());
  fmt::print("sent        {:.0f} MB/s a site\n",
             sent_bytes / 1e6 / exchange_seconds[exchange_seconds.size() / 2]);
  return 0;
}
