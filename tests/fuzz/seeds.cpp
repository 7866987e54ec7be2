// Writes valid inputs for every fuzz target, as Farstep itself makes them: FOLDER/TARGET/SEED.

#include <fmt/format.h>

#include <cstdio>

#include "heterogeneity/knowledge/site_profile.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/donated_run.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/journal_run.h"
#include "tests/fuzz/record_seeds.h"
#include "tests/support/source_folder.h"
#include "trainer/base/system/file.h"
#include "trainer/checkpoint/train_state.h"
#include "trainer/data/tokenizer/tokenizer_files.h"
#include "trainer/data/tokenizer/train_tokenizer.h"
#include "trainer/data/tokenizer_json/base64.h"
#include "trainer/data/tokens/token_dataset.h"
#include "trainer/probe/site_note.h"
#include "trainer/settings/load_config.h"
#include "wan/lab/lab_spec.h"
#include "wan/link/lab_file.h"
#include "wan/membership/journal.h"
#include "wan/protocol/protocol.h"
#include "wan/roster/roster.h"
#include "wan/transport/link_faults.h"
#include "wan/transport/network_notice.h"
#include "wan/tunnel/frame.h"

using namespace farstep;

namespace {

RunConfig small_run() {
  RunConfig run;
  run.name = "run";
  for (const auto* name : {"a", "b"}) {
    heterogeneity::RunSite site;
    site.name = name;
    run.sites.push_back(site);
  }
  return run;
}

void add_configs(Corpus& corpus) {
  corpus.add("run_config", to_json(small_run()).dump());
  corpus.add("run_config",
             R"({"name":"r","sites":[{"name":"a","local_steps":4}],"plan":{"base_steps":4}})");
  SiteConfig site;
  site.name = "a";
  site.coordinator.endpoint = "tcp://127.0.0.1:1";
  site.network.address = "127.0.0.1";
  site.devices.emplace_back();
  site.data = site.output = "x";
  corpus.add("site_config", to_json(site).dump());
  CoordinatorConfig coordinator;
  coordinator.run = "run.json";
  coordinator.endpoint = "tcp://127.0.0.1:1";
  corpus.add("site_config", to_json(coordinator).dump());
  heterogeneity::SiteProfile profile;
  profile.site = "a";
  profile.model = heterogeneity::ProfiledModel{1000, 64, "bf16"};
  heterogeneity::DeviceProfile device;
  device.name = "cpu";
  device.bf16_tflops = 1;
  device.max_micro_batch = 8;
  device.step_seconds = {{4, 8, 0.25}, {1, std::nullopt, 0.1}};
  profile.devices = {device};
  profile.links = {{"b", 0.1, 1e6}};
  corpus.add("site_profile", to_json(profile).dump());
  corpus.add("lab_file", to_json(wan::LabFile{{{1, "10.77.0.1", "eth0"}}, "control"}).dump());
  wan::LabSpec spec;
  spec.sites.emplace_back();
  corpus.add("lab_file", to_json(spec).dump());
}

void add_endpoints(Corpus& corpus) {
  for (const auto* text :
       {"tcp://203.0.113.10:7400", "tcp://[2001:db8::10]:7400", "tcp://[fe80::1%lo]:7400",
        "tcp://seoul.example:7400", "tcp://*:*", "seoul.example:7400", "[::ffff:10.0.0.1]:0",
        "2001:db8::10", "[::1]", "xn--kln-sna.example", "*", "10.0.0.1"}) {
    corpus.add("endpoint", text);
  }
}

// One message of every kind, as its fields are by default.
template <typename Variant, std::size_t I = 0>
void add_messages(Corpus& corpus, const std::string& target) {
  if constexpr (I < std::variant_size_v<Variant>) {
    corpus.add(target, encode(Variant(std::variant_alternative_t<I, Variant>{})));
    add_messages<Variant, I + 1>(corpus, target);
  }
}

// While sites join, in the exchange of the first sync, and while a site comes back in mid-round.
void add_journals(Corpus& corpus) {
  wan::Roster roster(journal_run(), wan::Deadlines{});
  corpus.add("journal", journal_text(roster.state(), journal_run()));
  for (const auto* site : {"a", "b"}) {
    wan::RegisterMessage request;
    request.site = site;
    roster.receive(site, request, 0);
  }
  roster.receive("a", wan::PutMessage{"key", "00"}, 0);
  for (const auto* site : {"a", "b"})
    roster.receive(site, wan::ArriveMessage{1, 1, 0, {{1, 1, 1}}, "aa"}, 0);
  corpus.add("journal", journal_text(roster.state(), journal_run()));
  for (const auto* site : {"a", "b"}) roster.receive(site, wan::VoteMessage{1, 1, 0, "bb"}, 0);
  roster.receive("b", wan::LeaveMessage{Outcome::kInterrupted, ""}, 0);
  wan::RegisterMessage again;
  again.site = "b";
  roster.receive("b2", again, 0);
  roster.receive("b2", wan::FetchMessage{"10.0.0.2", 4000, "0123456789abcdef0123456789abcdef"}, 0);
  corpus.add("journal", journal_text(roster.state(), journal_run()));
  roster.receive("a", wan::LeaveMessage{Outcome::kFailed, "a full disk"}, 0);
  corpus.add("journal", journal_text(roster.state(), journal_run()));
}

// A stream from its opening to its end, and an ack of the answer.
void add_frames(Corpus& corpus) {
  const auto bytes_of = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  std::string frames;
  for (const auto& frame :
       {wan::encode({wan::FrameKind::kOpen, 1, 0, bytes_of("gloo")}),
        wan::encode({wan::FrameKind::kData, 1, 1, bytes_of("some bytes")}),
        wan::encode_credit(1, 2, 100), wan::encode({wan::FrameKind::kAck, 0, 1}),
        wan::encode({wan::FrameKind::kKeepAlive}), wan::encode({wan::FrameKind::kFinish, 1, 3}),
        wan::encode({wan::FrameKind::kReset, 2, 4})}) {
    frames.append(reinterpret_cast<const char*>(frame.data()), frame.size());
  }
  corpus.add("tunnel", frames);
  const auto hello = encode(wan::Hello{1, 0, 0, 1'000});
  corpus.add("tunnel",
             std::string(reinterpret_cast<const char*>(hello.data()), hello.size()) + frames);
}

void add_network(Corpus& corpus) {
  add_messages<wan::SiteMessage>(corpus, "site_message");
  wan::RegisterMessage registration;
  registration.site = "a";
  registration.run = to_json(small_run());
  registration.states = {{1, "aa", 1, {"a", "b"}}, {2, "bb", {}, {}}};
  registration.facts["digest"] = "aa";
  corpus.add("site_message", encode(wan::SiteMessage(registration)));
  add_messages<wan::CoordinatorMessage>(corpus, "coordinator_message");
  wan::Welcome welcome;
  welcome.run = to_json(small_run());
  welcome.sites = {"a", "b"};
  welcome.first_sites = {{"a", Json()}, {"b", Json()}};
  corpus.add("coordinator_message", encode(wan::CoordinatorMessage(welcome)));
  corpus.add("network_check", text_of(wan::NetworkNotice{"127.0.0.1", "00ff", {0, 4000}, ""}));
  corpus.add("network_check", text_of(wan::NetworkNotice{"::1", "00ff", {}, "cannot listen"}));
  const SiteNote note{
      .links = {{.peer = "a", .rtt_seconds = 0.02, .bandwidth_bits_per_second = 4e7}},
      .clock_offset_seconds = -0.4,
      .data_digest = "0123456789abcdef"};
  corpus.add("site_note", to_json(note).dump());
  corpus.add("network_check",
             text_of(std::vector<wan::LinkFault>{{0, 1, "no way"}, {0, 2, "late"}}));
  corpus.add("network_check", "0123456789abcdef0123456789abcdef\n");
  add_frames(corpus);
  corpus.add("roster", std::string(512, '\0'));
  add_journals(corpus);
  for (char kind = 0; kind < 8; ++kind)
    corpus.add("codec", std::string(1, kind) + "\x40 any bytes");
}

void add_files_of_model(Corpus& corpus) {
  std::vector<float> weights(6);
  std::vector<int64_t> counts(2);
  const NamedBuffers buffers{
      {"weights", DType::kF32, {2, 3}, std::as_writable_bytes(std::span(weights))},
      {"counts", DType::kI64, {2}, std::as_writable_bytes(std::span(counts))}};
  TrainState state;
  state.progress.run = "run";
  state.progress.site = "a";
  state.progress.round = 1;
  state.progress.theta_hash = "00";
  state.progress.step_seconds = {0.5};
  state.global = state.outer = state.site = buffers;
  const auto folder = save_checkpoint(scratch_folder() / "saved", state).entry.folder;
  corpus.add("checkpoint",
             read_file(folder / "state.json") + '\0' + read_file(folder / "manifest.json"));
  const auto file = read_file(folder / "site.safetensors");
  corpus.add("safetensors", file);
  corpus.add(
      "safetensors",
      R"({"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"F16","shape":[],"data_offsets":[4,6]}})"
      "\nabcdef");
  corpus.add("safetensors", R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})");
  corpus.add("hf_index", std::string(R"({"tie_word_embeddings":true})") + '\0' +
                             R"({"weight_map":{"a":"shard"},"metadata":{}})");
  corpus.add("hf_index", std::string("{}") + '\0' + R"({"weight_map":{}})");
  corpus.add(
      "hf_config",
      std::string(
          R"({"model_type":"llama","architectures":["LlamaForCausalLM"],"vocab_size":64,"hidden_size":32,"intermediate_size":24,"num_hidden_layers":2,"num_attention_heads":2,"num_key_value_heads":1,"head_dim":16,"max_position_embeddings":512,"rms_norm_eps":1e-5,"rope_theta":10000.0,"rope_scaling":{"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":64},"bos_token_id":1,"eos_token_id":[2,3],"pad_token_id":-1,"tie_word_embeddings":true,"hidden_act":"silu","attention_bias":false})") +
          '\0' + R"({"model":{"vocab":{"a":0,"b":1}},"added_tokens":[{"id":2,"content":"c"}]})");
  corpus.add(
      "hf_config",
      std::string(
          R"({"model_type":"llama","vocab_size":64,"hidden_size":32,"intermediate_size":24,"num_hidden_layers":2,"num_attention_heads":2,"rope_parameters":{"rope_type":"default","rope_theta":5e5},"layer_types":["full_attention"],"sliding_window":null,"eos_token_id":null})") +
          '\0' + R"({"model":{"vocab":[["a",-1.5]]}})");
}

// The rule that makes "c" of "a", as a table of SentencePiece has it.
std::string one_rule() {
  std::vector<uint32_t> units(512);
  constexpr uint32_t kHasValue = 1 << 8;
  units[0] = 256 << 10;  // children of the root are at 256 and the byte
  const std::size_t node = 256 ^ 'a';
  units[node] = 'a' | kHasValue | static_cast<uint32_t>(node ^ 1) << 10;
  units[1] = 1U << 31;  // the value begins at byte 0
  const auto bytes = static_cast<uint32_t>(units.size() * sizeof(uint32_t));
  std::string table(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  table.append(reinterpret_cast<const char*>(units.data()), bytes);
  return table + std::string("c\0", 2);
}

// Pieces with scores, and each step that a normalizer of such files has.
void add_unigram(Corpus& corpus) {
  const Json table = {{"type", "Precompiled"}, {"precompiled_charsmap", base64_text(one_rule())}};
  const Json spaces = {
      {"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", "\u2581"}};
  const Json begin = {{"id", 1}, {"content", "<s>"}, {"special", true}};
  const Json strip = {{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}};
  const Json pieces = Json::array(
      {{"<unk>", 0}, {"<s>", 0}, {"\u2581", -2.5}, {"day", -3.25}, {"d", -4}, {"\u2581n", -5}});
  corpus.add("tokenizer_json",
             Json{{"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", pieces}}},
                  {"normalizer", {{"type", "Sequence"}, {"normalizers", {table, strip, spaces}}}},
                  {"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "\u2581"}}},
                  {"post_processor", {{"type", "BertProcessing"}, {"cls", {"<s>", 1}}}},
                  {"added_tokens", Json::array({begin})}}
                 .dump());
}

// Kinds with every part that is read: bytes by an expression, and characters with byte fallback.
void add_tokenizer_json(Corpus& corpus) {
  const Json end = {{"id", 5}, {"content", "<s>"}, {"special", true}, {"rstrip", true}};
  const Json model = {{"type", "BPE"},
                      {"vocab", {{"a", 0}, {"d", 1}, {"ad", 2}, {"\u0120", 3}, {"\u2581", 4}}},
                      {"merges", {"a d"}},
                      {"unk_token", "a"},
                      {"fuse_unk", true}};
  const Json split = {
      {"type", "Split"},
      {"pattern", {{"Regex", R"((?i:'s)|[^\r\n\p{L}]?\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+)"}}},
      {"behavior", "Isolated"},
      {"invert", false}};
  const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", false}};
  const Json before = {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
  const Json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const Json frame = {{"type", "TemplateProcessing"},
                      {"single", {before, text}},
                      {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {5}}}}}}};
  corpus.add("tokenizer_json",
             Json{{"model", model},
                  {"normalizer", {{"type", "NFC"}}},
                  {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}}},
                  {"post_processor", {{"type", "Sequence"}, {"processors", {bytes, frame}}}},
                  {"added_tokens", Json::array({end})}}
                 .dump());
  corpus.add("tokenizer_json",
             Json{{"model", model},
                  {"normalizer", {{"type", "Prepend"}, {"prepend", "\u2581"}}},
                  {"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "\u2581"}}},
                  {"added_tokens", Json::array({end})}}
                 .dump());
}

void add_parquet(Corpus& corpus) {
  const auto folder = source_folder() / "tests/golden/parquet";
  for (const auto* name : {"snappy", "gzip", "zstd", "brotli", "lz4", "pages", "version2", "delta",
                           "binary", "required", "empty", "bytes", "kinds"}) {
    corpus.add("parquet", read_file(folder / fmt::format("{}.parquet", name)));
  }
}

void add_data(Corpus& corpus) {
  for (const int64_t vocabulary : {100, 100'000}) {
    const auto shard = scratch_folder() / shard_name(kTrainSplit, 0);
    ShardWriter writer(shard, vocabulary, 1);
    writer.append(std::vector<int32_t>(20, 3));
    writer.finish();
    corpus.add("token_shard", read_file(shard));
  }
  int lines = 0;
  const auto model = scratch_folder() / kTokenizerFile.data();
  train_tokenizer(
      [&]() -> std::optional<std::string> {
        if (lines++ == 20) return std::nullopt;
        return fmt::format("line {} of a small text, day and night", lines);
      },
      300, model);
  corpus.add("tokenizer", read_file(model));
  add_tokenizer_json(corpus);
  add_unigram(corpus);
  add_parquet(corpus);
  corpus.add("text_file",
             "{\"text\": \"a\\ud83d\\ude00\\n\", \"b\": [1.5e-3, NaN, {}]}\n[1, null]\n");
  corpus.add("text_file", "\xef\xbb\xbfOne text.\n\nOf two parts.\n");
  corpus.add("images", std::string("\0\0\10\2\0\0\0\2\0\0\0\3abcdef", 18));
  corpus.add("images", std::string("\7") + std::string(3072, 'p'));
}

// The state after the first round, and with settings of the syncs that were chosen since.
void add_states(Corpus& corpus) {
  const auto configs = donated_configs();
  for (std::size_t kind = 0; kind < configs.size(); ++kind) {
    const std::string first(1, static_cast<char>(kind));
    DonatedRun donor(configs[kind]);
    donor.run.position.rounds_done = 1;
    donor.run.position.windows.reserve(2, "s0", 0, 4, 40);
    corpus.add("shared_state", first + donor.state());
    const std::vector<double> shares{0.5, 0.25, 0.25};
    donor.run.strategy.retune(configs[kind].sync, shares);
    donor.run.reduction_shares = shares;
    corpus.add("shared_state", first + donor.state());
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: fuzz_seeds FOLDER\n", stderr);
    return 2;
  }
  Corpus corpus(arguments[1]);
  add_configs(corpus);
  add_endpoints(corpus);
  add_network(corpus);
  add_files_of_model(corpus);
  add_data(corpus);
  add_events(corpus);
  add_records(corpus);
  add_states(corpus);
  return 0;
}
