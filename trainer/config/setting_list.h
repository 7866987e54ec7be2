// The settings of a config as lines for people, each as --set takes it: "outer.rounds=8".
//
// Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "trainer/config/json_fields.h"

namespace farstep {

struct SettingList {
  std::vector<std::string> chosen;    // those that have no default, or another value
  std::vector<std::string> defaults;  // all others
};

namespace detail {

std::string setting_text(const std::string& path, const Json& value);

template <typename T>
Json print_chosen(const T& value, const Json& fallback);

// Prints the members that are not as in `fallback`.
struct ChosenPrinter {
  const Json& fallback;
  Json json = Json::object();
  template <typename T>
  void operator()(const char* name, T& value, const char* /*doc*/, const Rules& rules = {}) {
    const auto& own = fallback.at(name);
    if (rules.required || print_value(value) != own) json[name] = print_chosen(value, own);
  }
};

// What a file needs to say for this value, where `fallback` is the one without it.
template <typename T>
Json print_chosen(const T& value, const Json& fallback) {
  if constexpr (HasFields<T>) {
    ChosenPrinter printer{fallback};
    T copy = value;
    copy.fields(printer);
    return std::move(printer.json);
  } else if constexpr (OptionalField<T>) {
    if (!value) return nullptr;
    return print_chosen(*value, print_value(typename T::value_type{}));
  } else if constexpr (VectorField<T>) {
    Json array = Json::array();
    for (const auto& element : value) {
      array.push_back(print_chosen(element, print_value(typename T::value_type{})));
    }
    return array;
  } else {
    return print_value(value);
  }
}

struct SettingLister {
  SettingList& list;
  const Json& fallback;
  std::string prefix;

  template <typename T>
  void operator()(const char* name, T& value, const char* /*doc*/, const Rules& rules = {}) {
    const auto& own = fallback.at(name);
    if constexpr (HasFields<T>) {
      value.fields(SettingLister{list, own, prefix + name + "."});
    } else {
      const bool is_chosen = rules.required || print_value(value) != own;
      auto& lines = is_chosen ? list.chosen : list.defaults;
      lines.push_back(setting_text(prefix + name, print_chosen(value, own)));
    }
  }
};

}  // namespace detail

// Lists all settings in the order of the fields. apply_override() of the chosen ones, and
// read_json(), give the config again.
template <HasFields T>
SettingList list_settings(T config) {
  SettingList list;
  const Json fallback = to_json(T{});
  config.fields(detail::SettingLister{list, fallback, ""});
  return list;
}

}  // namespace farstep
