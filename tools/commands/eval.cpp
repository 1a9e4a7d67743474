// ggmlx eval: logits and named intermediate values of a prompt, for tests and for the curious.

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "src/session/session.h"
#include "tools/commands/commands.h"
#include "tools/engine_flags.h"
#include "tools/json_text.h"
#include "tools/model_path.h"
#include "tools/safetensors_io.h"
#include "tools/text_input.h"

namespace cli {
namespace {

constexpr size_t kTop = 5;

struct EvalFlags {
    std::string model, logits_file;
    std::vector<std::string> dumps;
    int64_t last = 1;
    EngineFlags engine;
    PromptFlags prompt;
    Common common;
};

bool parse_eval(std::span<const std::string> arguments, EvalFlags& flags) {
    Args args("eval", "Evaluates a prompt and shows or saves the logits that follow its last tokens.",
              "  ggmlx eval model.ggmx -p \"Once upon a time\"\n"
              "  ggmlx eval model.ggmx --ids ids.json --last 8 --logits logits.safetensors\n"
              "  ggmlx eval model.ggmx --ids ids.json --dump blk.0.attn_out=attn.safetensors\n");
    args.model(flags.model);
    flags.prompt.add_to(args);
    args.option("--last", flags.last, {1, INT32_MAX}, "logits after the last K tokens (1)");
    args.option("--logits", flags.logits_file, "OUT.safetensors", "save them: tensor `logits`, F32 [K, n_vocab]");
    args.option("--dump", flags.dumps, "NAME=OUT", "save a value of the graph to OUT, a .safetensors; repeatable");
    add_engine_flags(args, flags.engine);
    args.common(flags.common);
    return args.parse(arguments);
}

struct DumpRequest {
    std::string name, file;
};

std::vector<DumpRequest> dump_requests(const std::vector<std::string>& texts) {
    std::vector<DumpRequest> requests;
    for (const std::string& text : texts) {
        const size_t equals = text.find('=');
        if (equals == 0 || equals == text.npos || equals + 1 == text.size())
            throw UsageError(fmt::format("--dump: \"{}\" is not NAME=OUT", text));
        requests.push_back({text.substr(0, equals), text.substr(equals + 1)});
    }
    return requests;
}

std::vector<llm::TokenId> top_ids(std::span<const float> logits) {
    std::vector<llm::TokenId> ids(logits.size());
    std::iota(ids.begin(), ids.end(), 0);
    const size_t n = std::min(kTop, ids.size());
    std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n), ids.end(), [&](auto a, auto b) {
        const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
        return x != y ? x > y : a < b;
    });
    ids.resize(n);
    return ids;
}

nlohmann::ordered_json logits_json(const llm::Logits& logits, size_t n_tokens) {
    auto rows = nlohmann::ordered_json::array();
    for (int64_t i = 0; i < logits.n_rows(); ++i) {
        auto row = nlohmann::ordered_json::array();
        for (llm::TokenId id : top_ids(logits.row(i))) row.push_back({id, logits.row(i)[static_cast<size_t>(id)]});
        rows.push_back(std::move(row));
    }
    return {{"n_tokens", n_tokens}, {"n_vocab", logits.n_vocab}, {"top", std::move(rows)}};
}

void print_eval(const llm::Model& model, const llm::Logits& logits, int64_t first_position) {
    for (int64_t i = 0; i < logits.n_rows(); ++i) {
        fmt::print("after position {}:", first_position + i);
        for (llm::TokenId id : top_ids(logits.row(i))) {
            fmt::print("  {}", id);
            if (model.has_tokenizer()) fmt::print(" {}", nlohmann::json(model.tokenizer().id_to_token(id)).dump());
            fmt::print(" {:.5f}", logits.row(i)[static_cast<size_t>(id)]);
        }
        fmt::print("\n");
    }
}

void save_logits(const std::string& path, const llm::Logits& logits) {
    const TensorToSave tensor{
        "logits", ggmlx::DType::F32, {logits.n_rows(), logits.n_vocab}, std::as_bytes(std::span(logits.values))};
    write_safetensors(path, std::span(&tensor, 1));
}

void save_dump(const DumpRequest& request, const llm::DumpedTensor& value) {
    const TensorToSave tensor{request.name, value.dtype, value.shape, value.bytes};
    write_safetensors(request.file, std::span(&tensor, 1));
}

}  // namespace

int run_eval(std::span<const std::string> arguments) {
    EvalFlags flags;
    if (!parse_eval(arguments, flags)) return 0;
    const auto dumps = dump_requests(flags.dumps);
    const llm::Model model(open_model(flags.model));
    const auto ids = flags.prompt.tokens(model);
    const auto n_tokens = static_cast<int64_t>(ids.size());
    ggmlx::require(flags.last <= n_tokens, ggmlx::ErrorKind::InvalidArgument,
                   "--last {}: the prompt has only {} tokens", flags.last, n_tokens);

    llm::EngineOptions options = engine_options(flags.engine);
    if (options.n_ctx == 0) options.n_ctx = n_tokens;
    options.max_outputs = std::min(flags.last, options.max_batch);
    for (const DumpRequest& d : dumps) options.dumps.push_back(d.name);
    llm::Engine engine = load_engine(model, options, flags.engine, flags.common);
    print_engine(engine, flags.common);
    llm::Session session(engine);
    const llm::Logits logits = engine.eval({&session, ids, flags.last});

    if (!flags.logits_file.empty()) save_logits(flags.logits_file, logits);
    for (const DumpRequest& d : dumps) save_dump(d, engine.dumped(d.name));
    if (flags.common.json)
        fmt::print("{}\n", json_line(logits_json(logits, ids.size())));
    else
        print_eval(model, logits, n_tokens - flags.last);
    return 0;
}

}  // namespace cli
