// render_lines < lines of JSON objects {"source", "variables", "date"}
// For scripts/compare_templates.py: renders every line's template and prints a JSON object with its `text`, or with the
// `error`. render_lines --time TEMPLATE VARIABLES.json N prints the processor time of parsing and of one rendering.

#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>

#include "src/chat/date.h"
#include "src/chat/template.h"

namespace {

using llm::ChatTemplate;
using nlohmann::ordered_json;

ordered_json render(const ordered_json& line, std::unordered_map<std::string, ChatTemplate>& parsed) {
    const auto source = line.at("source").get<std::string>();
    try {
        auto found = parsed.find(source);
        if (found == parsed.end()) found = parsed.emplace(source, ChatTemplate::parse(source, "template")).first;
        llm::RenderOptions options;
        options.now = llm::parse_date(line.at("date").get<std::string>());
        const llm::Prompt prompt = found->second.render(line.at("variables"), options);
        size_t begin = 0;
        for (const llm::Run& run : prompt.runs) {
            if (run.end <= begin) return {{"error", "runs out of order"}};
            begin = run.end;
        }
        if (begin != prompt.text.size()) return {{"error", "runs do not cover the text"}};
        return {{"text", prompt.text}};
    } catch (const std::exception& e) {
        return {{"error", e.what()}};
    }
}

std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + path);
    return {std::istreambuf_iterator<char>(in), {}};
}

double seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void measure(const std::string& path, const std::string& variables_path, int n) {
    const std::string source = read_file(path);
    const auto variables = ordered_json::parse(read_file(variables_path));
    const double start = seconds();
    for (int i = 0; i < n; ++i) (void)ChatTemplate::parse(source, path);
    const double parsed = seconds();
    const ChatTemplate chat_template = ChatTemplate::parse(source, path);
    for (int i = 0; i < n; ++i) (void)chat_template.render(variables);
    std::printf("parse %.3f ms, render %.3f ms\n", (parsed - start) / n * 1e3, (seconds() - parsed) / n * 1e3);
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc == 5 && std::string(argv[1]) == "--time") {
        measure(argv[2], argv[3], std::stoi(argv[4]));
        return 0;
    }
    std::unordered_map<std::string, ChatTemplate> parsed;
    for (std::string line; std::getline(std::cin, line);)
        std::cout
            << render(ordered_json::parse(line), parsed).dump(-1, ' ', false, ordered_json::error_handler_t::replace)
            << '\n';
    return 0;
} catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
