#include "convert/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "ggmlx/core/error.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using nlohmann::json;

constexpr size_t kMaxRank = 8;
constexpr SourceType kTypes[] = {
    SourceType::Bool, SourceType::U8,  SourceType::I8,  SourceType::F8_E5M2, SourceType::F8_E4M3, SourceType::F8_E8M0,
    SourceType::I16,  SourceType::U16, SourceType::F16, SourceType::BF16,    SourceType::I32,     SourceType::U32,
    SourceType::F32,  SourceType::I64, SourceType::U64, SourceType::F64,     SourceType::C64};

std::optional<SourceType> type_from_name(std::string_view wanted) {
    for (SourceType type : kTypes)
        if (name(type) == wanted) return type;
    return std::nullopt;
}

/// What may come next. The header is {"name": {"dtype": S, "shape": [N…], "data_offsets": [N, N]}, …} and
/// "__metadata__": {"key": "value", …}.
enum class State { Start, Names, Metadata, Tensor, Shape, Offsets, End };
enum class Field { None, DType, Shape, Offsets };

class Handler : public json::json_sax_t {
  public:
    explicit Handler(const std::string& path) : path_(path) {}
    std::vector<SourceTensor> take() { return std::move(tensors_); }

    bool start_object(size_t) override {
        if (state_ == State::Start) return enter(State::Names);
        if (state_ == State::Names && name_ == "__metadata__") return enter(State::Metadata);
        if (state_ == State::Names) {
            tensor_ = {};
            tensor_.name = name_;
            fields_.clear();
            return enter(State::Tensor);
        }
        unexpected("an object");
    }
    bool end_object() override {
        if (state_ == State::Names) return enter(State::End);
        if (state_ == State::Tensor) finish_tensor();
        return enter(State::Names);
    }
    bool key(std::string& key) override {
        if (state_ == State::Names) {
            ggmlx::require(names_.insert(key).second, ErrorKind::CorruptFile, "{}: duplicate tensor name \"{}\"", path_,
                           key);
            name_ = key;
        } else if (state_ == State::Tensor) {
            field_ = key == "dtype"          ? Field::DType
                     : key == "shape"        ? Field::Shape
                     : key == "data_offsets" ? Field::Offsets
                                             : Field::None;
            ggmlx::require(field_ != Field::None, ErrorKind::CorruptFile,
                           "{}: tensor \"{}\" has an unknown field \"{}\"", path_, name_, key);
            ggmlx::require(fields_.insert(field_).second, ErrorKind::CorruptFile,
                           "{}: tensor \"{}\" has a duplicate field \"{}\"", path_, name_, key);
        }
        return true;
    }
    bool start_array(size_t) override {
        if (state_ == State::Tensor && field_ == Field::Shape) return enter(State::Shape);
        if (state_ == State::Tensor && field_ == Field::Offsets) return enter(State::Offsets);
        unexpected("a list");
    }
    bool end_array() override { return enter(State::Tensor); }
    bool string(std::string& value) override {
        if (state_ == State::Metadata) return true;
        if (state_ != State::Tensor || field_ != Field::DType) unexpected("a string");
        const auto type = type_from_name(value);
        ggmlx::require(type.has_value(), ErrorKind::CorruptFile, "{}: tensor \"{}\" has the unknown dtype \"{}\"",
                       path_, name_, value);
        tensor_.type = *type;
        return true;
    }
    bool number_unsigned(uint64_t value) override {
        if (state_ == State::Offsets) {
            offsets_.push_back(value);
            return offsets_.size() <= 2 || fail_with("has more than two data_offsets");
        }
        if (state_ != State::Shape) unexpected("a number");
        if (value > INT64_MAX) fail_with("has an extent above 2^63");
        if (tensor_.shape.size() == kMaxRank) fail_with("has more than 8 dimensions");
        tensor_.shape.push_back(static_cast<int64_t>(value));
        return true;
    }
    bool number_integer(int64_t) override { unexpected("a negative number"); }
    bool number_float(double, const std::string&) override { unexpected("a fraction"); }
    bool null() override { unexpected("null"); }
    bool boolean(bool) override { unexpected("a boolean"); }
    bool binary(json::binary_t&) override { unexpected("binary data"); }
    bool parse_error(size_t position, const std::string&, const json::exception& error) override {
        ggmlx::fail(ErrorKind::CorruptFile, "{}: the header is no valid JSON at byte {}: {}", path_, position,
                    error.what());
    }

  private:
    bool enter(State next) {
        state_ = next;
        return true;
    }
    [[noreturn]] bool fail_with(std::string_view what) const {
        ggmlx::fail(ErrorKind::CorruptFile, "{}: tensor \"{}\" {}", path_, name_, what);
    }
    [[noreturn]] void unexpected(std::string_view what) const {
        if (state_ == State::Start || name_.empty())
            ggmlx::fail(ErrorKind::CorruptFile, "{}: the header should be a JSON object, but {} was found", path_,
                        what);
        ggmlx::fail(ErrorKind::CorruptFile, "{}: in the header's entry \"{}\", {} is out of place", path_, name_, what);
    }
    void finish_tensor() {
        if (fields_.size() != 3) fail_with("lacks dtype, shape or data_offsets");
        if (offsets_.size() != 2 || offsets_[0] > offsets_[1]) fail_with("has no valid pair of data_offsets");
        tensor_.offset = offsets_[0];
        tensor_.size_bytes = offsets_[1] - offsets_[0];
        offsets_.clear();
        tensors_.push_back(std::move(tensor_));
    }

    const std::string& path_;
    State state_ = State::Start;
    Field field_ = Field::None;
    std::string name_;
    SourceTensor tensor_;
    std::vector<uint64_t> offsets_;
    std::unordered_set<Field> fields_;
    std::unordered_set<std::string> names_;
    std::vector<SourceTensor> tensors_;
};

}  // namespace

std::vector<SourceTensor> parse_safetensors_header(std::string_view text, const std::string& path) {
    Handler handler(path);
    json::sax_parse(text, &handler);
    return handler.take();
}

}  // namespace convert
