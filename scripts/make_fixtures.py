#!/usr/bin/env python3
"""Makes the tiny random checkpoints of tests/data/fixtures with Hugging Face transformers, float32 on the CPU.

Each fixture is a folder as `save_pretrained` writes it (config.json, generation_config.json, model.safetensors or
shards with their index) and reference.safetensors, computed from the reloaded checkpoint. For every prompt pN of N
random ids, N = 1, 7, 33, 150:
    pN.ids            I32 [N]
    pN.logits         F32 [N, n_vocab]; of p150 only the last 8 rows, positions 142 ... 149
    pN.greedy         I32 [24]  greedy continuation, never stopped by an end-of-sequence id
    pN.greedy_margin  F32 [24]  best logit minus the second best, at each of these steps
A fixture that does not depend enough on what it is meant to test, or whose float32 logits are not close to float64,
is an error: the numbers are printed.

Usage: make_fixtures.py --out DIR [--only NAME ...]
Needs torch, transformers >= 5 and safetensors; no network.
"""

import argparse
import sys
import traceback
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

PROMPT_LENGTHS = (1, 7, 33, 150)
LAST_ROWS = 8  # rows of logits kept for the longest prompt
N_GREEDY = 24

MIN_CHANGE = 1e-2  # what a variant must move some logit by
MAX_FLOAT64_ERROR = 2e-5


@dataclass
class Variant:
    """A wrong reading of the fixture. Its logits must differ, or the fixture could not tell the two apart."""

    label: str
    config: dict = field(default_factory=dict)  # replaces entries of the fixture's config
    weights_named: str = ""  # every weight whose name contains this ...
    become: float = 0.0  # ... is filled with this


@dataclass
class Fixture:
    model_type: str
    config: dict
    variants: list[Variant]
    bf16: bool = False  # weights are rounded to and stored as bfloat16; arithmetic stays float32
    n_shards: int = 1


def rope(rope_type="default", theta=10000.0, **scaling):
    return {"rope_type": rope_type, "rope_theta": theta, **scaling}


def sizes(n_embd, n_ff, n_head, n_head_kv, n_layer, n_vocab):
    return {
        "hidden_size": n_embd,
        "intermediate_size": n_ff,
        "num_attention_heads": n_head,
        "num_key_value_heads": n_head_kv,
        "num_hidden_layers": n_layer,
        "vocab_size": n_vocab,
        "max_position_embeddings": 256,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


UNSCALED = Variant("no rope scaling", {"rope_parameters": rope()})

LLAMA = {
    **sizes(n_embd=64, n_ff=172, n_head=4, n_head_kv=2, n_layer=2, n_vocab=203),
    "head_dim": 16,
    "tie_word_embeddings": True,
    # Wavelengths 6.3, 20, 63 ... fall below 8, between, and above 32: all three cases of the rule.
    "rope_parameters": rope(
        "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32
    ),
}
LLAMA_VARIANTS = [
    UNSCALED,
    Variant("rope theta 500000", {"rope_parameters": {**LLAMA["rope_parameters"], "rope_theta": 500000.0}}),
]

LLAMA_LINEAR = {
    **sizes(n_embd=40, n_ff=68, n_head=5, n_head_kv=1, n_layer=2, n_vocab=203),
    "head_dim": 8,
    "tie_word_embeddings": True,
    "rope_parameters": rope("linear", factor=4.0),
}

QWEN2_SWA = {
    **sizes(n_embd=32, n_ff=60, n_head=2, n_head_kv=2, n_layer=3, n_vocab=127),
    "tie_word_embeddings": False,
    "use_sliding_window": True,
    "sliding_window": 32,
    "max_window_layers": 1,
    "rope_parameters": rope(theta=1000000.0),
}

QWEN3_YARN = {
    **sizes(n_embd=32, n_ff=52, n_head=4, n_head_kv=1, n_layer=2, n_vocab=203),
    "head_dim": 24,
    "tie_word_embeddings": True,
    "rope_parameters": rope("yarn", factor=8.0, original_max_position_embeddings=32),
}

FIXTURES = {
    "llama": Fixture("llama", LLAMA, LLAMA_VARIANTS),
    "llama_bf16": Fixture("llama", LLAMA, LLAMA_VARIANTS, bf16=True),
    "llama_untied": Fixture(
        "llama",
        {
            **sizes(n_embd=42, n_ff=76, n_head=3, n_head_kv=3, n_layer=2, n_vocab=203),
            "head_dim": 20,
            "attention_bias": True,
            "mlp_bias": True,
            "tie_word_embeddings": False,
            "rope_parameters": rope(),
        },
        [
            Variant("no q bias", weights_named="q_proj.bias"),
            Variant("no v bias", weights_named="v_proj.bias"),
            Variant("no o bias", weights_named="o_proj.bias"),
            Variant("no gate bias", weights_named="gate_proj.bias"),
            Variant("no up bias", weights_named="up_proj.bias"),
            Variant("no down bias", weights_named="down_proj.bias"),
        ],
    ),
    "llama_linear": Fixture("llama", LLAMA_LINEAR, [UNSCALED]),
    "llama_sharded": Fixture("llama", LLAMA_LINEAR, [UNSCALED], n_shards=2),
    # Rows of 256 and 512 values, for block types of 256. bfloat16 and a single layer keep the file small.
    "llama_k": Fixture(
        "llama",
        {
            **sizes(n_embd=256, n_ff=512, n_head=4, n_head_kv=1, n_layer=1, n_vocab=128),
            "head_dim": 64,
            "tie_word_embeddings": True,
            "rope_parameters": rope(),
        },
        [Variant("rope theta 500000", {"rope_parameters": rope(theta=500000.0)})],
        bf16=True,
    ),
    "mistral": Fixture(
        "mistral",
        {
            **sizes(n_embd=40, n_ff=68, n_head=4, n_head_kv=2, n_layer=2, n_vocab=101),
            "head_dim": 24,
            "tie_word_embeddings": False,
            "sliding_window": 32,
            "rope_parameters": rope(),
        },
        [Variant("no window", {"sliding_window": None}), Variant("window one longer", {"sliding_window": 33})],
    ),
    "qwen2": Fixture(
        "qwen2",
        {
            **sizes(n_embd=48, n_ff=84, n_head=3, n_head_kv=1, n_layer=2, n_vocab=131),
            "tie_word_embeddings": False,
            "use_sliding_window": False,
            "sliding_window": 32,
            "rope_parameters": rope(theta=1000000.0),
        },
        [
            Variant("no q bias", weights_named="q_proj.bias"),
            Variant("no v bias", weights_named="v_proj.bias"),
            Variant("window of 32", {"use_sliding_window": True, "max_window_layers": 0}),
        ],
    ),
    "qwen2_swa": Fixture(
        "qwen2",
        QWEN2_SWA,
        [
            Variant("no window", {"use_sliding_window": False}),
            Variant("window in all layers", {"max_window_layers": 0}),
            Variant("window in the last layer only", {"max_window_layers": 2}),
            Variant("window one longer", {"sliding_window": 33}),
        ],
    ),
    "qwen3": Fixture(
        "qwen3",
        {
            **sizes(n_embd=48, n_ff=100, n_head=4, n_head_kv=2, n_layer=2, n_vocab=203),
            "head_dim": 16,
            "tie_word_embeddings": True,
            "rope_parameters": rope(theta=1000000.0),
        },
        [
            Variant("q norm of ones", weights_named="q_norm.weight", become=1.0),
            Variant("k norm of ones", weights_named="k_norm.weight", become=1.0),
        ],
    ),
    "qwen3_yarn": Fixture(
        "qwen3",
        QWEN3_YARN,
        [
            UNSCALED,
            Variant(
                "yarn without its magnitude",
                {"rope_parameters": {**QWEN3_YARN["rope_parameters"], "attention_factor": 1.0}},
            ),
            Variant("linear", {"rope_parameters": rope("linear", factor=8.0)}),
        ],
    ),
}


MIXTRAL = {
    **sizes(n_embd=40, n_ff=52, n_head=4, n_head_kv=2, n_layer=2, n_vocab=101),
    "tie_word_embeddings": False,
    "num_local_experts": 6,
    "num_experts_per_tok": 2,
    "sliding_window": None,
    "rope_parameters": rope(theta=1000000.0),
}

QWEN2_MOE = {
    **sizes(n_embd=40, n_ff=76, n_head=4, n_head_kv=2, n_layer=3, n_vocab=101),
    "tie_word_embeddings": False,
    "num_experts": 7,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 36,
    "shared_expert_intermediate_size": 44,
    "norm_topk_prob": False,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [1],
    "use_sliding_window": False,
    "rope_parameters": rope(theta=1000000.0),
}

QWEN3_MOE = {
    **sizes(n_embd=40, n_ff=68, n_head=4, n_head_kv=1, n_layer=3, n_vocab=101),
    "head_dim": 16,
    "tie_word_embeddings": False,
    "num_experts": 8,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 36,
    "norm_topk_prob": True,
    "decoder_sparse_step": 2,  # layer 1 has experts, 0 and 2 have none
    "mlp_only_layers": [],
    "rope_parameters": rope(theta=1000000.0),
}

OLMOE = {
    **sizes(n_embd=48, n_ff=44, n_head=4, n_head_kv=2, n_layer=2, n_vocab=101),
    "tie_word_embeddings": False,
    "num_experts": 8,
    "num_experts_per_tok": 3,
    "norm_topk_prob": False,
    "clip_qkv": 1.25,
    "rope_parameters": rope(),
}

GPT_OSS = {
    **sizes(n_embd=64, n_ff=96, n_head=4, n_head_kv=2, n_layer=2, n_vocab=101),
    "head_dim": 16,
    "tie_word_embeddings": False,
    "num_local_experts": 6,
    "num_experts_per_tok": 3,
    "sliding_window": 24,
    "rope_parameters": rope(
        "yarn", theta=150000.0, factor=8.0, beta_fast=32.0, beta_slow=1.0, truncate=False,
        original_max_position_embeddings=32,
    ),
}

DEEPSEEK_V2 = {
    **sizes(n_embd=40, n_ff=60, n_head=4, n_head_kv=4, n_layer=3, n_vocab=101),
    "tie_word_embeddings": False,
    "q_lora_rank": 24,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 20,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "n_shared_experts": 2,
    "moe_intermediate_size": 28,
    "first_k_dense_replace": 1,
    "topk_method": "group_limited_greedy",
    "n_group": 4,
    "topk_group": 2,
    "norm_topk_prob": False,
    "routed_scaling_factor": 1.5,
    "rope_parameters": rope(
        "yarn", factor=8.0, beta_fast=32, beta_slow=1, mscale=0.707, mscale_all_dim=0.707,
        original_max_position_embeddings=32,
    ),
}
DEEPSEEK_V2_LITE = {
    **DEEPSEEK_V2,
    "q_lora_rank": None,
    "topk_method": "greedy",
    "n_group": None,
    "topk_group": None,
    "routed_scaling_factor": 1.0,
    "rope_parameters": rope(),
}

DEEPSEEK_V3 = {
    **{name: value for name, value in DEEPSEEK_V2.items() if name != "topk_method"},
    "n_shared_experts": 1,
    "norm_topk_prob": True,
    "routed_scaling_factor": 2.5,
    "rope_parameters": rope(
        "yarn", factor=8.0, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0,
        original_max_position_embeddings=32,
    ),
}

GLM4_MOE = {
    **sizes(n_embd=40, n_ff=60, n_head=4, n_head_kv=2, n_layer=3, n_vocab=101),
    "head_dim": 16,
    "tie_word_embeddings": False,
    "attention_bias": True,
    "use_qk_norm": True,
    "partial_rotary_factor": 0.5,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "n_shared_experts": 1,
    "moe_intermediate_size": 36,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
    "norm_topk_prob": True,
    "routed_scaling_factor": 1.5,
    "rope_parameters": {**rope(theta=1000000.0), "partial_rotary_factor": 0.5},
}

MINIMAX_M2 = {
    **sizes(n_embd=40, n_ff=36, n_head=4, n_head_kv=2, n_layer=2, n_vocab=101),
    "head_dim": 16,
    "tie_word_embeddings": False,
    "num_local_experts": 8,
    "num_experts_per_tok": 3,
    "rope_parameters": {**rope(theta=5000000.0), "partial_rotary_factor": 0.5},
}

SELECTION_BIAS = Variant("no selection bias", weights_named="e_score_correction_bias")

FIXTURES |= {
    "mixtral": Fixture("mixtral", MIXTRAL, [Variant("one expert a token", {"num_experts_per_tok": 1})]),
    "qwen2_moe": Fixture(
        "qwen2_moe",
        QWEN2_MOE,
        [
            Variant("weights normalised", {"norm_topk_prob": True}),
            Variant("shared gate of zeros", weights_named="shared_expert_gate"),
            Variant("no q bias", weights_named="q_proj.bias"),
        ],
    ),
    "qwen3_moe": Fixture("qwen3_moe", QWEN3_MOE, [Variant("weights not normalised", {"norm_topk_prob": False})]),
    "olmoe": Fixture(
        "olmoe",
        OLMOE,
        [
            Variant("no clip", {"clip_qkv": None}),
            Variant("weights normalised", {"norm_topk_prob": True}),
            Variant("q norm of ones", weights_named="q_norm.weight", become=1.0),
        ],
    ),
    "gpt_oss": Fixture(
        "gpt_oss",
        GPT_OSS,
        [
            Variant("no sinks", weights_named="sinks", become=-1e9),
            Variant("window one longer", {"sliding_window": 25}),
            Variant("no router bias", weights_named="router.bias"),
            Variant("no gate and up bias", weights_named="gate_up_proj_bias"),
            Variant("no down bias", weights_named="down_proj_bias"),
            Variant("yarn rounded", {"rope_parameters": {**GPT_OSS["rope_parameters"], "truncate": True}}),
        ],
    ),
    "deepseek_v2": Fixture(
        "deepseek_v2",
        DEEPSEEK_V2,
        [
            Variant("no groups", {"topk_method": "greedy"}),
            UNSCALED,
            Variant("scale 1", {"routed_scaling_factor": 1.0}),
        ],
    ),
    "deepseek_v2_lite": Fixture("deepseek_v2", DEEPSEEK_V2_LITE, []),
    "deepseek_v3": Fixture(
        "deepseek_v3",
        DEEPSEEK_V3,
        [
            SELECTION_BIAS,
            Variant("no groups", {"n_group": 1, "topk_group": 1}),
            Variant("weights not normalised", {"norm_topk_prob": False}),
            UNSCALED,
        ],
    ),
    "kimi_k2": Fixture(
        "deepseek_v3", {**DEEPSEEK_V3, "n_group": 1, "topk_group": 1, "routed_scaling_factor": 2.827}, [SELECTION_BIAS]
    ),
    "glm4_moe": Fixture(
        "glm4_moe",
        GLM4_MOE,
        [SELECTION_BIAS, Variant("q norm of ones", weights_named="q_norm.weight", become=1.0)],
    ),
    "minimax_m2": Fixture(
        "minimax_m2",
        MINIMAX_M2,
        [SELECTION_BIAS, Variant("q norm of ones", weights_named="q_norm.weight", become=1.0)],
    ),
}


def build(model_type, config):
    made = AutoConfig.for_model(model_type, **config)
    made._experts_implementation = "eager"
    return AutoModelForCausalLM.from_config(made, attn_implementation="eager").float().eval()


def weights_of(model):
    """Parameters, and the selection bias of routers, which is a buffer."""
    yield from model.named_parameters()
    for name, buffer in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            yield name, buffer


def randomize(model, generator):
    """Matrices get a gain of 1.1 (embeddings and output 2), norms and sinks lie around 1, biases around 0."""

    def normal(p):
        return torch.randn(p.shape, generator=generator, dtype=torch.float32)

    with torch.no_grad():
        for name, p in weights_of(model):  # tied weights come once
            if name.endswith("bias"):
                # Those of experts are large enough to reach the clamp of gpt_oss.
                p.copy_((3.0 if "gate_up_proj_bias" in name else 0.3) * normal(p))
            elif p.dim() >= 2:
                gain = 2.0 if "embed_tokens" in name or "lm_head" in name else 1.1
                # gpt_oss stores its stacked experts as [n_expert, n_in, n_out].
                n_in = p.shape[1] if model.config.model_type == "gpt_oss" and p.dim() == 3 else p.shape[-1]
                p.copy_(normal(p) * gain / n_in**0.5)
            else:
                p.copy_(1.0 + 0.2 * normal(p))


def logits_of(model, ids):
    with torch.no_grad():
        return model(input_ids=ids[None].long(), use_cache=False).logits[0]


def greedy(model, ids):
    ids, margins = ids.clone(), []
    for _ in range(N_GREEDY):
        best = torch.topk(logits_of(model, ids)[-1], 2)
        margins.append(best.values[0] - best.values[1])
        ids = torch.cat([ids, best.indices[:1].to(ids.dtype)])
    return ids[-N_GREEDY:], torch.stack(margins)


def save(fixture, model, folder):
    if fixture.bf16:
        model = model.to(torch.bfloat16)
    limit = "1GB"
    if fixture.n_shards > 1:
        total_bytes = sum(p.numel() * p.element_size() for p in model.parameters())
        limit = int(total_bytes / fixture.n_shards * 1.1)
    model.save_pretrained(folder, max_shard_size=limit)
    n_files = len(list(folder.glob("model*.safetensors")))
    if n_files != fixture.n_shards:
        raise RuntimeError(f"{n_files} weight files written, {fixture.n_shards} wanted")


def reload(folder):
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager"
    ).eval()
    wrong = [n for n, p in model.named_parameters() if p.dtype != torch.float32]
    if wrong:
        raise RuntimeError(f"not float32 after loading: {wrong}")
    return model


def reference(model, prompts):
    tensors = {}
    for name, ids in prompts.items():
        logits = logits_of(model, ids)
        tokens, margins = greedy(model, ids)
        tensors[f"{name}.ids"] = ids
        tensors[f"{name}.logits"] = logits[-LAST_ROWS:] if len(ids) == max(PROMPT_LENGTHS) else logits
        tensors[f"{name}.greedy"] = tokens
        tensors[f"{name}.greedy_margin"] = margins
    return {name: t.clone().contiguous() for name, t in tensors.items()}


def float64_error(model, prompts, folder):
    """Largest difference to the same model in float64. transformers casts norms and softmax to torch.float32 by that
    name, so the name is lent to float64 here; only the rotary angles stay float32, as in the float32 model."""
    wide = reload(folder).double()
    worst = 0.0
    for ids in prompts.values():
        narrow_logits = logits_of(model, ids).double()
        with mock.patch.object(torch, "float32", torch.float64):
            wide_logits = logits_of(wide, ids)
        if wide_logits.dtype != torch.float64:
            raise RuntimeError(f"the float64 model computed {wide_logits.dtype}")
        worst = max(worst, (wide_logits - narrow_logits).abs().max().item())
    return worst


def change(fixture, variant, model, ids):
    other = build(fixture.model_type, {**fixture.config, **variant.config})
    other.load_state_dict(model.state_dict())
    n_changed = 0
    with torch.no_grad():
        for name, p in weights_of(other):
            if variant.weights_named and variant.weights_named in name:
                p.fill_(variant.become)
                n_changed += 1
    if variant.weights_named and n_changed == 0:
        raise RuntimeError(f"no weight is named {variant.weights_named}")
    return (logits_of(other, ids) - logits_of(model, ids))[-LAST_ROWS:].abs().max().item()


def check(fixture, model, prompts, folder):
    problems = []
    for variant in fixture.variants:
        moved = change(fixture, variant, model, prompts[f"p{max(PROMPT_LENGTHS)}"])
        print(f"  {variant.label}: logits change by {moved:.3g}")
        if not moved > MIN_CHANGE:
            problems.append(f"{variant.label} is hardly visible: {moved:.3g}")
    error = float64_error(model, prompts, folder)
    print(f"  float32 to float64: {error:.3g}")
    if not error < MAX_FLOAT64_ERROR:
        problems.append(f"float32 and float64 differ by {error:.3g}")
    if problems:
        raise RuntimeError("; ".join(problems))


def make(name, fixture, folder):
    # Variants of one configuration (bf16, sharded) share a seed, hence their weights before rounding.
    seed = zlib.crc32(repr((fixture.model_type, sorted(fixture.config.items()))).encode())
    generator = torch.Generator().manual_seed(seed)
    built = build(fixture.model_type, fixture.config)
    randomize(built, generator)
    n_vocab = fixture.config["vocab_size"]
    prompts = {
        f"p{n}": torch.randint(0, n_vocab, (n,), generator=generator, dtype=torch.int32) for n in PROMPT_LENGTHS
    }

    folder.mkdir(parents=True, exist_ok=True)
    save(fixture, built, folder)
    model = reload(folder)
    tensors = reference(model, prompts)
    save_file(tensors, folder / "reference.safetensors", metadata={"format": "pt"})

    long_logits = tensors[f"p{max(PROMPT_LENGTHS)}.logits"]
    margin = min(t.min().item() for n, t in tensors.items() if n.endswith("greedy_margin"))
    size_kib = sum(f.stat().st_size for f in folder.iterdir()) / 1024
    print(
        f"{name}: {size_kib:.0f} KiB, logits std {long_logits.std():.2f} min {long_logits.min():.2f} "
        f"max {long_logits.max():.2f}, least greedy margin {margin:.2g}"
    )
    check(fixture, model, prompts, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder to write the fixtures into")
    parser.add_argument("--only", nargs="+", choices=list(FIXTURES), default=list(FIXTURES), metavar="NAME")
    args = parser.parse_args()

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")

    failed = []
    for name in args.only:
        try:
            make(name, FIXTURES[name], args.out / name)
        except Exception:
            print(f"{name}: FAILED")
            traceback.print_exc()
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
