#include "trainer/data/images/image_data.h"

#include <algorithm>
#include <array>

#include "trainer/base/error.h"
#include "trainer/base/mix.h"
#include "trainer/data/images/cifar_file.h"
#include "trainer/data/images/idx_file.h"

namespace farstep {

namespace fs = std::filesystem;

namespace {

constexpr std::array kIdxFiles{"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                               "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
constexpr std::array kCifarTraining{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                    "data_batch_4.bin", "data_batch_5.bin"};
constexpr const char* kCifarValidation = "test_batch.bin";
constexpr const char* kCompressed = ".gz";

bool is_there(const fs::path& file) {
  std::error_code error;  // what cannot be inspected is not there
  return fs::exists(file, error);
}

// The file of that name, or the compressed one; the former if there is neither.
fs::path idx_file_in(const fs::path& folder, const char* name) {
  const auto plain = folder / name;
  const auto compressed = folder / (std::string(name) + kCompressed);
  return !is_there(plain) && is_there(compressed) ? compressed : plain;
}

bool has_idx(const fs::path& folder) {
  return std::ranges::any_of(kIdxFiles,
                             [&](const char* name) { return is_there(idx_file_in(folder, name)); });
}

bool has_cifar(const fs::path& folder) {
  return is_there(folder / kCifarValidation) ||
         std::ranges::any_of(kCifarTraining,
                             [&](const char* name) { return is_there(folder / name); });
}

void require(const fs::path& file) {
  if (!is_there(file)) {
    throw DataError(
        fmt::format("{}: is missing; the other files of its data set are there", file.string()));
  }
}

LabelledImages read_idx(const fs::path& folder, const char* images, const char* labels) {
  const auto image_file = idx_file_in(folder, images);
  const auto label_file = idx_file_in(folder, labels);
  require(image_file);
  require(label_file);
  return read_idx_images(image_file, label_file);
}

int64_t largest_label(const LabelledImages& images) {
  return *std::ranges::max_element(images.labels);
}

}  // namespace

bool ImageData::is_in(const fs::path& folder) {
  return has_idx(folder) || has_cifar(folder);
}

ImageData::ImageData(const fs::path& folder) {
  const auto refuse = [&](const std::string& why) {
    throw DataError(fmt::format("{}: {}", folder.string(), why));
  };
  const bool is_idx = has_idx(folder);
  const bool is_cifar = has_cifar(folder);
  if (is_idx && is_cifar) refuse("has two data sets, IDX files and CIFAR-10: name a folder of one");
  if (!is_idx && !is_cifar) {
    refuse(
        fmt::format("has no images: neither IDX files ({}, ...) nor CIFAR-10's binary version "
                    "({}, ...)",
                    kIdxFiles.front(), kCifarTraining.front()));
  }
  if (is_idx) {
    training = read_idx(folder, kIdxFiles[0], kIdxFiles[1]);
    validation = read_idx(folder, kIdxFiles[2], kIdxFiles[3]);
  } else {
    for (const auto* name : kCifarTraining) {
      require(folder / name);
      append_cifar_file(folder / name, training);
    }
    require(folder / kCifarValidation);
    append_cifar_file(folder / kCifarValidation, validation);
  }
  if (training.shape != validation.shape) {
    refuse(fmt::format("its images to train on are of {}, those to validate on of {}",
                       training.shape.text(), validation.shape.text()));
  }
  classes = 1 + largest_label(training);
  if (classes < 2) refuse("its images to train on are all of one class");
  if (largest_label(validation) >= classes) {
    refuse(fmt::format("has label {} to validate on, which no image to train on has",
                       largest_label(validation)));
  }
}

uint64_t ImageData::digest() const {
  // Mixed, so that the splits cannot change places.
  return mix(training.digest()) ^ validation.digest();
}

std::string ImageData::text() const {
  return fmt::format("{} images of {} in {} classes to train on, {} to validate on",
                     training.size(), training.shape.text(), classes, validation.size());
}

}  // namespace farstep
