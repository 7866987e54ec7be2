// The profile as a person reads it: what the devices reach, how their steps fit a line, and the
// links.
#include "trainer/commands/torch/profile_text.h"

#include <fmt/format.h>

#include "heterogeneity/knowledge/step_time.h"
#include "trainer/report/report_text.h"
#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

std::string tflops_text(const std::optional<double>& tflops) {
  return tflops ? fmt::format("{:.4g}", *tflops) : "-";
}

Table device_table(const heterogeneity::SiteProfile& profile) {
  Table table{
      .title = "Devices of " + profile.site + ": TFLOPS, memory and what fits into it",
      .header = {"device", "instructions", "FP16", "BF16", "TF32", "FP32", "memory", "micro-batch"},
      .rows = {}};
  for (const auto& device : profile.devices) {
    table.rows.push_back(
        {{device.name, device.instructions ? std::string(name_of(*device.instructions)) : "-",
          tflops_text(device.fp16_tflops), tflops_text(device.bf16_tflops),
          tflops_text(device.tf32_tflops), tflops_text(device.fp32_tflops),
          device.memory_bytes ? bytes_text(*device.memory_bytes) : "-",
          device.max_micro_batch ? count_text(*device.max_micro_batch) : "-"}});
  }
  return table;
}

// The fit stands beside the measurements, so that a reader sees how far to trust the planner's
// line.
std::string step_text(const heterogeneity::DeviceProfile& device,
                      const heterogeneity::StepTimeFit& fit) {
  Table table{.title = "Steps of " + device.name,
              .header = {"batch", "micro-batch", "seconds", "fitted"},
              .rows = {}};
  for (const auto& step : device.step_seconds) {
    const int64_t batch = step.batch.value_or(step.micro_batch);
    table.rows.push_back(
        {{count_text(batch), count_text(step.micro_batch), fmt::format("{:.4f}", step.seconds),
          fmt::format("{:.4f}", fit.line_seconds(batch, step.micro_batch))}});
  }
  return table_text(table, kReportColumns) +
         fmt::format(
             "fit: {:.4g} s a step, {:.4g} s a micro-batch, {:.4g} s a sequence; off by "
             "{:.1f} % at most\n",
             fit.step_seconds, fit.micro_batch_seconds, fit.sequence_seconds,
             100 * fit.relative_error);
}

Table link_table(const heterogeneity::SiteProfile& profile) {
  Table table{
      .title = "Links of " + profile.site, .header = {"to", "round trip ms", "Mbit/s"}, .rows = {}};
  for (const auto& link : profile.links) {
    table.rows.push_back(
        {{link.peer, fmt::format("{:.3f}", 1e3 * link.rtt_seconds.value_or(0)),
          fmt::format("{:.1f}", link.bandwidth_bits_per_second.value_or(0) / 1e6)}});
  }
  return table;
}

}  // namespace

std::string profile_text(const heterogeneity::SiteProfile& profile) {
  std::string text = table_text(device_table(profile), kReportColumns);
  for (const auto& device : profile.devices) {
    // An interrupted probe may have no step times.
    if (const auto fit = fit_step_time(device.step_seconds)) {
      text += "\n" + step_text(device, *fit);
    }
  }
  if (!profile.links.empty()) text += "\n" + table_text(link_table(profile), kReportColumns);
  return text;
}

}  // namespace farstep
