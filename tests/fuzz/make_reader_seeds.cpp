// make_reader_seeds FOLDER: small valid files for the fuzz target of the reader to start from.

#include <cstdio>
#include <exception>
#include <filesystem>

#include "ggmlx/file/sample_model.h"

int main(int argc, char** argv) try {
    using namespace ggmlx;
    if (argc != 2) {
        std::fputs("usage: make_reader_seeds FOLDER\n", stderr);
        return 2;
    }
    const std::string folder = argv[1];
    std::filesystem::create_directories(folder);
    const std::vector<TensorToWrite> tensors = {{"norm", DType::F32, Role::Norm, {5}},
                                                {"exps", DType::MXFP4, Role::Expert, {2, 3, 32}},
                                                {"bias", DType::F16, Role::Expert, {2, 3}},
                                                {"q", DType::Q4_1, Role::Attention, {2, 2, 1, 33}}};
    for (bool compress : {false, true})
        test::write_model(folder + (compress ? "/compressed.ggmx" : "/raw.ggmx"),
                          {{"config.json", R"({"a": 1})"}, {"empty", ""}}, tensors, compress);
    test::write_model(folder + "/documents.ggmx", {{"config.json", "{}"}}, {}, false);
    test::write_model(folder + "/nothing.ggmx", {}, {}, false);
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
