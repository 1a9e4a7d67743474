#include "ggmlx/reference/kernels.h"
#include "ggmlx/reference/reference.h"

namespace ggmlx {

void run_reference(const OpCall& call) {
    switch (call.op) {
        case Op::GetRows:
            return reference::get_rows(call);
        case Op::RmsNorm:
            return reference::rms_norm(call);
        case Op::Matmul:
            return reference::matmul(call);
        case Op::HeadMatmul:
            return reference::head_matmul(call);
        case Op::Add:
            return reference::add(call);
        case Op::Mul:
            return reference::mul(call);
        case Op::Scale:
            return reference::scale(call);
        case Op::Clamp:
            return reference::clamp(call);
        case Op::SigmoidGate:
            return reference::sigmoid_gate(call);
        case Op::Slice:
            return reference::slice(call);
        case Op::Concat:
            return reference::concat(call);
        case Op::SwiGLU:
            return reference::swiglu(call);
        case Op::Softmax:
            return reference::softmax(call);
        case Op::TopK:
            return reference::top_k(call);
        case Op::DivideBySum:
            return reference::divide_by_sum(call);
        case Op::Router:
            return reference::router(call);
        case Op::RopeTable:
            return reference::rope_table(call);
        case Op::Rope:
            return reference::rope(call);
        case Op::CacheAppend:
            return reference::cache_append(call);
        case Op::Attention:
            return reference::attention(call);
        case Op::Experts:
            return reference::experts(call);
        case Op::ExpertRows:
            return reference::expert_rows(call);
        case Op::ExpertMatmul:
            return reference::expert_matmul(call);
        case Op::ExpertSelect:
            return reference::expert_select(call);
        case Op::ExpertSum:
            return reference::expert_sum(call);
        case Op::Copy:
            return reference::copy(call);
    }
}

}  // namespace ggmlx
