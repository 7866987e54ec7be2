// The layers of convolutional nets. A net is one function over them (nets.h). With one source of
// weights the function lists the net's parameters, with another it computes: so the two cannot
// differ.
//
// Normalisation is group norm (Wu and He 2018), where the papers of the nets have batch norm. Batch
// norm makes what a net computes depend on the other images of a micro-batch. Here sites and
// devices have micro-batches of different sizes, which the planner changes between rounds; each
// site would train another function, and keep other running statistics, than theta_global has.
// Averaged statistics belong to none of the averaged nets. Group norm has neither: gradients add up
// exactly over micro-batches, devices and sites, and the parameters are all that a checkpoint and
// an evaluation need. Sites have no running statistics to bring together. Hsieh et al. 2020
// (section 5) find that batch norm fails where sites train apart on different data, and group norm
// does not.
//
// Convolutions and dense layers multiply in one type, fp32 or bf16, of which their results are. All
// else is in fp32. Not thread-safe.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

namespace farstep {

// What goes from layer to layer: the shape for one image, and the values of a batch.
struct Feature {
  int64_t channels = 0, height = 1, width = 1;
  at::Tensor values = {};  // (B, channels, height, width); undefined while a net is only listed
};

// Where layers take their parameters from. A net asks for each of them once, in the order of the
// layout. Results are undefined while a net is only listed.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // Returns a convolution or a hidden matrix: its first side is that of the outputs. It is
  // multiplied with `positions` inputs of an image.
  virtual at::Tensor weight(const std::string& name, const std::vector<int64_t>& shape,
                            int64_t positions) = 0;
  // Returns a matrix with a row for each class.
  virtual at::Tensor head(const std::string& name, const std::vector<int64_t>& shape) = 0;
  // Returns a vector that begins with one value.
  virtual at::Tensor constant(const std::string& name, int64_t size, double value) = 0;
};

struct Convolution {
  int64_t outputs = 0;
  int64_t kernel = 3;
  int64_t stride = 1;
};

// The layers with parameters. The name of a parameter is that of its layer with ".weight" or
// ".bias".
class Layers {
 public:
  // Products are in `products`; a normalisation has at most `norm_groups` groups. `weights` must
  // outlive this.
  Layers(WeightSource& weights, at::ScalarType products, int64_t norm_groups,
         const std::stop_token& stop)
      : weights_(weights), products_(products), norm_groups_(norm_groups), stop_(stop) {}

  // A square kernel without bias; padding keeps the size at stride 1. Throws Stopped if a stop is
  // requested.
  Feature convolution(const std::string& name, const Feature& x, const Convolution& shape) const;
  // Group norm, with a factor for each channel that begins at `factor`, and a bias.
  Feature norm(const std::string& name, const Feature& x, double factor = 1) const;
  // (B, outputs) of all values of x, with a bias. Throws Stopped likewise.
  Feature dense(const std::string& name, const Feature& x, int64_t outputs) const;
  // The same, with an output for each class.
  Feature head(const std::string& name, const Feature& x, int64_t classes) const;

 private:
  Feature linear(const std::string& name, const Feature& x, const at::Tensor& weight,
                 int64_t outputs) const;

  WeightSource& weights_;
  const at::ScalarType products_;
  const int64_t norm_groups_;
  const std::stop_token stop_;
};

// Returns how many groups of a normalisation there are: the most that divide the channels, up to
// `most`, with two channels or more in each. 1 if there are none such.
int64_t groups_of(int64_t channels, int64_t most);

Feature relu(const Feature& x);
// Adds `shortcut`, with zeros for the channels that only x has.
Feature add(const Feature& x, const Feature& shortcut);
// Half the height and width, rounded up: the largest, or the mean, of every 2 x 2 pixels.
Feature max_pool(const Feature& x);
Feature mean_pool(const Feature& x);
// The mean of all pixels.
Feature mean(const Feature& x);
// The image at `pixels` x `pixels`, interpolated linearly.
Feature scale_to(const Feature& x, int64_t pixels);

}  // namespace farstep
