// farstep init: writes the files of a new run, from flags or from answers on a terminal.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <sstream>

#include "trainer/base/error.h"
#include "trainer/base/processor/usable_cores.h"
#include "trainer/commands/command_line.h"
#include "trainer/data/tokens/token_dataset.h"
#include "trainer/init/config_files.h"
#include "trainer/init/next_steps.h"
#include "trainer/init/questions.h"
#include "trainer/model/shape/llama_config.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

struct InitOptions {
  std::string output, run, host, data, model_from;
  std::vector<std::string> sites;
  std::optional<ModelPreset> preset;
  std::vector<std::string> device;
  std::optional<int64_t> threads, rounds, base_steps, base_batch, micro_batch, sequence_length;
  bool no_keys = false, force = false;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("output", output, "folder to write; left out: the run's name");
    visit("run", run, "name of the run");
    visit(
        "sites", sites,
        "the sites, each as NAME=ADDRESS or NAME=ADDRESS:PORT; with keys one may be a NAME alone: "
        "a site behind NAT, which needs no open port");
    visit("host", host,
          "the site in whose process the coordinator runs; left out: the first with an address");
    visit("data", data, "folder of the data, at the same place at every site");
    visit(
        "preset", preset,
        "shape of the model: tiny, 14m, 60m, 150m or smollm2-135m; left out: tiny on cpu, 150m on "
        "cuda");
    visit(
        "model_from", model_from,
        "Hugging Face folder to start from, instead of --preset; at the same place at every site");
    visit("device", device,
          "cpu or cuda of every site, or NAME=cpu and NAME=cuda of single ones; left out: cpu");
    visit("threads", threads, "of a cpu device; left out: as many as this process has cores here",
          in_range(1, 4096));
    visit("rounds", rounds, "outer rounds; left out: 20 on cpu, 200 on cuda", at_least(1));
    visit("base_steps", base_steps, "local steps of a round; left out: 50 on cpu, 500 on cuda",
          at_least(1));
    visit("base_batch", base_batch, "sequences of a site's step; left out: 8 on cpu, 64 on cuda",
          at_least(1));
    visit("micro_batch", micro_batch, "sequences at once on a device; left out: 8 on cuda",
          at_least(1));
    visit("sequence_length", sequence_length,
          "tokens of a sequence; left out: 128 on cpu, 1024 on cuda", at_least(1));
    visit("no_keys", no_keys, "plain TCP, for one machine or a private network");
    visit("force", force, "replace config files that exist; keys that exist stay");
  }
};

constexpr const char* kInitDetails =
    R"(On a terminal it asks for what is missing. Otherwise --run, --sites and --data must be there.
It writes run.json, a config a site and with keys the folder keys/, and prints what to do next.
Edit the files as you like. docs/guide/several_machines.md explains them, and
`farstep check FILE` finds what is wrong.
)";

// Returns what is wrong with an answer that `use` takes; empty if it takes it.
template <typename Use>
std::string objection(const Use& use) {
  try {
    use();
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

std::string first_with_address(const std::vector<PlannedSite>& sites) {
  const auto found =
      std::ranges::find_if(sites, [](const PlannedSite& site) { return !site.address.empty(); });
  return (found == sites.end() ? sites.front() : *found).name;
}

// What is known when the sites are.
InitPlan plan_of_sites(const InitOptions& options) {
  InitPlan plan;
  plan.run = options.run;
  for (const auto& text : options.sites) plan.sites.push_back(parse_planned_site(text));
  plan.host = options.host.empty() ? first_with_address(plan.sites) : options.host;
  plan.has_keys = !options.no_keys;
  return plan;
}

// Judged with the sites before it, so that no mistake waits for the last question. That no site
// has an address may still be mended by the next one.
std::string objection_to_site(InitOptions options, const std::string& text) {
  return objection([&] {
    options.sites.push_back(text);
    const auto plan = plan_of_sites(options);
    if (!site_of(plan, plan.host).address.empty()) check_plan(plan);
  });
}

std::string objection_to_number(const std::string& text) {
  const bool is_number = text.find_first_not_of("0123456789") == std::string::npos;
  return is_number && text.size() < 10 && text != "0" ? "" : "give a number, at least 1";
}

std::string objection_to_name(std::span<const std::string_view> names, const std::string& text) {
  if (std::ranges::find(names, text) != names.end()) return "";
  return fmt::format("one of {}", fmt::join(names, ", "));
}

template <NamedEnum E>
E value_named(const std::string& text) {
  const auto names = enum_names(E{});
  return static_cast<E>(std::ranges::find(names, text) - names.begin());
}

void ask_number(Questions& questions, const std::string& question, std::optional<int64_t>& value,
                int64_t fallback) {
  if (value) return;
  value = std::stoll(questions.ask(question, std::to_string(fallback), /*may_be_empty=*/false,
                                   objection_to_number));
}

// Asks for all that the flags leave open.
void ask_for_the_rest(InitOptions& options, Questions& questions) {
  const auto ask = [&](std::string& value, const std::string& question,
                       const std::string& fallback) {
    if (value.empty()) value = questions.ask(question, fallback);
  };
  ask(options.run, "Name of the run", "mine");
  ask(options.output, "Folder to write", options.run);
  if (options.sites.empty()) {
    while (true) {
      const auto site = questions.ask(
          options.sites.empty() ? "First site, as NAME=ADDRESS" : "Next site, empty when done", "",
          !options.sites.empty(),
          [&](const std::string& text) { return objection_to_site(options, text); });
      if (site.empty()) break;
      options.sites.push_back(site);
    }
    while (!options.no_keys) {
      if (questions.ask_yes("Keys, so that links are encrypted", true)) break;
      auto plan = plan_of_sites(options);
      plan.has_keys = false;
      const auto why_not = objection([&] { check_plan(plan); });
      options.no_keys = why_not.empty();
      if (!options.no_keys) std::cout << "  " << why_not << "\n";
    }
  }
  ask(options.data, "Folder of the data", "data/" + options.run);
  auto sites = plan_of_sites(options);
  if (options.device.empty()) {
    options.device = words_of(questions.ask(
        "Devices: cpu or cuda, or NAME=cpu NAME=cuda for single sites", "cpu", false,
        [&](const auto& text) { return objection([&] { set_devices(sites, words_of(text)); }); }));
  }
  set_devices(sites, options.device);
  const auto& defaults = work_defaults(best_device(sites));
  if (!options.preset && options.model_from.empty()) {
    const auto presets = enum_names(ModelPreset{});
    const auto model = questions.ask(
        fmt::format("Model: {}, or a folder to start from", fmt::join(presets, ", ")),
        std::string(name_of(defaults.preset)), false, [&](const std::string& text) -> std::string {
          if (fs::is_directory(text)) return "";
          const auto objection = objection_to_name(presets, text);
          return objection.empty() ? "" : objection + ", or a folder that is here";
        });
    if (objection_to_name(presets, model).empty()) {
      options.preset = value_named<ModelPreset>(model);
    } else {
      options.model_from = model;
    }
  }
  ask_number(questions, "Rounds", options.rounds, defaults.rounds);
  ask_number(questions, "Local steps of a round", options.base_steps, defaults.base_steps);
  ask_number(questions, "Sequences of a step", options.base_batch, defaults.base_batch);
}

void require_all(const InitOptions& options) {
  const std::pair<const char*, bool> needed[] = {{"--run", options.run.empty()},
                                                 {"--sites", options.sites.empty()},
                                                 {"--data", options.data.empty()}};
  for (const auto& [flag, is_missing] : needed) {
    if (!is_missing) continue;
    throw ConfigError(fmt::format(
        "farstep init: {} is missing; give it, or start on a terminal, where init asks", flag));
  }
}

// Returns the vocabulary that the model needs, if the data is here and has more tokens than the
// preset.
std::optional<int64_t> vocabulary_of(const std::string& data, ModelPreset preset) {
  if (!fs::is_directory(data) || !TokenDataset::has_split(data, kTrainSplit)) return std::nullopt;
  const auto vocabulary = TokenDataset(data, kTrainSplit).vocabulary();
  if (vocabulary <= preset_config(preset).vocabulary) return std::nullopt;
  return vocabulary;
}

InitPlan plan_of(const InitOptions& options) {
  auto plan = plan_of_sites(options);
  plan.data = options.data;
  plan.model_from = options.model_from;
  set_devices(plan, options.device);
  const auto& defaults = work_defaults(best_device(plan));
  plan.preset = options.preset.value_or(defaults.preset);
  plan.threads = options.threads.value_or(usable_cores());
  plan.rounds = options.rounds.value_or(defaults.rounds);
  plan.base_steps = options.base_steps.value_or(defaults.base_steps);
  plan.base_batch = options.base_batch.value_or(defaults.base_batch);
  plan.micro_batch = options.micro_batch ? options.micro_batch : defaults.micro_batch;
  // A batch that is smaller than the default has no larger part.
  if (plan.micro_batch) plan.micro_batch = std::min(*plan.micro_batch, plan.base_batch);
  plan.sequence_length = options.sequence_length.value_or(defaults.sequence_length);
  if (plan.model_from.empty()) plan.vocabulary = vocabulary_of(plan.data, plan.preset);
  return plan;
}

}  // namespace

int init_command(const Arguments& arguments) {
  auto options = parse_command_line<InitOptions>("init", arguments, kInitDetails);
  if (!options) return 0;
  if (options->preset && !options->model_from.empty()) {
    throw ConfigError("farstep init: give either --preset or --model-from");
  }
  const bool is_whole = !options->run.empty() && !options->sites.empty() && !options->data.empty();
  if (!is_whole && ::isatty(STDIN_FILENO) == 1) {
    Questions questions(std::cin, std::cout);
    ask_for_the_rest(*options, questions);
  }
  require_all(*options);
  if (!fs::is_directory(options->data)) {
    spdlog::warn(
        "--data {}: there is no such folder here, so run.json has the vocabulary of the model's "
        "preset: `farstep check` says where that does not fit the data",
        options->data);
  }
  if (options->output.empty()) options->output = options->run;
  const auto plan = plan_of(*options);
  const auto folder = fs::path(options->output).lexically_normal();
  write_run_folder(plan, folder, options->force);
  const Here here{.folder = fs::current_path(),
                  .has_data = fs::is_directory(plan.data) &&
                              (plan.model_from.empty() || fs::is_directory(plan.model_from))};
  fmt::print("Wrote {}: run.json", folder.string());
  for (const auto& site : plan.sites) fmt::print(", {}.json", site.name);
  fmt::print("{}\n\n{}", plan.has_keys ? ", keys/" : "", next_steps(plan, folder, here));
  return 0;
}

}  // namespace farstep
