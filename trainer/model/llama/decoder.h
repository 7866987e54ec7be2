// A LLaMA that reads its text piece by piece. It keeps the keys and values of all positions so far,
// so a new token costs one position instead of all of them.
//
// It computes what Llama::logits() does, with the same types. Where the sizes of its products
// differ their rounding may differ too. Not thread-safe.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "trainer/model/llama/llama.h"

namespace farstep {

class Decoder {
 public:
  // Reads up to `capacity` tokens. Takes the weights as they are now, on their device: in bf16 it
  // copies the matrices, in fp32 those that it joins to larger ones.
  Decoder(Llama& model, ComputeType compute, int64_t capacity);

  // Returns the bytes that one takes of its device, beside those of the model.
  static int64_t bytes_for(const LlamaConfig& config, ComputeType compute, int64_t capacity);

  // Reads ids (T) int64, T above 0, after those read before. Returns the logits (vocabulary) after
  // the last of them, fp32. capacity() must be left for them.
  at::Tensor read(const at::Tensor& ids);

  // Forgets what it has read.
  void clear() { length_ = 0; }

  int64_t length() const { return length_; }  // tokens read
  int64_t capacity() const { return capacity_; }
  at::Device device() const { return embedding_.device(); }

 private:
  struct Block {
    at::Tensor attention_norm;     // (C), fp32, as the other norm
    at::Tensor heads;              // (H D + 2 G D, C): query, key, value
    at::Tensor output;             // (C, H D)
    at::Tensor feed_forward_norm;  // (C)
    at::Tensor gate_up;            // (2 F, C)
    at::Tensor down;               // (C, F)
    at::Tensor keys, values;       // (G, capacity, D); the first length_ positions count
  };

  at::Tensor normalise(const at::Tensor& x, const at::Tensor& weight) const;
  at::Tensor attend(Block& block, const at::Tensor& x);
  at::Tensor feed_forward(const Block& block, const at::Tensor& x) const;

  const LlamaConfig config_;
  const at::ScalarType compute_;
  const int64_t capacity_;
  int64_t length_ = 0;
  RotaryTable rotary_;
  at::Tensor embedding_;  // (V, C), fp32
  std::vector<Block> blocks_;
  at::Tensor final_norm_;  // (C)
  at::Tensor head_;        // (V, C)
};

}  // namespace farstep
