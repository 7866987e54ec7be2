// The events of a site's record that tell of syncs, links and members (event.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outer_optimizer/codec/codec_config.h"
#include "trainer/config/fields.h"

namespace farstep {

struct SyncEvent {
  static constexpr std::string_view kName = "sync";
  static constexpr std::string_view kDoc = "a committed sync of one fragment of the model";
  int64_t round = 0, fragment = 0;
  double wait_seconds = 0, wan_seconds = 0;
  double exposed_wait_seconds = 0, exposed_wan_seconds = 0;
  int64_t bytes_sent = 0, saturated = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "its round", required(at_least(1)));
    visit("fragment", fragment, "its fragment, from 0", required(at_least(0)));
    visit("wait_seconds", wait_seconds,
          "from the delta's being taken until all sites had taken theirs", required(at_least(0)));
    visit("wan_seconds", wan_seconds, "from then until all sites had the mean",
          required(at_least(0)));
    visit("exposed_wait_seconds", exposed_wait_seconds,
          "the part of wait_seconds in which the site did not train", required(at_least(0)));
    visit("exposed_wan_seconds", exposed_wan_seconds, "the same part of wan_seconds",
          required(at_least(0)));
    visit("bytes_sent", bytes_sent, "payload sent to peers, as Farstep counted it",
          required(at_least(0)));
    visit("saturated", saturated,
          "values of the site's delta that are larger than the codec can send, and travel as its "
          "largest",
          at_least(0));
  }
};

struct LinkEvent {
  static constexpr std::string_view kName = "link";
  static constexpr std::string_view kDoc =
      "the link to a peer in a committed outer round, or all links of the site together";
  int64_t round = 0;
  std::optional<std::string> peer = {};
  int64_t bytes_sent = 0, bytes_received = 0, socket_bytes_sent = 0, retransmitted_bytes = 0;
  double sending_seconds = 0;
  std::optional<double> bits_per_second = {}, rtt_seconds = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "its round", required(at_least(1)));
    visit("peer", peer, "the other site; null: all peers together", kRequired);
    visit("bytes_sent", bytes_sent, "payload sent to it, as Farstep counted it",
          required(at_least(0)));
    visit("bytes_received", bytes_received, "payload received from it, likewise",
          required(at_least(0)));
    visit("socket_bytes_sent", socket_bytes_sent,
          "bytes sent on the connections to it, as the kernel counted them", required(at_least(0)));
    visit("retransmitted_bytes", retransmitted_bytes, "bytes that had to be sent again",
          required(at_least(0)));
    visit("sending_seconds", sending_seconds, "time in which something was being sent to it",
          required(at_least(0)));
    visit("bits_per_second", bits_per_second,
          "measured speed of the link; null if it is not measured yet", required(at_least(0)));
    visit("rtt_seconds", rtt_seconds,
          "round trip at the end of the round, the longest one of all; null if not known",
          required(at_least(0)));
  }
};

struct SyncChangeEvent {
  static constexpr std::string_view kName = "sync_change";
  static constexpr std::string_view kDoc = "the sites change how they sync";
  int64_t round = 0;
  outer_optimizer::CodecKind codec = outer_optimizer::CodecKind::kFp32;
  int64_t fragments = 1, delay_steps = 0;
  std::vector<double> shares = {};
  std::string reason = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "the first round that is synced so", required(at_least(1)));
    visit("codec", codec, "how values travel", kRequired);
    visit("fragments", fragments, "parts of the model that are synced one after the other",
          required(at_least(1)));
    visit("delay_steps", delay_steps,
          "inner steps between sending a delta and applying the mean, of a site that takes the "
          "base steps",
          required(at_least(0)));
    visit("shares", shares,
          "share of the model that each site reduces, by its place; empty: as in the run file",
          kRequired);
    visit("reason", reason, "why", kRequired);
  }
};

struct ViewEvent {
  static constexpr std::string_view kName = "view";
  static constexpr std::string_view kDoc =
      "a new generation of the membership: a site was lost or has joined, or a connection broke";
  int64_t round = 0, generation = 0;
  std::vector<std::string> members = {};
  std::optional<std::string> lost = {}, joined = {}, reason = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "the first round that was synced among its members",
          required(at_least(1)));
    visit("generation", generation, "version of the membership", required(at_least(0)));
    visit("members", members, "the sites that belong to it", required(at_least(1)));
    visit("lost", lost, "the site with whose loss it began; null: with none", kRequired);
    visit("joined", joined, "the site with which it began, and which trains from the next round on",
          kRequired);
    visit("reason", reason,
          "why the site was lost, or which connection broke; null: no reason is known", kRequired);
  }
};

struct OutlierEvent {
  static constexpr std::string_view kName = "outlier";
  static constexpr std::string_view kDoc =
      "a delta that is out of proportion, in a committed sync; every member records it";
  int64_t round = 0, fragment = 0;
  std::string delta_of;
  bool is_left_out = false;
  std::string reason;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "its round", required(at_least(0)));
    visit("fragment", fragment, "its fragment", required(at_least(0)));
    visit("delta_of", delta_of, "the site whose delta it is", kRequired);
    visit("is_left_out", is_left_out, "whether the mean was made without it", kRequired);
    visit("reason", reason, "what is out of proportion, as the end of a sentence on the delta",
          kRequired);
  }
};

}  // namespace farstep
