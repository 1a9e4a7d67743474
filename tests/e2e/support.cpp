#include "support.h"

#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "convert/convert.h"
#include "convert/safetensors.h"
#include "ggmlx/backend/cpu/dispatch.h"
#include "ggmlx/core/error.h"

namespace e2e {
namespace {

namespace fs = std::filesystem;

template <class T>
std::vector<T> reference(const std::string& checkpoint, const std::string& name) {
    const auto file = convert::SafetensorsFile::open(data_path(checkpoint + "/reference.safetensors"));
    const auto* tensor = file.find(name);
    ggmlx::require(tensor != nullptr, ggmlx::ErrorKind::InvalidArgument, "no reference {}", name);
    std::vector<T> values(tensor->size_bytes / sizeof(T));
    std::memcpy(values.data(), file.data(*tensor).data(), tensor->size_bytes);
    return values;
}

std::string quoted(const std::string& text) {
    std::string result = "'";
    for (char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::string data_path(const std::string& relative) { return std::string(GGMLX_TEST_DATA) + "/" + relative; }

TempFolder::TempFolder() {
    std::string name = (fs::temp_directory_path() / "ggmlx-e2e-XXXXXX").string();
    ggmlx::require(mkdtemp(name.data()) != nullptr, ggmlx::ErrorKind::Io, "cannot make {}", name);
    path_ = name;
}

TempFolder::~TempFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

std::string make_model(const TempFolder& folder, const std::string& checkpoint, const std::string& type) {
    return make_model_from(folder, data_path(checkpoint), type);
}

std::string make_model_from(const TempFolder& folder, const std::string& checkpoint_path, const std::string& type) {
    convert::ConvertOptions options;
    options.input = checkpoint_path;
    options.output = folder.file("model.ggmx");
    if (!type.empty()) options.recipe.type = convert::parse_weight_type(type);
    convert::convert(options);
    return options.output;
}

std::vector<float> reference_floats(const std::string& checkpoint, const std::string& name) {
    return reference<float>(checkpoint, name);
}
std::vector<llm::TokenId> reference_ids(const std::string& checkpoint, const std::string& name) {
    return reference<llm::TokenId>(checkpoint, name);
}

llm::EngineOptions exact_options() {
    llm::EngineOptions options;
    options.n_ctx = 256;
    options.devices.n_threads = 1;
    options.cache_k = options.cache_v = ggmlx::DType::F32;
    return options;
}

ggmlx::PlacementRule rule(const std::string& text) { return ggmlx::parse_rules(text).at(0); }

std::vector<float> prompt_logits(const llm::Model& model, const llm::EngineOptions& options,
                                 std::span<const llm::TokenId> prompt, int64_t n_outputs) {
    llm::Engine engine(model, options);
    llm::Session session(engine);
    return engine.eval({&session, prompt, n_outputs}).values;
}

std::vector<llm::TokenId> greedy(llm::Session& session, std::span<const llm::TokenId> prompt, int64_t n) {
    std::vector<llm::TokenId> ids;
    llm::Logits logits = session.engine().eval({&session, prompt, 1});
    while (true) {
        ids.push_back(largest(logits.row(0)));
        if (static_cast<int64_t>(ids.size()) == n) return ids;
        logits = session.engine().eval({&session, std::span(&ids.back(), 1), 1});
    }
}

llm::TokenId largest(std::span<const float> logits) {
    return static_cast<llm::TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

float max_difference(std::span<const float> a, std::span<const float> b) {
    if (a.size() != b.size()) return INFINITY;
    float most = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        const float d = std::fabs(a[i] - b[i]);
        if (!(d <= most)) most = d;  // a NaN stays
    }
    return most;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

std::vector<std::string> isas() {
    std::vector<std::string> names;
    for (const ggmlx::CpuKernels* kernels : ggmlx::supported_kernels()) names.emplace_back(kernels->name);
    return names;
}

ProgramResult run_program(const std::vector<std::string>& arguments, const std::string& stdin_text) {
    const TempFolder folder;
    std::ofstream(folder.file("in"), std::ios::binary) << stdin_text;
    std::string command = quoted(GGMLX_PROGRAM);
    for (const std::string& a : arguments) command += " " + quoted(a);
    command += " < " + folder.file("in") + " > " + folder.file("out") + " 2> " + folder.file("err");
    const int status = std::system(command.c_str());
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return {code, contents(folder.file("out")), contents(folder.file("err"))};
}

}  // namespace e2e
