// A site's config: only what is local to the machine. The rest comes with the run file.
//
// Relative paths in a config file are relative to the folder of that file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/fields.h"
#include "trainer/config/json_fields.h"
#include "trainer/config/run_config.h"

namespace farstep {

enum class DeviceKind { kCpu, kCuda };
std::span<const std::string_view> enum_names(DeviceKind);

// From one inner step of the process on, a device plays another speed.
struct SpeedChange {
  int64_t step = 0;
  double times = 1;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("step", step, "from this inner step of the process on, counted from 1",
          required(at_least(1)));
    visit("times", times, "steps last so many times as long as before any change",
          required(above(0)));
  }
};

// Makes a device play a slower one, to try unequal sites on one machine.
struct EmulateConfig {
  std::optional<double> step_seconds = {}, sequence_seconds = {}, times = {};
  std::vector<SpeedChange> changes = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("step_seconds", step_seconds, "an inner step takes at least so long", above(0));
    visit("sequence_seconds", sequence_seconds,
          "an inner step takes at least so long for every sequence of the device's share",
          above(0));
    visit("times", times, "an inner step takes so many times its own time", at_least(1));
    visit("changes", changes, "when the device gets slower or faster, in order of `step`");
  }
};

struct DeviceConfig {
  DeviceKind kind = DeviceKind::kCpu;
  int64_t index = 0;
  int64_t threads = 1;
  std::vector<int64_t> cores = {};
  std::optional<int64_t> memory_bytes;
  bool recompute = false;
  std::optional<EmulateConfig> emulate;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("kind", kind, "cpu is a slice of the processor");
    visit("index", index, "which of the GPUs; 0 for a cpu", at_least(0));
    visit("threads", threads, "threads of a cpu slice", in_range(1, 4096));
    visit(
        "cores", cores,
        "cores, as the system numbers them, that the threads of a cpu slice run on, as many as it "
        "has threads; empty: see pin");
    visit(
        "memory_bytes", memory_bytes,
        "memory that training may use, as `farstep profile` sees it; null: what is free, on a cpu "
        "shared out among the site's slices",
        at_least(1));
    visit("recompute", recompute,
          "keep of every block its input alone and run its forward again in backward: memory for "
          "larger micro-batches, slower steps, the same bits");
    visit("emulate", emulate, "play a slower device");
  }
};

struct CoordinatorAddress {
  std::string endpoint;
  bool host = false;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("endpoint", endpoint, "where the coordinator listens, tcp://ADDRESS:PORT", kRequired);
    visit("host", host, "the coordinator runs inside this site's process");
  }
};

// Makes what a site sends take its time, to try a WAN on one machine.
struct EmulatedLink {
  std::optional<double> rate_bits_per_second;
  double delay_seconds = 0;
  double loss = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("rate_bits_per_second", rate_bits_per_second,
          "what the site sends to all peers together; null: no limit", above(0));
    visit("delay_seconds", delay_seconds, "from this site to a peer, one way", at_least(0));
    visit("loss", loss, "share of the packets that come one round trip late", in_range(0, 1));
  }
};

struct NetworkConfig {
  std::string address;
  std::string interface;
  int64_t port = 0;
  std::string congestion_control;
  std::optional<double> uplink_bits_per_second;
  std::optional<EmulatedLink> emulate;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("address", address, "this machine's IP address that the peers can reach");
    visit("interface", interface, "network interface to take the address from, instead of it");
    visit(
        "port", port,
        "first of the TCP ports (one a peer and lane) that the peers connect to; 0 lets the system "
        "choose",
        in_range(0, 65000));
    visit(
        "congestion_control", congestion_control,
        "the kernel's congestion control, if it has this one; empty: cubic, and bbr where packets "
        "get lost without a queue");
    visit("uplink_bits_per_second", uplink_bits_per_second,
          "what this site may send to all peers together; stated a little below what the line can, "
          "no queue builds up in it. null: no limit",
          above(0));
    visit("emulate", emulate, "play slower links to the peers");
  }
};

struct SiteConfig {
  std::string name;
  std::string run;
  CoordinatorAddress coordinator;
  NetworkConfig network;
  std::vector<DeviceConfig> devices;
  bool pin = false;
  std::string data;
  std::string models = ".";
  std::string profile;
  std::string output;
  std::string log_level = "info";

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("name", name, "name of the site, as in the run file", kRequired);
    visit("run", run,
          "the run file; needed where the coordinator is hosted, else checked against its copy");
    visit("coordinator", coordinator, "where the sites meet", kRequired);
    visit("network", network, "the way to the peers: either address or interface", kRequired);
    visit("devices", devices, "the devices of the site", required(at_least(1)));
    visit(
        "pin", pin,
        "every cpu slice runs on cores of its own, the first that no slice names; not for several "
        "sites on one machine, which would all take the same");
    visit("data", data, "folder of token shards that `farstep tokenize` made", kRequired);
    visit("models", models, "folder under which model.from is looked up");
    visit("profile", profile,
          "what `farstep profile` measured of this site; empty: the plan learns from the rounds");
    visit("output", output, "folder for the run's records; the site writes to a folder of its name",
          kRequired);
    visit("log_level", log_level, "trace, debug, info, warning or error");
  }
};

// A site's config with what belongs to it: the run file's JSON if the site has one.
struct LoadedSite {
  SiteConfig site;          // paths made absolute
  std::optional<Json> run;  // the run config, overrides applied, defaults spelled out
  std::string run_file;     // for messages; empty without one
};

// Loads a site's config and its run file, with --set overrides ("run." reaches into the run file).
// Throws ConfigError with file and JSON path.
LoadedSite load_site(const std::filesystem::path& file, const std::vector<std::string>& overrides);

// Config of `farstep coordinator`: the coordinator alone.
struct CoordinatorConfig {
  std::string run;
  std::string endpoint;
  std::string output;
  std::string log_level = "info";

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("run", run, "the run file", kRequired);
    visit("endpoint", endpoint, "where to listen, tcp://ADDRESS:PORT", kRequired);
    visit("output", output, "folder for the coordinator's log; empty writes none");
    visit("log_level", log_level, "trace, debug, info, warning or error");
  }
};

struct LoadedCoordinator {
  CoordinatorConfig coordinator;
  Json run;
};

// Loads the coordinator's config and its run file, with --set overrides as in load_site.
LoadedCoordinator load_coordinator(const std::filesystem::path& file,
                                   const std::vector<std::string>& overrides);

}  // namespace farstep
