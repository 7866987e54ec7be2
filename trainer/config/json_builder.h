// Builds a JSON value from what nlohmann's parser comes across, in time that grows with the text
// alone.
//
// nlohmann's own builder keeps the last of two members with one name: nearly always an edit that
// was meant to replace the first one, or an attempt to show two readers different things. It also
// searches an ordered object for each new name. With a callback it goes over all that an object
// stands in at the object's end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace farstep::detail {

[[noreturn]] void refuse_second_member(const std::string& name);

// A handler of `AnyJson::sax_parse()`. Throws DataError if an object has two members of one name,
// and the parser's exception if the text is not JSON.
template <typename AnyJson>
class JsonBuilder {
 public:
  // Returns the value, once, after the whole text.
  AnyJson take() { return std::move(whole_); }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(int64_t value) { return add(value); }
  bool number_unsigned(uint64_t value) { return add(value); }
  bool number_float(double value, const std::string& /*digits*/) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(typename AnyJson::binary_t& value) { return add(std::move(value)); }
  bool start_object(std::size_t /*members*/) { return open(); }
  bool start_array(std::size_t /*elements*/) { return open(); }
  bool key(std::string& name) {
    open_.back().names.push_back(std::move(name));
    return true;
  }
  bool end_object() {
    auto done = close();
    auto object = AnyJson::object();
    auto& members = object.template get_ref<typename AnyJson::object_t&>();
    if constexpr (requires { members.reserve(1); }) {
      // A list of pairs, of which each search takes a pass.
      require_different(done.names);
      members.reserve(done.names.size());
      for (std::size_t i = 0; i < done.names.size(); ++i) {
        members.emplace_back(std::move(done.names[i]), std::move(done.values[i]));
      }
    } else {
      for (std::size_t i = 0; i < done.names.size(); ++i) {
        const auto [place, is_first] =
            members.emplace(std::move(done.names[i]), std::move(done.values[i]));
        if (!is_first) refuse_second_member(place->first);
      }
    }
    return add(std::move(object));
  }
  bool end_array() {
    auto array = AnyJson::array();
    array.template get_ref<typename AnyJson::array_t&>() = close().values;
    return add(std::move(array));
  }
  template <typename Exception>
  bool parse_error(std::size_t /*byte*/, const std::string& /*token*/, const Exception& error) {
    throw error;
  }

 private:
  // An object or array whose end has not come. An array has no names.
  struct Open {
    std::vector<std::string> names;
    typename AnyJson::array_t values;
  };

  bool open() {
    open_.emplace_back();
    return true;
  }
  Open close() {
    auto done = std::move(open_.back());
    open_.pop_back();
    return done;
  }
  template <typename Value>
  bool add(Value&& value) {
    if (open_.empty()) {
      whole_ = std::forward<Value>(value);
    } else {
      open_.back().values.emplace_back(std::forward<Value>(value));
    }
    return true;
  }

  static void require_different(const std::vector<std::string>& names) {
    std::vector<std::string_view> sorted(names.begin(), names.end());
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    if (twice != sorted.end()) refuse_second_member(std::string(*twice));
  }

  std::vector<Open> open_;
  AnyJson whole_;
};

}  // namespace farstep::detail
