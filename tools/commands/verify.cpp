// ggmlx verify: reads every byte of a model and compares it with the checksums that were written with it.

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "tools/args.h"
#include "tools/commands/commands.h"
#include "tools/model_path.h"
#include "tools/progress.h"

namespace cli {
namespace {

struct Damage {
    std::string name;  ///< of the tensor or document
    std::string what;
};

std::vector<Damage> damaged_documents(const ggmlx::ModelFile& file) {
    std::vector<Damage> damage;
    for (const std::string& name : file.document_names()) try {
            (void)file.document(name);
        } catch (const ggmlx::Error& error) {
            damage.push_back({name, error.what()});
        }
    return damage;
}

/// Nothing if the tensor is whole.
std::optional<Damage> check(const ggmlx::ModelFile& file, const ggmlx::StoredTensor& tensor) {
    try {
        if (file.compute_checksum(tensor) == tensor.checksum) return std::nullopt;
    } catch (const ggmlx::Error& error) {
        return Damage{tensor.name, error.what()};
    }
    return Damage{tensor.name,
                  fmt::format("checksum differs; {} bytes at offset {}", tensor.stored_bytes, tensor.offset)};
}

}  // namespace

int run_verify(std::span<const std::string> arguments) {
    std::string path;
    Common common;
    Args args("verify",
              "Checks every document and tensor of a model against its checksum.\nExit code 1 if one is damaged.",
              "  ggmlx verify model.ggmx\n");
    args.model(path);
    args.common(common);
    if (!args.parse(arguments)) return 0;

    const ggmlx::ModelFile file = open_model(path);
    std::vector<Damage> damage = damaged_documents(file);
    {
        Progress progress("verify", !common.quiet);
        uint64_t done = 0;
        for (const auto& tensor : file.tensors()) {
            if (auto found = check(file, tensor)) damage.push_back(*found);
            progress.update(done += tensor.stored_bytes, file.size_bytes());
        }
    }
    if (common.json) {
        auto list = nlohmann::ordered_json::array();
        for (const Damage& d : damage) list.push_back({{"name", d.name}, {"what", d.what}});
        nlohmann::ordered_json result = {{"model", path},
                                         {"ok", damage.empty()},
                                         {"tensors", file.tensors().size()},
                                         {"documents", file.document_names().size()},
                                         {"damaged", list}};
        fmt::print("{}\n", result.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    } else {
        for (const Damage& d : damage) fmt::print("damaged: {}: {}\n", d.name, d.what);
        if (damage.empty())
            fmt::print("ok: {} tensors and {} documents, {}\n", file.tensors().size(), file.document_names().size(),
                       human_bytes(file.size_bytes()));
        else
            fmt::print("{} of {} parts are damaged; convert or download the model again\n", damage.size(),
                       file.tensors().size() + file.document_names().size());
    }
    return damage.empty() ? 0 : 1;
}

}  // namespace cli
