#include "src/tokenizer/model.h"

#include "ggmlx/core/error.h"
#include "src/tokenizer/bpe.h"
#include "src/tokenizer/fields.h"
#include "src/tokenizer/unigram.h"

namespace llm {

std::unique_ptr<const TokenizerModel> parse_model(TokenizerFile& file) {
    const nlohmann::json object = Fields(file.tree, "the file").at("model");
    // The oldest files have no type; the kind shows in what they have.
    const char* kind = file.has_scores ? "Unigram" : file.merges.empty() ? "" : "BPE";
    const std::string type = Fields(object, "model").text("type", kind);
    const Fields fields(object, "model " + type);
    if (type == "BPE") return parse_bpe(fields, file);
    if (type == "Unigram") return parse_unigram(fields, file);
    ggmlx::fail(ggmlx::ErrorKind::Unsupported, "tokenizer.json: {} is not supported", fields.where());
}

}  // namespace llm
