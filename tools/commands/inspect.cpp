// ggmlx inspect: what is in a model, from its header, documents and index alone; no tensor data is read.

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "convert/tokenizer/info.h"
#include "convert/type_totals.h"
#include "src/config.h"
#include "tools/args.h"
#include "tools/commands/commands.h"
#include "tools/model_path.h"
#include "tools/model_text.h"
#include "tools/type_table.h"

namespace cli {
namespace {

using nlohmann::ordered_json;

std::string dump(const ordered_json& value) {
    return value.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

convert::TypeSummary summarize(const ggmlx::ModelFile& file) {
    convert::TypeSummary summary;
    for (const auto& tensor : file.tensors()) summary.add(tensor.dtype, tensor.shape);
    return summary;
}

void print_line(std::string_view label, std::string_view text) { fmt::print("{:<14}{}\n", label, text); }

void print_origin(const ggmlx::ModelFile& file) {
    if (!file.has_document("quantization.json")) return;
    const auto origin = ordered_json::parse(file.document("quantization.json"), nullptr, false);
    if (!origin.is_object()) return;
    auto text = [&](const char* key) {
        auto it = origin.find(key);
        return it != origin.end() && it->is_string() ? it->get<std::string>() : std::string("?");
    };
    print_line("made by", fmt::format("{} {}, type {}, from {}", text("tool"), text("tool_version"), text("type"),
                                      text("source_dtype")));
}

/// The stored values; for a mixture also how many of them work on a token.
std::string parameters_text(const ggmlx::ModelFile& file, int64_t n_values) {
    if (!file.has_document("config.json")) return with_thousands(n_values);
    return describe_parameters(llm::ModelConfig::from_json(file.document("config.json")));
}

void print_summary(const ggmlx::ModelFile& file) {
    print_line("model", file.path());
    print_line("file", fmt::format("{}, format version {}", human_bytes(file.size_bytes()), file.version()));
    if (file.has_document("config.json")) {
        const auto config = llm::ModelConfig::from_json(file.document("config.json"));
        print_line("architecture", describe_model(config));
        if (config.mixture.n_expert > 0) print_line("experts", describe_experts(config));
        print_line("context", fmt::format("{} tokens", config.n_ctx_train));
        print_line("vocabulary", fmt::format("{} rows", config.n_vocab));
    }
    if (file.has_document("tokenizer.json")) {
        const auto tokenizer = convert::tokenizer_info(file.document("tokenizer.json"));
        print_line("tokenizer", fmt::format("{}, {} tokens", tokenizer.model_type, tokenizer.n_tokens));
    } else {
        print_line("tokenizer", "none: the model takes token ids only");
    }
    print_origin(file);
    const auto summary = summarize(file);
    print_line("parameters", parameters_text(file, summary.total().n_values));
    fmt::print("\n{}", type_table(summary));
}

void print_tensors(const ggmlx::ModelFile& file) {
    fmt::print("\n{:<40} {:<8} {:<24} {:<13} {:>12} {:>14}\n", "tensor", "type", "shape", "role", "bytes", "offset");
    for (const auto& t : file.tensors())
        fmt::print("{:<40} {:<8} {:<24} {:<13} {:>12} {:>14}{}\n", t.name, ggmlx::name(t.dtype), t.shape.to_string(),
                   ggmlx::name(t.role), t.stored_bytes, t.offset, t.compressed ? " zstd" : "");
}

ordered_json tensors_json(const ggmlx::ModelFile& file) {
    auto list = ordered_json::array();
    for (const auto& t : file.tensors())
        list.push_back({{"name", t.name},
                        {"type", ggmlx::name(t.dtype)},
                        {"shape", std::vector<int64_t>(t.shape.dims().begin(), t.shape.dims().end())},
                        {"role", ggmlx::name(t.role)},
                        {"offset", t.offset},
                        {"bytes", t.stored_bytes},
                        {"raw_bytes", t.raw_bytes},
                        {"compressed", t.compressed},
                        {"xxh3", fmt::format("{:016x}{:016x}", t.checksum.high, t.checksum.low)}});
    return list;
}

ordered_json summary_json(const ggmlx::ModelFile& file) {
    ordered_json result = {{"model", file.path()}, {"bytes", file.size_bytes()}, {"version", file.version()}};
    if (file.has_document("config.json")) {
        const auto c = llm::ModelConfig::from_json(file.document("config.json"));
        result["architecture"] = c.architecture;
        result["config"] = model_json(c);
    }
    if (file.has_document("tokenizer.json")) {
        const auto tokenizer = convert::tokenizer_info(file.document("tokenizer.json"));
        result["tokenizer"] = {{"type", tokenizer.model_type}, {"tokens", tokenizer.n_tokens}};
    }
    const auto summary = summarize(file);
    result["parameters"] = summary.total().n_values;
    result["types"] = type_table_json(summary);
    return result;
}

}  // namespace

int run_inspect(std::span<const std::string> arguments) {
    std::string path, document;
    bool tensors = false, documents = false;
    Common common;
    Args args("inspect", "Shows what is in a model: architecture, parameters, bytes per type, documents, tensors.",
              "  ggmlx inspect model.ggmx\n"
              "  ggmlx inspect model.ggmx --tensors --json | jq '.tensors[].name'\n"
              "  ggmlx inspect model.ggmx --document config.json\n");
    args.model(path);
    args.flag("--tensors", tensors, "list every tensor");
    args.flag("--documents", documents, "list the documents");
    args.option("--document", document, "NAME", "print this document, byte for byte, and nothing else");
    args.common(common);
    if (!args.parse(arguments)) return 0;

    const ggmlx::ModelFile file = open_model(path);
    if (!document.empty()) {
        fmt::print("{}", file.document(document));
        return 0;
    }
    if (common.json) {
        ordered_json result = summary_json(file);
        if (documents)
            for (const std::string& name : file.document_names())
                result["documents"][name] = file.document(name).size();
        if (tensors) result["tensors"] = tensors_json(file);
        fmt::print("{}\n", dump(result));
        return 0;
    }
    print_summary(file);
    if (documents) {
        fmt::print("\n{:<28} {:>12}\n", "document", "bytes");
        for (const std::string& name : file.document_names())
            fmt::print("{:<28} {:>12}\n", name, file.document(name).size());
    }
    if (tensors) print_tensors(file);
    return 0;
}

}  // namespace cli
