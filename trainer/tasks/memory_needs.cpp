#include "trainer/tasks/memory_needs.h"

#include <algorithm>
#include <span>

#include "heterogeneity/policy/policy.h"
#include "outer_optimizer/codec/codec_config.h"
#include "trainer/base/error.h"
#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

using heterogeneity::MemoryUse;

constexpr int64_t kChunkBytes = int64_t{64} << 20;  // under way at most
// What LibTorch and the program keep that is not of a file, as measured (docs/results/memory.md).
constexpr int64_t kProgramBytes = 100'000'000;
// Beyond this share of the free memory, other programs and what nobody counts may not fit.
constexpr double kComfortableShare = 0.8;

bool is_eager(const RunConfig& run) {
  return run.strategy.kind == outer_optimizer::StrategyKind::kEagerUpdates;
}

// Whether theta_local differs from theta_global between two rounds, so that a checkpoint has both.
bool keeps_own_weights(const RunConfig& run) {
  return run.sync.fragments > 1 || run.sync.delay_steps > 0 || run.sync.alpha > 0 || is_eager(run);
}

// Of the inner optimizer, for each device that updates its own values.
int64_t moment_bytes(const InnerConfig& inner, const std::vector<ParameterSpec>& layout) {
  int64_t values = 0;
  for (const auto& spec : layout) {
    const int64_t times = inner.optimizer == InnerOptimizer::kSgd                             ? 0
                          : inner.optimizer == InnerOptimizer::kMuon && spec.is_hidden_matrix ? 1
                                                                                              : 2;
    values += times * num_elements(spec.shape);
  }
  return static_cast<int64_t>(sizeof(float)) * values;
}

// The bytes of memory of one vector of all parameters, and of its parts.
struct Vectors {
  int64_t model, fragment, sites;

  Vectors(int64_t num_parameters, const RunConfig& run)
      : model(static_cast<int64_t>(sizeof(float)) * num_parameters),
        fragment(model / (is_eager(run) ? 1 : run.sync.fragments)),
        sites(std::max<int64_t>(1, run.most_sites())) {}
};

int64_t residual_bytes(const RunConfig& run, const Vectors& vectors) {
  const auto& codec = run.sync.codec;
  if (codec.kind == outer_optimizer::CodecKind::kFp32 || !codec.feeds_back()) return 0;
  return vectors.model + vectors.model / vectors.sites;
}

// theta_global and its momentum, the delta, and what a sync has under way.
int64_t outer_bytes(const RunConfig& run, const Vectors& vectors) {
  const int64_t residuals = residual_bytes(run, vectors);
  int64_t bytes = 2 * vectors.model + vectors.fragment;
  if (run.sync.delay_steps > 0) bytes += 2 * vectors.fragment;
  if (is_eager(run)) bytes += 3 * vectors.model;
  bytes += residuals + residuals * vectors.fragment / vectors.model;
  if (vectors.sites == 1) return bytes;
  // The others' deltas of this site's partition, encoded.
  const int64_t others = vectors.fragment * (vectors.sites - 1) / vectors.sites;
  return bytes + others + std::min(kChunkBytes, vectors.fragment);
}

// Images stay in memory; token shards are files that the system caches.
int64_t data_bytes(const SiteOfRun& at) {
  if (!at.run.is_of_images() || !at.data.is_named()) return 0;
  const auto images = at.data.images();
  return static_cast<int64_t>(images->training.pixels.size() + images->validation.pixels.size());
}

Json figures_of(const MemoryNeeds& needs, int64_t micro_batch, std::optional<int64_t> free_bytes) {
  Json gpus = Json::array();
  for (const auto& gpu : needs.gpus) gpus.push_back(gpu ? to_json(*gpu) : Json());
  return {{"micro_batch", micro_batch},
          {"host", to_json(needs.host)},
          {"devices", std::move(gpus)},
          {"free_bytes", free_bytes ? Json(*free_bytes) : Json()}};
}

}  // namespace

MemoryNeeds memory_needs(const SiteOfRun& at, const std::vector<ParameterSpec>& layout,
                         int64_t micro_batch) {
  const auto& run = at.run;
  const Vectors vectors(num_parameters(layout), run);
  const int64_t moments = moment_bytes(run.inner, layout);
  const int64_t copied = moments + (keeps_own_weights(run) ? vectors.model : 0);
  MemoryNeeds needs{.host = {.outer_bytes = outer_bytes(run, vectors),
                             .checkpoint_bytes = copied,
                             .data_bytes = data_bytes(at),
                             .program_bytes = kProgramBytes},
                    .gpus = {},
                    .disk_bytes = 2 * vectors.model + copied + residual_bytes(run, vectors) +
                                  (is_eager(run) ? 3 * vectors.model : 0)};
  // A site without devices updates its copy of the model on the CPU.
  static const DeviceConfig kServing;
  const auto devices =
      at.site.devices.empty() ? std::span(&kServing, 1) : std::span(at.site.devices);
  for (const auto& device : devices) {
    const bool updates =
        &device == devices.data() || run.inner.reduction == ReductionKind::kBuckets;
    MemoryUse use{.weights_bytes = vectors.model,
                  .gradients_bytes = vectors.model,
                  .moments_bytes = updates ? moments : 0};
    if (micro_batch > 0) {
      const auto pass = family_of(run).pass_memory(at, device, micro_batch);
      use.weights_bytes += pass.weight_copies_bytes;
      use.activations_bytes = pass.activations_bytes;
      use.logits_bytes = pass.logits_bytes;
    }
    if (device.kind == DeviceKind::kCpu) {
      needs.host += use;
      needs.gpus.emplace_back();
    } else {
      needs.gpus.emplace_back(use);
    }
  }
  return needs;
}

MemoryRoom require_memory(const SiteOfRun& at, const std::vector<ParameterSpec>& layout,
                          int64_t micro_batch, std::optional<int64_t> free_bytes) {
  const auto needs = memory_needs(at, layout, micro_batch);
  auto text = text_of(needs.host);
  if (micro_batch > 0) text = fmt::format("with micro-batches of {}, {}", micro_batch, text);
  for (std::size_t i = 0; i < needs.gpus.size(); ++i) {
    if (needs.gpus[i]) text += fmt::format("; devices[{}] {}", i, text_of(*needs.gpus[i]));
  }
  auto figures = figures_of(needs, micro_batch, free_bytes);
  if (!free_bytes) {
    return {.text = text + "; the system does not say what is free", .figures = std::move(figures)};
  }
  text += fmt::format("; {} are free", bytes_text(*free_bytes));
  const auto fits = [&](int64_t most) {
    return memory_needs(at, layout, most).host.total() <= *free_bytes;
  };
  if (needs.host.total() <= *free_bytes) {
    const auto share = static_cast<double>(needs.host.total()) / static_cast<double>(*free_bytes);
    if (share <= kComfortableShare) return {.text = text, .figures = std::move(figures)};
    return {
        .text = text + ": little is left for other programs; end some, or lower plan.micro_batch",
        .is_tight = true,
        .figures = std::move(figures)};
  }
  int64_t fitting = 0, beyond = std::max<int64_t>(1, micro_batch);
  while (beyond - fitting > 1) {
    const int64_t middle = fitting + (beyond - fitting) / 2;
    (fits(middle) ? fitting : beyond) = middle;
  }
  throw ConfigError(fmt::format(
      "{}: {}: {}", at.run_source, text,
      fitting == 0
          ? std::string("end other programs, or take a smaller model or data.sequence_length")
          : fmt::format("set plan.micro_batch, or the site's own under sites, to at most {}",
                        fitting)));
}

// By the uniform plan, from which all policies start. batch_by_memory alone may give a batch that
// is larger than the base, whatever the sites' speeds.
heterogeneity::SitePlan first_work(const SiteOfRun& at,
                                   const std::optional<heterogeneity::SiteProfile>& profile) {
  const auto& name = at.site.name;
  auto config = at.run.plan;
  if (config.policy == heterogeneity::Policy::kBatchByMemory) config.micro_batch.reset();
  config.policy = heterogeneity::Policy::kUniform;
  auto sites = heterogeneity::sites_of(at.run.sites);
  auto own = std::ranges::find(sites, name, &heterogeneity::SiteKnowledge::site);
  // An open run takes sites that its file does not name.
  if (own == sites.end()) own = sites.insert(own, {.site = name});
  own->profile = profile;
  const auto place = own - sites.begin();
  auto work = in_file(at.run_source, [&] { return make_plan(config, sites).sites[place]; });
  const auto devices = std::max<int64_t>(1, std::ssize(at.site.devices));
  work.micro_batch = std::min(work.micro_batch, (work.batch + devices - 1) / devices);
  return work;
}

int64_t kept_checkpoints(const RunConfig& run) {
  return run.checkpoint.keep + (run.inner.rate.schedule == RateShape::kWsd ? 1 : 0) +
         (run.evaluate.on_rise != OnRise::kWarn ? 1 : 0);
}

}  // namespace farstep
