// A site's config: only settings that are local to the machine. All others are in the run file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/fields.h"
#include "trainer/data/data_config.h"
#include "trainer/model/device_config.h"
#include "wan/link/emulated_link.h"

namespace farstep {

// One of the coordinators of a run.
struct CoordinatorPlace {
  std::string endpoint;
  std::string site;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("endpoint", endpoint, "where it listens, tcp://HOST:PORT", kRequired);
    visit("site", site,
          "the site in whose process it runs; of one in a process of its own, with network.keys: "
          "the name that its key has");
  }
};

// Where the coordinators of the run are: the only one, or the first and its stand-bys.
struct CoordinatorAddress {
  std::string endpoint;
  std::vector<CoordinatorPlace> endpoints;
  bool host = false;
  std::string site;
  std::string journal;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("endpoint", endpoint,
          "where the coordinator listens, tcp://HOST:PORT; HOST is a name, an IPv4 address, or an "
          "IPv6 address in brackets; where it is hosted also *, all addresses of the machine");
    visit("endpoints", endpoints,
          "instead of endpoint, host and site: the first coordinator and its stand-bys, the same "
          "list at all sites");
    visit("host", host, "the coordinator runs inside this site's process");
    visit(
        "site", site,
        "with network.keys: the site whose key the coordinator has; not needed where it is hosted");
    visit(
        "journal", journal,
        "where it is hosted: file from which a restarted coordinator goes on with its run; empty: "
        "coordinator.journal in the site's folder");
  }
};

// The site's address, ports and limits on sending.
struct NetworkConfig {
  std::string address;
  std::string interface;
  int64_t port = 0;
  std::string keys;
  std::string listen;
  std::string congestion_control;
  std::optional<double> uplink_bits_per_second;
  std::optional<wan::EmulatedLink> emulate;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("address", address, "this machine's IP address or name that the peers can reach");
    visit("interface", interface, "network interface to take the address from, instead of it");
    visit("port", port,
          "first of the TCP ports (one a peer and lane) that the peers connect to; with keys the "
          "only "
          "one; 0 lets the system choose",
          in_range(0, 65000));
    visit(
        "keys", keys,
        "folder that `farstep keys` made for this site: all that crosses the network is encrypted, "
        "over one port, and only sites of the run are let in; empty: plain TCP, for private "
        "networks");
    visit("listen", listen,
          "with keys: the address to listen on, if it is not the one that the peers connect to (as "
          "behind a router that forwards the port); * is all addresses of the machine");
    visit(
        "congestion_control", congestion_control,
        "the kernel's congestion control, if it has this one; empty: cubic, and bbr where packets "
        "get lost without a queue");
    visit("uplink_bits_per_second", uplink_bits_per_second,
          "what this site may send to all peers together; stated a little below what the line can, "
          "no queue builds up in it. null: no limit",
          above(0));
    visit("emulate", emulate, "emulate slower links to the peers");
  }
};

// What the site does with the round under way when it is asked to stop.
struct StopConfig {
  double hand_in_seconds = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("hand_in_seconds", hand_in_seconds,
          "it ends its round at once, and hands in the steps that it has done: from the signal on "
          "it waits at most so long for the other sites at the sync. 0: it leaves before the sync, "
          "and the others go on without these steps. It does so too before its first step of a "
          "round, until the sites are measured, and while the run pauses",
          in_range(0, 1e6));
  }
};

struct SiteConfig {
  std::string name;
  std::string run;
  CoordinatorAddress coordinator;
  NetworkConfig network;
  CpuConfig cpu;
  std::vector<DeviceConfig> devices;
  bool pin = false;
  std::string data;
  std::vector<DataFolder> mixture;
  std::string models = ".";
  std::string profile;
  std::string output;
  StopConfig stop;
  std::string log_level = "info";

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("name", name, "name of the site, as in the run file", kRequired);
    visit("run", run,
          "the run file; needed where the coordinator is hosted, else checked against its copy");
    visit("coordinator", coordinator, "where the sites meet", kRequired);
    visit(
        "network", network,
        "the way to the peers: either address or interface; with keys possibly neither, if no peer "
        "can connect to this site",
        kRequired);
    visit("cpu", cpu, "how the processor is used");
    visit(
        "devices", devices,
        "the devices of the site; a site that serves alone needs none, and updates its copy of the "
        "model with one thread, or on the one device that is given");
    visit(
        "pin", pin,
        "every cpu slice runs on cores of its own, the first that no slice names; not for several "
        "sites on one machine, which would all take the same");
    visit(
        "data", data,
        "folder of token shards that `farstep tokenize` made; of a run of images: of IDX files, "
        "as MNIST has them, or of CIFAR-10's binary version; a site that serves alone needs none, "
        "except with images, which decide the net's shape; with strategy.scatter the master alone "
        "needs it");
    visit("mixture", mixture,
          "in place of data: several folders of token shards that one tokenizer made, from which "
          "training takes its windows by weight; the same list at all sites");
    visit("models", models, "folder under which model.from is looked up");
    visit("profile", profile,
          "what `farstep profile` measured of this site; empty: the plan learns from the rounds");
    visit("output", output, "folder for the run's records; the site writes to a folder of its name",
          kRequired);
    visit("stop", stop, "what becomes of the round under way when the site is asked to stop");
    visit("log_level", log_level, "trace, debug, info, warning or error");
  }

  // Returns the folder that this site writes to: its own one in `output`.
  std::filesystem::path folder() const { return std::filesystem::path(output) / name; }
  // Returns the folders of data, with their weights: of `data` or `mixture`, or none.
  std::vector<DataFolder> data_folders() const;
  // Returns the coordinators of the run in their order, however they are given.
  std::vector<CoordinatorPlace> coordinators() const;
  // Returns which of them runs in this site's process; nullopt: none.
  std::optional<std::size_t> hosted_coordinator() const;

  // Throws ConfigError, naming `file` and the member, if members contradict each other.
  void validate(const std::string& file) const;
};

}  // namespace farstep
