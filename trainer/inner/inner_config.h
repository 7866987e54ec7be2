// Settings of the inner optimizer and of an inner step (`inner` of a run file).
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "trainer/config/fields.h"
#include "trainer/inner/muon/muon_config.h"
#include "trainer/inner/optimizer/adamw_config.h"
#include "trainer/model/shape/model_config.h"
#include "trainer/rate/rate_config.h"

namespace farstep {

enum class InnerOptimizer { kAdamW, kMuon, kSgd };
inline std::span<const std::string_view> enum_names(InnerOptimizer) {
  static constexpr std::array<std::string_view, 3> kNames{"adamw", "muon", "sgd"};
  return kNames;
}

enum class ReductionKind { kBuckets, kMaster };
inline std::span<const std::string_view> enum_names(ReductionKind) {
  static constexpr std::array<std::string_view, 2> kNames{"buckets", "master"};
  return kNames;
}

struct InnerConfig {
  InnerOptimizer optimizer = InnerOptimizer::kAdamW;
  AdamWConfig adamw;
  MuonConfig muon;
  RateConfig rate;
  std::optional<double> clip_norm = 1.0;
  ComputeType compute = ComputeType::kAuto;
  StepKind step = StepKind::kFused;
  ReductionKind reduction = ReductionKind::kBuckets;
  bool cuda_graph = true;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("optimizer", optimizer,
          "adamw; muon: for the hidden matrices momentum whose updates are made orthogonal, adamw "
          "for the rest; sgd: plain gradient descent, for tests of identities");
    visit("adamw", adamw, "settings of adamw");
    visit("muon", muon, "settings of muon");
    rate.fields(visit);
    visit("clip_norm", clip_norm, "largest global gradient norm; null does not clip", above(0));
    visit(
        "compute", compute,
        "type of the matrix products, at all sites; auto: bf16 where a site of the run has a GPU, "
        "else fp32, which is many times slower on a GPU; fp8: as bf16, but e4m3 and e5m2 in the "
        "blocks' linear layers, for GPUs since Ada and Hopper (a CPU emulates it); master weights "
        "are fp32 always");
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

}  // namespace farstep
