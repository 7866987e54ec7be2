#include "trainer/settings/family_check.h"

#include <algorithm>
#include <set>

namespace farstep {

namespace {

// Refuses members of `value` that differ from the default, except `own` ones.
template <HasFields T>
void require_defaults(const T& value, const std::set<std::string>& own, const JsonPath& path,
                      const std::string& why) {
  const auto given = to_json(value);
  const auto defaults = to_json(T{});
  for (const auto& [name, member] : given.items()) {
    if (!own.contains(name) && member != defaults.at(name)) path.member(name).fail(why);
  }
}

// The members that a net has beside those of every net.
std::set<std::string> own_members(ImageNet net) {
  switch (net) {
    case ImageNet::kResNet18:
      return {};
    case ImageNet::kVgg16:
      return {"dense"};
    case ImageNet::kPyramidNet:
      return {"depth", "alpha"};
  }
  throw InternalError("no such net");
}

void check_net(const ImageModelConfig& net, const JsonPath& path) {
  auto own = own_members(net.preset);
  own.insert({"preset", "width", "norm_groups", "pixels"});
  require_defaults(net, own, path,
                   fmt::format("is no member of {}; remove it", name_of(net.preset)));
  if (net.depth && (*net.depth - 2) % 6 != 0) {
    path.member("depth").fail(
        fmt::format("is {}; must be 6 n + 2: three stages of n blocks of two layers, and two more",
                    *net.depth));
  }
  const auto widths = net.dense.value_or(std::vector<int64_t>{});
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (kDenseWidths.allow(static_cast<double>(widths[i]))) continue;
    path.member("dense").element(i).fail(
        fmt::format("is {}; must be {}", widths[i], kDenseWidths.text()));
  }
}

void check_images(const RunConfig& run, const std::string& file) {
  const JsonPath model{file, "model"};
  require_defaults(run.model, {"family", "images"}, model,
                   "is of a language model; a run of family images sets model.images instead");
  check_net(run.model.images, model.member("images"));
  require_defaults(run.data, {"order", "images"}, {file, "data"},
                   "is of a language model: an image has one target, its label; remove it");
  const auto& deviation = run.data.images.deviation;
  if (std::ranges::any_of(deviation, [](double value) { return value <= 0; })) {
    JsonPath{file, "data.images.deviation"}.fail("has a value that is not above 0");
  }
  if (run.inner.compute == ComputeType::kFP8) {
    JsonPath{file, "inner.compute"}.fail(
        "is fp8, which only language models have; set it to bf16 or fp32");
  }
}

void check_language(const RunConfig& run, const std::string& file) {
  const std::string why = "is for runs of images; set model.family to images, or remove it";
  require_defaults(run.model.images, {}, {file, "model.images"}, why);
  require_defaults(run.data.images, {}, {file, "data.images"}, why);
}

}  // namespace

void check_family(const RunConfig& run, const std::string& file) {
  if (run.is_of_images()) {
    check_images(run, file);
  } else {
    check_language(run, file);
  }
}

}  // namespace farstep
