// How a config struct lists its fields: once, for reading, printing and help alike.
//
// A struct has a member template that hands every field to a visitor:
//
//   struct OuterConfig {
//     double momentum = 0.9;
//     template <typename Visitor> void fields(Visitor&& visit) {
//       visit("momentum", momentum, "Nesterov momentum", in_range(0, 1));
//     }
//   };
//
// A field is a bool, int64_t, double, std::string, Json of any content, an enum with an
// `enum_names` overload, another such struct, or a std::optional or std::vector of these. The
// initialiser is the default.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace farstep {

// The limits of a field's value. Bounds apply to numbers, and to the length of a vector.
struct Rules {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above_least = false;    // `least` itself is refused
  bool required = false;       // it has no default
  bool positional = false;     // on a command line it is given without its name
  bool folder = false;         // it names a folder, which a shell can complete
  std::size_t hex_digits = 0;  // a text is so many lower-case hexadecimal digits; 0: any text

  bool allow(double value) const {
    return value <= most && (above_least ? value > least : value >= least);
  }
  // Returns "at least 1", "above 0" or "from 0 to 1"; empty if all values are allowed.
  std::string text() const;
};

inline constexpr Rules kRequired{.required = true};
inline constexpr Rules kPositional{.required = true, .positional = true};
constexpr Rules at_least(double least) {
  return {.least = least};
}
constexpr Rules above(double least) {
  return {.least = least, .above_least = true};
}
constexpr Rules in_range(double least, double most) {
  return {.least = least, .most = most};
}
constexpr Rules required(Rules rules) {
  rules.required = true;
  return rules;
}
constexpr Rules hexadecimal(std::size_t digits) {
  return {.hex_digits = digits};
}
constexpr Rules a_folder(Rules rules = {}) {
  rules.folder = true;
  return rules;
}

// A field that a struct had once, and what has its meaning now. A struct lists its own in a static
// member `kFormerFields`; whoever still sets one reads the new way in the message.
struct FormerField {
  std::string_view name, now;
};

template <typename T>
concept HasFormerFields = requires {
  { T::kFormerFields } -> std::convertible_to<std::span<const FormerField>>;
};

// An enum with names of its values in their order; found by argument-dependent lookup.
template <typename T>
concept NamedEnum = std::is_enum_v<T> && requires(T value) {
  { enum_names(value) } -> std::convertible_to<std::span<const std::string_view>>;
};

template <NamedEnum E>
std::string_view name_of(E value) {
  return enum_names(value)[static_cast<std::size_t>(value)];
}

namespace detail {
struct IgnoreField {
  template <typename... Arguments>
  void operator()(Arguments&&...) {}
};
template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
}  // namespace detail

template <typename T>
concept HasFields = requires(T value) {
  value.fields(detail::IgnoreField{});
};
template <typename T>
concept OptionalField = detail::IsOptional<T>::value;
template <typename T>
concept VectorField = detail::IsVector<T>::value;

}  // namespace farstep
