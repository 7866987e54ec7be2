// The order is that of need: what the machine is, what the site alone can find, the way to the
// others, and then what needs the run, which may come from them.
#include "trainer/doctor/examine.h"

#include <torch/csrc/api/include/torch/version.h>

#include "trainer/base/checksum.h"
#include "trainer/base/processor/usable_cores.h"
#include "trainer/doctor/clocks.h"
#include "trainer/doctor/coordinator_answer.h"
#include "trainer/doctor/gpus.h"
#include "trainer/doctor/keys.h"
#include "trainer/doctor/meeting_findings.h"
#include "trainer/doctor/room.h"
#include "trainer/doctor/site_findings.h"
#include "trainer/model/cpu_instructions.h"
#include "trainer/peers/site_peers.h"

namespace farstep {

namespace {

// What does not come at once over the internet does not come.
constexpr double kAnswerSeconds = 5;
constexpr std::string_view kNetworkCheck = "network";  // of site_checks()
constexpr const char* kNeedsKeys = "needs keys that are in order";

Finding program_finding() {
  return ok("program",
            fmt::format("LibTorch {}; instructions: {}", TORCH_VERSION, cpu_instructions_text()));
}

class Doctor {
 public:
  Doctor(const LoadedSite& loaded, const Examination& examination, Clock& clock,
         const std::stop_token& stop, const Tell& tell)
      : loaded_(loaded),
        examination_(examination),
        clock_(clock),
        stop_(stop),
        tell_(tell),
        site_(loaded),
        had_run_(site_.run.has_value()) {}

  bool run() {
    tell_(program_finding());
    const auto keys = key_finding(loaded_.site, site_.run);
    tell_(keys);
    const bool has_good_keys = keys.grade != Grade::kFault;
    make_checks(/*needing_run=*/had_run_, has_good_keys);
    tell_(clock_finding(system_clock()));
    tell_(core_finding(loaded_.site.devices, usable_cores()));
    if (stop_.stop_requested()) return false;
    if (!has_good_keys) {
      tell_({examination_.peers ? "peers" : "answer", Grade::kLater, kNeedsKeys, 0});
    } else if (examination_.peers) {
      if (!meet()) return false;
    } else {
      ask_coordinators();
    }
    if (stop_.stop_requested()) return false;
    if (!had_run_) make_checks_of_run();
    tell_room();
    return true;
  }

 private:
  void make_checks(bool needing_run, bool has_good_keys) {
    for (const auto& check : site_checks()) {
      if (check.needs_run && !needing_run) continue;
      if (check.name == kNetworkCheck && !has_good_keys) {
        tell_({std::string(check.name), Grade::kLater, kNeedsKeys, 0});
      } else {
        tell_(site_finding(check, site_));
      }
      if (stop_.stop_requested()) return;
    }
  }

  void make_checks_of_run() {
    for (const auto& check : site_checks()) {
      if (check.needs_run) tell_(site_finding(check, site_));
    }
  }

  void ask_coordinators() {
    const auto own = loaded_.site.hosted_coordinator();
    const auto coordinators = loaded_.site.coordinators();
    for (std::size_t i = 0; i < coordinators.size(); ++i) {
      if (i == own) continue;
      tell_(coordinator_answer(loaded_.site, coordinators[i], kAnswerSeconds, clock_));
      if (stop_.stop_requested()) return;
    }
  }

  // Returns false if a stop was requested meanwhile.
  bool meet() {
    const double begin = clock_.now_seconds();
    try {
      const auto meeting = meet_sites(loaded_,
                                      {.command = "doctor",
                                       .seconds = examination_.probe_seconds,
                                       .wait_seconds = examination_.wait_seconds,
                                       .data_digest = digest()},
                                      clock_, stop_);
      if (!meeting) return false;
      if (!had_run_) {
        site_.run = meeting->run;
        site_.run_source = std::string(kRunSource);
      }
      for (const auto& finding : meeting_findings(*meeting, parameters())) tell_(finding);
    } catch (const Error& error) {
      for (const auto& finding : failed_meeting_findings(error)) tell_(finding);
      // If nobody came in all that time, the coordinator may say why.
      if (clock_.now_seconds() - begin >= examination_.wait_seconds) ask_coordinators();
    }
    return true;
  }

  // Empty if the site has none that can be read, which its own check has told.
  std::string digest() {
    try {
      const auto digest = site_.digest();
      return digest ? checksum_text(*digest) : "";
    } catch (const Error&) {
      return "";
    }
  }

  std::optional<int64_t> parameters() const {
    if (!site_.layout) return std::nullopt;
    return num_parameters(*site_.layout);
  }

  void tell_room() {
    std::optional<MemoryNeeds> needs;
    if (site_.layout && site_.run) {
      needs = memory_needs(site_.in_run(), *site_.layout, site_.work ? site_.work->micro_batch : 0);
      const auto folder = loaded_.site.folder();
      tell_(finding_of("disk", [&] {
        return disk_finding(needs->disk_bytes, kept_checkpoints(*site_.run), disk_room(folder),
                            folder);
      }));
    }
    tell_(gpu_finding(read_gpu_driver(), loaded_.site, examination_.has_kernels, needs));
  }

  const LoadedSite& loaded_;
  const Examination& examination_;
  Clock& clock_;
  const std::stop_token& stop_;
  const Tell& tell_;
  CheckedSite site_;
  const bool had_run_;
};

}  // namespace

bool examine(const LoadedSite& loaded, const Examination& examination, Clock& clock,
             const std::stop_token& stop, const Tell& tell) {
  return Doctor(loaded, examination, clock, stop, tell).run();
}

}  // namespace farstep
