// Whether the work of a fuzz target grows with its input alone. Each valid input grows in many
// ways: an array by more elements, an object by more members, a text by more letters, all of it by
// copies. Twice as much of it may take little more than twice the work.
//
// Work is counted in comparisons of numbers, which the compiler has instrumented, in bytes that are
// compared as a block, and in bytes of new memory. So it is the same each time, on every machine.

#include <fmt/format.h>
#include <sanitizer/allocator_interface.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "trainer/base/system/file.h"
#include "trainer/config/json_fields.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size);

namespace {

uint64_t work = 0;

void count_memory(const volatile void* /*address*/, std::size_t bytes) {
  work += bytes / 16;
}
void ignore(const volatile void* /*address*/) {}

}  // namespace

// What clang calls at comparisons (-fsanitize=fuzzer-no-link), and AddressSanitizer at memcmp().
extern "C" {
void __sanitizer_cov_trace_cmp1(uint8_t, uint8_t) {
  ++work;
}
void __sanitizer_cov_trace_cmp2(uint16_t, uint16_t) {
  ++work;
}
void __sanitizer_cov_trace_cmp4(uint32_t, uint32_t) {
  ++work;
}
void __sanitizer_cov_trace_cmp8(uint64_t, uint64_t) {
  ++work;
}
void __sanitizer_cov_trace_const_cmp1(uint8_t, uint8_t) {
  ++work;
}
void __sanitizer_cov_trace_const_cmp2(uint16_t, uint16_t) {
  ++work;
}
void __sanitizer_cov_trace_const_cmp4(uint32_t, uint32_t) {
  ++work;
}
void __sanitizer_cov_trace_const_cmp8(uint64_t, uint64_t) {
  ++work;
}
void __sanitizer_cov_trace_switch(uint64_t, uint64_t*) {
  ++work;
}
void __sanitizer_weak_hook_memcmp(void*, const void*, const void*, std::size_t bytes, int) {
  work += bytes / 16;
}
}

namespace farstep {

namespace {

constexpr std::size_t kTimes = 2000;  // and twice as many
// In proportion it is 2, of a sort 2.2, and up to 2.6 where a large table doubles its memory in
// between; of a square it is 4.
constexpr double kMostRatio = 2.7;
// Small tables that double, and a first use of something, come and go.
constexpr double kAllowance = 200'000;

struct Growth {
  std::string what;
  std::function<std::string(std::size_t times)> input;
};

// Other texts in each copy, as two elements of one name may be refused.
Json numbered(Json value, std::size_t number) {
  if (value.is_string()) return value.get<std::string>() + std::to_string(number);
  if (value.is_structured()) {
    for (auto& part : value) part = numbered(part, number);
  }
  return value;
}

using Grow = void (*)(Json& node, std::size_t times);

void add_copies(Json& array, std::size_t times) {
  const Json last = array.empty() ? Json(0) : array.back();
  for (std::size_t i = 0; i < times; ++i) array.push_back(last);
}
void add_numbered(Json& array, std::size_t times) {
  const Json last = array.empty() ? Json("a") : array.back();
  for (std::size_t i = 0; i < times; ++i) array.push_back(numbered(last, i));
}
void add_empty_objects(Json& array, std::size_t times) {
  for (std::size_t i = 0; i < times; ++i) array.push_back(Json::object());
}
void add_members(Json& object, std::size_t times) {
  auto& members = object.get_ref<Json::object_t&>();
  const std::string name = members.empty() ? "a" : members.back().first;
  const Json value = members.empty() ? Json::object() : members.back().second;
  members.reserve(members.size() + times);
  for (std::size_t i = 0; i < times; ++i) {
    members.emplace_back(name + std::to_string(i), numbered(value, i));
  }
}
void add_letters(Json& text, std::size_t times) {
  text.get_ref<std::string&>().append(times, 'a');
}

struct Way {
  const char* name;
  Json::value_t type;
  Grow grow;
};
constexpr std::array kWays{Way{"copies", Json::value_t::array, add_copies},
                           Way{"numbered elements", Json::value_t::array, add_numbered},
                           Way{"empty objects", Json::value_t::array, add_empty_objects},
                           Way{"members", Json::value_t::object, add_members},
                           Way{"letters", Json::value_t::string, add_letters}};

// A part of an input that is JSON, with what is around it.
struct JsonPart {
  std::string before;
  Json json;
  std::string after;

  std::string with(const Json& grown) const {
    return before + grown.dump(-1, ' ', false, Json::error_handler_t::replace) + after;
  }
};

void add_ways(const JsonPart& part, const Json::json_pointer& place, std::vector<Growth>& growths) {
  const Json& node = part.json[place];
  for (const auto& way : kWays) {
    if (node.type() != way.type) continue;
    growths.push_back({fmt::format("'{}' by {}", place.to_string(), way.name),
                       [part, place, grow = way.grow](std::size_t times) {
                         auto grown = part.json;
                         grow(grown[place], times);
                         return part.with(grown);
                       }});
  }
  if (node.is_array() && !node.empty()) add_ways(part, place / (node.size() - 1), growths);
  if (!node.is_object()) return;
  for (const auto& [name, value] : node.items()) add_ways(part, place / name, growths);
}

// Inputs have their parts between zeros or line ends.
std::vector<JsonPart> json_parts(const std::string& input) {
  std::vector<JsonPart> parts;
  for (std::size_t begin = 0; begin < input.size();) {
    const auto end =
        std::min(input.find_first_of(std::string_view("\0\n", 2), begin), input.size());
    const auto first = input.find('{', begin);
    const auto last = input.rfind('}', end);
    if (first < end && last != std::string::npos && last > first) {
      auto json = Json::parse(input.substr(first, last + 1 - first), nullptr, false);
      if (!json.is_discarded()) {
        parts.push_back({input.substr(0, first), std::move(json), input.substr(last + 1)});
      }
    }
    begin = end + 1;
  }
  return parts;
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

std::vector<Growth> growths_of(const std::string& input) {
  std::vector<Growth> growths;
  growths.push_back(
      {"all of it by copies", [input](std::size_t times) { return repeated(input, times); }});
  for (const auto& part : json_parts(input)) {
    add_ways(part, Json::json_pointer(), growths);
    growths.push_back({"a line by copies", [part](std::size_t times) {
                         return part.before +
                                repeated(part.with(part.json).substr(part.before.size()), times);
                       }});
  }
  return growths;
}

double work_of(const std::string& input) {
  work = 0;
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  return static_cast<double>(work);
}

// Returns whether it grows as it should.
bool check(const std::string& seed, const Growth& growth) {
  const auto once = work_of(growth.input(kTimes));
  const auto twice = work_of(growth.input(2 * kTimes));
  if (twice <= kMostRatio * once + kAllowance) return true;
  fmt::print("{}: {}: {} times {:.0f}, {} times {:.0f}\n", seed, growth.what, kTimes, once,
             2 * kTimes, twice);
  return false;
}

}  // namespace

}  // namespace farstep

int main(int count, char** arguments) {
  using namespace farstep;
  if (count != 2) {
    fmt::print(stderr, "usage: growth_TARGET FOLDER_OF_SEEDS\n");
    return 2;
  }
  __sanitizer_install_malloc_and_free_hooks(count_memory, ignore);
  std::size_t checked = 0, faults = 0;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[1])) {
    const auto seed = entry.path().filename().string();
    // libFuzzer keeps inputs of its own beside them.
    if (!seed.starts_with("seed-")) continue;
    const auto input = read_file(entry.path());
    work_of(input);  // what is made once is made now
    for (const auto& growth : growths_of(input)) {
      ++checked;
      if (!check(seed, growth)) ++faults;
    }
  }
  fmt::print("{} growths, {} faults\n", checked, faults);
  return checked > 0 && faults == 0 ? 0 : 1;
}
