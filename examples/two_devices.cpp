// The tensor library on its own: describe a small feed-forward block, say by rules where its weights live, look at the
// plan, run it. Two devices work on it, ref0 and ref1; moving a weight is a change of one rule and of no result.
//
//     two_devices 'ffn_down=ref1'

#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "ggmlx/backend/executor.h"
#include "ggmlx/backend/reference_backend.h"
#include "ggmlx/graph/ops.h"

using namespace ggmlx;

namespace {

constexpr int64_t kTokens = 2, kEmbd = 32, kFf = 64;

/// Weights by name: what there is, not yet where.
void describe_weights(TensorSet& tensors) {
    tensors.add("blk.0.ffn_gate.weight", DType::F32, {kFf, kEmbd}, Role::Dense);
    tensors.add("blk.0.ffn_up.weight", DType::F32, {kFf, kEmbd}, Role::Dense);
    tensors.add("blk.0.ffn_down.weight", DType::F32, {kEmbd, kFf}, Role::Dense);
}

/// WHAT is computed: y = down · (silu(gate · x) · (up · x)).
std::shared_ptr<const Graph> build_graph(const TensorSet& tensors) {
    auto graph = std::make_shared<Graph>();
    graph->set_scope("blk.0");
    Tensor x = graph->input("x", DType::F32, {kTokens, kEmbd});
    Tensor gate = matmul(*graph, tensors.get("blk.0.ffn_gate.weight"), x);
    Tensor up = matmul(*graph, tensors.get("blk.0.ffn_up.weight"), x);
    graph->output(matmul(*graph, tensors.get("blk.0.ffn_down.weight"), swiglu(*graph, gate, up)), "y");
    return graph;
}

/// Some numbers for a weight; a program that has a file calls DeviceWeights::load(file) instead.
std::span<const std::byte> made_up_bytes(Tensor weight) {
    static std::vector<float> values;
    values.resize(static_cast<size_t>(weight.shape().n_elements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) * 0.01f;
    return std::as_bytes(std::span(values));
}

void run(const char* rules_text) {
    std::vector<std::unique_ptr<Backend>> owners;
    owners.push_back(make_reference_backend("ref0"));
    owners.push_back(make_reference_backend("ref1"));
    std::vector<Backend*> devices = {owners[0].get(), owners[1].get()};

    TensorSet tensors;
    describe_weights(tensors);

    // WHERE: rules give every weight a home, the plan gives every node a device.
    const std::vector<std::string> names = {"ref0", "ref1"};
    DeviceWeights weights(tensors, place(tensors, parse_rules(rules_text), names, 0), devices);
    weights.load(made_up_bytes);
    weights.allocate_states();
    Executor executor(weights);
    Program program = executor.prepare(make_plan(
        {.graph = build_graph(tensors), .placement = &weights.placement(), .devices = executor.plan_devices()}));
    std::printf("%s\n", program.plan().to_string().c_str());

    // HOW is the backends' business.
    std::vector<float> x(kTokens * kEmbd, 0.5f), y(kTokens * kEmbd);
    executor.set_input(program, "x", std::as_bytes(std::span(x)));
    executor.run(program);
    executor.read_output(program, "y", std::as_writable_bytes(std::span(y)));
    std::printf("y[0] = %.6f %.6f %.6f ...\n", double{y[0]}, double{y[1]}, double{y[2]});
}

}  // namespace

int main(int argc, char** argv) {
    try {
        run(argc > 1 ? argv[1] : "ffn_down=ref1");
    } catch (const Error& error) {
        std::fprintf(stderr, "two_devices: %s\n", error.what());
        return 1;
    }
}
