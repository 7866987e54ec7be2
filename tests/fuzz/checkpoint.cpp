// state.json and manifest.json of a checkpoint: the input's two parts, with a zero between them.

#include "tests/fuzz/fuzz_input.h"
#include "trainer/base/system/file.h"
#include "trainer/checkpoint/train_state.h"

using namespace farstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const auto input = text_of(data, size);
  const auto state = input.substr(0, input.find('\0'));
  const auto root = scratch_folder() / "checkpoints";
  const CheckpointEntry entry{root / "round-00001", 1, 0};
  make_folder(entry.folder);
  write_file(entry.folder / "state.json", state);
  write_file(entry.folder / "manifest.json", input.substr(std::min(state.size() + 1, size)));
  accept_or_refuse([&] { load_progress(entry); });
  resumable_checkpoints(root);  // takes it, or skips it with a warning
  return 0;
}
