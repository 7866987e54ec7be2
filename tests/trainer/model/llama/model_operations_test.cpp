#include "tests/bench/model_operations.h"

#include "tests/support/catch.h"

using namespace farstep;

// Counted by hand: a block has 4 x 8 x 8 in attention, 3 x 8 x 16 in the MLP and 2 x 8 in norms, so
// 656. Two blocks, the last norm and the head are 1312 + 8 + 80 parameters. The embedding is a
// look-up.
TEST_CASE("a step's operations are counted with causal attention and with all of it") {
  LlamaConfig shape{
      .vocabulary = 10, .hidden = 8, .intermediate = 16, .layers = 2, .heads = 2, .kv_heads = 2};
  const auto one_token = step_operations(shape, 1, 4);
  CHECK(one_token.causal == 6 * 1400 + 6 * 2 * 8 * 4);
  CHECK(one_token.full == 6 * 1400 + 12 * 2 * 8 * 4);
  const auto tokens = step_operations(shape, 12, 4);
  CHECK(tokens.causal == 12 * one_token.causal);
  CHECK(tokens.full == 12 * one_token.full);
  // A tied embedding is the head: its parameters count as often as the head's did.
  shape.tied_embeddings = true;
  CHECK(step_operations(shape, 1, 4).causal == one_token.causal);
  // Half as many heads of keys and values: their matrices shrink, and no score is saved.
  shape.kv_heads = 1;
  CHECK(step_operations(shape, 1, 4).causal == one_token.causal - 6 * 2 * 2 * 8 * 4);
}

TEST_CASE("the 150m preset costs 1.169 or 1.244 billion operations a token of 1024") {
  const auto token = step_operations(preset_config(ModelPreset::k150M), 1, 1024);
  // 182,215,680 parameters without the embedding of 32000 x 1024; 12 layers, 1024 wide.
  CHECK(token.causal == 6.0 * 182'215'680 + 6.0 * 12 * 1024 * 1024);
  CHECK(token.causal == 1'168'791'552);
  CHECK(token.full == 1'244'289'024);
}
