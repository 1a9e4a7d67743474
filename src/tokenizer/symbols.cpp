#include "src/tokenizer/symbols.h"

#include <fmt/format.h>

#include "src/tokenizer/utf8.h"

namespace llm {

SymbolTable::SymbolTable(const Vocab& vocab) {
    low_.fill(-1);
    for (TokenId id = 0; id < vocab.id_end(); ++id) {
        const std::string_view token = vocab.token(id);
        if (token.empty()) continue;
        const CodePoint c = code_point_at(token, 0);
        if (c.size != token.size()) continue;
        if (c.value < low_.size())
            low_[c.value] = id;
        else
            others_.set(c.value, id);
    }
    for (size_t byte = 0; byte < bytes_.size(); ++byte)
        bytes_[byte] = vocab.find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
}

}  // namespace llm
