#include "convert/source.h"

#include "convert/checkpoint_source.h"
#include "convert/gguf/checkpoint.h"
#include "convert/gguf/source.h"

namespace convert {

std::unique_ptr<Source> open_source(const std::string& path) {
    return is_gguf_file(path) ? open_gguf_source(path) : open_checkpoint_source(path);
}

}  // namespace convert
