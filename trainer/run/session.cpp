#include "trainer/run/session.h"

#include <spdlog/spdlog.h>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/base/file.h"
#include "trainer/base/log.h"
#include "trainer/checkpoint/hf_folder.h"
#include "trainer/checkpoint/train_state.h"
#include "trainer/model/device.h"
#include "trainer/strategy/low_communication.h"
#include "wan/transport/local_address.h"
#include "wan/transport/network_check.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRunSource = "the run that the coordinator handed out";

// The deadlines that hold until the run is known.
Deadlines deadlines_of(const LoadedSite& loaded) {
  return loaded.run ? run_config_from_json(*loaded.run, loaded.run_file).deadlines : Deadlines{};
}

std::string device_text(const DeviceConfig& device) {
  auto text = device.kind == DeviceKind::kCpu ? fmt::format("cpu x{}", device.threads)
                                              : fmt::format("cuda:{}", device.index);
  if (!device.emulate) return text;
  const auto& emulate = *device.emulate;
  return text + (emulate.times ? fmt::format(", played {} times slower", *emulate.times)
                               : fmt::format(", played at {} s a step", *emulate.step_seconds));
}

fs::path model_folder(const SiteConfig& site, const RunConfig& run) {
  return fs::path(site.models) / run.model.from;
}

LlamaConfig shape_of(const SiteConfig& site, const RunConfig& run) {
  const std::string source(kRunSource);
  if (run.model.from.empty()) return resolve(run.model, source);
  require_no_shape(run.model, source);
  const auto folder = model_folder(site, run);
  return from_hugging_face(read_hf_folder(folder).config, (folder / "config.json").string());
}

}  // namespace

std::unique_ptr<Session> Session::open(const LoadedSite& loaded, bool resume,
                                       const std::stop_token& stop) {
  std::unique_ptr<Session> session(new Session(loaded, resume));
  if (!session->join(loaded, resume, stop)) return nullptr;
  session->connect();
  session->build_model();
  if (resume) session->restore();
  session->record_start();
  return session;
}

Session::Session(const LoadedSite& loaded, bool resume)
    : site_(loaded.site),
      output_(fs::path(loaded.site.output) / loaded.site.name),
      recorder_(output_, loaded.site.name, clock_),
      training_data_(loaded.site.data, kTrainSplit),
      validation_data_(loaded.site.data, kValidationSplit),
      speed_(loaded.site.devices.front().emulate, clock_) {
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
  if (member_) member_->on_peer_lost({});  // it would abort a transport that is gone
}

bool Session::join(const LoadedSite& loaded, bool resume, const std::stop_token& stop) {
  const auto deadlines = deadlines_of(loaded);
  if (site_.coordinator.host) {
    coordinator_ =
        std::make_unique<Coordinator>(site_.coordinator.endpoint, *loaded.run, deadlines, clock_);
  }
  member_ = std::make_unique<Member>(site_.coordinator.endpoint, site_.name, deadlines, clock_);
  JoinRequest request;
  request.run = loaded.run;
  request.resume = resume;
  if (resume) {
    for (const auto& entry : resumable_checkpoints(checkpoint_root())) {
      request.resumable_rounds.push_back(entry.round);
    }
  }
  request.facts["data_digest"] = checksum_text(training_data_.digest() ^ validation_data_.digest());
  const auto welcome = member_->join(request, stop);
  if (!welcome) return false;
  welcome_ = *welcome;
  run_ = run_config_from_json(welcome_.run, std::string(kRunSource));
  plan_ = uniform_plan(run_, std::string(kRunSource));
  write_file_durably(output_ / "run.json", to_json(run_).dump(2) + "\n");
  write_file_durably(output_ / "site.json", to_json(site_).dump(2) + "\n");
  spdlog::info("site config: {}", to_json(site_).dump());
  spdlog::info("run: {}", to_json(run_).dump());
  return true;
}

void Session::connect() {
  const MeshOptions mesh{.rank = static_cast<int>(welcome_.site_id),
                         .sites = welcome_.sites,
                         .address = resolve_address(site_.network.address, site_.network.interface),
                         .port = static_cast<int>(site_.network.port),
                         .generation = static_cast<uint64_t>(welcome_.generation),
                         .connect_seconds = run_.deadlines.connect_seconds};
  const auto links = check_network(mesh, *member_);
  transport_ =
      std::make_unique<GlooTransport>(mesh, links, run_.deadlines.transfer_stall_seconds, *member_);
  member_->on_peer_lost([this](const std::string& site, const std::string& reason) {
    transport_->abort(site, reason);
  });
  exchange_ = std::make_unique<DirectExchange>(*transport_, codec_);
  for (std::size_t peer = 0; peer < links.size(); ++peer) {
    if (peer == site_id()) continue;
    spdlog::info("link to {}: round trip {:.2f} ms", mesh.sites[peer],
                 1e3 * links[peer].rtt_seconds);
  }
}

void Session::build_model() {
  const auto shape = shape_of(site_, run_);
  if (training_data_.vocabulary() > shape.vocabulary) {
    throw ConfigError(fmt::format("{}: model.vocabulary: is {}; the tokens of {} need at least {}",
                                  kRunSource, shape.vocabulary, site_.data,
                                  training_data_.vocabulary()));
  }
  const auto device = open_device(site_.devices.front());
  model_ = std::make_unique<Llama>(shape, device, run_.inner.compute);
  auto& parameters = model_->parameters();
  if (run_.model.from.empty()) {
    parameters.initialise(static_cast<uint64_t>(run_.seed));
  } else {
    load_parameters(read_hf_folder(model_folder(site_, run_)),
                    named_parameters(parameters.layout(), parameters.host_values().pull()));
    parameters.host_values().push();
  }
  inner_ = std::make_unique<InnerStep>(*model_, run_.inner);
  strategy_ = std::make_unique<LowCommunication>(
      run_.outer, site_id(), parameters.host_values().pull(), *member_, *exchange_, recorder_,
      [&parameters](int64_t index) { return parameter_at(parameters.layout(), index); });
  const Sampler sampler(run_.data.order, static_cast<uint64_t>(run_.seed),
                        training_data_.num_windows(run_.data.sequence_length),
                        static_cast<int>(site_id()), static_cast<int>(run_.sites.size()));
  loader_ = std::make_unique<Loader>(training_data_, sampler, run_.data.sequence_length);
}

void Session::record_start() {
  recorder_.record(RunEvent{.version = FARSTEP_VERSION,
                            .run = run_.name,
                            .site_id = welcome_.site_id,
                            .sites = welcome_.sites,
                            .device = device_text(site_.devices.front()),
                            .parameters = model_->parameters().size(),
                            .sequence_length = run_.data.sequence_length,
                            .rounds = run_.outer.rounds,
                            .generation = welcome_.generation,
                            .start_round = position.rounds_done,
                            .start_step = position.steps_done,
                            .local_steps = own_plan().local_steps,
                            .clock_offset_seconds = member_->clock_offset_seconds()});
  spdlog::info("run '{}' as site {} of {}: {} parameters, {} steps of {} sequences a round",
               run_.name, site_id() + 1, run_.sites.size(), model_->parameters().size(),
               own_plan().local_steps, own_plan().batch);
}

void Session::leave(EndOutcome outcome, const std::string& message) {
  recorder_.record(EndEvent{.outcome = outcome, .message = message});
  const bool done = outcome == EndOutcome::kDone;
  member_->leave(done                                  ? Outcome::kDone
                 : outcome == EndOutcome::kInterrupted ? Outcome::kInterrupted
                                                       : Outcome::kFailed,
                 message);
  // The others may still be evaluating, or saving what they have.
  const double patience_seconds = done ? run_.deadlines.join_seconds : run_.deadlines.leave_seconds;
  if (coordinator_ && !coordinator_->wait_until_over(patience_seconds)) {
    spdlog::warn("not all sites have left after {} s; the coordinator ends all the same",
                 patience_seconds);
  }
}

}  // namespace farstep
