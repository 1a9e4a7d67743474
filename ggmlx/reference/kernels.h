#pragma once
// The implementation of each op, one file per family. Private to the reference; callers use run_reference.

#include "ggmlx/graph/call.h"

namespace ggmlx::reference {

void get_rows(const OpCall& call);
void matmul(const OpCall& call);
void head_matmul(const OpCall& call);

void add(const OpCall& call);
void mul(const OpCall& call);
void scale(const OpCall& call);
void clamp(const OpCall& call);
void sigmoid_gate(const OpCall& call);
void slice(const OpCall& call);
void concat(const OpCall& call);
void swiglu(const OpCall& call);
void copy(const OpCall& call);

void rms_norm(const OpCall& call);
void softmax(const OpCall& call);
void divide_by_sum(const OpCall& call);
void top_k(const OpCall& call);
void router(const OpCall& call);

void rope_table(const OpCall& call);
void rope(const OpCall& call);

void cache_append(const OpCall& call);
void attention(const OpCall& call);

void experts(const OpCall& call);
void expert_rows(const OpCall& call);
void expert_matmul(const OpCall& call);
void expert_select(const OpCall& call);
void expert_sum(const OpCall& call);

/// y = swiglu(gate, up) for one value, see reference.h.
float swiglu_value(float gate, float up, const SwiGLUParams& params);

}  // namespace ggmlx::reference
