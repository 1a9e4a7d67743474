#pragma once
// Decoders: token spellings -> text. ByteLevel, Metaspace, Replace, ByteFallback, Fuse, Strip, Sequence. A decoder is a
// chain of steps through which text flows as it becomes certain, so that whole and streamed decoding are the same code.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace llm {

/// A part of a token on its way through the chain; always whole characters.
struct TokenPart {
    std::string_view text;
    bool begins = true;  ///< this is the token's start
    bool ends = true;    ///< and this its end
};

/// One step. It changes while text flows through it; a fresh copy serves each decoding.
class DecodeStep {
  public:
    virtual ~DecodeStep() = default;
    virtual std::unique_ptr<DecodeStep> clone() const = 0;

    /// Takes a part and gives to the next step what is certain now.
    virtual void push(const TokenPart& part) = 0;
    /// No more tokens come.
    virtual void finish() { next_->finish(); }

    void set_next(DecodeStep* next) { next_ = next; }

  protected:
    DecodeStep* next_ = nullptr;  // belongs to the chain
};

/// The steps in order.
using DecodeChain = std::vector<std::unique_ptr<DecodeStep>>;

/// From tokenizer.json's "decoder"; null: tokens with a space between them. Throws unsupported for a type that is not
/// listed above.
DecodeChain parse_decoder(const nlohmann::json& json);

/// One decoding by a copy of a chain. Owned by one thread.
class Decoding {
  public:
    explicit Decoding(const DecodeChain& chain);
    ~Decoding();
    Decoding(const Decoding&) = delete;
    Decoding& operator=(const Decoding&) = delete;

    void push(std::string_view token);
    void finish();
    /// The text that became certain since the last call.
    std::string take();

  private:
    class Sink;
    DecodeChain chain_;
    std::unique_ptr<Sink> sink_;
};

}  // namespace llm
