#include "tools/model_path.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "ggmlx/core/error.h"
#include "ggmlx/file/format.h"

namespace cli {
namespace {

namespace fs = std::filesystem;
using ggmlx::ErrorKind;

std::string suggested_output(const fs::path& folder) {
    fs::path name = folder.lexically_normal();
    if (!name.has_filename()) name = name.parent_path();
    return name.filename().string() + ".ggmx";
}

}  // namespace

bool is_model_file(const std::string& path) {
    char magic[4] = {};
    std::ifstream file(path, std::ios::binary);
    return file.read(magic, sizeof magic) && std::equal(magic, magic + sizeof magic, ggmlx::format::kMagic);
}

ggmlx::ModelFile open_model(const std::string& path) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
        const bool checkpoint = fs::exists(fs::path(path) / "config.json", ignored);
        ggmlx::require(!checkpoint, ErrorKind::InvalidArgument,
                       "{} is a checkpoint folder; make a model of it first: ggmlx convert {} -o {}", path, path,
                       suggested_output(path));
        ggmlx::fail(ErrorKind::InvalidArgument, "{} is a folder; give a .ggmx file", path);
    }
    return ggmlx::ModelFile::open(path);
}

}  // namespace cli
