#include "trainer/report/report_text.h"

#include <algorithm>

#include "trainer/account/membership.h"
#include "trainer/account/outliers.h"
#include "trainer/account/rises.h"

namespace farstep {

namespace {

constexpr std::size_t kGap = 2;  // spaces between two columns

std::size_t width_of(const Table& table, std::size_t column) {
  std::size_t width = table.header[column].size();
  for (const auto& row : table.rows) width = std::max(width, row.cells[column].size());
  return width;
}

// Divides the columns into blocks that fit where possible. The first column is repeated in each
// block, so that every block can be read alone.
std::vector<std::vector<std::size_t>> blocks(const std::vector<std::size_t>& widths,
                                             const Table& table, std::size_t columns) {
  const std::size_t movable_end = widths.size() - table.trailing_columns;
  std::size_t trailing_width = 0;
  for (std::size_t i = movable_end; i < widths.size(); ++i) trailing_width += widths[i] + kGap;
  std::vector<std::vector<std::size_t>> found{{0}};
  std::size_t used = widths[0];
  for (std::size_t i = 1; i < movable_end; ++i) {
    const bool is_last = i + 1 == movable_end;
    const std::size_t needed = widths[i] + kGap + (is_last ? trailing_width : 0);
    // A block with no column but the first would help nobody.
    if (used + needed > columns && found.back().size() > 1) {
      found.push_back({0});
      used = widths[0];
    }
    found.back().push_back(i);
    used += widths[i] + kGap;
  }
  for (std::size_t i = movable_end; i < widths.size(); ++i) found.back().push_back(i);
  return found;
}

std::string line_text(const std::vector<std::string>& cells, const std::vector<std::size_t>& block,
                      const std::vector<std::size_t>& widths, const Table& table) {
  std::string line;
  for (const auto column : block) {
    if (!line.empty()) line += std::string(kGap, ' ');
    line += column < table.left_columns ? fmt::format("{:<{}}", cells[column], widths[column])
                                        : fmt::format("{:>{}}", cells[column], widths[column]);
  }
  // A text that is pasted or compared should have no spaces at the ends of lines.
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// Breaks lines between words at the report's width; a longer word stays whole.
std::string wrapped(const std::string& text, const std::string& indent) {
  std::string lines = indent;
  std::size_t width = indent.size();
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(' ', begin), text.size());
    const auto word = text.substr(begin, end - begin);
    if (begin > 0 && width + 1 + word.size() > kReportColumns) {
      lines += "\n" + indent;
      width = indent.size();
    } else if (begin > 0) {
      lines += " ";
      ++width;
    }
    lines += word;
    width += word.size();
    begin = end + 1;
  }
  return lines + "\n";
}

std::string facts_text(const RunReport& report) {
  std::string text = "Run " + report.run + "\n";
  for (const auto& fact : facts(report)) text += wrapped(fact, "  ");
  return text;
}

std::string membership_text(const RunReport& report) {
  const auto membership = membership_of(report);
  return titled_text("Who took part, by round", presence_lines(membership)) +
         titled_text("Why the membership changed", change_lines(membership));
}

std::string plan_text(const RunReport& report) {
  return titled_text("The last plan, and why", plan_lines(report)) +
         titled_text("Changes of the sync", sync_lines(report));
}

}  // namespace

std::string titled_text(const std::string& title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = "\n" + title + "\n";
  for (const auto& line : lines) text += wrapped(line, "  ");
  return text;
}

std::string table_text(const Table& table, std::size_t columns) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < table.header.size(); ++i) widths.push_back(width_of(table, i));
  std::string text = table.title + "\n";
  const auto split = blocks(widths, table, columns);
  for (const auto& block : split) {
    std::size_t width = kGap * (block.size() - 1);
    for (const auto column : block) width += widths[column];
    const std::string rule = std::string(width, '-') + "\n";
    if (&block != &split.front()) text += "\n";
    text += rule + line_text(table.header, block, widths, table) + rule;
    for (const auto& row : table.rows) {
      if (row.is_sum) text += rule;
      text += line_text(row.cells, block, widths, table);
    }
  }
  return text;
}

std::string report_text(const RunReport& report) {
  std::string text = facts_text(report);
  for (const auto& table : {idle_table(report), device_table(report), work_table(report),
                            traffic_table(report), link_table(report)}) {
    if (!table.rows.empty()) text += "\n" + table_text(table, kReportColumns);
  }
  text += membership_text(report) + plan_text(report) +
          titled_text("Deltas out of proportion", outlier_lines(report)) +
          titled_text("Validation losses that rose", rise_lines(report));
  if (!report.notes.empty()) text += "\n";
  for (const auto& note : report.notes) text += wrapped("note: " + note, "");
  return text;
}

std::string idle_text(const RunReport& report) {
  return facts_text(report) + "\n" + table_text(idle_table(report), kReportColumns) +
         plan_text(report);
}

}  // namespace farstep
