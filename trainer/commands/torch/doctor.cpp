// farstep doctor: examines a site before a run, up to the other sites.
#include <fmt/format.h>

#include <string_view>

#include "trainer/base/system/log.h"
#include "trainer/commands/command_line.h"
#include "trainer/commands/program.h"
#include "trainer/commands/torch/site_checks_text.h"
#include "trainer/commands/torch/torch_command.h"
#include "trainer/doctor/examine.h"
#include "trainer/launch/interrupt.h"
#include "trainer/model/cpu_instructions.h"

namespace farstep {

namespace {

struct DoctorOptions {
  std::string config;
  std::vector<std::string> set;
  bool peers = false, json = false;
  double wait = Examination{}.wait_seconds, seconds = Examination{}.probe_seconds;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("config", config, "the site's config file", kPositional);
    visit("set", set,
          "PATH=VALUE: replaces a value of the config; run.PATH=VALUE one of the run file");
    visit("peers", peers,
          "also test the way to every other site and back, over the run's own addresses and ports: "
          "start `farstep doctor --peers` at all sites at about the same time");
    visit("wait", wait, "seconds to wait for the other sites", in_range(1, 86'400));
    visit("seconds", seconds,
          "about how long the transfer to a peer lasts that counts; all of one direction take 10 "
          "times as long at most",
          in_range(0.05, 60));
    visit("json", json, "print one JSON object instead of lines");
  }
};

constexpr const char* kDetails =
    R"(Each line is ok, a warning, a fault, or what can only be said later; warnings and faults say
what to do. The exit code is 0 without a fault, else that of the worst one. No run may be under way
at the site: its ports are in use then.

Beside the checks below, which are those of `farstep check` and `farstep train`, it looks at
  program      LibTorch and the processor's instructions
  keys         readable by their owner alone, valid, of the run
  clock        set by the network; with --peers also against those of the other sites
  answer       the coordinator, if it is elsewhere
  link         with --peers: connections both ways, round trip, bandwidth
  same data    with --peers: the digests of the data
  disk         the checkpoints that the run keeps
  gpus         driver and memory
)";

struct Report {
  std::string site;
  std::vector<Finding> findings;
  int64_t exit_code = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("site", site, "the site's name");
    visit("findings", findings, "in the order in which they were made");
    visit("exit_code", exit_code, "of the command");
  }
};

}  // namespace

int doctor_command(const Arguments& arguments) {
  const auto options = parse_command_line<DoctorOptions>(
      "doctor", arguments, std::string(kDetails) + site_checks_text("The checks:"));
  if (!options) return 0;
  const auto loaded = load_site(options->config, options->set);
  set_up_log(loaded.site.name, loaded.site.log_level);
  if (const auto set = loaded.site.cpu.instructions) limit_cpu_instructions(*set);
  const Interrupt interrupt("interrupted: ending; once more ends at once");
  RealClock clock;
  Report report{.site = loaded.site.name, .findings = {}, .exit_code = 0};
  const Examination examination{.peers = options->peers,
                                .wait_seconds = options->wait,
                                .probe_seconds = options->seconds,
                                .has_kernels = std::string_view(FARSTEP_CUDA_TEXT) != "none"};
  const bool is_whole =
      examine(loaded, examination, clock, interrupt.token(), [&](const Finding& finding) {
        report.findings.push_back(finding);
        if (options->json) return;
        fmt::print("{}\n", line_of(finding));
        flush_output();  // the next one may take minutes
      });
  report.exit_code = is_whole ? exit_code_of(report.findings) : kExitInterrupted;
  if (options->json) fmt::print("{}\n", to_json(report).dump());
  return static_cast<int>(report.exit_code);
}

}  // namespace farstep
