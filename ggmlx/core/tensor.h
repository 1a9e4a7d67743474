#pragma once
// Tensor: a small handle to the description of an array. It says what the array is (type, shape, name), never where it
// lives or what it holds: a weight's home is decided by placement, an intermediate's by a plan.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ggmlx/core/dtype.h"
#include "ggmlx/core/shape.h"

namespace ggmlx {

/// What a weight is for; stored in the file, used by placement and by quantization recipes. Values are file ids.
enum class Role : uint8_t {
    Dense = 0,         ///< feed-forward matrices that every token uses
    Attention = 1,     ///< attention projections and their biases
    Router = 2,        ///< scores the experts
    Expert = 3,        ///< stacked routed experts, [n_expert, …]
    SharedExpert = 4,  ///< experts that every token uses
    Norm = 5,
    Embedding = 6,  ///< token_embd
    Output = 7,     ///< the head that gives logits
    Table = 8,      ///< read-only lookup tables
    Cache = 9,      ///< state that a model writes (KV cache); never in a file
};
inline constexpr int kRoleCount = 10;
std::string_view name(Role role);
std::optional<Role> role_from_id(uint32_t id);

enum class TensorKind : uint8_t {
    Weight,  ///< immutable after load; owned by a TensorSet
    State,   ///< written by graphs, survives them (KV cache); owned by a TensorSet
    Input,   ///< set before each run; owned by a Graph
    Value,   ///< computed by a node; owned by a Graph
};

struct TensorInfo {
    std::string name;
    DType dtype = DType::F32;
    Shape shape;
    TensorKind kind = TensorKind::Value;
    Role role = Role::Dense;
    int32_t id = -1;        ///< index within its owner (TensorSet or Graph)
    int32_t producer = -1;  ///< the node that computes it; -1 for weights, states and inputs
    const TensorInfo* alias_of =
        nullptr;  ///< the tensor whose bytes this one shares (a reshape, or a state after an append)
};

/// Cheap to copy; empty by default. The TensorSet or Graph it came from must outlive it.
class Tensor {
  public:
    Tensor() = default;
    explicit Tensor(const TensorInfo* info) : info_(info) {}
    explicit operator bool() const { return info_ != nullptr; }
    bool operator==(const Tensor&) const = default;

    const TensorInfo& info() const { return *info_; }
    const std::string& name() const { return info_->name; }
    DType dtype() const { return info_->dtype; }
    const Shape& shape() const { return info_->shape; }
    int64_t dim(int i) const { return info_->shape[i]; }
    TensorKind kind() const { return info_->kind; }
    /// The tensor that owns the bytes: follows alias_of to its end.
    Tensor storage() const {
        const TensorInfo* root = info_;
        while (root->alias_of) root = root->alias_of;
        return Tensor(root);
    }

  private:
    const TensorInfo* info_ = nullptr;
};

/// The weights and states of one model: described once, referred to by graphs. Handles stay valid while it lives.
class TensorSet {
  public:
    TensorSet() = default;
    TensorSet(const TensorSet&) = delete;
    TensorSet& operator=(const TensorSet&) = delete;
    TensorSet(TensorSet&&) = default;
    TensorSet& operator=(TensorSet&&) = default;

    /// Throws invalid_argument if the name is taken or the kind is not Weight or State.
    Tensor add(std::string name, DType dtype, Shape shape, Role role, TensorKind kind = TensorKind::Weight);
    std::optional<Tensor> find(std::string_view name) const;
    /// As find, but absence throws invalid_argument.
    Tensor get(std::string_view name) const;

    int32_t size() const { return static_cast<int32_t>(infos_.size()); }
    Tensor operator[](int32_t id) const { return Tensor(&infos_[static_cast<size_t>(id)]); }

  private:
    std::deque<TensorInfo> infos_;  // a deque: addresses stay valid while it grows
    std::unordered_map<std::string, int32_t> by_name_;
};

}  // namespace ggmlx
