#include "trainer/run/session.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/base/file.h"
#include "trainer/base/log.h"
#include "trainer/checkpoint/hf_folder.h"
#include "trainer/checkpoint/train_state.h"
#include "trainer/model/device.h"
#include "trainer/model/make_model.h"
#include "trainer/run/known_sites.h"
#include "trainer/run/model_shape.h"
#include "trainer/strategy/eager_updates.h"
#include "trainer/strategy/low_communication.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

std::string device_text(const DeviceConfig& device) {
  auto text = device.kind == DeviceKind::kCpu ? fmt::format("cpu x{}", device.threads)
                                              : fmt::format("cuda:{}", device.index);
  if (!device.emulate) return text;
  const auto& emulate = *device.emulate;
  if (emulate.times) return text + fmt::format(", played {} times slower", *emulate.times);
  return text + (emulate.step_seconds
                     ? fmt::format(", played at {} s a step", *emulate.step_seconds)
                     : fmt::format(", played at {} s a sequence", *emulate.sequence_seconds));
}

// theta_local of a model, on whatever device.
class ModelTheta : public LocalTheta {
 public:
  explicit ModelTheta(HostMirror& mirror) : mirror_(mirror) {}
  std::span<float> pull(const Range& range) override {
    return mirror_.pull(range.begin, range.size());
  }
  void start_pull(const Range& range) override { mirror_.start_pull(range.begin, range.size()); }
  std::span<float> finish_pull() override { return mirror_.finish_pull(); }
  void push(const Range& range, std::span<const float> values) override {
    mirror_.push(range.begin, values);
  }

 private:
  HostMirror& mirror_;
};

std::vector<TensorPlace> tensor_places(const std::vector<ParameterSpec>& layout) {
  std::vector<TensorPlace> places;
  for (const auto& spec : layout) places.push_back({spec.name, spec.offset});
  return places;
}

std::unique_ptr<Strategy> make_strategy(const RunConfig& run, std::size_t site_id,
                                        Parameters& parameters, const Surroundings& surroundings) {
  const auto theta = parameters.host_values().pull();
  auto places = tensor_places(parameters.layout());
  if (run.sync.eager) {
    return std::make_unique<EagerUpdates>(run, site_id, theta, std::move(places), surroundings);
  }
  return std::make_unique<LowCommunication>(run, site_id, theta, std::move(places), surroundings);
}

}  // namespace

std::unique_ptr<Session> Session::open(const LoadedSite& loaded, bool resume,
                                       const std::stop_token& stop) {
  std::unique_ptr<Session> session(new Session(loaded, resume));
  if (!session->join(loaded, resume, stop)) return nullptr;
  const double stall_seconds = session->run().deadlines.transfer_stall_seconds;
  auto& data_path = session->network_->connect(stall_seconds);
  session->exchange_ = session->network_->make_exchange(stall_seconds);
  session->links_ = std::make_unique<LinkMeters>(data_path);
  session->build_model();
  session->build_planner();
  if (resume) session->restore();
  session->record_start();
  if (!resume) session->retune();
  // The last, as all threads started so far are not to share the first device's cores.
  stay_on_cores(session->cores_.front());
  return session;
}

Session::Session(const LoadedSite& loaded, bool resume)
    : site_(loaded.site),
      cores_(assign_cores(loaded.site.devices, loaded.site.pin, allowed_cores())),
      output_(fs::path(loaded.site.output) / loaded.site.name),
      recorder_(output_, loaded.site.name, clock_),
      training_data_(loaded.site.data, kTrainSplit),
      validation_data_(loaded.site.data, kValidationSplit),
      timer_(clock_) {
  for (const auto& device : site_.devices) speeds_.emplace_back(device.emulate);
  make_folder(output_);
  log_to_file(output_ / "log.txt");
  if (!resume && !list_checkpoints(checkpoint_root()).empty()) {
    throw ConfigError(fmt::format(
        "output: {} holds a run already: --resume continues it; for a new run give another output "
        "or remove it",
        output_.string()));
  }
}

Session::~Session() {
  if (network_) network_->abort(site_.name, "this site ends");
}

bool Session::join(const LoadedSite& loaded, bool resume, const std::stop_token& stop) {
  JoinRequest request;
  request.run = loaded.run;
  request.resume = resume;
  if (resume) {
    for (const auto& entry : resumable_checkpoints(checkpoint_root())) {
      const int64_t syncs = load_progress(entry).syncs;
      auto& offered = request.resumable_syncs;
      if (std::ranges::find(offered, syncs) == offered.end()) offered.push_back(syncs);
    }
  }
  request.facts["data_digest"] = checksum_text(training_data_.digest() ^ validation_data_.digest());
  request.profile = own_profile(site_);
  network_ = SiteNetwork::join(loaded, request, clock_, stop);
  if (!network_) return false;
  write_file_durably(output_ / "run.json", to_json(run()).dump(2) + "\n");
  write_file_durably(output_ / "site.json", to_json(site_).dump(2) + "\n");
  spdlog::info("site config: {}", to_json(site_).dump());
  spdlog::info("run: {}", to_json(run()).dump());
  return true;
}

void Session::build_model() {
  const auto shape = model_shape(site_, run(), std::string(kRunSource));
  if (training_data_.vocabulary() > shape.vocabulary) {
    throw ConfigError(fmt::format("{}: model.vocabulary: is {}; the tokens of {} need at least {}",
                                  kRunSource, shape.vocabulary, site_.data,
                                  training_data_.vocabulary()));
  }
  const auto model_on = [&](std::size_t device) {
    const auto& config = site_.devices[device];
    const auto opened = open_device(config);
    if (device > 0) stay_on_cores(cores_[device]);
    return make_model(shape, opened, run().inner, config.recompute);
  };
  model_ = model_on(0);
  auto& parameters = model_->parameters();
  if (run().model.from.empty()) {
    parameters.initialise(static_cast<uint64_t>(run().seed));
  } else {
    load_parameters(read_hf_folder(model_source(site_, run())),
                    named_parameters(parameters.layout(), parameters.host_values().pull()));
    parameters.host_values().push();
  }
  std::vector<std::unique_ptr<Replica>> replicas;
  for (std::size_t device = 1; device < site_.devices.size(); ++device) {
    replicas.push_back(std::make_unique<Replica>([&] { return model_on(device); }));
  }
  inner_ = std::make_unique<InnerStep>(*model_, run().inner, std::move(replicas));
  theta_local_ = std::make_unique<ModelTheta>(parameters.host_values());
  strategy_ =
      make_strategy(run(), site_id(), parameters, {member(), *exchange_, recorder_, clock_});
  const Sampler sampler(run().data.order, static_cast<uint64_t>(run().seed),
                        training_data_.num_windows(run().data.sequence_length),
                        static_cast<int>(site_id()), static_cast<int>(run().sites.size()));
  loader_ = std::make_unique<Loader>(training_data_, sampler, run().data.sequence_length);
}

void Session::build_planner() {
  const ProfiledModel model{.parameters = model_->parameters().size(),
                            .sequence_length = run().data.sequence_length,
                            .compute = std::string(name_of(run().inner.compute))};
  auto sites = known_sites(run(), network_->welcome(), model);
  balance_ = std::make_unique<DeviceBalance>(
      known_sequence_seconds(sites[site_id()].profile, site_.devices.size()));
  planner_ = std::make_unique<Planner>(run().plan, std::move(sites), std::string(kRunSource));
}

void Session::record_start() {
  const auto& welcome = network_->welcome();
  std::vector<std::string> devices;
  for (const auto& device : site_.devices) devices.push_back(device_text(device));
  recorder_.record(RunEvent{.version = FARSTEP_VERSION,
                            .run = run().name,
                            .site_id = welcome.site_id,
                            .sites = welcome.sites,
                            .devices = std::move(devices),
                            .parameters = model_->parameters().size(),
                            .sequence_length = run().data.sequence_length,
                            .rounds = run().outer.rounds,
                            .generation = welcome.generation,
                            .start_round = position.rounds_done,
                            .start_step = position.steps_done,
                            .start_fragments = strategy_->fragments_applied(),
                            .clock_offset_seconds = member().clock_offset_seconds()});
  spdlog::info("run '{}' as site {} of {}: {} parameters, {} steps of {} sequences a round: {}",
               run().name, site_id() + 1, run().sites.size(), model_->parameters().size(),
               own_plan().local_steps, own_plan().batch, own_plan().reason);
}

void Session::leave(EndOutcome outcome, const std::string& message) {
  recorder_.record(EndEvent{.outcome = outcome, .message = message});
  const bool done = outcome == EndOutcome::kDone;
  // Sites may still be evaluating, or saving what they have.
  network_->leave(done                                  ? Outcome::kDone
                  : outcome == EndOutcome::kInterrupted ? Outcome::kInterrupted
                                                        : Outcome::kFailed,
                  message, done ? run().deadlines.join_seconds : run().deadlines.leave_seconds);
}

}  // namespace farstep
