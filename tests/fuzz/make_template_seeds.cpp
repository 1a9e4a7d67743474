// make_template_seeds FOLDER: the templates of tests/data/chat-templates for the fuzz target to start from.

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

int main(int argc, char** argv) try {
    namespace fs = std::filesystem;
    if (argc != 2) {
        std::fputs("usage: make_template_seeds FOLDER\n", stderr);
        return 2;
    }
    const fs::path folder = argv[1], data = GGMLX_TEST_DATA "/chat-templates";
    fs::create_directories(folder);
    for (const auto& entry : fs::directory_iterator(data))
        if (entry.path().extension() == ".jinja") fs::copy_file(entry.path(), folder / entry.path().filename());
    std::ifstream file(data / "language.json");
    int n = 0;
    for (const auto& group : nlohmann::json::parse(file)["groups"])
        for (const auto& c : group)
            std::ofstream(folder / ("language" + std::to_string(n++))) << c["template"].get<std::string>();
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
