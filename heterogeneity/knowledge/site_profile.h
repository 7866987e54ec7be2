// The measurements of a site, written by `farstep profile` and read by every planning policy.
//
// Values only; thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/processor/instruction_set.h"
#include "trainer/config/fields.h"
#include "trainer/config/json_fields.h"

namespace farstep::heterogeneity {

// An inner step of one device.
struct StepTime {
  int64_t micro_batch = 0;
  std::optional<int64_t> batch;  // nullopt: one micro-batch
  double seconds = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("micro_batch", micro_batch, "sequences of one forward and backward",
          required(at_least(1)));
    visit("batch", batch, "sequences of the step; null is one micro-batch", at_least(1));
    visit("seconds", seconds, "how long the step takes", required(in_range(1e-9, 1e9)));
  }
};

struct DeviceProfile {
  std::string name;
  std::optional<InstructionSet> instructions;
  std::optional<std::string> products;
  std::optional<double> fp16_tflops, bf16_tflops, tf32_tflops, fp32_tflops;
  std::optional<int64_t> memory_bytes, max_micro_batch;
  std::vector<StepTime> step_seconds;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("name", name, "what the device is", kRequired);
    visit("instructions", instructions,
          "widest vector and matrix instructions that a cpu slice used; null of a GPU");
    visit("products", products, "how a cpu slice made matrix products; null of a GPU");
    visit("fp16_tflops", fp16_tflops, "measured by matrix products in FP16", above(0));
    visit("bf16_tflops", bf16_tflops, "measured in BF16", above(0));
    visit("tf32_tflops", tf32_tflops, "measured in TF32", above(0));
    visit("fp32_tflops", fp32_tflops, "measured in FP32", above(0));
    visit("memory_bytes", memory_bytes, "memory that training may use", at_least(1));
    visit("max_micro_batch", max_micro_batch,
          "most sequences of one forward and backward that fit; 0 if the model does not",
          at_least(0));
    visit("step_seconds", step_seconds, "measured step times");
  }
};

struct LinkProfile {
  std::string peer;
  std::optional<double> rtt_seconds, bandwidth_bits_per_second;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("peer", peer, "name of the other site", kRequired);
    visit("rtt_seconds", rtt_seconds, "round trip", at_least(0));
    visit("bandwidth_bits_per_second", bandwidth_bits_per_second, "from this site to the peer",
          above(0));
  }
};

// The model that was trained in the measurement; step times hold for it only.
struct ProfiledModel {
  int64_t parameters = 0, sequence_length = 0;
  std::string compute;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("parameters", parameters, "parameters of the model", required(at_least(1)));
    visit("sequence_length", sequence_length, "tokens of one sequence", required(at_least(1)));
    visit("compute", compute, "type of the matrix products", kRequired);
  }
  bool operator==(const ProfiledModel&) const = default;
};

// Returns "1000 parameters, sequences of 64, bf16".
std::string text_of(const ProfiledModel& model);

struct SiteProfile {
  std::string site;
  std::optional<ProfiledModel> model;
  std::vector<DeviceProfile> devices;
  std::vector<LinkProfile> links;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("site", site, "name of the site", kRequired);
    visit("model", model, "what was trained in the measurement");
    visit("devices", devices, "the site's devices", required(at_least(1)));
    visit("links", links, "the ways to its peers");
  }
};

// Returns the larger of a device's FP16 and BF16 TFLOPS, by which policies compare devices; nullopt
// if it has neither.
std::optional<double> tflops(const DeviceProfile& device);

// Reads and validates a profile; `file` is for messages. Throws ConfigError with file and JSON
// path.
SiteProfile site_profile_from_json(const Json& json, const std::string& file);

// Reads the profiles of several files. Also throws ConfigError, naming both files, if two are of
// one site or of different models.
std::vector<SiteProfile> read_site_profiles(const std::vector<std::filesystem::path>& files);

}  // namespace farstep::heterogeneity
