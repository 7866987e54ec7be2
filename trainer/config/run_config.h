// The run file: everything that all sites of a run must agree on.
//
// The coordinator holds it and hands it out; a site whose own copy differs is refused.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/deadlines.h"
#include "trainer/config/fields.h"
#include "trainer/config/json_fields.h"

namespace farstep {

enum class ModelPreset { kTiny, k14M, k60M, k150M, kSmolLM2 };
std::span<const std::string_view> enum_names(ModelPreset);
enum class ComputeType { kFP32, kBF16, kFP8 };
std::span<const std::string_view> enum_names(ComputeType);
enum class StepKind { kFused, kAutograd };
std::span<const std::string_view> enum_names(StepKind);
enum class ReductionKind { kBuckets, kMaster };
std::span<const std::string_view> enum_names(ReductionKind);
enum class InnerOptimizer { kAdamW, kSgd };
std::span<const std::string_view> enum_names(InnerOptimizer);
enum class DataOrder { kShuffled, kSequential };
std::span<const std::string_view> enum_names(DataOrder);
enum class AveragingRule { kUniform, kTokens, kBatch, kFedNova, kTokensSquaredPerStep };
std::span<const std::string_view> enum_names(AveragingRule);
enum class Policy { kUniform, kBatchByTflops, kBatchByMemory, kStepsByTflops, kHybrid };
std::span<const std::string_view> enum_names(Policy);
enum class RoundEnd { kSteps, kDeadline };
std::span<const std::string_view> enum_names(RoundEnd);
enum class CodecKind { kFp32, kFp16, kBf16, kInt8, kInt4, kInt2, kTopK };
std::span<const std::string_view> enum_names(CodecKind);
enum class ExchangeKind { kDirect, kParameterServer, kRing };
std::span<const std::string_view> enum_names(ExchangeKind);
enum class PartitionRule { kBytes, kLayer };
std::span<const std::string_view> enum_names(PartitionRule);
enum class SharesRule { kEqual, kBandwidth };
std::span<const std::string_view> enum_names(SharesRule);

// The model: a preset, with single fields replaced. Null members take the preset's value.
struct ModelConfig {
  ModelPreset preset = ModelPreset::kTiny;
  std::optional<int64_t> vocabulary, hidden, intermediate, layers, heads, kv_heads;
  std::optional<double> rope_theta, norm_epsilon;
  std::optional<bool> tied_embeddings;
  double init_std = 0.02;
  std::string from;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("preset", preset, "shape of the model, which the members below change");
    visit("vocabulary", vocabulary, "entries of the embedding", at_least(2));
    visit("hidden", hidden, "width of the residual stream", at_least(2));
    visit("intermediate", intermediate, "width inside the feed-forward", at_least(1));
    visit("layers", layers, "transformer blocks", at_least(1));
    visit("heads", heads, "query heads; divides hidden", at_least(1));
    visit("kv_heads", kv_heads, "key and value heads; divides heads", at_least(1));
    visit("rope_theta", rope_theta, "base of the rotary frequencies", above(0));
    visit("norm_epsilon", norm_epsilon, "epsilon inside RMSNorm", above(0));
    visit("tied_embeddings", tied_embeddings, "the output head is the embedding");
    visit("init_std", init_std, "standard deviation of fresh matrices", above(0));
    visit("from", from,
          "Hugging Face folder (config.json, model.safetensors) to start from, under a site's "
          "models folder if relative; shape members must then be null");
  }
};

struct DataConfig {
  int64_t sequence_length = 1024;
  DataOrder order = DataOrder::kShuffled;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("sequence_length", sequence_length, "tokens of one sequence", at_least(1));
    visit("order", order, "order of the training windows; sequential is for replay");
  }
};

struct InnerConfig {
  InnerOptimizer optimizer = InnerOptimizer::kAdamW;
  double peak_learning_rate = 4e-4;
  double warmup_fraction = 0.05;
  double final_fraction = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  std::optional<double> clip_norm = 1.0;
  ComputeType compute = ComputeType::kFP32;
  StepKind step = StepKind::kFused;
  ReductionKind reduction = ReductionKind::kBuckets;
  bool cuda_graph = true;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("optimizer", optimizer, "adamw; sgd is plain gradient descent, for tests of identities");
    visit("peak_learning_rate", peak_learning_rate, "learning rate at the end of warm-up",
          at_least(0));
    visit("warmup_fraction", warmup_fraction, "share of the run with rising learning rate",
          in_range(0, 0.999));
    visit("final_fraction", final_fraction, "learning rate at the end, as a share of the peak",
          in_range(0, 1));
    visit("beta1", beta1, "decay of the first moment", in_range(0, 0.999999));
    visit("beta2", beta2, "decay of the second moment", in_range(0, 0.999999));
    visit("epsilon", epsilon, "added to the root of the second moment", above(0));
    visit("weight_decay", weight_decay, "decoupled decay of matrices; norms have none",
          at_least(0));
    visit("clip_norm", clip_norm, "largest global gradient norm; null does not clip", above(0));
    visit("compute", compute,
          "type of the matrix products; fp8: as bf16, but e4m3 and e5m2 in the blocks' linear "
          "layers, for GPUs since Ada and Hopper (a CPU plays it); master weights are fp32 always");
    visit("step", step,
          "fused: forward and backward written out, on cpu devices; autograd: by LibTorch");
    visit("reduction", reduction,
          "several devices of a site. buckets: all of them sum the gradients, during backward, and "
          "update; master: the first does both, and hands the values out");
    visit("cuda_graph", cuda_graph,
          "a site's only GPU gets the whole fused step as one CUDA graph instead of kernel by "
          "kernel");
  }
};

struct OuterConfig {
  int64_t rounds = 10;
  double learning_rate = 0.7;
  double momentum = 0.9;
  AveragingRule averaging = AveragingRule::kTokensSquaredPerStep;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("rounds", rounds, "outer rounds of the run", at_least(1));
    visit("learning_rate", learning_rate, "eta of the outer Nesterov step", above(0));
    visit("momentum", momentum, "mu of the outer Nesterov step", in_range(0, 0.999999));
    visit("averaging", averaging, "weight of a site's delta in the mean");
  }
};

struct CodecConfig {
  CodecKind kind = CodecKind::kFp32;
  std::optional<int64_t> block = {};
  double top_fraction = 0.05;
  bool error_feedback = true;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("kind", kind, "how the deltas and their mean travel");
    visit("block", block, "values that share a scale; null is the codec's own choice",
          in_range(1, 65536));
    visit("top_fraction", top_fraction, "share of the values that top_k sends",
          in_range(0.0001, 1));
    visit("error_feedback", error_feedback,
          "what a lossy codec left out of a delta is added to the next one");
  }
};

struct SyncConfig {
  int64_t fragments = 1;
  int64_t delay_steps = 0;
  double alpha = 0;
  bool eager = false;
  ExchangeKind exchange = ExchangeKind::kDirect;
  PartitionRule partition = PartitionRule::kBytes;
  SharesRule shares = SharesRule::kEqual;
  std::vector<std::string> servers;
  CodecConfig codec;
  std::optional<int64_t> lanes;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("fragments", fragments,
          "equal parts of the model that are synced one after the other, spread over the round",
          in_range(1, 1024));
    visit("delay_steps", delay_steps,
          "inner steps (of a site that takes plan.base_steps of them) between sending a delta and "
          "applying the mean, in which training hides the exchange",
          at_least(0));
    visit("alpha", alpha,
          "share of its own values that a site keeps when it applies a delayed mean",
          in_range(0, 0.999999));
    visit("eager", eager,
          "a round's exchange is hidden behind all of the next round; a site counts its own delta "
          "at once (needs one fragment, no delay_steps, alpha 0)");
    visit("exchange", exchange,
          "who adds up the deltas: direct, all sites, each a part; parameter_server, the servers; "
          "ring, Gloo's all-reduce, in fp32 only: a baseline");
    visit("partition", partition,
          "how the model is cut among those who add: in parts of equal bytes, or at tensors");
    visit("shares", shares,
          "how much of the model each site adds up: equal, or as much as its uplink allows");
    visit("servers", servers, "the sites that serve; empty is the first one");
    visit("codec", codec, "how values travel");
    visit(
        "lanes", lanes,
        "connections between two sites; null: as plan.wan_target needs, else 2, or 1 of more than "
        "four sites",
        in_range(1, 64));
  }
};

struct PlanConfig {
  Policy policy = Policy::kUniform;
  int64_t base_steps = 100;
  int64_t base_batch = 4;
  std::optional<int64_t> micro_batch;
  std::optional<int64_t> critical_batch;
  bool replan = true;
  RoundEnd round_end = RoundEnd::kSteps;
  double slack_fraction = 0.01;
  std::optional<double> wan_target;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("policy", policy, "how the sites share the work");
    visit("base_steps", base_steps, "local steps of a round; of the slowest site where they differ",
          at_least(1));
    visit("base_batch", base_batch, "sequences of one inner step of a site", at_least(1));
    visit("micro_batch", micro_batch,
          "sequences of one forward and backward on a device; null leaves it to the policy",
          at_least(1));
    visit("critical_batch", critical_batch,
          "most sequences that all sites' inner steps together may have, up to which hybrid raises "
          "batches; null keeps base_batch",
          at_least(1));
    visit("replan", replan, "hybrid plans every round from the step times of those before");
    visit(
        "round_end", round_end,
        "steps: a site ends a round after its local steps; deadline: when the planned time is up");
    visit("slack_fraction", slack_fraction,
          "by how much of a round its last step may end after the deadline", in_range(0, 0.5));
    visit("wan_target", wan_target,
          "largest share of a round that may be exposed WAN time: from profiled and measured links "
          "the sites choose codec, fragments and delay_steps by it; null leaves sync as it is",
          in_range(1e-6, 0.999999));
  }
};

// A site that takes part, and what it does differently from the plan's base.
struct RunSite {
  std::string name;
  std::optional<int64_t> local_steps, batch, micro_batch;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("name", name, "name of the site, as in its own config", kRequired);
    visit("local_steps", local_steps, "its local steps; null is plan.base_steps", at_least(1));
    visit("batch", batch, "its batch; null is plan.base_batch", at_least(1));
    visit("micro_batch", micro_batch, "its micro-batch; null is plan.micro_batch", at_least(1));
  }
};

struct EvaluateConfig {
  int64_t every_rounds = 1;
  int64_t windows = 64;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("every_rounds", every_rounds, "rounds between two validations; 0 never", at_least(0));
    visit("windows", windows, "validation windows, spread over the set; 0 is all", at_least(0));
  }
};

struct CheckpointConfig {
  int64_t every_rounds = 1;
  int64_t keep = 2;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("every_rounds", every_rounds, "rounds between two checkpoints", at_least(1));
    visit("keep", keep, "newest checkpoints that stay on the disk", at_least(2));
  }
};

struct RunConfig {
  std::string name;
  int64_t seed = 1;
  std::vector<RunSite> sites;
  ModelConfig model;
  DataConfig data;
  InnerConfig inner;
  OuterConfig outer;
  SyncConfig sync;
  PlanConfig plan;
  EvaluateConfig evaluate;
  CheckpointConfig checkpoint;
  Deadlines deadlines;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("name", name, "name of the run", kRequired);
    visit("seed", seed, "seed of the weights and of the data order", at_least(0));
    visit("sites", sites, "the sites that take part; their order gives the site ids",
          required(at_least(1)));
    visit("model", model, "the model");
    visit("data", data, "the data recipe");
    visit("inner", inner, "the inner optimizer");
    visit("outer", outer, "the outer optimizer");
    visit("sync", sync, "what crosses the network, and how");
    visit("plan", plan, "work of a site in a round");
    visit("evaluate", evaluate, "validation of theta_global");
    visit("checkpoint", checkpoint, "checkpoints");
    visit("deadlines", deadlines, "how long anything may take");
  }

  // Index of the site in `sites`; throws ConfigError if it does not take part.
  std::size_t site_id(const std::string& site) const;
};

// Reads and validates a run file's JSON; `file` is for messages.
RunConfig run_config_from_json(const Json& json, const std::string& file);

}  // namespace farstep
