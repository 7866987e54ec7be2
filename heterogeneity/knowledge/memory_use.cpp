#include "heterogeneity/knowledge/memory_use.h"

#include <fmt/format.h>

#include <utility>

#include "trainer/telemetry/figure_text.h"

namespace farstep::heterogeneity {

namespace {

// The kinds in words, in the order in which texts name them.
constexpr std::pair<const char*, int64_t MemoryUse::*> kKinds[] = {
    {"weights", &MemoryUse::weights_bytes},
    {"gradients", &MemoryUse::gradients_bytes},
    {"moments", &MemoryUse::moments_bytes},
    {"outer step and sync", &MemoryUse::outer_bytes},
    {"copy for checkpoints", &MemoryUse::checkpoint_bytes},
    {"activations", &MemoryUse::activations_bytes},
    {"logits", &MemoryUse::logits_bytes},
    {"images", &MemoryUse::data_bytes},
    {"program", &MemoryUse::program_bytes},
};

}  // namespace

int64_t MemoryUse::total() const {
  int64_t sum = 0;
  for (const auto& [name, bytes] : kKinds) sum += this->*bytes;
  return sum;
}

MemoryUse& MemoryUse::operator+=(const MemoryUse& other) {
  for (const auto& [name, bytes] : kKinds) this->*bytes += other.*bytes;
  return *this;
}

std::string text_of(const MemoryUse& use) {
  auto text = bytes_text(use.total());
  const char* separator = ": ";
  for (const auto& [name, bytes] : kKinds) {
    if (use.*bytes == 0) continue;
    text += fmt::format("{}{} {}", separator, name, bytes_text(use.*bytes));
    separator = ", ";
  }
  return text;
}

}  // namespace farstep::heterogeneity
