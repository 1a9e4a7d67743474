#include "src/tokenizer/metaspace.h"

#include "ggmlx/core/error.h"
#include "src/tokenizer/fields.h"
#include "src/tokenizer/utf8.h"

namespace llm {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;

namespace {

Metaspace::Prepend parse_prepend(const Fields& fields) {
    const bool add_prefix_space = fields.flag("add_prefix_space", true);
    const std::string scheme = fields.text("prepend_scheme", add_prefix_space ? "always" : "never");
    require(add_prefix_space || scheme == "never", ErrorKind::CorruptFile,
            "tokenizer.json: {} has add_prefix_space false, but prepend_scheme '{}'", fields.where(), scheme);
    if (scheme == "always") return Metaspace::Prepend::Always;
    if (scheme == "first") return Metaspace::Prepend::First;
    if (scheme == "never") return Metaspace::Prepend::Never;
    fail(ErrorKind::Unsupported, "tokenizer.json: prepend_scheme '{}' of {} is not supported", scheme, fields.where());
}

}  // namespace

Metaspace parse_metaspace(const Fields& fields) {
    fields.only({"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
    Metaspace m;
    m.replacement = fields.text("replacement");
    require(!m.replacement.empty() && code_point_at(m.replacement, 0).size == m.replacement.size(),
            ErrorKind::CorruptFile, "tokenizer.json: the replacement '{}' of {} is not one character", m.replacement,
            fields.where());
    m.prepend = parse_prepend(fields);
    m.split = fields.flag("split", true);
    return m;
}

}  // namespace llm
