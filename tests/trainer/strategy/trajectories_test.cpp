// What the sites' weights become, against trajectories from outside and against a simulation in
// double precision that knows nothing of the code under test.
#include <cmath>

#include "tests/support/catch.h"
#include "tests/trainer/strategy/replica.h"
#include "tests/wan/transport/run_ranks.h"

namespace farstep {
namespace {

using Trajectory = std::vector<double>;

// ---- two equal sites whose every step is theta <- theta - 2; outer SGD with eta 2 ----

// Values of the two fragments of one scalar after each of 18 steps, the start first.
std::vector<Trajectory> run_two_equal_sites(int64_t delay_steps, double alpha) {
  auto run = strategy_run(2, 2, delay_steps, alpha, 6);
  run.outer.learning_rate = 2;
  run.outer.momentum = 0;
  Sites sites(run, {1, 1});
  const auto traces = wan::run_ranks(2, [&](int site) {
    auto& replica = *sites.replicas[static_cast<std::size_t>(site)];
    std::vector<Trajectory> trace{{1}, {1}};
    for (int64_t round = 1; round <= 3; ++round) {
      replica.run_round(
          round, 6,
          [](std::vector<float>& theta) {
            for (auto& value : theta) value -= 2;
          },
          [&](const auto&) {
            for (std::size_t k : {0, 1}) trace[k].push_back(replica.theta[k]);
          });
    }
    return trace;
  });
  REQUIRE(traces[0] == traces[1]);
  return traces[0];
}

void check_trajectory(const Trajectory& found, const Trajectory& expected) {
  for (std::size_t step = 0; step < expected.size(); ++step) {
    INFO("after step " << step);
    REQUIRE(std::abs(found[step] - expected[step]) < 1e-5);
  }
}

TEST_CASE("fragments without delay follow the known trajectory") {
  const auto found = run_two_equal_sites(0, 0);
  check_trajectory(found[0],
                   {1, -1, -3, -11, -13, -15, -17, -19, -21, -35, -37, -39, -41, -43, -45, -59});
  check_trajectory(found[1],
                   {1, -1, -3, -5, -7, -9, -23, -25, -27, -29, -31, -33, -47, -49, -51, -53});
}

TEST_CASE("fragments with a delay of one step follow the known trajectory") {
  const auto found = run_two_equal_sites(1, 0);
  check_trajectory(found[0],
                   {1, -1, -3, -7, -9, -11, -13, -15, -17, -27, -29, -31, -33, -35, -37, -47});
  check_trajectory(found[1],
                   {1, -1, -3, -5, -7, -9, -19, -21, -23, -25, -27, -29, -39, -41, -43, -45});
}

TEST_CASE("a delayed mean that is mixed half and half follows the known trajectory") {
  const auto found = run_two_equal_sites(1, 0.5);
  check_trajectory(found[0], {1, -1, -3, -6, -8, -10, -12, -14, -16, -21.5, -23.5, -25.5, -27.5,
                              -29.5, -31.5, -35.75});
}

// ---- unequal sites that are each drawn to a place of their own ----

struct Case {
  int64_t fragments, delay_steps, base_steps;
  double alpha, eta, mu;
  std::vector<int64_t> local_steps;  // by site
  int64_t rounds;
  int64_t mean_rounds = 0;
};

constexpr int kValues = 7;

// theta_global after all rounds, then every site's theta: one value at a time, sync after sync.
std::vector<Trajectory> simulate(const Case& c) {
  const std::size_t num_sites = c.local_steps.size();
  std::vector<Trajectory> result(1 + num_sites, Trajectory(kValues));
  for (int value = 0; value < kValues; ++value) {
    int64_t own = 0;  // the fragment that holds the value
    while ((own + 1) * kValues / c.fragments <= value) ++own;
    double global = 1, momentum = 0;
    std::vector<double> local(num_sites, 1);
    std::vector<double> steps_in_delta(num_sites, 0);
    const auto advance = [&](std::size_t site, int64_t steps) {
      for (int64_t step = 0; step < steps; ++step) {
        local[site] -= pull_of(site, value) * (local[site] - place_of(site, value));
      }
    };
    for (int64_t round = 0; round < c.rounds; ++round) {
      double sum = 0, weights = 0;
      std::vector<int64_t> to_apply(num_sites), to_end(num_sites);
      for (std::size_t site = 0; site < num_sites; ++site) {
        const int64_t steps = c.local_steps[site];
        const int64_t apply = (own + 1) * steps / c.fragments;
        const int64_t before = own * steps / c.fragments;
        int64_t delay = std::llround(double(c.delay_steps * steps) / double(c.base_steps));
        if (c.delay_steps > 0 && delay == 0) delay = 1;
        const int64_t send = std::max({before, apply - delay, int64_t{1}});
        advance(site, send);
        const double weight = steps_in_delta[site] + double(send);
        sum += weight * (global - local[site]);
        weights += weight;
        to_apply[site] = apply - send;
        to_end[site] = steps - apply;
      }
      momentum = c.mu * momentum + sum / weights;
      global -= round < c.rounds - c.mean_rounds ? c.eta * (sum / weights + c.mu * momentum)
                                                 : sum / weights;
      for (std::size_t site = 0; site < num_sites; ++site) {
        advance(site, to_apply[site]);
        local[site] = c.alpha * local[site] + (1 - c.alpha) * global;
        advance(site, to_end[site]);
        steps_in_delta[site] = double(to_end[site]);
      }
    }
    result[0][static_cast<std::size_t>(value)] = global;
    for (std::size_t site = 0; site < num_sites; ++site) {
      result[1 + site][static_cast<std::size_t>(value)] = local[site];
    }
  }
  return result;
}

std::vector<Trajectory> run_really(const Case& c) {
  const int num_sites = static_cast<int>(c.local_steps.size());
  auto run = strategy_run(num_sites, c.fragments, c.delay_steps, c.alpha, c.base_steps);
  run.outer.learning_rate = c.eta;
  run.outer.momentum = c.mu;
  run.outer.rounds = c.rounds;
  run.outer.mean_rounds = c.mean_rounds;
  run.outer.averaging = outer_optimizer::AveragingRule::kTokens;
  Sites sites(run, std::vector<float>(kValues, 1));
  wan::run_ranks(num_sites, [&](int rank) {
    const auto site = static_cast<std::size_t>(rank);
    for (int64_t round = 1; round <= c.rounds; ++round) {
      sites.replicas[site]->run_round(round, c.local_steps[site], [&](std::vector<float>& theta) {
        for (int value = 0; value < kValues; ++value) {
          auto& local = theta[static_cast<std::size_t>(value)];
          local -= static_cast<float>(pull_of(site, value) * (local - place_of(site, value)));
        }
      });
    }
  });
  const auto global = sites.replicas[0]->strategy.theta_global();
  std::vector<Trajectory> result{Trajectory(global.begin(), global.end())};
  for (const auto& replica : sites.replicas) {
    result.emplace_back(replica->theta.begin(), replica->theta.end());
  }
  return result;
}

TEST_CASE("unequal sites become what a simulation in double precision says") {
  const std::vector<Case> cases = {
      {1, 0, 6, 0, 0.7, 0.9, {6, 6}, 4},         {3, 2, 12, 0, 0.7, 0.9, {12, 7}, 5},
      {3, 2, 12, 0.5, 0.7, 0.5, {12, 7, 20}, 5}, {2, 1, 6, 0.25, 1, 0.3, {6, 9}, 6},
      {5, 0, 10, 0, 0.6, 0.8, {10, 5, 23}, 4},   {4, 3, 12, 0.9, 0.5, 0.9, {12, 40, 6}, 5},
      {7, 1, 7, 0, 0.7, 0.9, {7, 7}, 3},         {2, 1, 6, 1, 0.7, 0.5, {6, 9}, 5},
      {1, 0, 6, 0, 0.7, 0.9, {6, 9}, 4, 1},      {3, 2, 12, 0.5, 0.7, 0.5, {12, 7, 20}, 5, 2},
      {2, 0, 6, 0, 0.7, 0.9, {6, 9}, 3, 7},
  };
  for (const auto& c : cases) {
    const auto expected = simulate(c);
    const auto found = run_really(c);
    INFO(c.fragments << " fragments, delay " << c.delay_steps << ", alpha " << c.alpha << ", "
                     << c.mean_rounds << " rounds to the mean");
    for (std::size_t row = 0; row < expected.size(); ++row) {
      for (std::size_t value = 0; value < kValues; ++value) {
        REQUIRE(std::abs(found[row][value] - expected[row][value]) < 1e-4);
      }
    }
  }
}

}  // namespace
}  // namespace farstep
